"""Similarity of arguments, and the reasons for lost points."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack_plugins.tau_bench.similarity import (
    MAX_DEPTH,
    Budget,
    TooMuchWork,
    best_partner,
    differences,
    similarity,
)
from tests.conftest import examples

scalars = st.sampled_from([None, True, False, 0, 1, 2, 1.0, 0.5, float("nan"), "", "a", "b", "1"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc/~"), inner, max_size=3)
    ),
)


def sim(expected, actual):
    return similarity(expected, actual, Budget())


def found_differences(expected, actual):
    return [
        (r.code, r.pointer, r.expected, r.actual)
        for r in differences(expected, actual, "tool", Budget())
    ]


@given(values, values)
@settings(max_examples=examples(400))
def test_reasons_exist_exactly_where_points_were_lost(expected, actual):
    """There is a reason if and only if the similarity is below 1."""
    text = json.dumps([expected, actual])
    expected, actual = json.loads(text)
    assert bool(found_differences(expected, actual)) == (sim(expected, actual) < 1.0)


@given(values, values)
@settings(max_examples=examples(200))
def test_pointers_lead_to_the_expected_value(expected, actual):
    """Following a reason's pointer through the expected arguments gives the value the
    reason names.
    """
    text = json.dumps([expected, actual])
    expected, actual = json.loads(text)
    for _, pointer, wanted, _ in found_differences(expected, actual):
        value = expected
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list):
                value = value[int(key)]
            else:
                value = value[key]
        assert value is wanted or value == wanted


def test_the_first_of_equal_partners_is_taken():
    """Ties go to the earlier candidate."""
    assert best_partner({"a": 1, "b": 2}, [{"a": 9}, {"a": 1}, {"b": 2}], Budget()) == (0.5, 1)
    assert best_partner("x", ["y", "z"], Budget()) == (0.0, 0)


def test_too_deep_values_are_refused():
    """Values that differ deeper than the limit raise instead of exhausting the stack."""
    expected, actual = 1, 2
    for _ in range(MAX_DEPTH + 2):
        expected, actual = [expected], [actual]
    with pytest.raises(TooMuchWork, match="nesting"):
        sim(expected, actual)
    shallow = expected[0][0]
    assert similarity(shallow, actual[0][0], Budget()) == 0.0


def test_too_many_comparisons_are_refused():
    """A budget that is used up raises."""
    with pytest.raises(TooMuchWork, match="too large"):
        similarity(list(range(10)), list(range(20, 30)), Budget(99))
    budget = Budget(100)
    assert similarity(list(range(10)), list(range(20, 30)), budget) == 0.0
