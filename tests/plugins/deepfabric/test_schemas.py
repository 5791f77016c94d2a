"""Tool schemas: both forms, what is checked of them, and making each once."""

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import ToolSpec
from gradestack_plugins.deepfabric import schemas
from gradestack_plugins.deepfabric.schemas import SchemaProblem, convert, find, signature

NAN = float("nan")
VALUES = {
    "text": "x",
    "int": 1,
    "whole float": 1.0,
    "float": 1.5,
    "nan": NAN,
    "inf": float("inf"),
    "true": True,
    "list": [1],
    "dict": {"a": 1},
    "null": None,
}
ACCEPTED = {
    "string": {"text"},
    "integer": {"int"},
    "number": {"int", "whole float", "float", "nan", "inf"},
    "boolean": {"true"},
    "array": {"list"},
    "object": {"dict"},
}


@pytest.mark.parametrize("profile", ["documented", "4.3", "4.13"])
@pytest.mark.parametrize("word", ACCEPTED)
def test_types(profile, word):
    """Each type accepts exactly its values: nothing is coerced, a bool is no number, null is of no type."""
    checked = signature({"properties": {"a": {"type": word}}}, profile)
    assert {name for name, value in VALUES.items() if checked.accepts({"a": value})} == ACCEPTED[word]


@pytest.mark.parametrize("declared", [{}, {"type": None}, {"type": "any"}, {"type": "uuid"}, {"type": 3}])
def test_missing_and_unknown_types(declared):
    """Upstream reads them as text, documented leaves them unchecked."""
    schema = {"properties": {"a": declared}}
    accepted = {
        profile: {name for name, value in VALUES.items() if signature(schema, profile).accepts({"a": value})}
        for profile in ("documented", "4.3", "4.13")
    }
    assert accepted == {"documented": set(VALUES), "4.3": {"text"}, "4.13": {"text"}}


@pytest.mark.parametrize(("word", "json_word"), [("int", "integer"), ("float", "number"), ("dict", "object")])
def test_own_words_in_a_json_schema(word, json_word):
    """Documented understands DeepFabric's own words there, upstream reads them as text."""
    schema = {"properties": {"a": {"type": word}}}
    documented, upstream = signature(schema, "documented"), signature(schema, "4.13")
    assert {name for name, value in VALUES.items() if documented.accepts({"a": value})} == ACCEPTED[json_word]
    assert upstream.accepts({"a": "x"})
    assert not upstream.accepts({"a": 1})


def test_lists_of_types():
    """Documented takes any of the types, null where it is listed; upstream fails with the interpreter's words."""
    schema = {"properties": {"a": {"type": ["string", "null"]}, "b": {"type": ["string", "any"]}, "c": {"type": []}}}
    checked = signature(schema, "documented")
    assert checked.accepts({"a": None, "b": 3, "c": 3})
    assert checked.accepts({"a": "x"})
    assert not checked.accepts({"a": 3})
    assert signature({"properties": {"a": {"type": "null"}}}, "documented").accepts({"a": None})
    with pytest.raises(SchemaProblem, match="unhashable type: 'list'"):
        signature(schema, "4.13")


def test_required_names():
    """Required names must be there; one without a property counts in documented only."""
    schema = {"properties": {"a": {"type": "string"}, "gone": None}, "required": ["a", "ghost", "gone", "a", 3]}
    assert signature(schema, "4.13").required == ("a",)
    assert signature(schema, "documented").required == ("a", "ghost", "gone")
    assert signature(schema, "documented").accepts({"a": "x", "ghost": 1, "gone": 2})
    assert not signature(schema, "documented").accepts({"a": "x", "gone": 2})
    assert signature({"properties": {"a": {}}}, "4.13").required == ()
    assert signature({"properties": {"a": {}}, "required": "abc"}, "4.13").required == ("a",)


@pytest.mark.parametrize("function", [None, "x", {"name": None}, {"name": 3}, {"name": "f", "description": None}])
def test_tools_the_original_fails_on(function):
    """A wrapper that is no object, or a name or description that is no text, fails upstream only."""
    with pytest.raises(SchemaProblem):
        convert([{"type": "function", "function": function}], "4.13")
    convert([{"type": "function", "function": function}], "documented")


OWN = {
    "name": "f",
    "description": "does it",
    "parameters": [
        {"name": "a", "type": "str", "description": "A"},
        {"name": "b", "type": "int", "description": "B", "required": False, "default": "3"},
        {"name": "c", "type": "list[str]", "description": "C", "required": False},
    ],
    "returns": "r",
}


def test_own_form_documented():
    """The own form becomes JSON Schema: types by word, required unless said otherwise, defaults converted."""
    (spec,) = convert([OWN], "documented")
    assert (spec.name, spec.description) == ("f", "does it")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "A"},
            "b": {"type": "integer", "description": "B", "default": 3},
            "c": {"description": "C"},
        },
        "required": ["a"],
    }
    assert signature(spec.parameters, "documented").accepts({"a": "x", "c": 5})


def test_own_form_upstream_is_nameless(df):
    """Upstream gives a tool of the own form no name and no parameters, so that arguments are compared by value."""
    assert convert([OWN], "4.13") == (ToolSpec(name="", description="", parameters={}),)
    record = df.record(("f", {"a": "x"}), [OWN])
    for arguments, documented, upstream in (({"a": "y"}, (1, 1, 1), (1, 0, 0)), ({"a": " X "}, (1, 1, 1), (1, 1, 1))):
        assert df.verdict(df.grade(record, df.reply(("f", arguments)))) == documented
        assert df.verdict(df.grade(record, df.reply(("f", arguments)), "upstream")) == upstream
    assert df.verdict(df.grade(record, df.reply(("f", {"a": 1})))) == (1, 0, 0)


def test_a_bare_function_and_a_nameless_entry():
    """Documented understands a function without its wrapper, and leaves out what has no name."""
    bare = {"name": "f", "description": None, "parameters": {"properties": {}}}
    specs = convert([bare, {}, {"name": ""}, {"function": {"name": 3}}], "documented")
    assert [(spec.name, spec.description) for spec in specs] == [("f", "")]


def test_the_first_tool_of_a_name_counts():
    specs = convert([_tool("f", "string"), _tool("f", "integer")], "documented")
    assert find(specs, "f", "documented").accepts({"a": "x"})
    assert find(specs, "g", "documented") is None


def _tool(name, word, pad=""):
    schema = {"properties": {"a": {"type": word, "description": pad}}}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": schema}}


# Each distinct tool once


@pytest.mark.parametrize("profile", ["documented", "4.3", "4.13"])
def test_a_tool_is_made_once(profile, monkeypatch):
    """Records whose lists of tools all differ share the tools they are made of, each converted once."""
    read, made = [], schemas._spec
    monkeypatch.setattr(schemas, "_spec", lambda entry, profile: read.append(1) or made(entry, profile))
    schemas._held.cache_clear()
    few = [_tool(f"once_{n}", "string", "x" * 400) for n in range(4)]
    found = {}
    for several in itertools.permutations(few):
        for spec in convert(json.loads(json.dumps(several)), profile):
            found.setdefault(spec.name, set()).add(id(spec))
    assert (len(read), len(found)) == (4, 4)
    assert all(len(objects) == 1 for objects in found.values())


def test_shared_tools_are_bounded():
    """However many tools come along, and however long, a bounded number of bounded length is held."""
    long = _tool("f", "string", "x" * 10_000)
    assert convert([long], "documented") == convert([long], "documented")
    assert convert([long], "documented")[0] is not convert([long], "documented")[0]
    for n in range(5000):
        assert convert([_tool(f"g{n}", "string")], "documented")[0].name == f"g{n}"
    assert schemas._held.cache_info().currsize <= 4096


def test_similar_tools_are_told_apart():
    """true, 1 and 1.0, 0.0 and -0.0, NaN and null, and keys in another order make different tools."""
    values = [1, 1.0, True, "1", 0.0, -0.0, NAN, None, {"a": 1, "b": 1}, {"b": 1, "a": 1}]
    given = [{"name": "f", "parameters": {"x": value}} for value in values]
    assert list(map(repr, convert(given * 2, "documented"))) == [
        repr(ToolSpec(name="f", description="", parameters=entry["parameters"])) for entry in given * 2
    ]


def _nested(depth):
    deep = []
    for _ in range(depth):
        deep = [deep]
    return deep


@pytest.mark.parametrize("profile", ["documented", "4.3", "4.13"])
@pytest.mark.parametrize(
    "value",
    ["\ud800", 10**30, -(10**30), _nested(3000), _nested(400)],
    ids=["surrogate", "big", "small", "deep", "flat"],
)
def test_tools_of_hostile_content_are_converted_too(profile, value):
    """What cannot be compared with other tools (lone surrogates, huge integers, deep nesting) is kept as it stands."""
    parameters = {"properties": {}, "x": value}
    for _ in range(2):
        (spec,) = convert([{"function": {"name": "f", "parameters": parameters}}], profile)
        found = spec.parameters["x"]
        assert found is value or found == value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
odd_tools = st.dictionaries(
    st.sampled_from(["function", "name", "description", "parameters", "é"]),
    json_values | st.dictionaries(st.sampled_from(["name", "description", "parameters"]), json_values),
)


@given(st.lists(odd_tools, max_size=3), st.sampled_from(["documented", "4.3", "4.13"]))
def test_shared_tools_are_those_made_anew(given_tools, profile):
    """Whatever tools hold, they or their problem are what converting each by itself gives, twice in a row."""
    try:
        made = repr(tuple(spec for tool in given_tools if (spec := schemas._spec(tool, profile)) is not None))
    except SchemaProblem as error:
        for _ in range(2):
            with pytest.raises(SchemaProblem, match=f"^{re.escape(str(error))}$"):
                convert(given_tools, profile)
    else:
        assert [repr(convert(given_tools, profile)) for _ in range(2)] == [made, made]
