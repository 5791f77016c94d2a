"""Answers that a log writes in several lines, put together by the id of their message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradestack.jsonio import as_list
from gradestack_plugins.readers.chat import word


def whole_answers(entries: Iterable[Any]) -> list[Any]:
    """Return messages with the pieces of an answer as one: its parts and calls, its last usage.

    Pieces are messages of the assistant with one id, between which stand results at most. An id
    that other messages have, too, is that of something else.
    """
    recorded = list(entries)
    replies = [entry for entry in recorded if _is_reply(entry)]
    if len(replies) < 2:
        return recorded
    names = [name for name in map(_id_of, replies) if name is not None]
    if len(names) == len(set(names)):
        return recorded
    shared = {_id_of(entry) for entry in recorded if not _is_reply(entry)} | {None}
    joined: list[Any] = []
    position: int | None = None
    for entry in recorded:
        if not _is_reply(entry):
            position = position if _holds_results(entry) else None
        elif position is not None and _id_of(entry) == _id_of(joined[position]):
            joined[position] = _joined_reply(joined[position], entry)
            continue
        else:
            position = None
            if _id_of(entry) not in shared:
                position = len(joined)
        joined.append(entry)
    return joined


def _is_reply(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("role") == "assistant"


def _holds_results(entry: Any) -> bool:
    """Return whether a message holds results of calls, and nothing else."""
    if not isinstance(entry, dict):
        return False
    if word(entry, "role") in {"tool", "function"}:
        return True
    blocks = as_list(entry.get("content"))
    kinds = [word(block, "type") for block in blocks]
    return bool(kinds) and all(kind.endswith("tool_result") for kind in kinds)


def _id_of(entry: Any) -> str | int | None:
    name = None
    if isinstance(entry, dict):
        name = entry.get("id")
    if isinstance(name, str | int) and name != "":
        return name
    return None


def _joined_reply(reply: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return two pieces of an answer as one; a key that both have is the later one's."""
    latest = {key: value for key, value in more.items() if value is not None}
    joined = {**reply, **latest}
    for key in ("content", "tool_calls"):
        if key in joined or key in more:
            earlier = reply.get(key)
            joined[key] = _joined_content(earlier, more.get(key))
    return joined


def _joined_content(earlier: Any, later: Any) -> Any:
    """Return two contents, or lists of calls, as one.

    One that begins with all of the other is a later state of it.
    """
    if not earlier or not later:
        return earlier or later
    if isinstance(earlier, str) and isinstance(later, str):
        return later if later.startswith(earlier) else earlier + later
    parts = _parts(earlier)
    later_parts = _parts(later)
    if later_parts[: len(parts)] == parts:
        return later_parts
    return parts + later_parts


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content} if isinstance(content, str) else content]
