"""Laws of pass^k and pass@k on recordings with repeated, missing, renamed and uneven trials."""

import itertools
import json
import math
import random
from fractions import Fraction

import pytest

import gradestack
from gradestack import Grade, Outcome

METRICS = {"hat": {"kind": "pass_hat_k"}, "at": {"kind": "pass_at_k"}}


def random_recording(seed):
    """Return rows of (task, run, model, grade) as a resumed or sharded run leaves them."""
    choose = random.Random(seed)  # noqa: S311 - test data
    rows = []
    named = choose.choice(["number", "suffix", "none"])
    for task in range(choose.randint(1, 12)):
        skill = choose.random()
        for trial in range(choose.randint(1, 5)):
            name = {"number": trial, "suffix": f"t{task}.{trial}-of-5", "none": None}[named]
            copies = choose.choice([1, 1, 1, 2, 3])
            rows += [(f"t{task}", name, None, random_grade(choose, skill)) for _ in range(copies)]
    choose.shuffle(rows)
    return rows


def random_grade(choose, skill):
    if choose.random() < 0.1:
        outcome = choose.choice([Outcome.FAILED, Outcome.SKIPPED])
        return Grade(outcome=outcome)
    passed = choose.random() < skill
    return Grade(score=float(passed), passed=passed)


def trials_by_task(rows):
    """Return the verdicts of each task's trials; of one name the last, of no name each.

    Nothing where no trial was graded: there is no figure then.
    """
    tasks = {}
    for position, (task, name, _, grade) in enumerate(rows):
        key = ("unnamed", position) if name is None else name
        tasks.setdefault(task, {})[key] = grade
    grades = [grade for trials in tasks.values() for grade in trials.values()]
    if all(grade.outcome is not Outcome.GRADED for grade in grades):
        return []
    counted = []
    for trials in tasks.values():
        counted.append(
            [
                bool(grade.passed)
                for grade in trials.values()
                if grade.outcome is not Outcome.SKIPPED
            ]
        )
    return [trials for trials in counted if trials]


def renamed(rows):
    """Return the same rows under other names of runs and tasks."""
    names = {}
    renamed_rows = []
    for task, name, model, grade in rows:
        other_name = None
        if name is not None:
            other_name = names.setdefault((task, name), f"run {len(names)}")
        renamed_rows.append((f"other {task}", other_name, model, grade))
    return renamed_rows


def check_laws(rows):
    figures_found = gradestack.figures(METRICS, rows)
    tasks = trials_by_task(rows)
    if not tasks:
        assert figures_found["hat"]["pass_hat_k"] is None
        return
    least = min(map(len, tasks))
    hat = figures_found["hat"]["pass_hat_k"]
    at = figures_found["at"]["pass_at_k"]
    assert list(hat) == list(at) == [str(k) for k in range(1, least + 1)]
    for k in range(1, least + 1):
        shares = [(sum(task), len(task)) for task in tasks]
        all_pass = sum(Fraction(math.comb(c, k), math.comb(n, k)) for c, n in shares)
        none_pass = sum(Fraction(math.comb(n - c, k), math.comb(n, k)) for c, n in shares)
        assert hat[str(k)] == float(all_pass / len(tasks))
        assert at[str(k)] == float(1 - none_pass / len(tasks))
    assert hat["1"] == at["1"]
    values = list(hat.values())
    assert all(0 <= later <= earlier <= 1 for earlier, later in itertools.pairwise(values))
    expected = sorted(at.values())
    assert list(at.values()) == expected
    intervals = figures_found["hat"]["pass_hat_k_interval"]
    check_ends(intervals, falling=True)
    pass_at_k_interval = figures_found["at"]["pass_at_k_interval"]
    check_ends(pass_at_k_interval, falling=False)
    uneven = sum(len(task) > least for task in tasks)
    warning = f"{uneven} of {len(tasks)} tasks have more trials; k ends at {least}"
    warnings = figures_found["hat"].get("warnings", [])
    assert (warning in warnings) == (uneven > 0)
    other = gradestack.figures(METRICS, renamed(rows))
    pass_hat_k = other["hat"]["pass_hat_k"]
    assert pass_hat_k == hat
    pass_hat_k_interval = other["hat"]["pass_hat_k_interval"]
    assert pass_hat_k_interval == figures_found["hat"]["pass_hat_k_interval"]
    pass_at_k = other["at"]["pass_at_k"]
    assert pass_at_k == at


def check_ends(intervals, *, falling):
    for end in ("low", "high"):
        ends = []
        for interval in intervals.values():
            if end in interval:
                ends.append(interval[end])
        expected = sorted(ends, reverse=falling)
        assert ends == expected
        assert all(0 <= number <= 1 for number in ends)


@pytest.mark.parametrize("seed", range(500))
def test_laws_on_random_recordings(seed):
    check_laws(random_recording(seed))


@pytest.mark.proof
@pytest.mark.parametrize("first", range(500, 20_000, 500))
def test_laws_on_many_random_recordings(first):
    for seed in range(first, first + 500):
        check_laws(random_recording(seed))


def tau_record(task, trial, reward):
    action = {"name": "f", "kwargs": {}}
    record_info = {"task": {"user_id": "u", "actions": [action], "instruction": "x"}}
    message = {"role": "assistant", "content": "done", "tool_calls": []}
    return {
        "task_id": task,
        "trial": trial,
        "reward": reward,
        "info": record_info,
        "traj": [message],
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_earlier_copies_are_in_no_figure_and_no_row(tmp_path, seed, engine):
    """Rows, rates and figures are those of the file without them, whatever grades it."""
    choose = random.Random(seed)  # noqa: S311 - test data
    records = [
        tau_record(task, trial, float(choose.random() < 0.5))
        for task in range(6)
        for trial in range(choose.randint(1, 4))
        for _ in range(choose.choice([1, 2]))
    ]
    choose.shuffle(records)
    last = {}
    for record in records:
        last[(record["task_id"], record["trial"])] = record
    once = [record for record in records if last[record["task_id"], record["trial"]] is record]
    reports = []
    for name, content in (("all", records), ("once", once)):
        (tmp_path / name).mkdir()
        text = json.dumps(content)
        results_path = tmp_path / name / "results.json"
        results_path.write_text(text)
        paths = tmp_path / name / "results.json"
        output = tmp_path / name / "out"
        report = gradestack.grade_files(
            paths,
            output=output,
            overrides=(f"engine={engine}", "reports=[]"),
        )
        rows = []
        for row in report.rows():
            sample = row["sample"]
            run = row["run"]
            rows.append((sample["id"], run, row["grades"]))
        metrics = report.summary["metrics"]
        outcome = report.summary["outcome"]
        reports.append((rows, metrics, outcome))
        copies = len(content) - len(once)
        warning = f"{copies} record(s) repeat an (id, model, run), the first at "
        warning_texts = report.summary["warnings"]
        warnings = [
            warning_text for warning_text in warning_texts if warning_text.startswith(warning)
        ]
        assert len(warnings) == (copies > 0)
        assert all(warning_text.endswith("the last is kept") for warning_text in warnings)
    assert reports[0] == reports[1]


RESUMED = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 1)]
SHARDED = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]
PROGRAM = [(RESUMED, {"1": 1.5, "2": 3.5}), (SHARDED, {"1": 0.5, "2": 1 / 3})]


@pytest.mark.parametrize(("trials", "program"), PROGRAM, ids=["resumed", "sharded"])
def test_the_program_keeps_its_rule_and_figures_are_ours(tmp_path, trials, program):
    path = tmp_path / "results.json"
    tau_records = [tau_record(task, trial, 1.0) for task, trial in trials]
    text = json.dumps(tau_records)
    path.write_text(text)
    output = tmp_path / "o"
    report = gradestack.grade_files(
        path, output=output, profile="upstream", overrides=["reports=[]"]
    )
    reward = report.aggregates["reward"]
    pass_hat_k = reward["pass_hat_k"]["pass_hat_k"]
    assert pass_hat_k["1"] == 1.0
    o_folder = tmp_path / "o"
    native_folder = o_folder / "native"
    tau_metrics_path = native_folder / "tau_metrics.json"
    native = json.loads(tau_metrics_path.read_text())
    pass_hat_ks_by_k = {k: native["pass_hat_ks"][k] for k in program}
    assert pass_hat_ks_by_k == program
    (entry,) = report.summary["programs"]
    expected_text = f"  k=1: {program['1']}\n"
    assert expected_text in entry["console"]
    figures = entry["figures"]
    pass_1 = next(figure for figure in figures if figure["label"] == "Pass^1")
    assert pass_1["figure"] == "reward.pass_hat_k.pass_hat_k.1"


@pytest.mark.parametrize("trials", [1, 2])
def test_files_of_one_trial_each_are_models_and_the_warning_says_how_they_are_trials(
    tmp_path, trials
):
    paths = []
    for name in "abc":
        paths.append(tmp_path / f"{name}.json")
        content = []
        for task in range(3):
            for trial in range(trials):
                content.append(tau_record(task, trial, 1.0))
        text = json.dumps(content)
        last_path = paths[-1]
        last_path.write_text(text)
    report = gradestack.grade_files(paths, overrides=("reports=[]",))
    reward = report.aggregates["reward"]
    models = list(reward["pass_hat_k"]["models"])
    assert models == ["a", "b", "c"]
    warning = (
        "3 files with one run each of the same 3 tasks are 3 models, by the files' names; if they "
        "are trials of one agent: --id task_id --set reader.model=NAME"
    )
    warnings = report.summary["warnings"]
    assert (warning in warnings) == (trials == 1)
    second_report = gradestack.grade_files(
        paths, ids="task_id", overrides=("reports=[]", "reader.model=m")
    )
    hat = second_report.aggregates["reward"]["pass_hat_k"]
    assert hat["trials"] == 3 * trials
    assert hat["tasks"] == 3
    assert warning not in second_report.summary["warnings"]
