"""Sums without rounding, and counts by name."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack.exact import count_into, exact_parts

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
whole = st.integers(min_value=-(2**53), max_value=2**53)


@given(st.lists(finite | whole, max_size=30))
def test_parts_have_the_sum_of_all_values_in_any_order(values):
    """As rational numbers, not a digit less."""
    total = sum(map(Fraction, values), Fraction(0))
    assert sum(map(Fraction, exact_parts(values)), Fraction(0)) == total
    assert exact_parts(values) == exact_parts(values[::-1])


def test_a_sum_that_loses_everything_in_floats_is_kept():
    """1e16 + 1 - 1e16 is 1."""
    assert exact_parts([1e16, 1.0, -1e16]) == [1.0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_values_are_refused(value):
    """They have no exact sum."""
    with pytest.raises((ValueError, OverflowError)):
        exact_parts([1.0, value])


def test_counts_are_added_by_name():
    """In place; names that are new begin at 0."""
    counts = {"a": 1}
    count_into(counts, {"a": 2, "b": 3})
    assert counts == {"a": 3, "b": 3}
