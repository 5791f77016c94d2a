"""JSON values compared, and JSON texts spread over lines without changing a token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gradestack import compile_later
from gradestack.jsonio import JsonProblem, compact, loads

_DEEPEST, _INLINE, _MOST_COMPARED = 8, 72, 100
_TOKEN = compile_later(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def same_json(left: Any, right: Any) -> bool:
    """Return whether JSON values are equal.

    1 and 1.0 are, true and 1 are not, nor are those too deep to compare.
    """
    try:
        return _same(left, right)
    except RecursionError:
        return False


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        keys = left.keys()
        return keys == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def equality_key(value: Any) -> Any:
    """Return a key that is equal, and has one hash, for values that are the ``same``."""
    try:
        return _equality_key(value)
    except RecursionError:
        return object()  # equal to nothing else


def _equality_key(value: Any) -> Any:
    if isinstance(value, dict):
        return dict, frozenset((name, _equality_key(part)) for name, part in value.items())
    if isinstance(value, list):
        return list, tuple(map(_equality_key, value))
    return (bool, value) if isinstance(value, bool) else value


def equal_in_any_order(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal if the order within lists is ignored."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = left.keys()
        return keys == right.keys() and all(
            equal_in_any_order(value, right[key]) for key, value in left.items()
        )
    if (
        not (isinstance(left, list) and isinstance(right, list))
        or len(left) != len(right)
        or len(left) > _MOST_COMPARED
    ):
        return same_json(left, right)
    free = list(right)
    rest = list[Any]()
    for value in left:
        twin = next(
            (position for position, other in enumerate(free) if same_json(value, other)), None
        )
        if twin is None:
            rest.append(value)
        else:
            del free[twin]
    return all(map(equal_in_any_order, rest, free))


def laid_out(value: Any, limit: int) -> str:
    """Return a value as JSON over indented lines, of a long one its beginning."""
    text = compact(value)
    if len(text) <= limit:
        text = spread(text) or text
    if len(text) <= limit:
        return text
    return f"{text[:limit]}…\n… cut here"


def spread(text: str) -> str | None:
    """Return a JSON object or list spread over indented lines, None when the text holds neither.

    Only white space changes: key order, number formats and repeated keys stay as written. What is
    short, or below the eighth level, stays on its line.
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        loads(text)
        matches = _TOKEN.finditer(text)
        tokens = (match[0] for match in matches)
        lines = _lines(tokens, next(tokens), 0)
        return "\n".join(lines)
    except (JsonProblem, RecursionError):
        return None


def _lines(tokens: Iterator[str], opening: str, depth: int) -> list[str]:
    """Return the lines of the value that begins with a token."""
    if opening not in "[{":
        return [opening]
    parts: list[list[str]] = []
    while (begun := next(tokens)) not in "]}":
        begun = next(tokens) if begun == "," else begun
        key = ""
        if opening == "{":
            key = f"{begun}: "
            _ = next(tokens)
            begun = next(tokens)
        first, *rest = _lines(tokens, begun, depth + 1)
        parts.append([key + first, *rest])
    if all(len(part) == 1 for part in parts):
        line = f"{opening}{', '.join(part[0] for part in parts)}{begun}"
        if len(line) <= _INLINE or depth >= _DEEPEST:
            return [line]
    for part in parts[:-1]:
        part[-1] += ","
    return [opening, *(f"  {line}" for part in parts for line in part), begun]
