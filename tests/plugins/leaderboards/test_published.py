"""Figures that benchmarks publish, reached from made-up files of their form."""

import json
from itertools import repeat

import pytest

import gradestack


@pytest.fixture
def graded(tmp_path):
    """Grade documents by name, and return the figures of the recorded verdict."""

    def grade(files):
        for name, document in files.items():
            text = json.dumps(document)
            (tmp_path / name).write_text(text)
        paths = [tmp_path / name for name in files]
        out = tmp_path / "out"
        report = gradestack.grade_files(paths, output=out, overrides=["reports=[]"])
        metrics = report.summary["metrics"]
        return metrics["aggregates"]["recorded"]

    return grade


def trial(number, verdict):
    """Return a trial of Terminal-Bench: five of each of 80 tasks."""
    task = f"t{number % 80}"
    name = f"{task}.{number // 80 + 1}-of-5"
    about = {"task_id": task, "trial_name": name, "failure_mode": "unset"}
    return {**about, "is_resolved": verdict}


def test_terminal_bench_counts_null_verdicts_as_failures(graded):
    """159 of 400 are .3975; without the 18 trials whose verdict is null it would be .416."""
    verdicts = [*repeat(True, 159), *repeat(False, 223), *repeat(None, 18)]
    trials = [trial(number, verdict) for number, verdict in enumerate(verdicts)]
    report = {"results": trials, "n_resolved": 159, "n_unresolved": 241, "accuracy": 0.3975}
    mean = graded({"results.json": report})["mean"]["mean"]
    assert mean == 0.3975


def four_runs(task, n_passed):
    """Return the runs of a task of MCPMark, of which the first ones passed."""
    runs = {}
    for run in range(4):
        runs[f"run-{run + 1}"] = {"success": run < n_passed}
    return {"model": "m", "service": "s", "task": task, "runs": runs}


def test_mcpmark_over_four_runs(graded):
    """The figures follow from 127 tasks: 16 pass in 4 runs, 38 in 2, 3 in 1 (143 of 508 runs)."""
    passes = [*repeat(4, 16), *repeat(2, 38), *repeat(1, 3), *repeat(0, 70)]
    tasks = []
    for number, n_passed in enumerate(passes):
        tasks.append(four_runs(f"t{number}", n_passed))
    figures = graded({f"{task['task']}.json": task for task in tasks})
    mean = figures["mean"]["mean"]
    rounded = round(mean, 4)
    assert rounded == 0.2815
    pass_hat_k = figures["pass_hat_k"]["pass_hat_k"]
    assert round(pass_hat_k["4"], 4) == 0.126
    pass_at_k = figures["pass_at_k"]["pass_at_k"]
    assert round(pass_at_k["4"], 4) == 0.4488


def three_tasks(scenario, n_passed):
    """Return the results of a scenario of AppWorld, of whose tasks the first ones passed."""
    bare = {"passes": [], "failures": []}
    return {f"{scenario}_{task + 1}": {**bare, "success": task < n_passed} for task in range(3)}


def test_appworld_completes_a_scenario_where_every_task_passed(graded):
    """168 tasks in 56 scenarios of three: 40 whole, 10 with one failure, 6 with none passed."""
    passes = [*repeat(3, 40), *repeat(2, 10), *repeat(0, 6)]
    individual = {}
    for number, n_passed in enumerate(passes):
        scenario = f"s{number}"
        individual |= three_tasks(scenario, n_passed)
    figures = graded({"test_normal.json": {"aggregate": {}, "individual": individual}})
    mean = figures["mean"]["mean"]
    assert mean == 140 / 168
    goals = figures["goals"]
    assert goals["scenario_goal_completion"] == 40 / 56
    clusters = goals["scenario_goal_completion_interval"]["clusters"]
    assert clusters == 56
