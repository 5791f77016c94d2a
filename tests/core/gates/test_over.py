"""What a gate's figure is over: failed and missing samples count against a percentage, and are named otherwise."""

import pytest

import gradestack

RAISE, SKIP = {"recorded": {"do": "raise"}}, {"recorded": {"do": "skip"}}


@pytest.fixture
def records(record):
    """Twenty runs, of which ten pass and ten broke, and one the grader does not apply to."""
    good = [record(f"a{number}", 1.0, model="m") for number in range(10)]
    return [*good, *(record(f"b{number}", model="m", **RAISE) for number in range(10)), record("c", model="m", **SKIP)]


def parts(verdict):
    """Return over, counted and of; of a weighted gate those of its one grader."""
    found = verdict["over"], verdict["counted"], verdict["of"]
    return tuple(each["quality"] if isinstance(each, dict) else each for each in found)


def test_conditions_take_it_over(run_lines, records):
    """A logical gate says it once for those of its conditions that are percentages."""
    conditions = [
        {"metric_key": "quality", "aggregation": "accuracy", "op": "gte", "value": 90},
        {"metric_key": "quality", "op": "gte", "value": 0.9},
    ]
    gate = {"kind": "logical", "operator": "and", "conditions": conditions}
    by_default, graded = (run_lines(records, gate=each).gates[0] for each in (gate, gate | {"over": "graded"}))
    assert [(part["over"], part["actual"]) for part in by_default["conditions"]] == [("total", 50.0), ("graded", 1.0)]
    assert [(part["over"], part["actual"]) for part in graded["conditions"]] == [("graded", 100.0), ("graded", 1.0)]


def test_missing_samples_count_as_failed_ones(run_lines, record, write_lines):
    """Rows of the dataset that no run answers; of a model they are its own."""
    dataset = write_lines([{"id": name, "expected": "x"} for name in "abcd"], "tasks.jsonl")
    runs = [record("a", 1.0, model="m"), record("b", 1.0, model="m"), *(record(x, 1.0, model="n") for x in "abcd")]
    gate = {"metric": "accuracy", "op": "gte", "value": 60}
    whole, each = run_lines(runs, dataset=str(dataset), gates=[gate, gate | {"per": "model"}]).gates
    assert (whole["actual"], *parts(whole), whole["passed"]) == (75.0, "total", 8, 8, True)
    groups = {name: (found["actual"], *parts(found)) for name, found in each["groups"].items()}
    assert groups == {"m": (50.0, "total", 4, 4), "n": (100.0, "total", 4, 4)}
    assert each["passed"] is False


def test_several_runs_count_their_own_missing_samples(run_lines, record, write_lines):
    """Of two runs, one lacks a task: its gate sees three samples, wherever its figure comes from."""
    dataset = write_lines([{"id": name, "expected": "x"} for name in "abc"], "tasks.jsonl")
    records = [record(name, 1.0, run=run) for run in (1, 2) for name in "abc" if (run, name) != (2, "c")]
    flat = {"metric": "accuracy", "op": "gte", "value": 90}
    simple = {"kind": "simple", "metric_key": "quality", "aggregation": "accuracy", "op": "gte", "value": 90}
    report = run_lines(records, dataset=str(dataset), num_runs=2, gates=[flat, simple])
    assert (report.passed, report.summary["runs"]["passed"]) == (False, 1)
    second = gradestack.load_report(report.path / "run_2")
    assert [gate["actual"] for gate in second.gates] == pytest.approx([200 / 3] * 2)


def test_upstream_has_none_of_it(run_lines, records):
    """The program's figures and keys; what the suite says of them has no effect and a warning."""
    gate = {"kind": "simple", "metric_key": "quality", "aggregation": "accuracy", "op": "gte", "value": 90}
    report = run_lines(records, gate=gate | {"over": "total"}, max_failed=0, profile="upstream")
    (found,) = report.gates
    assert (found["actual"], report.passed) == (100.0, True)
    assert not {"over", "counted", "of"} & set(found)
    ignored = [f"suite: {place}: has no effect in the profile upstream" for place in ("gate.over", "max_failed")]
    assert report.summary["warnings"] == ignored
    condition = {"metric_key": "quality", "aggregation": "accuracy", "op": "gte", "value": 90}
    logical = {"kind": "logical", "operator": "and", "conditions": [condition], "over": "total"}
    assert run_lines(records, gate=logical, profile="upstream").summary["warnings"] == ignored[:1]


@pytest.mark.parametrize(("failed", "warned"), [(1, False), (2, True)])
def test_more_than_five_per_cent_is_a_warning(run_lines, record, failed, warned):
    """One of twenty is not, two of twenty-one are; also without a gate."""
    records = [record(f"a{number}", 1.0) for number in range(19)]
    records += [record(f"b{number}", **RAISE) for number in range(failed)]
    share = "2 of 21 samples (9.5%) failed or missing for 'quality'"
    assert run_lines(records).summary["warnings"] == ([share] if warned else [])


def test_groups_that_lack_samples_are_named(run_lines, record):
    """Where the whole run has few of them, a group may have many."""
    records = [record(f"a{number}", 1.0, model="m") for number in range(60)]
    records += [record("b", 1.0, model="n\n"), record("c", model="n\n", **RAISE)]
    assert run_lines(records, gate={"op": "gte", "value": 0.5, "per": "model"}).summary["warnings"] == [
        "gate quality >= 0.5 per model: of n\\n, 1 of 2 samples (50.0%) failed or missing for 'quality' do not count"
    ]
