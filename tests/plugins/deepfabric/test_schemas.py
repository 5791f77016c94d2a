"""Schemas, parsers and replies."""

import json
from types import MappingProxyType

import pytest

from gradestack_plugins.deepfabric.replies import (
    ReplyProblem,
    first_object,
    kind_of,
    read_reply,
)
from gradestack_plugins.deepfabric.schemas import Check, convert
from tests.core.outcomes import data

DATA = data(__file__, "schemas.yaml")

NAN = float("nan")
VALUES = {"text": "x", "int": 1, "whole float": 1.0, "float": 1.5, "nan": NAN, "inf": float("inf")}
VALUES |= {"true": True, "list": [1], "dict": {"a": 1}, "null": None}
ACCEPTED = {
    "string": {"text"},
    "integer": {"int"},
    "number": {"int", "whole float", "float", "nan", "inf"},
    "boolean": {"true"},
    "array": {"list"},
    "object": {"dict"},
}


def accepts(schema, arguments):
    """Return whether a schema has nothing against arguments."""
    return not Check().list_reasons("f", schema, arguments)


@pytest.mark.parametrize("word", ACCEPTED)
def test_types(word):
    """Each type accepts exactly its values.

    Nothing is coerced, a bool is no number, null is of no type.
    """
    schema = {"properties": {"a": {"type": word}}}
    names = {name for name, value in VALUES.items() if accepts(schema, {"a": value})}
    assert names == ACCEPTED[word]


@pytest.mark.parametrize(
    "declared", [{}, {"type": None}, {"type": "any"}, {"type": "uuid"}, {"type": 3}]
)
def test_missing_and_unknown_types_are_not_checked(declared):
    schema = {"properties": {"a": declared}}
    assert all(accepts(schema, {"a": value}) for value in VALUES.values())


def test_lists_of_types():
    """Any of the types is right, null where it is listed."""
    schema = {
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": ["string", "any"]},
            "c": {"type": []},
        }
    }
    assert accepts(schema, {"a": None, "b": 3, "c": 3})
    assert accepts(schema, {"a": "x"})
    assert not accepts(schema, {"a": 3})
    assert accepts({"properties": {"a": {"type": "null"}}}, {"a": None})


def test_schemas_of_other_classes():
    """Schemas of other code: mappings that are no dict, tuples, and texts of a class of its own."""
    schema = MappingProxyType(
        {
            "properties": MappingProxyType({"a": MappingProxyType({"type": Word("string")})}),
            "required": ("a", Word("b")),
        }
    )
    assert accepts(schema, {"a": "x", "b": 1})
    assert not accepts(schema, {"a": 1, "b": 1})
    assert not accepts(schema, {"a": "x"})


class Word(str):
    """A text of a class of its own."""

    __slots__ = ()


def test_required_names():
    """Required names must be there, also one without a property."""
    schema = {
        "properties": {"a": {"type": "string"}, "gone": None},
        "required": ["a", "ghost", "gone", "a", 3],
    }
    missing = Check().list_reasons("f", schema, {})
    pointers = [reason.pointer for reason in missing]
    assert pointers == ["/a", "/ghost", "/gone"]
    assert accepts(schema, {"a": "x", "ghost": 1, "gone": 2})
    assert not accepts(schema, {"a": "x", "gone": 2})


OWN = DATA["own"]


def test_own_form():
    """The own form becomes JSON Schema.

    Types by word, required unless said otherwise, defaults converted.
    """
    (spec,) = convert([OWN])
    assert spec.name == "f"
    assert spec.description == "does it"
    own_form_documented = data(__file__, "schemas.yaml")["own_form_documented"]
    assert spec.parameters == own_form_documented
    assert accepts(spec.parameters, {"a": "x", "c": 5})


def test_a_bare_function_and_a_nameless_entry():
    """Documented understands a function without its wrapper, and leaves out what has no name."""
    bare = {"name": "f", "description": None, "parameters": {"properties": {}}}
    specs = convert([bare, {}, {"name": ""}, {"function": {"name": 3}}])
    assert [(spec.name, spec.description) for spec in specs] == [("f", "")]


def test_the_first_tool_of_a_name_counts(df):
    tool = df.tool("f", a="string")
    tools = [tool, df.tool("f", a="integer")]
    record = df.record(("f", {"a": "x"}), tools)
    reply = df.reply(("f", {"a": "x"}))
    assert df.grade(record, reply).passed
    assert not df.grade(record, df.reply(("f", {"a": 1}))).passed


REPLIES = data(__file__, "replies.yaml")
CALL = {"name": "f", "arguments": {"a": 1}}


def call_of(raw):
    """Return (name, arguments) of the first call, None for none, or the error's text."""
    try:
        response = read_reply(raw)
    except ReplyProblem as error:
        return f"error: {error}"
    return next(((call.name or None, call.arguments) for call in response.calls), None)


@pytest.mark.parametrize("row", REPLIES["heard"], ids=lambda row: json.dumps(row["reply"])[:40])
def test_what_is_heard(row):
    call_heard = call_of(row["reply"])
    wanted = row["heard"]
    if isinstance(wanted, str):
        assert str(call_heard).startswith(wanted)
    else:
        assert call_heard == (wanted and tuple(wanted))


def test_parts_of_text_are_its_content_in_the_document():
    parts = {"kind": "chat", "content": [{"type": "text", "text": "hi"}], "tool_calls": [CALL]}
    reply = read_reply(parts)
    assert reply.content == "hi"


@pytest.mark.parametrize("row", REPLIES["texts"], ids=lambda row: row["text"][:40])
def test_calls_in_text(row):
    """A call that is not valid JSON is reported as an error."""
    call = None
    if "call" in row:
        call = tuple(row["call"])
    call_heard = call_of(row["text"])
    assert str(call_heard).startswith("error: ") if "broken" in row else call_heard == call


def test_first_object_is_string_aware():
    """Braces in strings do not count, an escape protects the next character, an unbalanced object
    is none.
    """
    assert first_object('x {"a": "}{"} {}') == '{"a": "}{"}'
    assert first_object("a \\{b} c") == "{b}"
    assert first_object("{\\} x}") == "{\\} x}"
    assert first_object('{"a') is None
    assert first_object("none") is None


def test_kinds():
    """A kind is taken at its word; without one the keys decide, calls before text."""
    kind = kind_of({"kind": "text", "tool_calls": []})
    assert kind == "text"
    assert kind_of({"kind": None, "tool_calls": [], "text": ""}) == "chat"
    assert kind_of({"message": "x"}) == "exception"
    assert kind_of({"messages": []}) is None
    assert kind_of({"kind": []}) is None
