"""json_equal, numeric_close, one_of."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Expectation, Sample
from gradestack_plugins.text_graders.texts import (
    JsonEqual,
    NumericClose,
    first_difference,
    read_number,
)


def sample(text, truth=None):
    expectation = Expectation(text=truth)
    return Sample(id="t", text=text, expected=expectation)


def test_json_nested_deeply_is_compared_without_recursion():
    deep = "[" * 900 + "1" + "]" * 900
    other = "[" * 900 + "2" + "]" * 900
    assert JsonEqual().grade(sample(deep, deep)).score == 1.0
    assert JsonEqual().grade(sample(other, deep)).score == 0.0
    score = JsonEqual().grade(sample("[" * 100_000, "1")).score
    assert score == 0.0


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0])
    | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def _normal(value):
    """Return a value in which only values that count as equal are equal, built independently of the
    grader.
    """
    if isinstance(value, dict):
        return ("object", frozenset((key, _normal(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(map(_normal, value)))
    if type(value) in (int, float):
        return ("number", float(value))
    return (type(value).__name__, value)


@given(JSON_VALUES, JSON_VALUES)
def test_first_difference_agrees_with_a_normal_form(one, other):
    """No difference is found exactly where the normal forms are equal."""
    difference = first_difference(one, other)
    normal = _normal(one)
    assert (difference is None) == (normal == _normal(other))
    assert first_difference(one, one) is None


@pytest.mark.parametrize(
    "options", [{"rel_tol": -0.1}, {"abs_tol": -1.0}, {"rel_tol": math.nan}, {"abs_tol": math.inf}]
)
def test_numeric_options_are_checked(options):
    """Tolerances are finite, and not negative."""
    with pytest.raises(ValueError, match=r"must be (>= 0|< inf)"):
        NumericClose(**options)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_exactly(value):
    """A float's shortest text reads back as that decimal."""
    number = read_number(repr(value))
    assert number is not None
    assert float(number) == value
