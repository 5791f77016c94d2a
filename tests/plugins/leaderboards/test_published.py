"""Figures that benchmarks publish, reached from made-up files of their form."""

import json

import pytest

import gradestack


@pytest.fixture
def graded(tmp_path):
    """Grade documents by name, and return the figures of the recorded verdict."""

    def grade(files):
        for name, document in files.items():
            (tmp_path / name).write_text(json.dumps(document))
        paths = [tmp_path / name for name in files]
        out = tmp_path / "out"
        report = gradestack.grade_files(paths, output=out, overrides=["reports=[]"])
        return report.summary["metrics"]["aggregates"]["recorded"]

    return grade


def test_terminal_bench_counts_null_verdicts_as_failures(graded):
    """159 of 400 are .3975; without the 18 trials whose verdict is null it would be .416."""
    verdicts = [True] * 159 + [False] * 223 + [None] * 18
    trials = [
        {
            "task_id": f"t{number % 80}",
            "trial_name": f"t{number % 80}.{number // 80 + 1}-of-5",
            "is_resolved": verdict,
            "failure_mode": "unset",
        }
        for number, verdict in enumerate(verdicts)
    ]
    report = {"results": trials, "n_resolved": 159, "n_unresolved": 241, "accuracy": 0.3975}
    assert graded({"results.json": report})["mean"]["mean"] == 0.3975


def test_mcpmark_over_four_runs(graded):
    """Of 127 tasks 16 pass in 4 runs, 38 in 2, 3 in 1: 143 of 508 runs, 57 tasks at least once."""
    passes = [4] * 16 + [2] * 38 + [1] * 3 + [0] * 70
    files = {
        f"t{number}.json": {
            "model": "m",
            "service": "s",
            "task": f"t{number}",
            "runs": {f"run-{run + 1}": {"success": run < n_passed} for run in range(4)},
        }
        for number, n_passed in enumerate(passes)
    }
    figures = graded(files)
    assert round(figures["mean"]["mean"], 4) == 0.2815
    assert round(figures["pass_hat_k"]["pass_hat_k"]["4"], 4) == 0.126
    assert round(figures["pass_at_k"]["pass_at_k"]["4"], 4) == 0.4488


def test_appworld_completes_a_scenario_where_every_task_passed(graded):
    """168 tasks in 56 scenarios of three: 40 whole, 10 with one failure, 6 with none passed."""
    passes = [3] * 40 + [2] * 10 + [0] * 6
    individual = {
        f"s{number}_{task + 1}": {"success": task < n_passed, "passes": [], "failures": []}
        for number, n_passed in enumerate(passes)
        for task in range(3)
    }
    report = {"aggregate": {}, "individual": individual}
    figures = graded({"test_normal.json": report})
    assert figures["mean"]["mean"] == 140 / 168
    assert figures["goals"]["scenario_goal_completion"] == 40 / 56
    assert figures["goals"]["scenario_goal_completion_interval"]["clusters"] == 56
