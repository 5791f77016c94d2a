"""Gates say how many runs they stand on; on too few they are undecided."""

import json

import pytest

import gradestack
from gradestack import Expectation, ExpectedCall, Fault, Sample, Status
from gradestack.cli.commands import main
from gradestack.output import state_text
from tests.core.outcomes import write_records

GRADED = {"predicted": "x", "expected": {"text": "x"}}
LOST = {
    "skipped": {"predicted": "x"},
    "failed": {"error": "rate limit", "expected": {"text": "x"}},
    "missing": None,
    "unreadable": None,
}
"""State of a run -> the rest of its record."""
FORMS = {
    "average": {"metric_key": "text", "op": "gte", "value": 0.5},
    "accuracy": {"metric_key": "text", "metric": "accuracy", "op": "gte", "value": 5},
    "share": {"metric_key": "text", "metric": "share", "op": "gte", "value": 0.05},
    "simple": {"kind": "simple", "metric_key": "text", "op": "gte", "value": "50%"},
    "weighted": {
        "kind": "weighted_average",
        "weights": {"text": 1},
        "aggregation": "avg_score",
        "op": "gte",
        "value": 0.5,
    },
    "logical": {
        "kind": "logical",
        "operator": "and",
        "conditions": [{"metric_key": "text", "op": "gte", "value": 0.5}],
    },
    "figure": {"figure": "text.mean", "op": "gte", "value": 0.5},
    "baseline": {"metric_key": "text", "baseline": "latest", "not_worse_than": 1},
    "tasks": {"metric_key": "text", "per": "task", "at_least": 1},
}
SUITE = {
    "name": "s",
    "target": {"paths": ["runs.jsonl"]},
    "graders": {"text": "exact_match"},
    "allow_all_failed": True,
    "reports": ["junit", "github"],
}


def write(folder, records, **suite):
    """Write records and a suite into a folder; None is a line that is no record."""
    lines = [json.dumps(record) if record else "{" for record in records]
    runs_path = folder / "runs.jsonl"
    runs_path.write_text("".join(f"{line}\n" for line in lines))
    suite_path = folder / "suite.yaml"
    text = json.dumps(SUITE | suite)
    suite_path.write_text(text)


def run(monkeypatch, folder, *options):
    """Run the suite of a folder and return the exit code."""
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        main(["run", "suite.yaml", "-o", "out", *options])
    return ended.value.code


@pytest.mark.parametrize("is_quiet", [False, True])
@pytest.mark.parametrize("state", LOST)
@pytest.mark.parametrize("form", FORMS)
def test_two_of_twenty_decide_nothing(form, state, is_quiet, tmp_path, monkeypatch, capsys):
    records = []
    for number in range(2):
        records.append({"id": f"a{number}", **GRADED})
    rest = LOST[state]
    more = {}
    if state == "missing":
        gold = []
        for kind in "ab":
            for n in range(18):
                gold.append({"id": f"{kind}{n}", "expected": {"text": "x"}})
        lines = []
        for record in gold:
            if record["id"] not in [f"a{n}" for n in range(2, 18)]:
                lines.append(json.dumps(record))
        gold_path = tmp_path / "gold.jsonl"
        gold_path.write_text("\n".join(lines))
        more = {"dataset": "gold.jsonl"}
    else:
        records += [rest and {"id": f"b{number}", **rest} for number in range(18)]
    write(tmp_path, records, gate=FORMS[form], **more)
    assert run(monkeypatch, tmp_path, *["--quiet"] * is_quiet) == 1
    printed = capsys.readouterr()
    text = printed.err if is_quiet else printed.out
    expected_text = f"2 of 20 graded: {state_text(state, 18)}"
    assert expected_text in text
    assert ("undecided" if is_quiet else "UNDECIDED") in text
    if state != "unreadable":
        junit_path = tmp_path / "out/junit.xml"
        assert "2 of 20 graded" in junit_path.read_text()


@pytest.mark.slow
def test_runs_of_two_kinds_with_a_grader_each_pass(tmp_path, monkeypatch, capsys):
    """Each grader skips what the other grades; what nobody grades is required all the same."""
    call = [{"name": "f", "arguments": {}}]
    records = []
    for number in range(10):
        records.append({"id": f"a{number}", **GRADED})
    records += [
        {"id": f"b{number}", "predicted": call, "expected": {"calls": call}} for number in range(4)
    ]
    graders = {"text": "exact_match", "calls": "tool_calls", "steps": "repeats"}
    gates = [{"metric_key": key, "op": "gte", "value": 1} for key in ("text", "calls")]
    write(tmp_path, records, graders=graders, gates=gates)
    assert run(monkeypatch, tmp_path) == 0
    assert "4 of 14 graded, 10 are for text)" in capsys.readouterr().out
    records += [{"id": f"c{number}", "predicted": "x"} for number in range(5)]
    write(tmp_path, records, graders=graders, gates=gates)
    assert run(monkeypatch, tmp_path) == 1
    assert "fewer than 50% of 9 runs graded (min_graded)" in capsys.readouterr().out


CALLS = Expectation(calls=(ExpectedCall(name="f"),))
KINDS = {
    "tool_calls": CALLS,
    "tau_partial": CALLS,
    "bfcl_ast": CALLS,
    "exact_match": Expectation(text="x"),
    "one_of": Expectation(text="x"),
    "when2call": Expectation(label="direct"),
    "state_diff": Expectation(state={"assertions": []}),
}
"""Kind of a grader -> an expectation of a run that it grades."""
ALSO_COMPARED = {("exact_match", "when2call"), ("one_of", "when2call")}
"""Graders of texts take a label for one."""


def pairs_of_kinds():
    pairs = []
    for key, kind in KINDS.items():
        kinds = KINDS.items()
        pairs += [(key, other) for other, other_kind in kinds if other_kind != kind]
    return [pair for pair in pairs if pair not in ALSO_COMPARED]


@pytest.mark.parametrize("status", [Status.FAILED, Status.MISSING])
@pytest.mark.parametrize(("key", "other"), pairs_of_kinds())
def test_lost_runs_of_one_kind_are_in_no_count_of_the_other(key, other, status):
    """A run that expects other things alone is skipped, whether it failed or is missing."""
    fault = Fault(category="target", code="target_error", message="timeout")
    error = None
    if status is Status.FAILED:
        error = fault
    expected = KINDS[other]
    sample = Sample(id="b", expected=expected, status=status, error=error)
    report = gradestack.grade([sample], {kind: {"kind": kind} for kind in (key, other)})
    (row,) = report.rows()
    state = row["grades"][key]["state"]
    assert state == "skipped"
    grade = row["grades"][other]
    assert grade["state"] != "skipped"


def test_a_lost_run_that_expects_nothing_counts_for_every_grader():
    sample = {"id": "b", "error": "timeout"}
    graders = {kind: {"kind": kind} for kind in KINDS if kind not in ("bfcl_ast", "when2call")}
    (row,) = gradestack.grade([sample], graders).rows()
    grades = row["grades"].values()
    assert all(grade["state"] != "skipped" for grade in grades)


def test_the_reason_is_that_of_the_runs_the_grader_should_have_graded(
    tmp_path, monkeypatch, capsys
):
    call = [{"name": "f", "arguments": {}}]
    records = []
    for number in range(20):
        records.append({"id": f"a{number}", **GRADED})
    records += [
        {"id": f"b{number}", "predicted": call, "expected": {"calls": call}} for number in range(2)
    ]
    records += [
        {"id": f"c{number}", "error": "timeout", "expected": {"calls": call}}
        for number in range(18)
    ]
    gates = [{"metric_key": key, "op": "gte", "value": 1} for key in ("text", "calls")]
    write(tmp_path, records, graders={"text": "exact_match", "calls": "tool_calls"}, gates=gates)
    assert run(monkeypatch, tmp_path) == 1
    printed = capsys.readouterr().out
    assert "Gate (text >= 1): PASSED" in printed
    assert "20 of 40 graded, 20 are for calls)" in printed
    assert "2 of 40 graded, 20 are for text: 18 errors, timeout)" in printed
    summary_path = tmp_path / "out/summary.json"
    text = summary_path.read_text()
    summary = json.loads(text)
    coverage = summary["gates"][1]["coverage"]
    assert coverage == {
        "calls": {
            "graded": 2,
            "runs": 40,
            "elsewhere": {"text": 20},
            "states": {"failed": 18},
            "reason": "timeout",
        }
    }


def test_a_grader_of_everything_stands_in_for_nobody(tmp_path, monkeypatch):
    call = [{"name": "f", "arguments": {}}]
    records = [{"id": "a", "predicted": call, "expected": {"calls": call}}]
    records += [{"id": f"b{number}", "predicted": call} for number in range(9)]
    graders = {"calls": "tool_calls", "repeats": "repeats"}
    write(tmp_path, records, graders=graders, gate={"metric_key": "calls", "op": "gte", "value": 0})
    assert run(monkeypatch, tmp_path) == 1


@pytest.mark.parametrize(
    ("least", "outcome"), [(0, "passed"), ("20%", "passed"), (0.3, "undecided")]
)
def test_the_least_share_may_be_set(least, outcome):
    records = [
        {"id": "a", **GRADED},
        *({"id": f"b{number}", "predicted": "x"} for number in range(4)),
    ]
    report = gradestack.grade(
        records, {"text": "exact_match"}, gate={"op": "gte", "value": 1}, min_graded=least
    )
    outcomes = [gate["outcome"] for gate in report.gates]
    assert outcomes == [outcome]


TASKS = {"a": [1, 1, 1, 0], "b": [1, 1, 0, 0], "c": [1, 1, 1], "d": [1] * 6 + [0] * 2, "e": [1]}


@pytest.mark.parametrize(
    ("at_least", "failing"),
    [("3 of 4", ["b", "e"]), ("4 of 4", ["a", "b", "c", "d", "e"]), (1, []), (2, ["e"])],
)
def test_each_task_must_pass_some_of_its_runs(at_least, failing):
    """With more runs than asked for, the same share must pass; with fewer, the same number."""
    records = []
    for task, verdicts in TASKS.items():
        for number, passed in enumerate(verdicts):
            text = "x" if passed else "y"
            records.append(
                {
                    "id": task,
                    "run": number,
                    "predicted": "x",
                    "expected": {"text": text},
                }
            )
    gate = {"per": "task", "at_least": at_least}
    report = gradestack.grade(records, {"text": "exact_match"}, gate=gate)
    gate_row = report.gates[0]
    tasks = [task["task"] for task in gate_row["failing"]]
    assert tasks == failing
    assert gate_row["passed"] is not bool(failing)
    expected = 5 - len(failing)
    assert gate_row["actual"] == expected
    assert gate_row["tasks"] == 5


def test_a_figure_without_a_value_is_undecided_and_an_undeclared_one_refused(
    tmp_path, monkeypatch, capsys
):
    records = [{"id": "a", "run": number, **GRADED} for number in range(3)]
    metrics = {"pass_hat_k": {"of": "text"}}
    gate = {"figure": "text.pass_hat_k.4", "op": "gte", "value": 0.1}
    write(tmp_path, records, metrics=metrics, gate=gate)
    assert run(monkeypatch, tmp_path) == 1
    assert "UNDECIDED (actual: n/a" in capsys.readouterr().out
    write(tmp_path, records, metrics=metrics, gate=gate | {"figure": "text.pass_hat_k.tasksy"})
    assert run(monkeypatch, tmp_path) == 2
    assert "declares no figure 'tasksy'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_recorded_percentage_is_kept_with_a_warning(tmp_path, monkeypatch, capsys):
    """A recording's own gate is not the user's to mend."""
    rows = [
        {
            "sample": {"id": number, "input": "q", "ground_truth": "a"},
            "submission": "a",
            "grades": {"score": {"score": 1.0}},
        }
        for number in range(3)
    ]
    folder = tmp_path / "recorded"
    folder.mkdir()
    path = folder / "results.jsonl"
    write_records(path, rows)
    gate = {"metric_key": "score", "metric": "accuracy", "op": "gte", "value": 0.8}
    summary = {"config": {"gate": gate}, "metrics": {"by_metric": {"score": {}}}}
    summary_path = folder / "summary.json"
    text = json.dumps(summary)
    summary_path.write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["grade", "recorded", "-o", "out"])
    assert ended.value.code == 0
    assert "0.8 is a percentage here: 0.8% of the runs" in capsys.readouterr().out


BEYOND = [
    (
        {"op": "gte", "value": 80},
        'gate.value: the score of text is from 0 to 1, got 80; write "80%"',
    ),
    ({"op": "lte", "value": -1}, "gate.value: the score of text is from 0 to 1, got -1"),
    (
        {"metric": "accuracy", "op": "gte", "value": 80, "pass_value": 80},
        "gate.pass_value: the score of text is from 0 to 1, got 80",
    ),
    (
        {"kind": "simple", "metric_key": "text", "op": "gte", "value": 1, "pass_threshold": 50},
        "gate.pass_threshold: the score of text is from 0 to 1, got 50",
    ),
    (
        FORMS["weighted"] | {"value": 80},
        "gate.value: the score of text is from 0 to 1, got 80",
    ),
    (
        {"kind": "logical", "operator": "or", "conditions": [FORMS["average"] | {"value": 80}]},
        "gate.conditions[0].value: the score of text is from 0 to 1, got 80",
    ),
    (
        {"figure": "text.mean", "op": "gte", "value": 80},
        "gate.value: text.mean is from 0 to 1, got 80",
    ),
    (
        {"baseline": "latest", "not_worse_than": 5},
        'gate.not_worse_than: a difference of the score of text is from 0 to 1, got 5; write "5%"',
    ),
]


@pytest.mark.parametrize(("gate", "refusal"), BEYOND)
def test_a_threshold_beyond_every_value_is_refused(gate, refusal):
    with pytest.raises(gradestack.ConfigError) as refused:
        gradestack.grade([{"id": "a", **GRADED}], {"text": "exact_match"}, gate=gate)
    assert any(refusal in problem for problem in refused.value.problems)


def test_amounts_and_scores_of_any_scale_have_no_range():
    samples = [{"id": "a", "usage": {"input_tokens": 900}, "recorded": {"points": 7}}]
    graders = {"cost": "usage", "points": "recorded"}
    for key in graders:
        gate = {"metric_key": key, "op": "gte", "value": 5}
        report = gradestack.grade(samples, graders, gate=gate)
        first_gate = report.gates[0]
        assert first_gate["value"] == 5
