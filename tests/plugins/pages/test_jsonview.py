import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack_plugins.pages.jsonview import equal_in_any_order, laid_out, same_json, spread
from tests.core.outcomes import data

DATA = data(__file__, "jsonview.yaml")

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=25,
)


@pytest.mark.parametrize(
    ("left", "right", "equal", "but_for_order"),
    DATA["values_are_compared"],
)
def test_values_are_compared(left, right, equal, but_for_order):
    assert same_json(left, right) == equal
    assert equal_in_any_order(left, right) == but_for_order


def test_long_values_are_cut_with_a_note():
    assert (
        laid_out({"a": "x" * 90, "b": [1, 2]}, 1000)
        == '{\n  "a": "' + "x" * 90 + '",\n  "b": [1, 2]\n}'
    )
    assert laid_out(["x" * 90, "y" * 90], 100) == '["' + "x" * 90 + '", "yyyy…\n… cut here'


@given(JSON_VALUES, st.sampled_from([None, 1, 4]))
def test_spreading_changes_white_space_only(value, indent):
    text = json.dumps(value, indent=indent)
    result = spread(text)
    if isinstance(value, dict | list):
        document = json.loads(result)
        assert document == value
        expected = "".join(text.split())
        assert "".join(result.split()) == expected
    else:
        assert result is None


def test_spreading_keeps_tokens_as_written():
    text = '{"b":1.50,"a":1e3,"b":"' + "x" * 80 + '"}'
    assert spread(text) == '{\n  "b": 1.50,\n  "a": 1e3,\n  "b": "' + "x" * 80 + '"\n}'


@pytest.mark.parametrize("text", ["{'a': 1}", "{", "plain", "", "[1,]", "[" * 5000 + "]" * 5000])
def test_texts_that_are_not_json_are_left_alone(text):
    spread_text = spread(text)
    assert spread_text is None or json.loads(spread_text) == json.loads(text)


@pytest.mark.slow
def test_deep_nesting_does_not_blow_up():
    text = "[" * 400 + '"' + "x" * 100 + '"' + "]" * 400
    spread_count = len(spread(text))
    expected = 2 * len(text)
    assert spread_count < expected
    document = json.loads(text)
    limit = 10**6
    assert laid_out(document, limit) == spread(text)
