"""What is shown of one sample: the first of its calls and reasons, and how many there are."""

import pytest

from gradestack_plugins.pages.jsonview import equality_key, same
from gradestack_plugins.pages.sample import MOST_CALLS, MOST_REASONS, calls_of, grade_view

MANY = 20_000
VALUES = [
    None,
    True,
    False,
    1,
    1.0,
    0,
    "",
    "1",
    [],
    [1],
    [True],
    {},
    {"a": 1},
    {"a": 1.0},
    {"a": None},
]


def calls(count, word):
    return [{"name": f"t{n % 7}", "arguments": {"q": f"{word} {n}"}} for n in range(count)]


@pytest.mark.parametrize("made", ["other", "same", "one name"])
def test_what_is_shown_of_a_sample_is_bounded(made):
    """It would not end if each call were looked for among all others."""
    expected = calls(MANY, "a")
    actual = expected[::-1] if made == "same" else calls(MANY, "b")
    if made == "one name":
        expected = [{**call, "name": "t"} for call in expected]
        actual = [{**call, "name": "t"} for call in actual]
    found = calls_of({"expected": {"calls": expected}, "predicted": {"calls": actual}})
    assert len(found.pairs) == MOST_CALLS
    assert found.others == []
    assert found.more == MANY - MOST_CALLS
    numbers = [pair.number for pair in found.pairs]
    first = range(MANY, MANY - MOST_CALLS, -1) if made == "same" else range(1, MOST_CALLS + 1)
    assert numbers == [*first]


def test_calls_beside_those_expected_are_bounded():
    found = calls_of({"expected": {"calls": []}, "predicted": {"calls": calls(MANY, "a")}})
    assert [number for number, _ in found.others] == [*range(1, MOST_CALLS + 1)]
    assert found.more == MANY - MOST_CALLS


def test_reasons_are_bounded():
    reasons = [{"code": "wrong", "subject": f"call {n}"} for n in range(MANY)]
    found = grade_view("g", {"score": 0.0, "reasons": reasons})
    assert (len(found.reasons), found.more_reasons) == (MOST_REASONS, MANY - MOST_REASONS)


@pytest.mark.parametrize("left", VALUES, ids=repr)
@pytest.mark.parametrize("right", VALUES, ids=repr)
def test_values_that_are_the_same_have_one_key(left, right):
    assert (equality_key(left) == equality_key(right)) is same(left, right)
