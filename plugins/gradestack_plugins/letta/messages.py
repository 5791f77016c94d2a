"""Recorded trajectories: turns of messages, and the calls made in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec

from gradestack import Message, ToolCall, replace
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.chat.unread import count_unread, names_a_call, not_read

_ENVELOPE = frozenset(
    ("id", "date", "message_type", "otid", "run_id", "step_id", "sender_id", "seq_id")
)
_CONTENTS = ("reasoning", "hidden_reasoning", "content")
"""Keys under which a message says something, the first that is there."""

Entry = dict[str, Any]


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of messages, and every call made in them with what it returned."""

    turns: tuple[tuple[Message, ...], ...]
    calls: tuple[ToolCall, ...] | None
    """None where no message is recorded, or not every call can be read."""
    text: str | None
    """What the assistant said last; None where it said nothing."""
    remarks: Mapping[str, int]
    """Remarks on calls that cannot be read."""

    @property
    def is_silent(self) -> bool:
        """Whether there is no message at all."""
        return not any(self.turns)


def read_trajectory(recorded: Iterable[Entry | list[Entry]]) -> Trajectory:
    """Return a recorded trajectory; a list of messages without turns is one turn."""
    entries = list(recorded)
    turns: list[list[Entry]] = [turn for turn in entries if isinstance(turn, list)]
    if entries and not turns:
        turns = [[entry for entry in entries if isinstance(entry, dict)]]
    forms = [[form for entry in turn for form in _chat_forms(entry)] for turn in turns]
    messages = tuple(map(chat.messages, forms))
    all_forms = [*chain.from_iterable(forms)]
    conversation = [*chain.from_iterable(messages)]
    failed = {
        id(message)
        for message, form in zip(conversation, all_forms, strict=True)
        if form.get("status") == "error"
    }

    def answered(call: ToolCall, message: Message) -> ToolCall:
        content = message.content
        error = None
        if id(message) in failed:
            text = chat.text_of(content)
            error = text or compact(content)
        return replace(call, result=content, error=error)

    calls = chat.made_calls(conversation, answered)
    unread = count_unread(all_forms, has_calls=bool(calls))
    remarks = Counter(unread)
    remarks.update(filter(None, map(_unread_calls, chain.from_iterable(turns))))
    is_known = conversation and not remarks
    texts = [
        chat.text_of(message.content) for message in conversation if message.role == "assistant"
    ]
    text = next(filter(None, reversed(texts)), None)
    return Trajectory(
        turns=messages,
        calls=calls if is_known else None,
        text=text,
        remarks=dict(remarks),
    )


def _chat_forms(entry: Entry) -> Iterator[Entry]:
    """Yield the chat messages that one entry stands for."""
    kind = entry.get("message_type")
    calls = _calls(entry)
    if not isinstance(kind, str):
        yield entry
    elif kind == "assistant_message":
        yield {**entry, "role": "assistant"}
    elif kind == "tool_return_message":
        tool_returns = entry.get("tool_returns")
        yield from map(_returned, tool_returns or [entry])
    elif calls:
        yield {"role": "assistant", "tool_calls": calls}
    else:
        rest = {name: value for name, value in entry.items() if name not in _ENVELOPE}
        contents = [entry[name] for name in _CONTENTS if name in entry]
        content = contents[0] if contents else rest or None
        role = kind.removesuffix("_message")
        role = f"unknown_{role}" if role == kind else role  # none of letta's: nobody's speech
        yield {"role": role, "content": content, "name": entry.get("name")}
        approvals = map(as_map, as_list(entry.get("approvals")))
        yield from [_returned(approval) for approval in approvals if "tool_return" in approval]


def _calls(entry: Entry) -> list[Entry]:
    """Return the calls of an entry in the form of chat messages."""
    tool_calls = entry.get("tool_calls")
    recorded = tool_calls or entry.get("tool_call")
    calls = recorded if isinstance(recorded, list) else [recorded]
    return [
        {**call, "id": call.get("tool_call_id", call.get("id")), "function": None}
        for call in calls
        if isinstance(call, dict)
    ]


def _returned(entry: Any) -> Entry:
    about = {name: as_map(entry).get(name) for name in ("tool_call_id", "name", "status")}
    tool_return = as_map(entry).get("tool_return")
    return {"role": "tool", "content": tool_return, **about}


def _unread_calls(entry: Entry) -> str | None:
    """Return the remark on a message of calls of which none can be read."""
    kind: Any = entry.get("message_type")
    names_calls = kind == "approval_request_message" or names_a_call(str(kind))
    if not names_calls or _calls(entry):
        return None
    return not_read(f"message `{kind}`" if kind.isidentifier() else "message")
