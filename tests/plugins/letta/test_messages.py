"""Trajectories: message types, calls and their returns."""

from __future__ import annotations

import pytest

from gradestack_plugins.letta.messages import read_trajectory
from tests.core.outcomes import data


def roles(trajectory):
    """Return (role, content) of every message."""
    return [(message.role, message.content) for turn in trajectory.turns for message in turn]


def test_message_types(letta):
    """Every message type becomes a message; only assistant_message is the assistant's speech."""
    raw = [
        {"message_type": "system_message", "content": "be kind"},
        {"message_type": "user_message", "content": "hi"},
        {"message_type": "reasoning_message", "reasoning": "hm", "id": "m"},
        {"message_type": "hidden_reasoning_message", "hidden_reasoning": "secret", "state": "redacted"},
        letta.called("f", {"x": 1}),
        letta.returned("1"),
        letta.spoken([{"type": "text", "text": "done"}]),
        {"message_type": "approval_response_message", "approve": False, "reason": "no", "id": "m"},
        {"message_type": "event_message", "event_type": "compaction", "date": "d"},
        {"message_type": "summary_message", "content": "short"},
    ]
    assert roles(read_trajectory([raw])) == [
        ("system", "be kind"),
        ("user", "hi"),
        ("reasoning", "hm"),
        ("hidden_reasoning", "secret"),
        ("assistant", None),
        ("tool", "1"),
        ("assistant", [{"type": "text", "text": "done"}]),
        ("approval_response", {"approve": False, "reason": "no"}),
        ("event", {"event_type": "compaction"}),
        ("summary", "short"),
    ]


def test_calls_are_paired_by_id(letta):
    """Returns belong to the call of their id, in any order and across turns; an error status is noted."""
    raw = [
        [letta.called("f", {"x": 1}, "1"), letta.called("g", '{"y": 2}', "2"), letta.returned("for g", "2")],
        [letta.returned("no such file", "1", "error"), letta.called("h", {}, "3")],
    ]
    calls = read_trajectory(raw).calls
    assert [(call.name, call.id, call.result, call.error) for call in calls] == [
        ("f", "1", "no such file", "no such file"),
        ("g", "2", "for g", None),
        ("h", "3", None, None),
    ]
    assert calls[1].arguments == {"y": 2}
    assert calls[1].raw_arguments == '{"y": 2}'


def test_a_repeated_id_is_paired_in_order(letta):
    raw = [[letta.called("f", {}, "1"), letta.returned("a", "1"), letta.called("f", {}, "1"), letta.returned("b", "1")]]
    assert [call.result for call in read_trajectory(raw).calls] == ["a", "b"]


def test_lists_of_calls_and_returns(letta):
    """tool_calls and tool_returns hold several at once; an approval request is a call."""
    raw = [
        {
            "message_type": "tool_call_message",
            "tool_call": {"name": "ignored", "arguments": "{}", "tool_call_id": "0"},
            "tool_calls": [
                {"name": "f", "arguments": "{}", "tool_call_id": "1"},
                {"name": "g", "arguments": "{}", "tool_call_id": "2"},
            ],
        },
        {
            "message_type": "tool_return_message",
            "tool_returns": [{"tool_call_id": "2", "tool_return": "two"}, {"tool_call_id": "1", "tool_return": "one"}],
        },
        {
            "message_type": "approval_request_message",
            "tool_call": {"name": "h", "arguments": "{}", "tool_call_id": "3"},
        },
        {
            "message_type": "approval_response_message",
            "approvals": [{"type": "tool", "tool_call_id": "3", "tool_return": "three", "status": "success"}],
        },
    ]
    assert [(call.name, call.result) for call in read_trajectory([raw]).calls] == [
        ("f", "one"),
        ("g", "two"),
        ("h", "three"),
    ]


def test_chat_messages():
    raw = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "one"},
        {"role": "assistant", "content": "done"},
    ]
    trajectory = read_trajectory([raw])
    assert [role for role, _ in roles(trajectory)] == ["user", "assistant", "tool", "assistant"]
    assert [(call.name, call.arguments, call.result) for call in trajectory.calls] == [("f", {"x": 1}, "one")]


@pytest.mark.parametrize(("raw", "role"), data(__file__, "cases.yaml")["nobodys_speech"])
def test_what_is_not_understood_is_nobodys_speech(raw, role):
    """A message of calls without a readable one, and any unknown type, is kept under a role that means nothing."""
    found = read_trajectory([[raw]])
    ((message,),) = found.turns
    assert (message.role, message.tool_calls, found.calls) == (role, (), ())


def test_speech_beside_calls_that_cannot_be_read():
    ((message,),) = read_trajectory([[{"role": "assistant", "content": "x", "tool_calls": ["f"]}]]).turns
    assert (message.role, message.content) == ("assistant", "x")


def test_a_flat_list_is_one_turn(letta):
    assert [len(turn) for turn in read_trajectory([letta.spoken("a"), letta.spoken("b")]).turns] == [2]


@pytest.mark.parametrize("raw", [None, "x", 3, {}, []])
def test_no_trajectory(raw):
    found = read_trajectory(raw)
    assert (found.turns, found.said) == ((), False)


@pytest.mark.parametrize(("raw", "number"), [([[]], 1), ([[], []], 2), ([[None, 7]], 1)])
def test_nothing_said(raw, number):
    found = read_trajectory(raw)
    assert (found.turns, found.said) == (((),) * number, False)


def test_empty_turns_among_others_keep_their_place(letta):
    """A turn without messages stays, so that the others keep their numbers."""
    assert [len(turn) for turn in read_trajectory([[], [letta.spoken("b")]]).turns] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "expected", "raw"),
    [('{"x": 1}', {"x": 1}, '{"x": 1}'), ("{broken", None, "{broken"), ("[1]", None, "[1]"), ("null", None, "null")],
)
def test_arguments_are_read_leniently(letta, arguments, expected, raw):
    """Argument text is decoded where it can be, and always kept."""
    (call,) = read_trajectory([[letta.called("f", arguments)]]).calls
    assert (call.arguments, call.raw_arguments) == (expected, raw)


def test_arguments_of_other_types():
    """An object is taken as it is; a list is kept as JSON; odd calls lose what cannot be read."""
    entries = [{"name": "f", "arguments": {"x": 1}}, {"name": None, "arguments": [1]}, "no call"]
    raw = [[{"message_type": "tool_call_message", "tool_calls": entries}]]
    first, second = read_trajectory(raw).calls
    assert (first.arguments, first.raw_arguments, first.id) == ({"x": 1}, None, None)
    assert (second.name, second.arguments, second.raw_arguments) == ("", None, "[1]")


def test_returns_without_ids():
    raw = [
        {"message_type": "tool_call_message", "tool_call": {"name": "f", "arguments": "{}"}},
        {"message_type": "tool_call_message", "tool_call": {"name": "g", "arguments": "{}"}},
        {"message_type": "tool_return_message", "name": "g", "tool_return": "for g"},
        {"message_type": "tool_return_message", "tool_return": "for f"},
        {"message_type": "tool_return_message", "tool_return": "for none"},
    ]
    assert [call.result for call in read_trajectory([raw]).calls] == ["for f", "for g"]
