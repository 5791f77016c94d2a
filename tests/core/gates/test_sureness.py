"""Tests of the intervals that gates decide by.

The interval of what they compare, by task, and what decides when the limit lies in it.
"""

import math
import statistics

import attrs
import pytest

from gradestack import Grade, Grader, figures, grade, skipped, t_quantile
from gradestack.gates.texts import gate_lines
from tests.core.outcomes import data

DATA = data(__file__, "sureness.yaml")

TASKS = {"a": (1, 1), "b": (1, 0), "c": (0, 1), "d": (1, 1), "e": (1, 1), "f": (0, 0)}
SCORES = [
    (task, run, None, float(score))
    for task, scores in TASKS.items()
    for run, score in enumerate(scores)
]


@pytest.fixture
def gates(run_lines, record):
    """Return a function that grades six tasks twice and returns the verdicts of gates."""
    records = [record(task, score, run=run, model=f"m{run}") for task, run, _, score in SCORES]

    def run(*gate_configs, **suite):
        return run_lines(records, gates=list(gate_configs), **suite)

    return run


def interval_of(formula, tasks, confidence=0.95):
    """Compute the interval of a share by leaving out each task once, written out by hand."""
    count, value = len(tasks), formula(tasks)
    pseudo = [
        count * value - (count - 1) * formula(tasks[:at] + tasks[at + 1 :]) for at in range(count)
    ]
    stderr = statistics.stdev(pseudo) / math.sqrt(count)
    q = t_quantile((1 + confidence) / 2, count - 1)
    centre = math.log(value / (1 - value))
    half = q * stderr / (value * (1 - value))
    return [1 / (1 + math.exp(half - centre)), 1 / (1 + math.exp(-half - centre))]


def mean(tasks):
    return statistics.fmean(score for scores in tasks for score in scores)


def test_an_average_and_an_accuracy_have_the_interval_of_the_mean(gates):
    """A fraction also where the gate is in percent, of tasks with all their runs and models."""
    average, accuracy = gates(
        {"metric_key": "quality", "op": "gte", "value": 0.5},
        {
            "kind": "simple",
            "metric_key": "quality",
            "aggregation": "accuracy",
            "op": "gte",
            "value": 50,
        },
    ).gates
    expected = interval_of(mean, list(TASKS.values()))
    for gate in (average, accuracy):
        assert [gate["interval"]["low"], gate["interval"]["high"]] == pytest.approx(
            expected, abs=1e-12
        )
        assert (gate["interval"]["n"], gate["interval"]["clusters"], gate["sure"]) == (12, 6, False)
    shown = f"95% interval {expected[0]:.2f} to {expected[1]:.2f}"
    assert (
        gate_lines(average)[0]
        == f"Gate (quality >= 0.5): PASSED (actual: 0.67, {shown}: passes, but could be "
        "below 0.5)"
    )
    assert (
        f", 95% interval {100 * expected[0]:.1f}% to {100 * expected[1]:.1f}%: passes, but could "
        "be below 50%" in gate_lines(accuracy)[0]
    )


@pytest.mark.parametrize(
    ("op", "value", "outcome"),
    [
        ("gte", 0.2, "passed"),
        ("gte", 0.99, "failed"),
        ("gte", 0.6, "undecided"),
        ("lt", 0.99, "passed"),
    ],
)
def test_with_confidence_the_one_sided_bound_decides(gates, op, value, outcome):
    """Each bound at that confidence.

    Between them nothing is decided, which fails unless the gate says otherwise.
    """
    gate = {"metric_key": "quality", "op": op, "value": value, "confidence": 0.95}
    undecided, passing, warned = gates(
        gate, gate | {"on_undecided": "pass"}, gate | {"on_undecided": "warn"}
    ).gates
    bounds = interval_of(mean, list(TASKS.values()), confidence=0.9)
    assert undecided["bounds"] == pytest.approx(bounds, abs=1e-12)
    assert (undecided["outcome"], undecided["passed"]) == (outcome, outcome == "passed")
    assert passing["passed"] is warned["passed"] is (outcome != "failed")


@attrs.frozen(kw_only=True)
class Part(Grader):
    """Gives what was recorded under a name; skips what has none."""

    name: str

    needs, compares = frozenset({"recorded"}), frozenset()

    def grade(self, sample):
        score = sample.recorded.get(self.name)
        if score is None:
            return skipped("nothing", "not recorded")
        return Grade(score=score)


def test_a_weighted_gate_has_the_interval_of_its_whole_formula():
    """Over the union of tasks: one that only one grader scores has part in it."""
    quality, speed = (
        {"a": 1.0, "b": 0.5, "c": 0.25, "d": 1.0},
        {"a": 0.5, "b": 1.0, "c": 0.0, "e": 1.0},
    )
    names = sorted(quality.keys() | speed.keys())
    samples = [
        {"id": name, "recorded": {"quality": quality.get(name), "speed": speed.get(name)}}
        for name in names
    ]
    weights = {"quality": 3, "speed": 1}
    gate = {
        "kind": "weighted_average",
        "aggregation": "avg_score",
        "weights": weights,
        "op": "gte",
        "value": 0.5,
    }
    graders = {key: Part(name=key) for key in weights}
    with grade(samples, graders=graders, gate=gate) as report:
        (gate_row,) = report.gates

    def formula(tasks):
        parts = [
            weight * statistics.fmean(part[name] for name in tasks if name in part)
            for weight, part in ((3, quality), (1, speed))
        ]
        return sum(parts) / 4

    assert gate_row["actual"] == pytest.approx(formula(names))
    assert [gate_row["interval"]["low"], gate_row["interval"]["high"]] == pytest.approx(
        interval_of(formula, names), abs=1e-12
    )
    assert gate_row["interval"]["clusters"] == 5


def test_each_group_has_its_own_interval(gates):
    (gate_row,) = gates({"metric_key": "quality", "op": "gte", "value": 0.3, "per": "model"}).gates
    for run in (0, 1):
        scores = [(scores[run],) for scores in TASKS.values()]
        group = gate_row["groups"][f"m{run}"]["interval"]
        assert [group["low"], group["high"]] == pytest.approx(interval_of(mean, scores), abs=1e-12)
    assert gate_row["sure"] is all(group["sure"] for group in gate_row["groups"].values())


def test_a_figure_has_the_interval_of_its_aggregator(gates):
    metrics = {"k": {"kind": "pass_hat_k", "of": "quality", "confidence": 0.8}}
    (gate_row,) = gates(
        {"figure": "quality.k.1", "op": "gte", "value": 0.5, "confidence": 0.9}, metrics=metrics
    ).gates
    rows = [(task, run, f"m{run}", score) for task, run, _, score in SCORES]
    intervals = {
        confidence: figures({"pass_hat_k": {"confidence": confidence}}, rows)["pass_hat_k"][
            "pass_hat_k_interval"
        ]["1"]
        for confidence in (0.95, 0.8)
    }
    assert [gate_row["interval"][end] for end in ("low", "high")] == pytest.approx(
        [intervals[0.95][end] for end in ("low", "high")], abs=1e-9
    )
    assert gate_row["bounds"] == pytest.approx(
        [intervals[0.8][end] for end in ("low", "high")], abs=1e-9
    )


def test_a_quantile_decides_by_its_value(gates):
    (gate_row,) = gates(DATA["a_quantile_decides_by_its_value"]).gates
    assert (gate_row["interval"], gate_row["passed"], gate_row["sure"]) == (
        {"reason": "quantile"},
        True,
        None,
    )


def test_one_task_decides_nothing_where_confidence_is_asked_for(run_lines, record):
    gate = {"metric_key": "quality", "op": "gte", "value": 0.5}
    plain, sure = run_lines([record("a", 1.0)], gates=[gate, gate | {"confidence": 0.9}]).gates
    assert (plain["passed"], plain["sure"], plain["interval"]) == (
        True,
        None,
        {"reason": "one task"},
    )
    assert (sure["outcome"], sure["passed"], sure["bounds"]) == ("undecided", False, None)
