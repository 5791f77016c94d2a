"""The conversation of a sample as shown."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.pages.jsonview import spread
from gradestack_plugins.pages.text import Cut, brief, cut

_MOST_MESSAGES = 200
_SHARED_FROM = 600
"""Length from which a system message that occurs again is shown once for all samples."""
_MOST_SHARED = 50
_FOLDED_FROM = 900
_FOLDED_LINES = 12
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
_ROLES |= {"system": "system", "developer": "system"}


_NONE = Cut("")


@attrs.frozen
class Call:
    """A tool call inside a message."""

    name: str
    arguments: Cut


@attrs.frozen
class Shown:
    """One message."""

    role: str
    """Role as recorded."""
    style: str
    """CSS class: ``user``, ``assistant``, ``tool``, ``system`` or ``other``."""
    name: str
    body: Cut
    code: bool = False
    """Whether the body is JSON, spread over lines."""
    folded: bool = False
    """Whether the body is long enough to be folded."""
    preview: str = ""
    shared: int = 0
    """Number of the text in the list of shared texts, from 1; 0 when the body is shown here."""
    size: int = 0
    """Characters of the whole body."""
    calls: tuple[Call, ...] = ()
    reasoning: Cut = _NONE
    """What the model thought before."""


@attrs.frozen
class Turn:
    """The messages of one turn."""

    number: int
    """From 1; 0 when the sample has a single turn."""
    messages: tuple[Shown, ...]


@attrs.frozen
class Conversation:
    """All turns of a sample."""

    turns: tuple[Turn, ...]
    count: int
    """Messages in all."""
    left_out: int
    """Messages not shown, after those that are."""
    gone: str = ""
    """Why there is none, where the row did not keep it."""


@attrs.define
class SharedTexts:
    """Long system messages, each kept once for the whole page."""

    limit: int
    texts: list[Cut] = attrs.field(factory=list)
    numbers: dict[bytes, int] = attrs.field(factory=dict)

    def number(self, text: str) -> int:
        """Return the number of a text, from 1; 0 when it is to be shown in place."""
        if len(text) < _SHARED_FROM:
            return 0
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        if digest not in self.numbers and len(self.numbers) < _MOST_SHARED:
            self.texts.append(cut(text, self.limit))
            self.numbers[digest] = len(self.texts)
        return self.numbers.get(digest, 0)


def conversation(trajectory: Any, limit: int, shared: SharedTexts) -> Conversation:
    """Return the view of a row's ``trajectory``."""
    turns = [[as_map(message) for message in turn] for turn in _turns(as_list(trajectory))]
    count, room = sum(map(len, turns)), _MOST_MESSAGES
    shown: list[Turn] = []
    for place, turn in enumerate(turns, start=1):
        messages = tuple(_message(message, limit, shared) for message in turn[:room])
        room -= len(messages)
        if messages:
            shown.append(Turn(place if len(turns) > 1 else 0, messages))
    return Conversation(tuple(shown), count, max(0, count - _MOST_MESSAGES))


def _turns(trajectory: Iterable[Any]) -> Iterable[Iterable[Any]]:
    loose: list[Any] = []
    for entry in trajectory:
        if isinstance(entry, Mapping):
            loose.append(entry)
        else:
            yield as_list(entry)
    if loose:
        yield loose


def _message(message: Mapping[str, Any], limit: int, shared: SharedTexts) -> Shown:
    role = brief(as_text(message.get("role")), 40) or "unknown role"
    style = _ROLES.get(role.lower(), "other")
    text = content_text(message.get("content"))
    number = shared.number(text) if style == "system" else 0
    laid_out = spread(text) if not number and len(text) <= limit else None
    body = cut(laid_out if laid_out is not None else text, limit)
    folded = len(body.shown) > _FOLDED_FROM or (style == "tool" and body.shown.count("\n") > _FOLDED_LINES)
    return Shown(
        role=role,
        style=style,
        name=brief(as_text(message.get("name")), 80),
        body=Cut("") if number else body,
        code=laid_out is not None,
        folded=folded,
        preview=brief(text, 160) if folded else "",
        shared=number,
        size=len(text),
        calls=tuple(_call(call, limit) for call in as_list(message.get("tool_calls"))[:_MOST_MESSAGES]),
        reasoning=cut(content_text(message.get("reasoning")), limit),
    )


def content_text(content: Any) -> str:
    """Return message content as text: its text parts joined by line ends, any other part or value as JSON."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (as_map(part).get("text", part) for part in content)
        return "\n".join(part if isinstance(part, str) else compact(part) for part in parts)
    return content if isinstance(content, str) else compact(content)


def _call(raw: Any, limit: int) -> Call:
    function = as_map(as_map(raw).get("function")) or as_map(raw)
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else "" if arguments is None else compact(arguments)
    return Call(call_name(function.get("name")), cut(spread(text) or text if len(text) <= limit else text, limit))


def call_name(name: Any) -> str:
    """Return a tool name as shown."""
    return brief(name, 120) if name not in (None, "") else "(no name)"
