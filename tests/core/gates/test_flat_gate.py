"""The flat gate: letta-evals' rule, figure by figure."""

import pytest

from gradestack.gates.rules import GateSpec
from gradestack.gates.verdicts import verdict
from gradestack.grading.counts import passes
from tests.core.tables import scores_of


def told(profile="documented", scores=(), *, ran=None, **options):
    """Return the verdict of a flat gate over scores."""
    return verdict(GateSpec(metric_key="q", **options), scores_of(q=scores, ran=ran), profile)


@pytest.mark.parametrize(
    ("op", "below", "equal", "above"),
    [("gt", 0, 0, 1), ("gte", 0, 1, 1), ("lt", 1, 0, 0), ("lte", 1, 1, 0), ("eq", 0, 1, 0)],
)
def test_operators(op, below, equal, above):
    """Plain comparisons, no tolerance anywhere."""
    found = [told(op=op, value=0.5, scores=(score,))["passed"] for score in (0.5 - 1e-16, 0.5, 0.5 + 2e-16)]
    assert found == [bool(below), bool(equal), bool(above)]


def test_accuracy_is_a_percentage():
    """0.8 would pass with one success in a hundred; 80 means 80 %."""
    found = told(op="gte", value=80, metric="accuracy", scores=(1.0, 0.9))
    assert (found["actual"], found["outcome"], found["text"]) == (50.0, "failed", "q accuracy >= 80%")


@pytest.mark.parametrize(
    ("options", "score", "expected"),
    [
        ({"op": "gte", "value": 0.6}, 0.6, True),
        ({"op": "gt", "value": 0.6}, 0.6, False),
        ({"op": "gte", "value": 0.6, "pass_value": 0.9}, 0.7, False),
        ({"op": "gt", "value": 0.6, "pass_value": 0.9}, 0.9, False),
        ({"op": "gte", "value": 0.6, "pass_op": "lt"}, 0.5, True),
        ({"op": "gte", "value": 0.6, "pass_op": "eq", "pass_value": 0.0}, 0.0, True),
        ({"op": "gte", "value": 80, "metric": "accuracy"}, 1.0, True),
        ({"op": "gte", "value": 80, "metric": "accuracy"}, 0.999, False),
        ({"op": "gte", "value": 80, "metric": "accuracy", "pass_op": "lt"}, 0.5, False),
        ({"op": "gte", "value": 80, "metric": "accuracy", "pass_value": 0.5}, 0.5, True),
        ({"op": "gt", "value": 80, "metric": "accuracy", "pass_value": 0.5}, 0.5, False),
        ({"op": "gte", "value": 80, "metric": "accuracy", "pass_value": 0.5, "pass_op": "lte"}, 0.4, True),
    ],
)
def test_the_rule_per_sample(options, score, expected):
    """For accuracy without pass_value: 1.0 and pass_op ignored; otherwise pass_op or op against pass_value or value."""
    assert passes(GateSpec(**options), score) is expected


def test_without_a_gate_a_sample_passes_at_one():
    assert [passes(None, score) for score in (0.999, 1.0, 1.5)] == [False, True, True]


@pytest.mark.parametrize(
    ("profile", "options", "passed", "outcome", "actual"),
    [
        ("documented", {"op": "gte", "value": 0}, False, "no_data", None),
        ("documented", {"op": "lte", "value": 1, "on_no_data": "pass"}, True, "no_data", None),
        ("upstream", {"op": "gte", "value": 0}, True, "passed", 0.0),
        ("upstream", {"op": "gte", "value": 0.1}, False, "failed", 0.0),
        ("upstream", {"op": "lt", "value": 80, "metric": "accuracy"}, True, "passed", 0.0),
    ],
)
def test_an_empty_series(profile, options, passed, outcome, actual):
    """Documented: no data, failing unless told otherwise. Upstream compares 0.0, so that upper bounds pass."""
    found = told(profile, **options)
    assert (found["passed"], found["outcome"], found["actual"]) == (passed, outcome, actual)


def test_an_average_without_an_attempted_run():
    """Upstream: grades of failed runs have an average, although nothing was attempted."""
    assert told("upstream", [1.0], ran=[False], op="gte", value=0.5)["actual"] == 1.0
    assert told("upstream", [1.0], ran=[False], op="gte", value=0.5, metric="accuracy")["actual"] == 0.0
