"""Numbers that merge exactly."""

import json
import math
import random
import statistics
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack.exact import Moments, add_exact, add_times, count_into, exact_mean, exact_value, merge_exact
from tests.conftest import examples

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
@given(st.lists(FINITE, max_size=30))
def test_a_sum_may_stand_behind_something_else(values):
    """The same floats, bit for bit; what stands before them is left alone."""
    state = [7.0, 1e300]
    for value in values:
        add_exact(state, value, 2)
    assert repr(state) == repr([7.0, 1e300, *summed(values)])


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
    """One value has no deviation, as nothing has none; equal values have deviation 0 and never a negative root."""
    assert (Moments().mean, Moments().std) == (None, None)
    one = Moments()
    one.add(0.1)
    assert (one.mean, one.std) == (0.1, None)
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


# many times at once

EDGES = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-200, 1.1e-200, 1e-190, 1 / 3, 0.1, -1.0, 1e16, 1e100]
EDGES += [-1.7e200, 1e200, 9.9e199, 1.5e290, 3, True, 2**53 + 1]
TIMES = [0, 1, 2, 3, 64, 10**6 + 1, 2**53 - 1, 2**53, 2**53 + 1, 2**60, 2**60 + 1]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("value", EDGES)
def test_adding_many_times_is_exact(value, times):
    """The state's real sum is that of the fractions, whatever was in it, for odd values and odd counts."""
    for before in ([], [0.1], [1e16, 0.5, -1e-300]):
        partials = summed(before)
        expected = sum(map(Fraction, partials)) + Fraction(float(value)) * times
        add_times(partials, value, times)
        assert sum(map(Fraction, partials)) == expected
        assert exact_value(partials) == float(expected)
        assert json.loads(json.dumps(partials)) == partials


@given(
    st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False, width=64), st.integers(0, 2**61)), max_size=6)
)
def test_adding_many_times_in_any_company_is_exact(pairs):
    """Over the whole range of floats, or an OverflowError beyond it."""
    partials = []
    try:
        for value, times in pairs:
            add_times(partials, value, times)
    except OverflowError:
        assert sum(abs(Fraction(value)) * times for value, times in pairs) > Fraction(1.7e308)
        return
    assert sum(map(Fraction, partials)) == sum(Fraction(value) * times for value, times in pairs)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("before", [[], [1.0], [1e16, 1e-3]])
@pytest.mark.parametrize("times", [1, 2, 2**60])
def test_what_has_no_exact_sum_is_refused(value, before, times):
    """NaN and infinities, in every state, and the state is as it was."""
    partials = summed(before)
    held = list(partials)
    with pytest.raises(ValueError, match="only finite numbers"):
        add_times(partials, value, times)
    with pytest.raises(ValueError, match="only finite numbers"):
        add_exact(partials, value)
    assert partials == held


def test_a_sum_beyond_floats_is_an_overflow():
    """Not an infinity, when the state is one float, too."""
    for add in (add_exact, lambda partials, value: add_times(partials, value, 3)):
        with pytest.raises(OverflowError):
            add([1.7e308], 1.7e308)


@settings(max_examples=examples(300))
@given(st.lists(st.one_of(FINITE, st.sampled_from([0.0, -0.0, 0.5, 1.0, 5e-324, 1e16, 0.1])), min_size=1, max_size=8))
def test_a_state_of_one_float_is_no_special_case(values):
    """Adding to it is exact, whether or not it stays one float."""
    partials = []
    for count, value in enumerate(values, 1):
        add_exact(partials, value)
        assert sum(map(Fraction, partials)) == sum(map(Fraction, values[:count]))
        nonzero = [abs(part) for part in partials if part]
        assert nonzero == sorted(nonzero)
