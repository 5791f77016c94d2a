"""A conversation while it is read: turns of messages, calls with their results, and what there is to remark."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import force_setattr

from gradestack import Message, ToolCall

_WORD: Final = re.compile(r"[A-Za-z_][\w.:-]{0,47}")


_EXPECTED = re.compile("expected|gold|ground_?truth|reference", re.IGNORECASE)
"""How the names of keys and columns begin that hold what was expected."""


def kind_of(of: str, name: Any) -> str:
    """Return the kind of remark on something of a type or name that is not understood: ``part:input_audio``."""
    kind = f"{of}:{name if isinstance(name, str) and _WORD.fullmatch(name) else 'other'}"
    if of not in ("key", "column") or not _EXPECTED.match(kind.removeprefix(f"{of}:")):
        return kind
    field, grader = ("calls", "tool_calls") if re.search("call|tool", kind) else ("text", "exact_match")
    return f"{kind}, to compare: --map expected.{field}={name} --grader {grader}"


def text_or_none(value: Any) -> str | None:
    """Return a text as it is, None of anything else."""
    return value if isinstance(value, str) else None


class Conversation:
    """Collects the messages of one conversation in order.

    A user message begins a turn; what stands before the first one belongs to it. A call is handed its result when it is
    met: until the conversation is read to its end, calls are not finished.

    Attributes:
        turns: Messages by turn.
        calls: All calls made so far.
        asked: The text of each user turn.
        text: What the last answer says; None when it says nothing.
        step: Index of the last answer; -1 before the first.
        given_turns: Whether turns are given, not begun by the messages of the user.
        listed: Tools that MCP servers listed, as recorded.
        remarks: What was left out or lacks its counterpart, by kind.
        part: What a part of a message is called in remarks.
        texts: Types of parts that are text, and the key it stands under.
        model: What the last answer that names its model names.
        usages: What answers say of their usage, as recorded.
    """

    part: str
    texts: ClassVar[Mapping[str, str]]

    def __init__(self) -> None:
        self.turns: list[list[Message]] = [[]]
        self.calls: list[ToolCall] = []
        self.asked: list[str] = []
        self.text: str | None = None
        self.step = -1
        self.given_turns = False
        self.listed: list[Any] = []
        self.remarks: dict[str, int] = {}
        self.model: str | None = None
        self.usages: list[Any] = []
        self._open_calls: deque[ToolCall] = deque()
        self._by_id: dict[str, deque[ToolCall]] = {}
        self._by_name: dict[str, deque[ToolCall]] = {}

    def remark(self, kind: str) -> None:
        """Count something that was left out or lacks its counterpart."""
        self.remarks[kind] = self.remarks.get(kind, 0) + 1

    @property
    def turn(self) -> int:
        """The user turn at hand."""
        return len(self.turns) - 1

    def add(self, message: Message) -> None:
        """Add a message to the turn at hand."""
        self.turns[-1].append(message)

    def ask(self, message: Message, text: str) -> None:
        """Add a message of the user, which begins a turn."""
        if self.asked and not self.given_turns:
            self.turns.append([])
        self.asked.append(text)
        self.turns[-1].append(message)

    def text_of(self, content: Any, joint: str) -> str | None:
        """Return the text of a message's content, None when there is none; parts that are no text are remarked."""
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            if content is not None:
                self.remark("content:other")
            return None
        texts = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            key = self.texts.get(kind) if isinstance(kind, str) else None
            found = part.get("text" if kind is None else key) if isinstance(part, dict) else part
            if isinstance(found, str):
                texts.append(found)
            else:
                self.remark(kind_of(self.part, kind))
        return joint.join(texts) if texts else None

    def answers_with(self, model: Any, usage: Any) -> None:
        """Take into account what an answer says of its model and usage."""
        self.model = text_or_none(model) or self.model
        if usage:
            self.usages.append(usage)

    @property
    def waits(self) -> bool:
        """Whether a call has no result yet."""
        return _oldest(self._open_calls) is not None

    def made(
        self,
        kind: Any,
        identifier: Any,
        name: Any,
        arguments: tuple[dict[str, Any] | None, str | None],
        *,
        server: Any = None,
        author: str | None = None,
    ) -> ToolCall:
        """Take a call into account, whose arguments are an object and its text, and return it."""
        if not isinstance(name, str):
            self.remark("call_without_name")
        call = ToolCall(
            name=text_or_none(name) or "",
            arguments=arguments[0],
            raw_arguments=arguments[1],
            id=text_or_none(identifier),
            turn=self.turn,
            step=self.step,
            author=author,
            server=text_or_none(server),
            kind=kind,
        )
        self.calls.append(call)
        self._open_calls.append(call)
        if call.arguments is None:
            self.remark("undecodable_arguments")
        if call.id is not None:
            if self.unanswered(call.id) is not None:
                self.remark("repeated_call_id")
            self._by_id.setdefault(call.id, deque()).append(call)
        self._by_name.setdefault(call.name, deque()).append(call)
        return call

    def knows(self, identifier: Any) -> bool:
        """Return whether a call of this id was made."""
        return isinstance(identifier, str) and identifier in self._by_id

    def answered(
        self, identifier: Any, name: Any, result: Any, error: str | None = None, error_type: str | None = None
    ) -> None:
        """Hand a result to its call: the one of its id, or without one the oldest unanswered one of its name, if any.

        A result that has no call, or whose call has another already, is remarked.
        """
        named = isinstance(identifier, str)
        waiting = self._open_calls if not isinstance(name, str) else self._by_name.get(name)
        waiting = self._by_id.get(identifier) if isinstance(identifier, str) else waiting
        call = _oldest(waiting)
        if call is None:
            self.remark("second_result" if named and waiting is not None else "result_without_call")
            return
        finish(call, result, error, error_type)

    def denied(self, identifier: Any, reason: Any) -> None:
        """Mark a call as one that was not allowed."""
        call = _oldest(self._by_id.get(identifier)) if isinstance(identifier, str) else None
        if call is None:
            self.remark("result_without_call")
            return
        force_setattr(call, "status", "denied")
        force_setattr(call, "error", reason if isinstance(reason, str) and reason else "not approved")

    def unanswered(self, identifier: Any) -> ToolCall | None:
        """Return the oldest call of an id that has no result yet."""
        return _oldest(self._by_id.get(identifier)) if isinstance(identifier, str) else None

    def finished(self) -> dict[str, Any]:
        """Return what a sample says of it: input, turns, calls and text."""
        for call in self.calls:
            if call.status is None:
                self.remark("call_without_result")
        asked = self.asked
        answered = self.step >= 0
        return {
            "input": None if not asked else asked[0] if len(asked) == 1 else tuple(asked),
            "turns": tuple([tuple(turn) for turn in self.turns]) if self.turns[0] else (),
            "calls": tuple(self.calls) if answered else None,
            "text": self.text,
        }


def _oldest(waiting: deque[ToolCall] | None) -> ToolCall | None:
    """Return the first call that has no result yet; those before it are dropped."""
    while waiting:
        if waiting[0].status is None:
            return waiting[0]
        waiting.popleft()
    return None


def finish(call: ToolCall, result: Any, error: str | None, error_type: str | None = None) -> None:
    """Give a call that nobody has seen yet its result."""
    force_setattr(call, "result", result)
    force_setattr(call, "status", "ok" if error is None else "error")
    if error is not None:
        force_setattr(call, "error", error)
        force_setattr(call, "error_type", error_type)
