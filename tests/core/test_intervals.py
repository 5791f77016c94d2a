"""Intervals: the definition by independent code, worked examples, and quantiles of Student's t."""

import math
import random
from collections import Counter

import pytest

from gradestack import (
    Aggregator,
    Estimate,
    Figure,
    Grade,
    Key,
    interval,
    jackknife,
    ratio,
    t_quantile,
)
from gradestack.intervals import change_confidence, ends
from gradestack.metrics.computed import compute_figures, select_grades
from gradestack.table import Table, Wanted
from tests.core.outcomes import data

DATA = data(__file__, "intervals.yaml")


def defined(figure, tasks):
    """Return a figure and its standard error, written out.

    Every task left out once, sums in floats.
    """
    count = len(tasks)
    value = figure(tasks)
    pseudo = []
    for at in range(count):
        grader = tasks[:at] + tasks[at + 1 :]
        pseudo.append(count * value - (count - 1) * figure(grader))
    mean = sum(pseudo) / count
    total = sum((pseudo_value - mean) ** 2 for pseudo_value in pseudo)
    return value, math.sqrt(total / (count - 1) / count)


@pytest.mark.parametrize("seed", range(5))
def test_one_task_is_left_out_at_a_time(seed):
    rng = random.Random(seed)  # noqa: S311 - test data
    tasks = []
    for _ in range(12):
        tasks.append((rng.randrange(1, 5), rng.choice([0.0, 0.5, 1.0])))
    cells = {}
    for size, score in tasks:
        cell = (size, size * score)
        cells[cell] = cells.get(cell, 0) + 1
    estimates = jackknife(
        lambda n, total: {"mean": total / n, "root": math.sqrt(total / n)}, cells, 2
    )
    for name, power in (("mean", 1), ("root", 0.5)):
        value, stderr = defined(lambda tasks_left, power=power: _mean(tasks_left) ** power, tasks)
        assert estimates[name].value == pytest.approx(value, rel=1e-14)
        assert estimates[name].stderr == pytest.approx(stderr, rel=1e-10)
        assert estimates[name].clusters == 12


def _mean(tasks):
    total = sum(size * score for size, score in tasks)
    return total / sum(size for size, _ in tasks)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
@pytest.mark.parametrize("tasks", [2, 7, 1000])
def test_tasks_that_are_alike_have_no_spread(value, tasks):
    cells = {(1, value): tasks - 1, (3, 3 * value): 1}
    mean = jackknife(lambda n, total: {"mean": total / n}, cells, 2)["mean"]
    assert mean.stderr == 0.0


def test_what_is_undefined_without_a_task_has_no_standard_error():
    def figures(n, total):
        mean = total / n if n else None
        return {"mean": mean, "other": None}

    mean = jackknife(figures, {(1, 1): 1, (0, 0): 1}, 2)["mean"]
    estimate = Estimate(1.0, None, 2)
    assert mean == estimate
    assert jackknife(figures, {(1, 1): 1}, 2)["mean"] == Estimate(1.0, None, 1)
    assert jackknife(figures, {}, 2) == {
        "mean": Estimate(None, None, 0),
        "other": Estimate(None, None, 0),
    }


def test_the_ends_are_those_of_the_formulas():
    """Logit and Wilson, written out with t(49) = 2.00957524 at 95 %."""
    q = 2.0095752371292397
    half = q * 0.05 / (0.3 * 0.7)
    logit = math.log(0.3 / 0.7)
    logit_low = 1 / (1 + math.exp(half - logit))
    logit_high = 1 / (1 + math.exp(-half - logit))
    assert ends(0.3, 0.05, 50)[:2] == pytest.approx((logit_low, logit_high), rel=1e-12)
    middle = 0.3 + q * q / 100
    root = q * math.sqrt(0.3 * 0.7 / 50 + q * q / 10_000)
    divisor = 1 + q * q / 50
    wilson_low = (middle - root) / divisor
    wilson_high = (middle + root) / divisor
    assert ends(0.3, 0.0, 50)[:2] == pytest.approx((wilson_low, wilson_high), rel=1e-12)


def test_figures_that_are_no_shares_have_a_plain_interval():
    for value, share in ((0.5, False), (1.5, True), (-0.5, True)):
        low, high, method = ends(value, 0.1, 10, share=share)
        assert (low, high) == pytest.approx(
            (value - 0.1 * 2.2621571628, value + 0.1 * 2.2621571628), rel=1e-9
        )
        assert method == "t"


@pytest.mark.parametrize(
    ("estimate", "reason"),
    [
        (Estimate(None, None, 5), "undefined"),
        (Estimate(0.5, None, 1), "one task"),
        (Estimate(0.5, None, 5), "undefined without some task"),
    ],
)
def test_where_there_is_no_interval_the_reason_stands(estimate, reason):
    assert interval(estimate, 5) == {"reason": reason}


@pytest.mark.parametrize("df", [1, 2, 3, 4, 10, 49, 199, 999, 1000, 1001, 5000, 10**6, 10**9])
@pytest.mark.parametrize("probability", [0.025, 0.5, 0.6, 0.9, 0.975, 0.995, 0.9995])
def test_quantiles_are_those_of_scipy(df, probability):
    stats = pytest.importorskip("scipy.stats")
    assert t_quantile(probability, df) == pytest.approx(
        float(stats.t.ppf(probability, df)), rel=1e-10, abs=1e-12
    )


class Share(Aggregator):
    """The mean of scores, and calls that were made of those expected."""

    figures = (Figure("share", "Share"), Figure("called", "Called", divisor="expected"))

    def contribution(self, grade):
        return {"samples": 1, "scores": grade.score, "made": 0, "expected": 0, **grade.counts}

    def figures_of(self, totals):
        samples = totals["samples"]
        scores = totals["scores"]
        made = totals["made"]
        expected = totals["expected"]
        share = ratio(scores, samples)
        called = ratio(made, expected)
        return {"share": share, "called": called}


def figures(*rows):
    grades = []
    for _, grade in rows:
        grades.append(grade if isinstance(grade, Grade) else Grade(score=grade))
    contributions = {"share": ("q", Share().contribution)}
    wanted = Wanted(parts={"q": ()}, contributions=contributions)
    keys = [key for key, _ in rows]
    table = Table.of(wanted, keys, {"q": grades})
    return compute_figures(Share(), select_grades(Share(), table, "q", "share"))


def test_figures_stand_with_their_intervals():
    """Samples of a task are one cell; a cluster is the task where it is given."""
    rows = [(Key(id=task), score) for task, score in (("a", 1), ("a", 0), ("b", 1), ("c", 0))]
    computed = figures(*rows)
    assert computed["n"] == 4
    assert computed["clusters"] == 3
    assert computed["share"] == 0.5
    clusters = computed["share_interval"]["clusters"]
    assert clusters == 3
    assert "models" not in computed
    key = Key(id="d", cluster="a")
    assert figures(*rows, (key, 1))["clusters"] == 3


def test_a_ratio_is_of_the_tasks_that_add_to_its_divisor():
    """A task without any is no cluster of it; its n is the divisor."""
    counts = {"a": (2, 1), "b": (1, 1), "c": (0, 0)}
    rows = []
    for task, (expected, made) in counts.items():
        key = Key(id=task)
        rows.append((key, Grade(score=1.0, counts={"expected": expected, "made": made})))
    computed = figures(*rows)
    assert computed["called_interval"]["n"] == 3
    clusters = computed["called_interval"]["clusters"]
    assert clusters == 2
    assert computed["share_interval"]["n"] == 3
    assert computed["share_interval"]["clusters"] == 3


def test_what_cannot_be_below_a_bound_has_no_interval_that_is():
    few = Estimate(1.5, 0.6, 3)
    plain = interval(few, 3, share=False)
    cut = interval(few, 3, share=False, least=0.0)
    assert plain["low"] < 0 < cut["high"]
    assert cut["low"] == 0.0
    assert cut["high"] == plain["high"]
    for confidence in (0.5, 0.99):
        known = interval(few, 3, share=False, confidence=confidence)
        computed = change_confidence(cut, 1.5, confidence)
        low = computed["low"]
        assert low == pytest.approx(max(0.0, known["low"]), rel=1e-9)
        high = computed["high"]
        assert high == pytest.approx(known["high"], rel=1e-9)
    assert interval(few, 3, share=False, least=-10.0) == plain


NEAR = [
    (1 / 70 / 50, 1 / 70 / 50, 50),
    (0.02, 0.02, 50),
    (0.98, 0.02, 50),
    (0.999, 0.001, 1000),
    (0.95, 0.03, 20),
]
"""Share, standard error and tasks: one task of fifty adds a seventieth, one is passed, one failed.

And so on.
"""


@pytest.mark.parametrize(("value", "stderr", "clusters"), NEAR)
def test_within_a_task_of_an_end_an_interval_is_no_narrower_than_wilsons(value, stderr, clusters):
    """And its end there is one that a single task would reach with five chances in a hundred."""
    estimate = Estimate(value, stderr, clusters)
    computed = interval(estimate, clusters)
    q = t_quantile(0.975, clusters - 1)
    middle = value + q * q / (2 * clusters)
    variance = value * (1 - value) / clusters
    root = q * math.sqrt(variance + (q / (2 * clusters)) ** 2)
    divisor = 1 + q * q / clusters
    expected = (middle - root) / divisor
    assert computed["low"] <= expected
    assert computed["high"] >= (middle + root) / divisor
    share_of_one = 1 - 0.95 ** (1 / clusters)
    if value < 0.5:
        assert computed["low"] <= share_of_one + 1e-12
    else:
        assert computed["high"] >= 1 - share_of_one - 1e-12
    assert computed["method"] == "logit_t"
    assert computed["stderr"] == stderr


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.99])
def test_an_interval_at_another_confidence_is_the_one_computed_so(confidence):
    of = Estimate(4.0, 0.9, 12, skewness=1.3, kurtosis=2.0)
    amount = interval(of, 12, share=False, amount=True)
    assert change_confidence(amount, 4.0, confidence) == interval(
        of, 12, share=False, amount=True, confidence=confidence
    )
    for value, stderr, clusters in NEAR:
        near = Estimate(value, stderr, clusters)
        computed = change_confidence(interval(near, 9), value, confidence)
        expected = interval(near, 9, confidence=confidence)
        low = pytest.approx(expected["low"])
        high = pytest.approx(expected["high"])
        assert computed == {
            **expected,
            "low": low,
            "high": high,
        }


def amount_of(*values):
    counts = Counter((1, value) for value in values)
    return jackknife(lambda n, total: {"mean": total / n}, counts, 2)["mean"]


def test_an_amount_of_which_one_task_has_most_has_a_longer_upper_half():
    """Hall's interval, of moments that are scipy's skew and kurtosis with bias=False."""
    of = amount_of(100.0, 120.0, 140.0, 150.0, 180.0, 200.0, 240.0, 900.0)
    assert (of.skewness, of.kurtosis) == pytest.approx(
        (2.6701360536337466, 7.319153766768089), rel=1e-12
    )
    computed = interval(of, 8, share=False, amount=True)
    assert computed["method"] == "skewed_t"
    assert computed["df"] == 1
    expected = 2 * (of.value - computed["low"])
    assert computed["high"] - of.value > expected
    assert computed["low"] >= 0


@pytest.mark.parametrize(("values", "reason"), DATA["an_amount_that_says_too_little_has_a_reason"])
def test_an_amount_that_says_too_little_has_a_reason(values, reason):
    amount = amount_of(*values)
    assert interval(amount, 9, share=False, amount=True) == {"reason": reason}


def test_confidence_next_to_1_has_a_quantile():
    nearly = 1 - 2**-53
    assert all(8 < t_quantile((1 + nearly) / 2, df) < 30 for df in (500, 1000, 100_000))
