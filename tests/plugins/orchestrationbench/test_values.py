"""Comparison of argument values, key by key."""

import json

import pytest

from gradestack_plugins.orchestrationbench.calls import at_best, compare_key, decided, usable, value_text
from gradestack_plugins.orchestrationbench.trial import Verdict

PROFILES = ["documented", "upstream"]


def schema(**properties):
    return {"tool": {"type": "object", "properties": properties}}


def compare(predicted, gold, prop=None, profile="documented", schemas=None):
    schemas = schemas if schemas is not None else schema(**({"k": prop} if prop is not None else {}))
    if profile == "documented":
        schemas = usable(schemas)
    ours = {} if predicted is None else {"k": predicted}
    theirs = {} if gold is None else {"k": gold}
    return compare_key("k", ours, theirs, schemas, profile)


def counts(result):
    return result.tp, result.fp, result.fn, result.reason


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (10, "10", True),
        (True, "True", True),
        (None, "None", True),
        (1.5, "1.5", True),
        (10, 10.0, False),
        (True, "true", False),
        (True, 1, False),
        ("Oslo", "oslo", False),
        ("a ", "a", False),
        ("2031-03-05", "05.03.2031", False),
        (["b", "a"], ["a", "b"], True),
        (["a", "a", "b"], ["a", "b"], False),
        ([1, "2"], ["2", "1"], True),
        (["a"], "['a']", True),
        ([["b", "a"], "c"], ["c", ["a", "b"]], True),
        ({"x": 1, "y": [2, 1]}, {"y": ["1", "2"], "x": "1"}, True),
        ({"x": 1}, {"x": 2}, False),
        ({"x": 1}, "{'x': '1'}", True),
        (1e16, "1e+16", True),
        (float("nan"), "nan", True),
    ],
)
def test_values_are_compared_as_python_texts(left, right, equal):
    """Scalars by ``str``; lists sorted, so order-free; objects by sorted keys; nothing is normalised."""
    assert (value_text(left) == value_text(right)) is equal


def test_values_that_json_does_not_hold():
    """Objects with keys of several types keep their order, and numbers too long to be written are written in hex."""
    assert value_text({1: "a", "b": 2}) == "{'1': 'a', 'b': '2'}"
    assert value_text(10**5000).startswith("0x")


def test_nested_values_neither_explode_nor_collide():
    """Quoting doubles with every level, so long texts become digests, and equal values still compare equal."""

    def nested(levels, core):
        value = core
        for _ in range(levels):
            value = ["'\"", value]
        return value

    assert len(value_text(nested(60, "a"))) < 200_000
    assert value_text(nested(60, "a")) == value_text(nested(60, "a"))
    assert value_text(nested(60, "a")) != value_text(nested(60, "b"))
    deep = json.loads("[" * 900 + "]" * 900)
    assert isinstance(value_text(deep), str)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_key_on_one_side_counts_its_values(profile):
    """A key only in gold adds its values to fn, one only in the prediction to fp; repeats count."""
    assert counts(compare(None, ["a", "a", "b"], profile=profile)) == (0, 0, 3, "key_missing_in_predicted")
    assert counts(compare(["a", "a"], None, profile=profile)) == (0, 2, 0, "key_missing_in_actual")


def test_an_undecodable_text_counts_its_characters_in_upstream():
    """The error text is one wrong value in documented, one per character in upstream."""
    text = "Invalid JSON in arguments: {"
    assert counts(compare(text, None, profile="upstream")) == (0, len(text), 0, "key_missing_in_actual")
    assert counts(compare(text, None, profile="documented")) == (0, 1, 0, "key_missing_in_actual")
    assert counts(compare(text, [text], profile="upstream")) == (1, 0, 0, "exact_comparison")


@pytest.mark.parametrize("profile", PROFILES)
def test_without_leftovers_on_both_sides_counts_are_exact(profile):
    """When only one side has leftovers they are wrong for certain; repeats collapse inside a key."""
    assert counts(compare(["a", "b", "b"], ["b", "a"], profile=profile)) == (2, 0, 0, "exact_comparison")
    assert counts(compare(["a", "b"], ["a"], profile=profile)) == (1, 1, 0, "exact_comparison")
    assert counts(compare(["a"], ["a", "b", "c"], profile=profile)) == (1, 0, 2, "exact_comparison")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("predicted", "gold", "prop", "reason"),
    [
        (["seven"], ["7"], {"type": "integer"}, "type_mismatch"),
        (["8"], ["7"], {"type": "integer"}, "undecided"),
        ([7.0], [7], {"type": "integer"}, "type_mismatch"),
        (["8"], ["7"], {"type": "number"}, "type_mismatch"),
        (["true"], [True], {"type": "boolean"}, "type_mismatch"),
        ([["a"]], [["b"]], {"type": "array"}, "type_mismatch"),
        ([{"a": 1}], [{"a": 2}], {"type": "object"}, "type_mismatch"),
        (["a"], ["b"], {"type": ["string", "object"]}, "undecided"),
        (["a"], ["b"], {"type": ["object", "string"]}, "type_mismatch"),
        (["a"], ["b"], {"type": []}, "undecided"),
        (["a"], ["b"], {"type": None}, "undecided"),
        (["a"], ["b"], {"type": "string"}, "undecided"),
        (["a"], ["b"], {}, "undecided"),
        (["a"], ["b"], None, "undecided"),
        (["a"], ["b"], {"type": "string", "enum": ["a", "b"]}, "enum_exact_comparison"),
        (["a", "c"], ["b"], {"type": "string", "enum": ["a", "b"]}, "undecided"),
        ([["a"]], [["b"]], {"items": {"enum": ["a", "b"]}}, "enum_exact_comparison"),
        (["8"], ["7"], {"type": "integer", "enum": [7, 8]}, "enum_exact_comparison"),
        (["x1"], ["11"], {"type": "string", "pattern": "\\d"}, "pattern_mismatch"),
        (["1x"], ["11"], {"type": "string", "pattern": "\\d"}, "undecided"),
        (["x"], ["11"], {"type": "string", "pattern": "\\\\d"}, "pattern_mismatch"),
        (["x"], ["1"], {"type": "string", "enum": ["1"], "pattern": "\\d"}, "enum_exact_comparison"),
    ],
)
def test_leftovers_on_both_sides_are_decided_by_rule_or_left_to_a_judge(profile, predicted, gold, prop, reason):
    """Type, then enumeration (as many leftovers on both sides), then pattern at the start, else a judge."""
    result = compare(predicted, gold, prop, profile)
    assert result.reason == reason
    assert (result.tp, result.fp, result.fn) == (0, len(predicted), len(gold))


def test_automatic_decisions_keep_confirmed_matches():
    """A rule decides only the leftovers; what was equal stays a match."""
    result = compare(["a", "x"], ["a", "b"], {"type": "string", "enum": ["a", "b"]}, "upstream")
    assert counts(result) == (1, 1, 1, "enum_exact_comparison")


@pytest.mark.parametrize("profile", PROFILES)
def test_the_first_called_tool_with_a_type_decides(profile):
    """The schema is that of the predicted tools, in call order; the first one that types the key counts."""
    tools = {"one": {"properties": {"k": {"enum": ["z"]}}}, "two": {"properties": {"k": {"type": "number"}}}}
    assert compare(["a"], ["b"], schemas=tools, profile=profile).reason == "type_mismatch"
    swapped = {"one": {"properties": {"k": {"type": "string"}}}, "two": tools["two"]}
    assert compare(["a"], ["b"], schemas=swapped, profile=profile).reason == "undecided"


@pytest.mark.parametrize(
    "broken",
    [
        schema(k={"type": "null"}),
        schema(k={"type": 3}),
        schema(k={"type": [{"a": 1}]}),
        schema(k=True),
        schema(k={"items": None}),
        schema(k={"pattern": "("}),
        {"tool": None},
        {"tool": {"properties": None}},
        {"tool": {"properties": "k"}},
    ],
)
def test_a_broken_schema_stops_only_upstream(broken):
    """A schema that is none raises in upstream; documented reads what it can and otherwise leaves it to a judge."""
    with pytest.raises(Exception, match=r"."):
        compare(["a"], ["b"], schemas=broken, profile="upstream")
    assert compare(["a"], ["b"], schemas=broken).reason == "undecided"


def test_an_undecided_key_in_each_profile():
    """Documented keeps the confirmed match and shows the best case; upstream loses it."""
    result = compare(["a", "x", "y"], ["a", "b"], {"type": "string"})
    assert counts(decided(result, None, "documented")) == (1, 2, 1, "undecided")
    assert counts(decided(result, None, "upstream")) == (0, 2, 1, "undecided")
    assert counts(at_best(result)) == (2, 1, 0, "undecided")
    automatic = compare(["x"], ["b"], {"type": "number"})
    assert at_best(automatic) is automatic


def test_a_verdict_in_each_profile():
    """A judge's counts are for the leftovers: added to the confirmed ones in documented, replacing them in upstream."""
    result = compare(["a", "x"], ["a", "b"], {"type": "string"})
    assert counts(decided(result, Verdict(1, 0, 0), "documented")) == (2, 0, 0, "judged")
    assert counts(decided(result, Verdict(1, 0, 0), "upstream")) == (1, 0, 0, "judged")
