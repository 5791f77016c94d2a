"""json_equal, numeric_close, one_of."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import ABSENT, Expectation, Sample, testing
from gradestack.jsonio import compact
from gradestack_plugins.text_graders.texts import JsonEqual, NumericClose, OneOf, first_difference, read_number
from tests.core.outcomes import data

DATA = data(__file__, "structured.yaml")


def sample(text, truth=None):
    return Sample(id="t", text=text, expected=Expectation(text=truth))


@pytest.mark.parametrize(
    "grader",
    [JsonEqual(allow_fence=True), NumericClose(number="last"), OneOf(), OneOf(values=("a",), ignore_case=True)],
)
def test_graders_keep_the_contract(grader):
    own = [sample("[1]", "[1]"), sample("1", "1"), sample("x", "["), sample("x", '["a",1]'), sample("NaN", "NaN")]
    testing.check_grader(grader, own)


@pytest.mark.parametrize(("text", "truth", "score"), DATA["json_equal"])
def test_json_equal(text, truth, score):
    """Values count, not spelling: key order and number form are free, types and list order are not."""
    assert JsonEqual().grade(sample(text, truth)).score == score


@pytest.mark.parametrize(
    ("text", "truth", "pointer", "expected", "actual"),
    [
        ('{"a": {"b/~": [1, 2]}}', '{"a": {"b/~": [1, 3]}}', "/a/b~1~0/1", 3, 2),
        ('{"a": 1}', '{"a": 1, "b": "x"}', "/b", "x", ABSENT),
        ('{"a": 1, "c": [1, 2]}', '{"a": 1}', "/c", ABSENT, "a list of 2"),
        ("1", '{"a": 1}', "", "an object with 1 key(s)", 1),
    ],
)
def test_json_difference_has_a_place(text, truth, pointer, expected, actual):
    """The first difference in document order is told as a JSON pointer with both values."""
    (reason,) = JsonEqual().grade(sample(text, truth)).reasons
    assert (reason.pointer, reason.expected, reason.actual) == (pointer, expected, actual)


def test_json_faults():
    """Text that is not JSON is the submission's mistake; a reference that is not JSON is the data's."""
    wrong = JsonEqual().grade(sample("{", "1"))
    assert (wrong.score, wrong.reasons[0].code) == (0.0, "not_json")
    broken = JsonEqual().grade(sample("1", "{"))
    assert (broken.outcome, broken.fault.category, broken.fault.code) == ("failed", "data", "truth_not_json")
    assert JsonEqual().grade(sample("1")).reasons[0].code == "no_ground_truth"
    assert JsonEqual().grade(sample("1", "")).score == 0.0


def test_json_in_a_fence():
    """A Markdown code block is looked into only when asked to."""
    fenced = 'Here you are:\n```json\n{"a": 1}\n```\nAnything else?'
    assert JsonEqual().grade(sample(fenced, '{"a": 1}')).score == 0.0
    assert JsonEqual(allow_fence=True).grade(sample(fenced, '{"a": 1}')).score == 1.0
    assert JsonEqual(allow_fence=True).grade(sample('{"a": 1}', '{"a": 1}')).score == 1.0
    assert JsonEqual(allow_fence=True).grade(sample("```\n1\n``` ```\n2\n```", "1")).score == 1.0


def test_json_nested_deeply_is_compared_without_recursion():
    deep = "[" * 900 + "1" + "]" * 900
    other = "[" * 900 + "2" + "]" * 900
    assert JsonEqual().grade(sample(deep, deep)).score == 1.0
    assert JsonEqual().grade(sample(other, deep)).score == 0.0
    assert JsonEqual().grade(sample("[" * 100_000, "1")).score == 0.0


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0]) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def _normal(value):
    """Return a value in which only values that count as equal are equal, built independently of the grader."""
    if isinstance(value, dict):
        return ("object", frozenset((key, _normal(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(map(_normal, value)))
    return ("number", float(value)) if type(value) in (int, float) else (type(value).__name__, value)


@given(JSON_VALUES, JSON_VALUES)
def test_first_difference_agrees_with_a_normal_form(one, other):
    """No difference is found exactly where the normal forms are equal."""
    assert (first_difference(one, other) is None) == (_normal(one) == _normal(other))
    assert first_difference(one, one) is None


@pytest.mark.parametrize(("options", "text", "truth", "score"), DATA["numeric_close"])
def test_numeric_close(options, text, truth, score):
    """A number within max(abs_tol, rel_tol * |reference|), read as decimals and compared exactly."""
    assert NumericClose(**options).grade(sample(text, truth)).score == score


@pytest.mark.parametrize("truth", ["forty", "nan", "1e99999", "4 2"])
def test_numeric_reference_must_be_a_number(truth):
    """A reference that is no number is a data fault; a missing one skips, an empty one is 0.0."""
    grade = NumericClose().grade(sample("42", truth))
    assert (grade.outcome, grade.fault.category, grade.fault.code) == ("failed", "data", "truth_not_a_number")
    assert NumericClose().grade(sample("42")).reasons[0].code == "no_ground_truth"
    assert NumericClose().grade(sample("42", "")).score == 0.0


@pytest.mark.parametrize(
    "options", [{"rel_tol": -0.1}, {"abs_tol": -1.0}, {"abs_tol": math.inf}, {"rel_tol": math.nan}]
)
def test_numeric_options_are_checked(options):
    """Tolerances are finite and not negative."""
    with pytest.raises(ValueError, match="at least 0"):
        NumericClose(**options)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_exactly(value):
    """A float's shortest text reads back as that decimal."""
    found = read_number(repr(value))
    assert found is not None
    assert float(found) == value


@pytest.mark.parametrize(("options", "text", "truth", "score"), DATA["one_of"])
def test_one_of(options, text, truth, score):
    """Any of the accepted texts, from the options or the reference, stripped at both ends."""
    truth = tuple(truth) if isinstance(truth, list) else truth  # a reference for each turn
    assert OneOf(**options).grade(sample(text, truth)).score == score


def test_one_of_without_reference_is_skipped():
    """Neither values nor a reference: skipped."""
    assert OneOf().grade(sample("a")).reasons[0].code == "no_ground_truth"


@pytest.mark.parametrize("options", [{"values": ()}, {"separator": ""}])
def test_one_of_options_are_checked(options):
    """An empty list of values and an empty separator are refused."""
    with pytest.raises(ValueError, match="is empty"):
        OneOf(**options)


def test_compact_keeps_key_order():
    """Items of a list that are no texts are accepted as their JSON."""
    assert OneOf().grade(sample(compact({"b": 1, "a": 2}), '[{"b": 1, "a": 2}]')).score == 1.0
