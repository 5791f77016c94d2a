"""Gates in suites: every form, several at once, mistakes with their places, and the verdict of a run."""

import pytest

SCORES = [("a", 1.0, "m"), ("b", 0.5, "m"), ("c", 0.0, "n"), ("d", None, "o")]


@pytest.fixture
def run(run_lines, record):
    """Return a function that runs two graders (scores and half of them) with gates over three models."""

    def call(**suite):
        records = [
            record(identifier, score, model=model, facets={"kind": identifier in "ab"})
            if score is not None
            else record(identifier, recorded={"do": "skip"}, model=model, facets={"kind": None})
            for identifier, score, model in SCORES
        ]
        return run_lines(records, graders={"q": "toy", "half": {"kind": "toy", "factor": 0.5}}, **suite)

    return call


def test_all_gates_must_pass(run):
    report = run(
        gates=[
            {"kind": "simple", "metric_key": "half", "op": "gte", "value": 0.25, "pass_threshold": 0.25},
            {"op": "lte", "value": 0.5},
        ]
    )
    assert [(gate["actual"], gate["passed"]) for gate in report.gates] == [(0.25, True), (0.25, True)]
    assert report.passed is True
    assert (report.metrics["avg_score_attempted"], report.metrics["passed_attempts"]) == (0.25, 2)
    failing = run(gates=[{"op": "gte", "value": 0.1}, {"op": "gte", "value": 0.9}])
    assert ([gate["passed"] for gate in failing.gates], failing.passed, failing.exit_code) == ([True, False], False, 1)


def test_gate_and_gates_together(run):
    report = run(gate={"op": "gte", "value": 0.1}, gates=[{"op": "gte", "value": 0.2}])
    assert [gate["value"] for gate in report.gates] == [0.1, 0.2]


def test_a_weighted_gate_over_a_run(run):
    """(0.5 + 0.25) / 2."""
    gate = {
        "kind": "weighted_average",
        "aggregation": "avg_score",
        "weights": {"q": 1, "half": 1},
        "op": "gte",
        "value": 0.3,
    }
    report = run(gate=gate)
    assert (report.gates[0]["actual"], report.passed) == (0.375, True)


def test_a_logical_gate_over_a_run(run):
    inner = {"operator": "and", "conditions": [{"metric_key": "half", "op": "lte", "value": 0.5, "aggregation": "max"}]}
    gate = {"kind": "logical", "operator": "or", "conditions": [{"metric_key": "q", "op": "gte", "value": 0.9}, inner]}
    report = run(gate=gate)
    assert (report.passed, [part["passed"] for part in report.gates[0]["conditions"]]) == (True, [False, True])


@pytest.mark.parametrize("kind", ["flat", "simple"])
def test_a_gate_per_model_sees_every_model(run, kind):
    """Also the one of which nothing could be graded: there is no data about it, so the gate fails."""
    gate = {"op": "gte", "value": 0.0, "per": "model"} | ({"kind": kind, "metric_key": "q"} if kind == "simple" else {})
    report = run(gate=gate)
    (found,) = report.gates
    assert {name: each["outcome"] for name, each in found["groups"].items()} == {
        "m": "passed",
        "n": "passed",
        "o": "no_data",
    }
    assert report.passed is False
    assert run(gate=gate | {"on_no_data": "pass"}).passed is True


def test_a_gate_per_facet(run):
    report = run(gate={"op": "gte", "value": 0.0, "per": "kind"})
    found = {name: each["actual"] for name, each in report.gates[0]["groups"].items()}
    assert found == {"True": 0.75, "False": 0.0, "none": None}


def test_percentages_that_look_like_fractions_are_suspicious(run):
    gate = {"kind": "simple", "metric_key": "q", "aggregation": "pass_rate", "op": "gte", "value": 0.5}
    warnings = run(gate=gate).summary["warnings"]
    assert warnings[0] == "suite: gate.value: 0.5 is a percentage here: 0.5% of the samples"
