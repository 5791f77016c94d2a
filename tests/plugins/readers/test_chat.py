"""Lenient reading of chat shapes.

Nothing raises, what cannot be understood is left out or kept raw.
"""

from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

from gradestack import Input, Inputs, Message, ToolCall, ToolSpec
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.chat.names import notes_on
from tests.core.outcomes import data

DATA = data(__file__, "chat.yaml")

ODD = [
    None,
    True,
    5,
    1.5,
    "text",
    [],
    {},
    [None],
    {"function": None},
    {"function": []},
    {"name": []},
    float("nan"),
]


@pytest.mark.parametrize(
    ("raw", "expected"), [*DATA["arguments"], ("[" * 10_000, (None, "[" * 10_000))]
)
def test_arguments(raw, expected):
    """An object, or None beside the raw text; missing ones are no arguments."""
    arguments, text = chat.parse_arguments(raw)
    if expected is None:
        assert list(arguments) == ["n"]
        assert text == raw
        assert arguments["n"] != arguments["n"]
    else:
        assert [arguments, text] == list(expected)


@pytest.mark.parametrize(("raw", "expected"), DATA["calls"])
def test_calls(raw, expected):
    """OpenAI's form, the flat one, and what is left of broken ones."""
    tool_call = chat.tool_call(raw)
    assert tool_call == msgspec.convert(expected, ToolCall)


def test_the_requestor_can_be_told():
    """Where a format says who calls by place."""
    tool_call = chat.tool_call({"name": "f"}, default_requestor="user")
    assert tool_call.requestor == "user"


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_never_raise(odd):
    """Whatever stands where a message, a call or a tool should be."""
    chat.parse_arguments(odd)
    chat.tool_call({"function": odd, "name": odd, "id": odd, "arguments": odd, "requestor": odd})
    tool_calls = chat.tool_calls(odd)
    assert isinstance(tool_calls, tuple)
    messages = chat.messages(odd)
    assert isinstance(messages, tuple)
    text = chat.text_of(odd)
    assert isinstance(text, str)
    chat.message({"role": odd, "content": odd, "tool_calls": odd, "name": odd, "tool_call_id": odd})
    chat.tool_spec({"name": odd, "description": odd, "parameters": odd, "function": odd})
    chat.tool_spec(odd)
    chat.tool_call(odd)


def test_messages():
    """Entries that are no objects are left out; content is kept as it is."""
    messages_read = chat.messages(DATA["messages"])
    message = Message(role="user", content="hi")
    tool_call = ToolCall(name="f")
    assert messages_read == (
        message,
        Message(role="assistant", tool_calls=(tool_call,)),
        Message(role="tool", content=[{"type": "text"}], tool_call_id="c", name="f"),
        Message(role=""),
    )
    made_calls = chat.made_calls(messages_read)
    assert made_calls == (ToolCall(name="f"),)


@pytest.mark.parametrize(("content", "text"), DATA["content_as_text"])
def test_content_as_text(content, text):
    """Text parts joined by a space."""
    assert chat.text_of(content) == text


def test_tools():
    """With or without the function wrapper.

    One without a name is none, and a schema that is no object stays none.
    """
    schema = {"type": "object"}
    inner = {"name": "f", "description": "d", "parameters": schema}
    tool_spec = chat.tool_spec({"type": "function", "function": inner})
    expected = ToolSpec(name="f", description="d", parameters=schema)
    assert tool_spec == expected
    assert chat.tool_spec(inner) == chat.tool_spec({"function": inner})
    assert chat.tool_spec({"name": "f", "description": None}) == ToolSpec(name="f")
    assert chat.tool_spec({"name": "f", "parameters": "x"}).parameters == {"properties": "x"}
    assert chat.tool_spec({"parameters": schema}) is None


def test_tools_with_a_list_of_parameters():
    """Such a list becomes JSON Schema, in a wrapper or not; an empty one takes no parameters."""
    inner = {
        "name": "f",
        "description": "d",
        "parameters": [{"name": "x", "type": "int"}],
        "returns": "r",
    }
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer", "description": ""}},
        "required": ["x"],
    }
    tool_spec = chat.tool_spec(inner)
    expected = ToolSpec(name="f", description="d", parameters=schema)
    assert tool_spec == expected
    assert chat.tool_spec({"function": inner}) == chat.tool_spec(inner)
    empty = chat.tool_spec({"name": "f", "parameters": []})
    assert empty.parameters == {"type": "object", "properties": {}, "required": []}


def _kept_from_change(value):
    if isinstance(value, dict):
        return MappingProxyType({key: _kept_from_change(item) for key, item in value.items()})
    if isinstance(value, list):
        return list(map(_kept_from_change, value))
    return value


def test_objects_need_not_be_dicts():
    """Third parties may pass any mapping where JSON has an object."""
    call = {"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}
    spoken = [
        {"role": "assistant", "content": [{"text": "a"}], "tool_calls": [call]},
        {"role": "user", "content": "b"},
    ]
    messages = chat.messages(spoken)
    kept_from_change = _kept_from_change(spoken)
    (made, _), messages_read = messages, chat.messages(kept_from_change)
    tool_calls = [message.tool_calls for message in messages_read]
    assert tool_calls == [made.tool_calls, ()]
    text = chat.text_of(messages_read[0].content)
    assert text == "a"
    assert messages_read[1].content == "b"
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    tool_spec = chat.tool_spec(_kept_from_change(tool))
    assert tool_spec == chat.tool_spec(tool)
    arguments = chat.parse_arguments(_kept_from_change({"a": 1}))
    assert arguments == ({"a": 1}, None)


@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_command_names_the_folder_of_very_many_files(tmp_path, monkeypatch, is_absolute):
    monkeypatch.chdir(tmp_path)
    paths = []
    for number in range(100):
        paths.append(Path(f"runs/{number}.jsonl"))
    paths[7:] = [path.absolute() if is_absolute else path for path in paths[7:]]
    inputs = Inputs(data=tuple(Input(path=p, name=p.stem, shown=str(p)) for p in paths))
    command = notes_on(inputs, {"id": "task"}, None)
    assert len(command) == 1
    (_, command) = notes_on(inputs, {"id": "task"}, ())
    folder = tmp_path / "runs" if is_absolute else "runs"
    assert command == f"The same as: gradestack grade {folder} --map id=task"
