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
    count = len(tasks)
    value = formula(tasks)
    pseudo = []
    for at in range(count):
        without_one = formula(tasks[:at] + tasks[at + 1 :])
        pseudo.append(count * value - (count - 1) * without_one)
    stderr = statistics.stdev(pseudo) / math.sqrt(count)
    probability = (1 + confidence) / 2
    q = t_quantile(probability, count - 1)
    centre = math.log(value / (1 - value))
    half = q * stderr / (value * (1 - value))
    low = 1 / (1 + math.exp(half - centre))
    high = 1 / (1 + math.exp(-half - centre))
    return [low, high]


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
    tasks = list(TASKS.values())
    expected = interval_of(mean, tasks)
    for gate in (average, accuracy):
        low = gate["interval"]["low"]
        high = gate["interval"]["high"]
        assert [low, high] == pytest.approx(expected, abs=1e-12)
        assert gate["interval"]["n"] == 12
        clusters = gate["interval"]["clusters"]
        assert clusters == 6
        assert gate["sure"] is False
    shown = f"95% interval {expected[0]:.2f} to {expected[1]:.2f}"
    first_gate_line = gate_lines(average)[0]
    assert (
        first_gate_line
        == f"Gate (quality >= 0.5): PASSED (actual: 0.67, {shown}: passes, but could be "
        "below 0.5)"
    )
    expected_text = (
        f", 95% interval {100 * expected[0]:.1f}% to {100 * expected[1]:.1f}%: passes, but could "
        "be below 50%"
    )
    assert expected_text in gate_lines(accuracy)[0]


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
    record = gate | {"on_undecided": "pass"}
    undecided, passing, warned = gates(gate, record, gate | {"on_undecided": "warn"}).gates
    tasks = list(TASKS.values())
    bounds = interval_of(mean, tasks, confidence=0.9)
    assert undecided["bounds"] == pytest.approx(bounds, abs=1e-12)
    passed = undecided["passed"]
    assert (undecided["outcome"], passed) == (outcome, outcome == "passed")
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
    keys = quality.keys()
    names = sorted(keys | speed.keys())
    samples = []
    for name in names:
        recorded = {"quality": quality.get(name), "speed": speed.get(name)}
        samples.append({"id": name, "recorded": recorded})
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
    interval = interval_of(formula, names)
    low = gate_row["interval"]["low"]
    high = gate_row["interval"]["high"]
    assert [low, high] == pytest.approx(interval, abs=1e-12)
    clusters = gate_row["interval"]["clusters"]
    assert clusters == 5


def test_each_group_has_its_own_interval(gates):
    (gate_row,) = gates({"metric_key": "quality", "op": "gte", "value": 0.3, "per": "model"}).gates
    for run in (0, 1):
        tasks = TASKS.values()
        scores = [(scores[run],) for scores in tasks]
        group = gate_row["groups"][f"m{run}"]["interval"]
        interval = interval_of(mean, scores)
        low = group["low"]
        high = group["high"]
        assert [low, high] == pytest.approx(interval, abs=1e-12)
    groups = gate_row["groups"].values()
    expected = all(group["sure"] for group in groups)
    assert gate_row["sure"] is expected


def test_a_figure_has_the_interval_of_its_aggregator(gates):
    metrics = {"k": {"kind": "pass_hat_k", "of": "quality", "confidence": 0.8}}
    (gate_row,) = gates(
        {"figure": "quality.k.1", "op": "gte", "value": 0.5, "confidence": 0.9}, metrics=metrics
    ).gates
    rows = [(task, run, f"m{run}", score) for task, run, _, score in SCORES]
    intervals = {}
    for confidence in (0.95, 0.8):
        pass_hat_k = figures({"pass_hat_k": {"confidence": confidence}}, rows)["pass_hat_k"]
        intervals[confidence] = pass_hat_k["pass_hat_k_interval"]["1"]
    assert [gate_row["interval"][end] for end in ("low", "high")] == pytest.approx(
        [intervals[0.95][end] for end in ("low", "high")], abs=1e-9
    )
    bounds = gate_row["bounds"]
    assert bounds == pytest.approx([intervals[0.8][end] for end in ("low", "high")], abs=1e-9)


def test_a_quantile_decides_by_its_value(gates):
    (gate_row,) = gates(DATA["a_quantile_decides_by_its_value"]).gates
    assert gate_row["interval"] == {"reason": "quantile"}
    assert gate_row["passed"] is True
    assert gate_row["sure"] is None


def test_one_task_decides_nothing_where_confidence_is_asked_for(run_lines, record):
    gate = {"metric_key": "quality", "op": "gte", "value": 0.5}
    lines = run_lines([record("a", 1.0)], gates=[gate, gate | {"confidence": 0.9}])
    plain, sure = lines.gates
    assert plain["passed"] is True
    assert plain["sure"] is None
    assert plain["interval"] == {"reason": "one task"}
    assert sure["outcome"] == "undecided"
    assert sure["passed"] is False
    assert sure["bounds"] is None
