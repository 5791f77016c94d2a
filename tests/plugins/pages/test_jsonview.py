import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack_plugins.pages.jsonview import differences, lines, pointer_path, spread

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=25,
)


def shown(value, marks=(), limit=4000):
    return [("  " * line.indent + line.text, line.marked) for line in lines(value, marks, limit)]


def test_marked_places_are_spread_out_and_marked():
    value = {"id": 7, "legs": [{"train": "R1", "day": "x"}, {"train": "R2", "day": "y"}]}
    assert shown(value, [("legs", "1", "day")]) == [
        ("{", False),
        ('  "id": 7,', False),
        ('  "legs": [', False),
        ('    {"train": "R1", "day": "x"},', False),
        ("    {", False),
        ('      "train": "R2",', False),
        ('      "day": "y"', True),
        ("    }", False),
        ("  ]", False),
        ("}", False),
    ]


def test_the_empty_place_marks_everything():
    assert shown({"a": 1}, [()]) == [('{"a": 1}', True)]


def test_long_values_are_cut_with_a_note():
    texts = [text for text, _ in shown(["x" * 90, "y" * 90, "z" * 90], limit=150)]
    assert texts[-1] == "… cut here"
    assert sum(map(len, texts)) < 200
    assert not any("z" in text for text in texts)


@given(JSON_VALUES)
def test_lines_say_the_value_and_nothing_else(value):
    assert json.loads("\n".join(line.text for line in lines(value, limit=10**9))) == value


@pytest.mark.parametrize(
    ("expected", "actual", "left", "right"),
    [
        ({"a": 1}, {"a": 1.0}, set(), set()),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {("b",)}, {("b",)}),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, {("b",)}, {("c",)}),
        ([1, 2, 3], [3, 1, 2], set(), set()),
        ([1, {"d": 2}, 3], [3, 9, {"d": 5}], {("0",), ("1", "d")}, {("1",), ("2", "d")}),
        ([1, 2, 3], [1], {("1",), ("2",)}, set()),
        ([1], [1, 2], set(), {("1",)}),
        ({"a": []}, {"a": [1]}, {("a",)}, {("a",)}),
        ("x", 1, {()}, {()}),
    ],
)
def test_differences_are_found_where_they_are(expected, actual, left, right):
    assert differences(expected, actual) == (left, right)


def test_pointers_are_decoded():
    """Escapes of RFC 6901 are read, and the empty pointer is the whole value."""
    assert pointer_path("/a~1b/c~0d/0") == ("a/b", "c~d", "0")
    assert pointer_path("") == ()


@given(JSON_VALUES, st.sampled_from([None, 1, 4]))
def test_spreading_changes_white_space_only(value, indent):
    text = json.dumps(value, indent=indent)
    result = spread(text)
    if isinstance(value, dict | list):
        assert json.loads(result) == value
        assert "".join(result.split()) == "".join(text.split())
    else:
        assert result is None


def test_spreading_keeps_tokens_as_written():
    text = '{"b":1.50,"a":1e3,"b":"' + "x" * 80 + '"}'
    assert spread(text) == '{\n  "b": 1.50,\n  "a": 1e3,\n  "b": "' + "x" * 80 + '"\n}'


@pytest.mark.parametrize("text", ["{'a': 1}", "{", "plain", "", "[1,]", "[" * 5000 + "]" * 5000])
def test_texts_that_are_not_json_are_left_alone(text):
    found = spread(text)
    assert found is None or json.loads(found) == json.loads(text)


def test_deep_nesting_does_not_blow_up():
    text = "[" * 400 + '"' + "x" * 100 + '"' + "]" * 400
    assert len(spread(text)) < 2 * len(text)
