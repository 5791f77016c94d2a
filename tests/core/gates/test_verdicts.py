"""Gates beyond the flat form: letta-evals' later kinds, aggregations, weights, logic and groups."""

import math
import random
from fractions import Fraction

import pytest

from gradestack.gates.rules import GateSpec, LogicalGate, LogicalSpec, SimpleGate, WeightedGate, keys_of
from gradestack.gates.scores import quantile
from gradestack.gates.verdicts import verdict
from tests.core.tables import scores_of

SCORES = scores_of(q=[0.2, 1.0, 0.6], r=[1.0, 0.0], empty=[])


def whole(gate, profile="documented", scores=SCORES):
    """Return the verdict over all samples."""
    return verdict(gate, scores, profile)


def told(gate, profile="documented", scores=SCORES):
    found = whole(gate, profile, scores)
    return found["actual"], found["passed"], found["outcome"]


def figure(scores, how, threshold=1.0):
    gate = SimpleGate(metric_key="q", op="gte", value=0, aggregation=how, pass_threshold=threshold)
    value = scores_of(q=scores).figure(gate, "q", "documented").value
    return None if value is None else float(value)


@pytest.mark.parametrize(
    ("profile", "options", "actual"),
    [
        ("documented", {"metric": "accuracy"}, 200 / 3),
        ("upstream", {"metric": "accuracy"}, 25.0),
        ("upstream", {"metric": "accuracy", "pass_value": 0.5, "pass_op": "lt"}, 25.0),
        ("documented", {}, 0.8),
        ("upstream", {}, 0.8),
    ],
)
def test_failed_runs_in_a_flat_gate(profile, options, actual):
    """Documented: of the graded samples. Upstream: accuracy of the runs that did not fail, graded or not."""
    gate, nothing = GateSpec(metric_key="q", op="gte", value=0.0, **options), None if profile == "documented" else 0.0
    scores = scores_of(q=[1.0, 0.4, None, 1.0, None], ran=[True, True, True, False, True])
    assert told(gate, profile, scores)[0] == actual
    assert told(gate, profile, scores_of(q=[]))[0] == nothing


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("avg_score", 0.6),
        ("accuracy", 100 / 3),
        ("pass_rate", 100 / 3),
        ("min", 0.2),
        ("max", 1.0),
        ("median", 0.6),
        ("p50", 0.6),
        ("p95", 0.96),
        ("p99", 0.992),
    ],
)
def test_aggregations(how, expected):
    """Of 0.2, 0.6, 1: the 0.95-quantile lies 0.9 of the way from 0.6 to 1."""
    assert figure([1.0, 0.2, 0.6], how) == pytest.approx(expected, rel=1e-15)


def test_accuracy_counts_scores_at_the_threshold():
    """Always >=, whatever the gate's own operator."""
    assert figure([0.5, 0.4999, 1.0, 0.0], "accuracy", 0.5) == 50.0


@pytest.mark.parametrize("how", ["avg_score", "accuracy", "min", "p95"])
def test_nothing_has_no_figure(how):
    assert figure([], how) is None


def test_quantiles_interpolate_linearly():
    """Position q x (n - 1) between neighbours; ends and single values are themselves."""
    assert [quantile([1.0, 2.0, 4.0], q) for q in (0.0, 0.25, 0.5, 0.75, 1.0)] == [1.0, 1.5, 2.0, 3.0, 4.0]
    assert quantile([0.7], 0.99) == 0.7
    rng = random.Random(2)  # noqa: S311 - test data
    values = sorted(rng.random() for _ in range(37))
    for q in (0.1, 0.5, 0.95, 0.99):
        low = math.floor(36 * q)
        between = values[low] + (values[low + 1] - values[low]) * (36 * q - low) if low < 36 else values[-1]
        assert quantile(values, q) == pytest.approx(between, rel=1e-14)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"op": "gte", "value": 0.6}, (0.6, True, "passed")),
        ({"op": "gt", "value": 0.6}, (0.6, False, "failed")),
        ({"op": "gte", "value": 0.9, "aggregation": "max"}, (1.0, True, "passed")),
        ({"op": "gte", "value": 60, "aggregation": "accuracy", "pass_threshold": 0.6}, (200 / 3, True, "passed")),
        ({"op": "gte", "value": 60, "aggregation": "pass_rate"}, (100 / 3, False, "failed")),
    ],
)
def test_a_simple_gate(options, expected):
    actual, passed, outcome = told(SimpleGate(metric_key="q", **options))
    assert (actual, passed, outcome) == (pytest.approx(expected[0], rel=1e-15), *expected[1:])


@pytest.mark.parametrize(
    ("profile", "options", "expected"),
    [
        ("documented", {"op": "gte", "value": 0}, (None, False, "no_data")),
        ("documented", {"op": "gte", "value": 9, "on_no_data": "pass"}, (None, True, "no_data")),
        ("upstream", {"op": "gte", "value": 0}, (0.0, True, "passed")),
        ("upstream", {"op": "gt", "value": 0}, (0.0, False, "failed")),
    ],
)
def test_a_simple_gate_without_data(profile, options, expected):
    """Documented: no data fails unless told otherwise; upstream compares 0.0."""
    assert told(SimpleGate(metric_key="empty", **options), profile) == expected


def test_texts_are_what_people_read():
    assert whole(SimpleGate(metric_key="q", op="gte", value=0.5))["text"] == "q >= 0.5"
    gate = SimpleGate(metric_key="q", op="lt", value=50, aggregation="accuracy")
    assert whole(gate)["text"] == "q accuracy < 50%"


def test_weights_are_divided_by_their_sum():
    """(3 x 0.6 + 1 x 0.5) / 4 = 0.575."""
    gate = WeightedGate(weights={"q": 3, "r": 1}, aggregation="avg_score", op="gte", value=0.575)
    actual, passed, _ = told(gate)
    assert (actual, passed) == (pytest.approx(0.575, rel=1e-15), True)
    found = whole(gate)
    assert found["figures"] == {"q": pytest.approx(0.6), "r": 0.5}
    assert found["text"] == "weighted average of 3 q + 1 r >= 0.575"


@pytest.mark.parametrize(
    ("weights", "scores", "value"),
    [
        ({"q": 1, "r": 2}, {"q": [0.45], "r": [0.45]}, 0.45),
        ({"q": 0.1, "r": 0.2}, {"q": [0.45], "r": [0.45]}, 0.45),
        ({"q": 5, "r": 1}, {"q": [0.0, 0.0, 1.0], "r": [0.0, 1.0, 1.0]}, 7 / 18),
    ],
)
def test_a_weighted_average_is_rounded_once(weights, scores, value):
    """The mean of equal figures is that figure, and thirds are not rounded before they are weighed."""
    gate = WeightedGate(weights=weights, aggregation="avg_score", op="gte", value=value)
    assert told(gate, scores=scores_of(**scores)) == (value, True, "passed")
    percent = WeightedGate(weights=weights, aggregation="accuracy", op="gte", value=0)
    passed = {key: Fraction(sum(score >= 1 for score in each), len(each)) for key, each in scores.items()}
    exact = sum(Fraction(weight) * passed[key] for key, weight in weights.items()) / sum(
        map(Fraction, weights.values())
    )
    assert told(percent, scores=scores_of(**scores))[0] == float(100 * exact)


def test_upstream_rounds_at_every_step():
    """The program's order: each weight divided by their sum, then multiplied, then added."""
    gate = WeightedGate(weights={"q": 1, "r": 2}, aggregation="avg_score", op="gte", value=0.45)
    actual, passed, _ = told(gate, "upstream", scores_of(q=[0.45], r=[0.45]))
    assert (actual, passed) == (1 / 3 * 0.45 + 2 / 3 * 0.45, False)


def test_a_weighted_average_aggregates_first():
    """Accuracies 100/3 and 50, equally weighted."""
    gate = WeightedGate(weights={"q": 1, "r": 1}, aggregation="accuracy", op="gte", value=40)
    assert told(gate)[0] == pytest.approx((100 / 3 + 50) / 2, rel=1e-15)


def test_a_weighted_average_needs_all_its_metrics():
    gate = WeightedGate(weights={"q": 1, "empty": 1}, aggregation="avg_score", op="gte", value=0.3)
    assert told(gate) == (None, False, "no_data")
    assert told(gate, "upstream") == (pytest.approx(0.3, rel=1e-15), True, "passed")


@pytest.mark.parametrize("weights", [{}, {"q": -1.0, "r": 2.0}, {"q": 0.0, "r": 0.0}])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        WeightedGate(weights=weights, aggregation="avg_score", op="gte", value=1)


HIGH, LOW = SimpleGate(metric_key="q", op="gte", value=0.5), SimpleGate(metric_key="r", op="gte", value=0.9)


@pytest.mark.parametrize(
    ("operator", "conditions", "passed"),
    [
        ("and", (HIGH, HIGH), True),
        ("and", (HIGH, LOW), False),
        ("or", (HIGH, LOW), True),
        ("or", (LOW, LOW), False),
        ("and", (HIGH, LogicalGate(operator="or", conditions=(LOW, HIGH))), True),
        ("or", (LOW, LogicalGate(operator="and", conditions=(LOW, HIGH))), False),
    ],
)
def test_logical_gates(operator, conditions, passed):
    found = whole(LogicalGate(operator=operator, conditions=conditions))
    assert (found["passed"], found["outcome"]) == (passed, "passed" if passed else "failed")
    assert len(found["conditions"]) == 2
    assert found["text"].count(f" {operator} ") >= 1


def test_a_logical_gate_needs_a_condition():
    """Nothing would always pass, or never."""
    with pytest.raises(ValueError, match="conditions: at least one"):
        LogicalSpec(operator="and", conditions=())


def test_keys_are_found_wherever_they_stand():
    weighted = WeightedGate(weights={"a": 1, "b": 1}, aggregation="avg_score", op="gte", value=1)
    nested = LogicalGate(operator="and", conditions=(HIGH, LogicalGate(operator="or", conditions=(LOW,))))
    assert list(keys_of(weighted)) == [(("weights", "a"), "a"), (("weights", "b"), "b")]
    assert list(keys_of(nested)) == [
        (("conditions", 0, "metric_key"), "q"),
        (("conditions", 1, "conditions", 0, "metric_key"), "r"),
    ]
    assert list(keys_of(GateSpec(op="gte", value=1, metric_key="q"))) == [(("metric_key",), "q")]
    assert list(keys_of(GateSpec(op="gte", value=1))) == []


@pytest.mark.parametrize(
    ("gate", "score", "passed"),
    [
        (SimpleGate(metric_key="q", op="lt", value=0.1, pass_threshold=0.5), 0.5, True),
        (SimpleGate(metric_key="q", op="gte", value=0.1), 0.9, False),
        (WeightedGate(weights={"q": 1}, aggregation="min", op="gte", value=0.1), 1.0, True),
        (LogicalGate(operator="or", conditions=(HIGH,)), 0.99, False),
    ],
)
def test_the_rule_per_sample(gate, score, passed):
    """At least the threshold, 1.0 where there is none."""
    assert gate.sample_passes(score) is passed


def test_a_gate_per_group_must_hold_in_every_one():
    gate = GateSpec(metric_key="q", op="gte", value=0.5, per="model")
    found = whole(gate, scores=scores_of(q=[1.0, 0.8, 0.2, None], models="aabc"))
    assert {name: (each["passed"], each["outcome"]) for name, each in found["groups"].items()} == {
        "a": (True, "passed"),
        "b": (False, "failed"),
        "c": (False, "no_data"),
    }
    assert (found["passed"], found["text"], found["per"]) == (False, "q >= 0.5 per model", "model")
    assert found["actual"] == pytest.approx(2 / 3)
    assert whole(gate, scores=scores_of(q=[1.0], models="a"))["passed"] is True


@pytest.mark.parametrize(("rule", "passed"), [("fail", False), ("pass", True)])
def test_no_group_at_all(rule, passed):
    gate = SimpleGate(metric_key="q", op="gte", value=0.5, per="model", on_no_data=rule)
    found = whole(gate, scores=scores_of(q=[]))
    assert (found["passed"], found["outcome"]) == (passed, "no_data")
