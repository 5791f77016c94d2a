"""Schemas, parsers and replies."""

import json
import time

import pytest

from gradestack import ToolSpec
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.options import DOCUMENTED, Reading
from gradestack_plugins.deepfabric.replies import (
    ReplyProblem,
    first_object,
    heard,
    kind_of,
    text_calls,
)
from gradestack_plugins.deepfabric.schemas import (
    RecordProblem,
    Strictness,
    convert,
    find,
    schema_reasons,
    signature,
)
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


def accepts(checked, arguments):
    """Return whether a schema has nothing against arguments."""
    return not schema_reasons(checked, arguments, "f", Strictness())


@pytest.mark.parametrize("profile", ["documented", "4.13"])
@pytest.mark.parametrize("word", ACCEPTED)
def test_types(profile, word):
    """Each type accepts exactly its values.

    Nothing is coerced, a bool is no number, null is of no type.
    """
    checked = signature({"properties": {"a": {"type": word}}}, profile)
    assert {name for name, value in VALUES.items() if accepts(checked, {"a": value})} == ACCEPTED[
        word
    ]


@pytest.mark.parametrize(
    "declared", [{}, {"type": None}, {"type": "any"}, {"type": "uuid"}, {"type": 3}]
)
def test_missing_and_unknown_types(declared):
    """Upstream reads them as text, documented leaves them unchecked."""
    schema = {"properties": {"a": declared}}
    accepted = {
        profile: {
            name
            for name, value in VALUES.items()
            if accepts(signature(schema, profile), {"a": value})
        }
        for profile in ("documented", "4.13")
    }
    assert accepted == {"documented": set(VALUES), "4.13": {"text"}}


def test_lists_of_types():
    """Documented takes any of the types, null where it is listed.

    Upstream fails with the interpreter's words.
    """
    schema = {
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": ["string", "any"]},
            "c": {"type": []},
        }
    }
    checked = signature(schema, "documented")
    assert accepts(checked, {"a": None, "b": 3, "c": 3})
    assert accepts(checked, {"a": "x"})
    assert not accepts(checked, {"a": 3})
    assert accepts(signature({"properties": {"a": {"type": "null"}}}, "documented"), {"a": None})
    with pytest.raises(RecordProblem, match="unhashable type: 'list'"):
        signature(schema, "4.13")


def test_required_names():
    """Required names must be there; one without a property counts in documented only."""
    schema = {
        "properties": {"a": {"type": "string"}, "gone": None},
        "required": ["a", "ghost", "gone", "a", 3],
    }
    assert signature(schema, "4.13").required == ("a",)
    assert signature(schema, "documented").required == ("a", "ghost", "gone")
    assert accepts(signature(schema, "documented"), {"a": "x", "ghost": 1, "gone": 2})
    assert not accepts(signature(schema, "documented"), {"a": "x", "gone": 2})
    assert signature({"properties": {"a": {}}}, "4.13").required == ()
    assert signature({"properties": {"a": {}}, "required": "abc"}, "4.13").required == ("a",)


@pytest.mark.parametrize(
    "function", [None, "x", {"name": None}, {"name": 3}, {"name": "f", "description": None}]
)
def test_tools_the_original_fails_on(function):
    """A wrapper that is no object, or a name or description that is no text, fails
    upstream only.
    """
    with pytest.raises(RecordProblem):
        convert([{"type": "function", "function": function}], "4.13")
    convert([{"type": "function", "function": function}], "documented")


OWN = DATA["own"]


def test_own_form_documented():
    """The own form becomes JSON Schema.

    Types by word, required unless said otherwise, defaults converted.
    """
    (spec,) = convert([OWN], "documented")
    assert (spec.name, spec.description) == ("f", "does it")
    assert spec.parameters == data(__file__, "schemas.yaml")["own_form_documented"]
    assert accepts(signature(spec.parameters, "documented"), {"a": "x", "c": 5})


def test_own_form_upstream_is_nameless(df):
    """Upstream gives a tool of the own form no name and no parameters, so that arguments are
    compared by value.
    """
    assert convert([OWN], "4.13") == (ToolSpec(name="", description="", parameters={}),)
    record = df.record(("f", {"a": "x"}), [OWN])
    for arguments, documented, upstream in (
        ({"a": "y"}, (1, 1, 1), (1, 0, 0)),
        ({"a": " X "}, (1, 1, 1), (1, 1, 1)),
    ):
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
    assert accepts(find(specs, "f", "documented"), {"a": "x"})
    assert find(specs, "g", "documented") is None


def _tool(name, word, pad=""):
    schema = {"properties": {"a": {"type": word, "description": pad}}}
    return {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": schema},
    }


REPLIES = data(__file__, "replies.yaml")
P = '{"name": "p", "parameters": {"a": 1}}'


@pytest.mark.parametrize("row", REPLIES["parsers"], ids=lambda row: row["text"][:50])
def test_calls_found(row):
    """Each parser finds every call in the form of its models, and generic tries one after the
    other.
    """
    for parser in ("generic", "qwen", "hermes", "llama", "mistral"):
        assert "".join(call.name for call in text_calls(row["text"], parser)) == row.get(parser, "")


def test_the_grader_chooses_the_parser(df):
    """``tool_call_parser`` decides which calls of a text reply count, and the result
    file follows.
    """
    record = df.record(("p", {"a": 1}), [df.tool("p", a="integer")])
    for parser, right in (("generic", 1), ("llama", 1), ("qwen", 0), ("mistral", 0)):
        grade = df.grade(record, {"text": P}, "upstream", tool_call_parser=parser)
        assert df.verdict(grade) == (right,) * 3
    without = df.record(("p", {"a": 1}))
    assert df.verdict(df.grade(without, {"text": P}, "upstream")) == (0, 0, 0)


@pytest.mark.parametrize(
    "text", ["<tool_call>" + "[" * 100_000 + "</tool_call>", f"[TOOL_CALLS] [{'9' * 5000}]"]
)
def test_text_the_program_fails_on(df, text):
    """JSON that is nested too deeply, or a number with too many digits, fails the inference."""
    parser = "qwen" if text.startswith("<") else "mistral"
    with pytest.raises(ReplyProblem):
        text_calls(text, parser)
    record = df.record(("f", {}), [df.tool("f")])
    grade = DeepFabric(profile="upstream", tool_call_parser=parser).grade(
        df.sample(record, {"text": text}, "upstream")
    )
    assert grade.fault.code == "processing_error"


HOSTILE = DATA["hostile"]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("ending", ["", "}", "}]", "</tool_call>"])
def test_repeated_beginnings_take_time_in_proportion(piece, ending):
    """A text of nothing but beginnings is read in a few passes: 20,000 of them within seconds."""
    text = piece * 20_000 + ending
    started = time.process_time()
    for parser in ("qwen", "mistral", "llama"):
        try:
            text_calls(text, parser)
        except ReplyProblem:
            continue
    assert time.process_time() - started < 5


RULES = ["documented", "4.13"]
PROFILES = pytest.mark.parametrize("profile", RULES)
CALL = {"name": "f", "arguments": {"a": 1}}


def call_of(raw, profile):
    """Return (name, arguments) of the first call, None for none, or the error's text."""
    try:
        (response,) = heard(raw, Reading(profile), with_tools=True)
    except ReplyProblem as error:
        return f"error: {error}"
    return None if response.call is None else (response.call.name, response.call.arguments)


@PROFILES
@pytest.mark.parametrize("row", REPLIES["heard"], ids=lambda row: json.dumps(row["reply"])[:40])
def test_what_is_heard(profile, row):
    heard_call, wanted = (
        call_of(row["reply"], profile),
        row["heard_by"][profile] if "heard_by" in row else row["heard"],
    )
    if isinstance(wanted, str):
        assert str(heard_call).startswith(wanted)
    else:
        assert heard_call == (wanted and tuple(wanted))


def test_parts_of_text_are_its_content_in_the_document():
    parts = {"kind": "chat", "content": [{"type": "text", "text": "hi"}], "tool_calls": [CALL]}
    assert heard(parts, DOCUMENTED, with_tools=True)[0].content == "hi"


@pytest.mark.parametrize("row", REPLIES["texts"], ids=lambda row: row["text"][:40])
def test_calls_in_text(row):
    """A call that is not valid JSON is reported as an error."""
    call = tuple(row["call"]) if "call" in row else None
    found = call_of(row["text"], "documented")
    assert str(found).startswith("error: ") if "broken" in row else found == call


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
    assert kind_of({"kind": "text", "tool_calls": []}) == "text"
    assert kind_of({"kind": None, "tool_calls": [], "text": ""}) == "chat"
    assert kind_of({"message": "x"}) == "exception"
    assert kind_of({"messages": []}) is None
    assert kind_of({"kind": []}) is None
