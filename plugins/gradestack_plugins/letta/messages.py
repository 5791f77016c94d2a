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


class Return(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gave back."""

    id: str | None
    name: str | None
    value: JSON
    failed: bool = False


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
    pairing = _Pairing()
    for turn in raw:
        messages: list[Message] = []
        for entry in turn if isinstance(turn, list) else []:
            for message, returned in _read(entry):
                messages.append(message)
                pairing.see(message, returned)
        turns.append(tuple(messages))
    return Trajectory(turns=tuple(turns), calls=tuple(pairing.calls))


class _Pairing:
    """Calls in order, each with the first return that answers it."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self._open: list[int] = []

    def see(self, message: Message, returned: Return | None) -> None:
        for call in message.tool_calls:
            self._open.append(len(self.calls))
            self.calls.append(call)
        if returned is None:
            return
        place = next((place for place in self._open if self._answers(returned, self.calls[place])), None)
        if place is not None:
            self._open.remove(place)
            error = chat.text_of(returned.value) or compact(returned.value) if returned.failed else None
            self.calls[place] = replace(self.calls[place], result=returned.value, error=error)

    @staticmethod
    def _answers(returned: Return, call: ToolCall) -> bool:
        if returned.id is not None:
            return returned.id == call.id
        return call.id is None and returned.name in (None, call.name)


def _read(raw: Any) -> Iterator[tuple[Message, Return | None]]:
    """Yield the messages one entry stands for, each with the tool's return it carries."""
    if not isinstance(raw, dict):
        return
    kind = raw.get("message_type")
    if not isinstance(kind, str):
        yield from _chat(raw)
    elif kind in _SPOKEN:
        yield Message(role=_SPOKEN[kind], content=raw.get("content"), name=_text(raw.get("name"))), None
    elif kind in _THOUGHTS:
        role = _THOUGHTS[kind]
        yield Message(role=role, content=raw.get(role, raw.get("content"))), None
    elif kind in _CALLING and (calls := _calls(raw)):
        yield Message(role="assistant", tool_calls=calls), None
    elif kind == "tool_return_message":
        entries = raw.get("tool_returns")
        yield from map(_returned, entries if isinstance(entries, list) and entries else [raw])
    else:
        # With them messages of calls none of which can be read: as the assistant's they would be its last, empty, word.
        rest = {name: value for name, value in raw.items() if name not in _ENVELOPE}
        role = kind.removesuffix("_message")
        role = f"unknown_{role}" if role in _TAKEN else role
        yield Message(role=role, content=raw.get("content", rest or None)), None
        approvals = raw.get("approvals")
        for entry in approvals if isinstance(approvals, list) else []:
            if isinstance(entry, dict) and "tool_return" in entry:
                yield _returned(entry)


def _chat(raw: Mapping[str, Any]) -> Iterator[tuple[Message, Return | None]]:
    message = chat.message(raw)
    if message is None:
        return
    silent = message.role == "assistant" and not message.tool_calls and not chat.text_of(message.content)
    if silent and raw.get("tool_calls"):
        message = replace(message, role="tool_call", content=raw["tool_calls"])
    returned = None
    if message.role == "tool":
        failed = raw.get("status") == "error"
        returned = Return(id=message.tool_call_id, name=message.name, value=message.content, failed=failed)
    yield message, returned


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _calls(raw: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    several, one = raw.get("tool_calls"), raw.get("tool_call")
    entries = several if isinstance(several, list) and several else [several if isinstance(several, dict) else one]
    return tuple(_call(entry) for entry in entries if isinstance(entry, dict))


def _call(raw: Mapping[str, Any]) -> ToolCall:
    given = raw.get("arguments")
    arguments, text = chat.parse_arguments(given)
    if arguments is None and text is None:
        text = compact(given)
    return ToolCall(
        name=_text(raw.get("name")) or "",
        arguments=arguments,
        raw_arguments=text,
        id=_text(raw.get("tool_call_id")) or _text(raw.get("id")),
    )


def _returned(raw: Any) -> tuple[Message, Return]:
    entry = raw if isinstance(raw, dict) else {"tool_return": raw}
    identifier, name, value = _text(entry.get("tool_call_id")), _text(entry.get("name")), entry.get("tool_return")
    message = Message(role="tool", content=value, tool_call_id=identifier, name=name)
    return message, Return(id=identifier, name=name, value=value, failed=entry.get("status") == "error")
