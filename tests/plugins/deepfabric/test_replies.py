"""Recorded replies and the one call that counts."""

import json

import pytest

from gradestack import Status
from gradestack_plugins.deepfabric.options import DOCUMENTED, Reading
from gradestack_plugins.deepfabric.replies import ReplyProblem, first_object, heard, kind_of

RULES = ["documented", "4.3", "4.13"]
PROFILES = pytest.mark.parametrize("profile", RULES)
CALL = {"name": "f", "arguments": {"a": 1}}
TEXT = json.dumps(CALL)


def call_of(raw, profile="4.3", *, with_tools=True):
    """Return (name, arguments) of the first call, None for none, or the error's text."""
    try:
        (response,) = heard(raw, Reading(profile), with_tools=with_tools)
    except ReplyProblem as error:
        return f"error: {error}"
    return None if response.call is None else (response.call.name, response.call.arguments)


@PROFILES
@pytest.mark.parametrize(
    "reply",
    [
        {"kind": "tool_call", "content": "c", "tool_call": CALL},
        {"content": "c", "tool_call": CALL},
        {"kind": "chat", "content": "c", "tool_calls": [CALL]},
        {"kind": "chat", "content": "c", "tool_calls": [{"id": "1", "type": "function", "function": CALL}]},
        {"content": "c", "tool_calls": [CALL]},
        {"kind": "text", "text": f"so: <tool_call>\n{TEXT}\n</tool_call> ."},
        {"text": f"so: {TEXT}"},
        TEXT,
    ],
    ids=lambda reply: json.dumps(reply)[:40],
)
def test_every_kind_gives_the_call(profile, reply):
    """Structured, chat and text replies give the same call, with or without their kind."""
    assert call_of(reply, profile) == ("f", {"a": 1})


@PROFILES
@pytest.mark.parametrize(
    "reply",
    [
        {"kind": "tool_call", "content": "c", "tool_call": None},
        {"kind": "tool_call", "content": "c", "tool_call": {}},
        {"kind": "tool_call", "content": "c"},
        {"kind": "chat", "content": "c", "tool_calls": []},
        {"kind": "chat", "content": None, "tool_calls": None},
        {"content": "c"},
        {"kind": "text", "text": "plain words"},
    ],
    ids=json.dumps,
)
def test_no_call(profile, reply):
    """Null, an empty object, an empty list and prose are "no call", not errors."""
    assert call_of(reply, profile) is None


@PROFILES
def test_a_failed_inference_is_a_processing_error(df, profile):
    """The message of an exception becomes the error's text; an empty one is still an error."""
    for message in ("boom", ""):
        read = "documented" if profile == "documented" else "upstream"
        sample = df.sample(df.record(("f", {})), {"kind": "exception", "message": message}, read)
        assert (sample.status, sample.error.message, sample.error.category) == (Status.FAILED, message, "target")
        assert sample.input == "the query"
    assert call_of({"error": "bare"}, profile) == "error: bare"
    assert call_of({"kind": "exception"}, profile) == "error: "
    assert call_of({"kind": "exception", "message": {"code": 3}}, profile) == 'error: {"code": 3}'


@PROFILES
@pytest.mark.parametrize(
    "call",
    [
        {"name": 3, "arguments": {}},
        {"name": ["f"], "arguments": {}},
        {"name": "f", "arguments": [1]},
        {"name": "f", "arguments": "not json"},
        {"name": "f", "arguments": "[1]"},
        "f",
        [CALL],
        3,
    ],
    ids=json.dumps,
)
def test_a_broken_structured_call_is_a_processing_error(profile, call):
    """A name that is no text and arguments that are no object cannot be processed."""
    assert str(call_of({"kind": "tool_call", "content": "", "tool_call": call}, profile)).startswith("error: ")
    assert str(call_of({"kind": "chat", "content": "", "tool_calls": [call]}, profile)).startswith("error: ")


@pytest.mark.parametrize("kind", ["tool_call", "chat"])
@pytest.mark.parametrize(
    ("arguments", "documented"), [('{"a": 1}', ("f", {"a": 1})), (None, ("f", {}))], ids=["text", "null"]
)
def test_argument_text_is_decoded_by_documented_only(kind, arguments, documented):
    """JSON text and null as arguments are errors upstream; documented reads them."""
    call = {"name": "f", "arguments": arguments}
    reply = {"kind": kind, "content": "", "tool_call": call, "tool_calls": [call]}
    assert call_of(reply, "documented") == documented
    for version in RULES[1:]:
        assert call_of(reply, version).startswith("error: the arguments of a call must be an object")


@PROFILES
def test_missing_arguments_are_none_and_a_missing_name_is_no_name(profile):
    """A structured call may lack its arguments or its name without being an error."""
    assert call_of({"content": "", "tool_call": {"name": "f"}}, profile) == ("f", {})
    for name in ({}, {"name": None}):
        assert call_of({"content": "", "tool_call": {**name, "arguments": {"a": 1}}}, profile) == (None, {"a": 1})
    assert call_of({"content": "", "tool_call": {"name": "", "arguments": {}}}, profile) == ("", {})


def test_content_is_required_upstream():
    """A structured reply without text content is an error upstream, save in the chat form."""
    for content in ({}, {"content": None}):
        reply = {"kind": "tool_call", "tool_call": CALL, **content}
        assert call_of(reply, "documented") == ("f", {"a": 1})
        for version in RULES[1:]:
            assert call_of(reply, version).startswith("error: the content of a reply must be text")
            assert call_of({"kind": "chat", "tool_calls": [CALL], **content}, version) == ("f", {"a": 1})
    assert call_of({"kind": "tool_call", "tool_call": CALL, "content": 3}, "documented").startswith("error: ")
    parts = {"kind": "chat", "content": [{"type": "text", "text": "hi"}], "tool_calls": [CALL]}
    for version in RULES[1:]:
        assert call_of(parts, version).startswith("error: ")
    assert heard(parts, DOCUMENTED, with_tools=True)[0].content == "hi"


@PROFILES
@pytest.mark.parametrize("calls", ["x", {"a": 1}, [None], [{}]], ids=json.dumps)
def test_odd_lists_of_calls_are_errors(profile, calls):
    """tool_calls must be a list whose first entry names a call."""
    assert str(call_of({"kind": "chat", "content": "", "tool_calls": calls}, profile)).startswith("error: ")


@PROFILES
@pytest.mark.parametrize(
    "reply", [3, None, [], {"kind": "telepathy"}, {"kind": 3}, {}, {"kind": "text"}], ids=json.dumps
)
def test_what_is_no_reply_is_an_error(profile, reply):
    """Anything but an object of a known kind, or text, cannot be processed."""
    assert str(call_of(reply, profile)).startswith("error: ")


TEXTS = [
    # a text, the call that 4.3 finds, and whether documented reports an error instead
    (f"<tool_call>{{bad</tool_call> {TEXT}", None, True),
    (f"<tool_call>prose</tool_call> {TEXT}", ("f", {"a": 1}), False),
    (f"<tool_call>{TEXT}</tool_call><tool_call>{{}}</tool_call>", ("f", {"a": 1}), False),
    (f'<tool_call>"x"</tool_call>{TEXT}', ("f", {"a": 1}), False),
    (f"<tool_call>[]</tool_call>{TEXT}", ("f", {"a": 1}), False),
    ("<tool_call>{bad</tool_call>", None, True),
    ("<tool_call>{bad}</tool_call>", None, True),
    (f"<tool_call>{TEXT[:-3]}", None, True),
    (TEXT[:-1], None, True),
    ("{bad}", None, True),
    ("{'name': 'f', 'arguments': {}}", None, True),
    ("words {bad} words", None, False),
    ("words { words", None, False),
    (f'{{"a": 1}} {TEXT}', None, False),
    (f"[{TEXT}]", ("f", {"a": 1}), False),
    (f"{TEXT} {TEXT}", ("f", {"a": 1}), False),
    ('{"name": "f", "parameters": {}}', None, False),
    ('{"tool_calls": [{"name": "f", "arguments": {}}]}', None, False),
    ("f(a=1)", None, False),
    ('{"name": "f", "arguments": "{\\"a\\": 1}"}', ("f", {"a": 1}), False),
    ('{"name": "f", "arguments": "[1]"}', None, False),
    ('{"name": "f", "arguments": "{bad"}', None, True),
    ('{"name": "f", "arguments": [1]}', None, False),
    ('{"name": "f", "arguments": null}', None, False),
    ('{"name": 3, "arguments": {}}', None, False),
    ('{"name": "f", "arguments": {"a": "}"}}', ("f", {"a": "}"}), False),
    ('{"name": "f", "arguments": {"a": "\\"}"}, "id": 7}', ("f", {"a": '"}'}), False),
]


@pytest.mark.parametrize(("text", "call", "broken"), TEXTS, ids=[text[:40] for text, _, _ in TEXTS])
def test_calls_in_text(text, call, broken):
    """4.3 reads text it cannot parse as no call; documented reports a call that is not valid JSON as an error."""
    assert call_of(text, "4.3") == call
    documented = call_of(text, "documented")
    assert str(documented).startswith("error: ") if broken else documented == call


def test_argument_text_that_holds_text_is_an_error():
    assert call_of('{"name": "f", "arguments": "\\"x\\""}').startswith(
        "error: the arguments of a call must be an object"
    )


@PROFILES
def test_text_too_deeply_nested_is_an_error(profile):
    """JSON the interpreter cannot read is no "no call": the original fails on it."""
    assert call_of("<tool_call>" + "[" * 100_000 + "</tool_call>", profile) == "error: nested too deeply"


def test_text_is_parsed_only_with_tools_upstream():
    """Upstream reads no call out of the text of a sample without tools."""
    assert [call_of(TEXT, version, with_tools=False) for version in RULES[1:]] == [None, None]
    assert call_of(TEXT, "documented", with_tools=False) == ("f", {"a": 1})


def test_first_object_is_string_aware():
    """Braces in strings do not count, an escape protects the next character, an unbalanced object is none."""
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
