"""Paired comparison: scipy's tests, worked figures of real trials, and what cannot be compared."""

import itertools
import math
import random

import pytest

import gradestack
from gradestack.comparison.paired import detectable, difference, holm, mcnemar, power, sign_flips, t_test, tasks_needed

REWARDS = [-0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0]
"""Differences of a reward between trials 0-1 and 2-3 of fifty tasks of one model, in ascending order; 33 more are 0."""


def test_the_same_model_against_itself_differs_by_chance():
    """Half of its trials against the other half: no evidence, and what such a comparison could have shown."""
    found = difference([*REWARDS, *[0.0] * 33])
    assert (found.better, found.worse, found.same, found.tasks) == (7, 10, 33, 50)
    assert (round(found.difference, 3), round(found.low, 3), round(found.high, 3)) == (-0.02, -0.111, 0.071)
    assert (round(found.p, 3), round(found.p_exact, 3)) == (0.659, 0.825)
    assert round(detectable(found.stderr * math.sqrt(50), 50), 3) == 0.129


@pytest.mark.parametrize("seed", range(4))
def test_the_t_test_is_that_of_scipy(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = random.Random(seed)  # noqa: S311 - test data
    values = [rng.gauss(0.1, 0.3) for _ in range(rng.randrange(2, 60))]
    found, oracle = difference(values, bounded=False), stats.ttest_1samp(values, 0)
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-9)
    ends = oracle.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 5, 30, 199, 5000])
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 1.0, 2.5, 12.0, 60.0])
def test_tails_are_those_of_scipy(df, t):
    stats = pytest.importorskip("scipy.stats")
    assert t_test(t, df) == pytest.approx(max(2 * float(stats.t.sf(t, df)), 5e-324), rel=1e-9)
    assert t_test(1e200, df) > 0


@pytest.mark.parametrize(("effect", "tasks"), [(0.05, 3), (0.2, 10), (0.5, 50), (1.0, 5), (0.1, 1000), (3.0, 2)])
def test_power_is_that_of_the_noncentral_t(effect, tasks):
    stats = pytest.importorskip("scipy.stats")
    critical, shift = stats.t.ppf(0.975, tasks - 1), effect * math.sqrt(tasks)
    oracle = stats.nct.sf(critical, tasks - 1, shift) + stats.nct.cdf(-critical, tasks - 1, shift)
    assert power(effect, tasks) == pytest.approx(float(oracle), abs=1e-8)


def test_what_could_be_seen_has_that_power():
    assert power(detectable(2.0, 30) / 2.0, 30) == pytest.approx(0.8, abs=1e-7)
    needed = tasks_needed(1.0, 0.2)
    assert power(0.2, needed - 1) < 0.8 <= power(0.2, needed)
    assert (detectable(1.0, 1), tasks_needed(0.0, 0.2), tasks_needed(1.0, 0.0)) == (None, None, None)
    assert tasks_needed(1.0, 1e-6) is None


def test_all_sign_patterns_are_tried():
    """Against every pattern written out; zeros have no sign, and beyond twenty there is no such figure."""
    values = [0.5, -0.25, 1.0, 0.125, 0.0]
    sums = [
        sum(sign * each for sign, each in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=5)
    ]
    observed = abs(sum(values))
    assert sign_flips(values) == sum(abs(each) >= observed for each in sums) / 32
    assert sign_flips([0.5] * 21) is None
    assert sign_flips([0.0, 0.0]) == 1.0


@pytest.mark.parametrize(
    ("values", "reason"),
    [([], "no task in common"), ([0.5], "one task"), ([0.25, 0.25, 0.25], "every task differs by the same")],
)
def test_what_has_no_test_says_why(values, reason):
    """And has no p that would look like certainty."""
    found = difference(values)
    assert (found.p, found.low, found.high, found.reason) == (None, None, None, reason)


def test_no_difference_at_all_is_not_certainty():
    """P is 1, and the interval is that of a share of 0 over as many tasks."""
    found = difference([0.0] * 50)
    q = 2.0095752371292397
    assert (found.difference, found.p) == (0.0, 1.0)
    assert (found.low, found.high) == pytest.approx((-q * q / (50 + q * q), q * q / (50 + q * q)))


def test_an_interval_of_bounded_scores_is_cut():
    assert difference([1.0, 0.0]).high == 1.0
    assert difference([1.0, 0.0], bounded=False).high > 1.0


def test_several_metrics_are_adjusted():
    """Holm: the smallest times their number, the next times one less, never falling, at most 1; None does not count."""
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("fixed", "broken"), [(0, 1), (3, 3), (13, 15), (1, 9), (40, 10)])
def test_mcnemar_is_the_binomial_test(fixed, broken):
    stats = pytest.importorskip("scipy.stats")
    assert mcnemar(fixed, broken) == pytest.approx(stats.binomtest(fixed, fixed + broken).pvalue)
    assert mcnemar(0, 0) is None


def test_a_tasks_mean_is_the_same_on_every_python():
    """Scores are added from left to right, each sum rounded, which Python's own does until 3.11."""
    runs = [gradestack.grade([{"id": "1", "run": n} for n in range(10)], {"g": lambda _: 0.1}) for _ in range(2)]
    assert gradestack.compare(*runs).data["metrics"]["g"]["a"] == 0.09999999999999999
