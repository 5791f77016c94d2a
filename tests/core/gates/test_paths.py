"""Gates on any figure of an aggregator, by path, and their lines."""

import pytest

from gradestack import distinguishing_decimals
from gradestack.gates.rules import NoFigure, number_at, split_path
from gradestack.gates.verdicts import gate_lines
from tests.core.outcomes import data

DATA = data(__file__, "paths.yaml")


def number(path, component):
    grader, metric, rest = split_path(path, DATA["aggregates"])
    return number_at(DATA["aggregates"][grader][metric], rest, (metric, component), f"{grader}.{metric}")[0]


@pytest.mark.parametrize(("path", "component", "value"), DATA["leads"])
def test_where_a_path_leads(path, component, value):
    """A figure named as its metric may be left out; keys may hold dots."""
    assert number(path if isinstance(path, str) else ".".join(path), component) == value


@pytest.mark.parametrize(("path", "text"), DATA["ends"])
def test_where_a_path_ends(path, text):
    with pytest.raises(NoFigure) as caught:
        number(path, "pass_hat_k")
    assert str(caught.value) == text


RECORDS = [("a", 1.0, 1), ("a", 0.0, 2), ("b", 1.0, 1), ("b", 1.0, 2)]


@pytest.fixture
def run(run_lines, record):
    """Return a function that runs two tasks twice: pass^1 is 3/4, pass^2 1/2."""
    records = [record(name, score, run=trial) for name, score, trial in RECORDS]
    metrics = {"pass_hat_k": {"of": "quality"}, "steady": {"kind": "pass_hat_k", "of": "quality"}}
    return lambda **suite: run_lines(records, **{"metrics": metrics} | suite)


@pytest.mark.parametrize("figure", ["quality.pass_hat_k.2", "quality.steady.2", ["quality", "pass_hat_k", 2]])
@pytest.mark.parametrize(("op", "passed"), [("gte", True), ("gt", False)])
def test_a_gate_on_a_figure(run, figure, op, passed):
    report = run(gate={"figure": figure, "op": op, "value": 0.5})
    (found,) = report.gates
    assert (found["actual"], found["passed"], report.exit_code) == (0.5, passed, 0 if passed else 1)
    assert (found["kind"], found["over"], found["counted"], found["of"]) == ("figure", "graded", 4, 4)
    assert found["text"].startswith("quality.")


def test_without_rows(run):
    assert run(rows="none", gate={"figure": "quality.pass_hat_k.1", "op": "gte", "value": 0.75}).exit_code == 0


def test_among_conditions(run):
    conditions = [
        {"figure": "quality.pass_hat_k.2", "op": "gte", "value": 0.9},
        {"metric_key": "quality", "aggregation": "max", "op": "gte", "value": 1},
    ]
    report = run(gate={"kind": "logical", "operator": "or", "conditions": conditions})
    assert [part["passed"] for part in report.gates[0]["conditions"]] == [False, True]
    single = run(num_runs=2, gate={"figure": "quality.toy_count.sum", "op": "gte", "value": 2})
    assert (single.passed, single.summary["runs"]["passed"]) == (False, 1)


def test_a_path_that_leads_nowhere_fails(run):
    """Whatever ``on_no_data`` says, with the nearest in the summary."""
    gate = {"figure": "quality.pass_hat_k.7", "op": "gte", "value": 0, "on_no_data": "pass"}
    report = run(gate=gate)
    (found,) = report.gates
    assert (found["outcome"], found["actual"], found["passed"]) == ("no_data", None, False)
    assert found["reason"] == "no figure '7' in quality.pass_hat_k.pass_hat_k; there are: 1, 2"


def test_a_figure_must_hold_in_every_group(run_lines, record):
    records = [record(name, score, run=trial, model="sure") for name, score, trial in RECORDS]
    records += [record(name, 0.0, model="lost") for name in "ab"]
    condition = {"figure": "quality.pass_hat_k.1", "op": "gte", "value": 0.5}
    several = {"kind": "logical", "operator": "and", "conditions": [condition]}
    report = run_lines(
        records,
        metrics={"pass_hat_k": {"of": "quality"}},
        gates=[each | {"per": "model"} for each in (condition, several)],
    )
    for found in report.gates:
        assert {name: each["passed"] for name, each in found["groups"].items()} == {"sure": True, "lost": False}
        assert found["passed"] is False


@pytest.mark.parametrize(
    ("number", "threshold", "text"), [*DATA["digits_show_the_side"], (1 / 3, 1 / 3, "0.3333333333333333")]
)
def test_digits_show_the_side(number, threshold, text):
    """Two decimals, or as many as compare to the threshold as the number does."""
    assert distinguishing_decimals(number, threshold) == text


@pytest.mark.parametrize(("line", "gate"), data(__file__, "lines.yaml").items())
def test_the_line(line, gate):
    assert gate_lines({"outcome": "failed"} | gate)[0] == line


def test_the_threshold_is_shown_whole(run_lines, record):
    report = run_lines([record("a", 0.12345678)], gate={"op": "lt", "value": 0.12345678})
    assert gate_lines(report.gates[0])[0] == "Gate (quality < 0.12345678): FAILED (actual: 0.12345678)"
