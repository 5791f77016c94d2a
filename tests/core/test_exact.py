"""Numbers that merge exactly."""

import json
import math
import random
import statistics
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack.exact import Moments, add_exact, count_into, exact_mean, exact_value, merge_exact

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)


def summed(values):
    partials = []
    for value in values:
        add_exact(partials, value)
    return partials


def test_a_sum_that_loses_everything_in_floats_is_kept():
    """1e100 + 1 - 1e100 is 1, not 0."""
    assert exact_value(summed([1e100, 1.0, -1e100])) == 1.0


def test_mean_is_rounded_once():
    """The mean of three times 0.1 is the float nearest to the mean of that float, which left-to-right sums miss."""
    assert exact_mean(summed([0.1, 0.1, 0.1]), 3) == 0.1
    assert (0.1 + 0.1 + 0.1) / 3 != 0.1


def test_mean_of_nothing_is_undefined():
    """0/0 is None, not 0."""
    assert exact_mean([], 0) is None
    assert exact_value([]) == 0.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_values_are_refused(value):
    """What has no exact sum raises and leaves the state alone."""
    partials = summed([1.0])
    with pytest.raises(ValueError, match="only finite numbers"):
        add_exact(partials, value)
    assert partials == [1.0]


def test_a_sum_beyond_floats_is_refused_aloud():
    """Overflow raises instead of turning the state into NaN."""
    with pytest.raises(OverflowError, match="beyond the range"):
        summed([1.7e308, 1.7e308])


@settings(deadline=None)
@given(st.lists(FINITE, max_size=30), st.integers(0, 30))
def test_any_split_gives_the_same_sum(values, cut):
    """Merging two halves equals folding the whole, exactly, and equals the rational sum rounded once."""
    left, right = summed(values[:cut]), summed(values[cut:])
    before = list(right)
    merged = merge_exact(left, right)
    assert merged is left
    assert right == before
    assert exact_value(merged) == exact_value(summed(values)) == float(sum(map(Fraction, values), Fraction(0)))
    if values:
        exact = sum(map(Fraction, values), Fraction(0)) / len(values)
        assert exact_mean(merged, len(values)) == float(exact)


@settings(deadline=None)
@given(st.lists(FINITE, max_size=20))
def test_states_survive_json(values):
    """Written and read back, a state is the same."""
    state = summed(values)
    assert json.loads(json.dumps(state)) == state


def test_shuffled_thousands_of_values_agree():
    """Order does not matter, whatever the magnitudes."""
    rng = random.Random(1)  # noqa: S311 - test data
    values = [rng.random() * 10.0 ** rng.randrange(-12, 12) for _ in range(2000)]
    expected = exact_value(summed(values))
    for _ in range(5):
        rng.shuffle(values)
        assert exact_value(summed(values)) == expected == math.fsum(values)


def test_counts_are_added_by_name():
    """New names start at zero."""
    counts = {"a": 1}
    count_into(counts, {"a": 2, "b": 3})
    assert counts == {"a": 3, "b": 3}


def test_moments_of_a_known_series():
    """2, 4, 4, 4, 5, 5, 7, 9: mean 5, sum of squared deviations 32, so the sample deviation is sqrt(32/7)."""
    moments = Moments()
    for value in (2, 4, 4, 4, 5, 5, 7, 9):
        moments.add(value)
    assert (moments.n, moments.total, moments.mean) == (8, 40.0, 5.0)
    assert moments.std == pytest.approx(math.sqrt(32 / 7), rel=1e-15)
    assert moments.std == pytest.approx(statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]), rel=1e-15)


def test_moments_of_short_series():
    """Nothing is undefined, one value has deviation 0, equal values have deviation 0 and never a negative root."""
    assert (Moments().mean, Moments().std) == (None, None)
    one = Moments()
    one.add(0.1)
    assert (one.mean, one.std) == (0.1, 0.0)
    same = Moments()
    for _ in range(3):
        same.add(0.1)
    assert same.std == 0.0


@settings(deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), max_size=20), st.integers(0, 20))
def test_moments_merge_like_their_series(values, cut):
    """Two halves merged give the figures of the whole, with ==, through JSON."""
    whole, left, right = Moments(), Moments(), Moments()
    for position, value in enumerate(values):
        whole.add(value)
        (left if position < cut else right).add(value)
    left = Moments(json.loads(json.dumps(left.state)))
    left.merge(Moments(json.loads(json.dumps(right.state))))
    assert (left.n, left.total, left.mean, left.std) == (whole.n, whole.total, whole.mean, whole.std)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=12))
def test_deviation_is_that_of_the_rational_numbers(values):
    """Mean and deviation equal exact rational arithmetic, rounded at the end."""
    values = [value if abs(value) > 1e-100 else 0.0 for value in values]
    moments = Moments()
    for value in values:
        moments.add(value)
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((each - mean) ** 2 for each in exact) / (len(exact) - 1)
    assert moments.mean == float(mean)
    assert moments.std == math.sqrt(float(variance))
