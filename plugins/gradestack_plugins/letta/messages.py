"""Recorded trajectories: turns of letta messages (or chat messages), calls paired with their returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gradestack import JSON, Message, ToolCall, replace
from gradestack.jsonio import compact
from gradestack_plugins.readers import chat

_ENVELOPE = ("id", "date", "message_type", "otid", "run_id", "step_id", "sender_id", "seq_id")
_SPOKEN = {"assistant_message": "assistant", "user_message": "user", "system_message": "system"}
_THOUGHTS = {"reasoning_message": "reasoning", "hidden_reasoning_message": "hidden_reasoning"}
_CALLING = ("tool_call_message", "approval_request_message")
_TAKEN = ("assistant", "user", "system", "tool", *_THOUGHTS.values())
"""Roles that mean something; no message of an unknown type gets one of them."""


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of messages, and every call made in them with what it returned."""

    turns: tuple[tuple[Message, ...], ...] = ()
    calls: tuple[ToolCall, ...] = ()

    @property
    def said(self) -> bool:
        """Whether there is any message."""
        return any(self.turns)


def read_trajectory(raw: JSON) -> Trajectory:
    """Return a recorded trajectory; a flat list of messages is one turn, entries that are no objects are left out.

    Turns without a message stay, so that the others keep their numbers.
    """
    if not isinstance(raw, list):
        return Trajectory()
    if raw and not any(isinstance(turn, list) for turn in raw):
        raw = [raw]
    turns: list[tuple[Message, ...]] = []
    calls: list[ToolCall] = []
    unanswered: list[int] = []
    for turn in raw:
        messages: list[Message] = []
        for entry in turn if isinstance(turn, list) else []:
            for message, failed in _read(entry):
                messages.append(message)
                unanswered += range(len(calls), len(calls) + len(message.tool_calls))
                calls += message.tool_calls
                place = next((each for each in unanswered if chat.answers(message, calls[each])), None)
                if place is not None:
                    unanswered.remove(place)
                    error = chat.text_of(message.content) or compact(message.content) if failed else None
                    calls[place] = replace(calls[place], result=message.content, error=error)
        turns.append(tuple(messages))
    return Trajectory(turns=tuple(turns), calls=tuple(calls))


def _read(raw: Any) -> Iterator[tuple[Message, bool]]:
    """Yield the messages one entry stands for, and whether the tool failed whose return each is."""
    if not isinstance(raw, dict):
        return
    kind = raw.get("message_type")
    if not isinstance(kind, str):
        message = chat.message(raw)
        if message is not None:
            silent = message.role == "assistant" and not message.tool_calls and not chat.text_of(message.content)
            if silent and raw.get("tool_calls"):
                message = replace(message, role="tool_call", content=raw["tool_calls"])
            yield message, raw.get("status") == "error"
    elif kind in _SPOKEN:
        yield Message(role=_SPOKEN[kind], content=raw.get("content"), name=_text(raw.get("name"))), False
    elif kind in _THOUGHTS:
        role = _THOUGHTS[kind]
        yield Message(role=role, content=raw.get(role, raw.get("content"))), False
    elif kind in _CALLING and (calls := _calls(raw)):
        yield Message(role="assistant", tool_calls=calls), False
    elif kind == "tool_return_message":
        entries = raw.get("tool_returns")
        yield from map(_returned, entries if isinstance(entries, list) and entries else [raw])
    else:
        # With them messages of calls none of which can be read: as the assistant's they would be its last, empty, word.
        rest = {name: value for name, value in raw.items() if name not in _ENVELOPE}
        role = kind.removesuffix("_message")
        role = f"unknown_{role}" if role in _TAKEN else role
        yield Message(role=role, content=raw.get("content", rest or None)), False
        approvals = raw.get("approvals")
        for entry in approvals if isinstance(approvals, list) else []:
            if isinstance(entry, dict) and "tool_return" in entry:
                yield _returned(entry)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _calls(raw: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    several, one = raw.get("tool_calls"), raw.get("tool_call")
    entries = several if isinstance(several, list) and several else [several if isinstance(several, dict) else one]
    return tuple(_call(entry) for entry in entries if isinstance(entry, dict))


def _call(raw: Mapping[str, Any]) -> ToolCall:
    arguments, text = chat.parse_arguments(raw.get("arguments"))
    identifier = _text(raw.get("tool_call_id")) or _text(raw.get("id"))
    return ToolCall(name=_text(raw.get("name")) or "", arguments=arguments, raw_arguments=text, id=identifier)


def _returned(raw: Any) -> tuple[Message, bool]:
    entry = raw if isinstance(raw, dict) else {"tool_return": raw}
    identifier, name = _text(entry.get("tool_call_id")), _text(entry.get("name"))
    message = Message(role="tool", content=entry.get("tool_return"), tool_call_id=identifier, name=name)
    return message, entry.get("status") == "error"
