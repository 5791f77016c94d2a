"""Patterns of calls: names and arguments by regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs

from gradestack import JSON, ToolCall
from gradestack.jsonio import compact

_ABSENT: Final = object()


@attrs.frozen(kw_only=True)
class CallPattern:
    """What a call looks like: its tool's name, and arguments by JSON pointer.

    Attributes:
        tool: Regular expression that the whole name fits.
        arguments: JSON pointer -> regular expression that occurs in the value; of what is no text, in its JSON. A call
            without the argument does not fit.
    """

    tool: str
    arguments: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        """Check the expressions.

        Raises:
            ValueError: One is none, or a pointer does not begin with a slash.
        """
        for pointer, text in (("", self.tool), *self.arguments.items()):
            if pointer and not pointer.startswith("/"):
                raise ValueError(f"{pointer!r} is no JSON pointer: it begins with a slash, /{pointer} for one argument")
            try:
                compiled(text)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from error

    def __str__(self) -> str:
        """Return it as items name it."""
        return f"{self.tool} {compact(self.arguments)}" if self.arguments else self.tool


Pattern = str | CallPattern
"""A name alone, or with arguments."""


@lru_cache(maxsize=1024)
def compiled(text: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Return a regular expression.

    Raises:
        re.error: It is none.
    """
    return re.compile(text, re.IGNORECASE if ignore_case else 0)


def whole(patterns: Iterable[Pattern]) -> tuple[CallPattern, ...]:
    """Return patterns that may be written as a name alone."""
    return tuple(CallPattern(tool=each) if isinstance(each, str) else each for each in patterns)


def fits(pattern: CallPattern, call: ToolCall) -> bool:
    """Return whether a call looks like a pattern."""
    if compiled(pattern.tool).fullmatch(call.name) is None:
        return False
    for pointer, text in pattern.arguments.items():
        value = at(call.arguments, pointer)
        if value is _ABSENT or compiled(text).search(value if isinstance(value, str) else compact(value)) is None:
            return False
    return True


def at(value: Any, pointer: str) -> Any:
    """Return what stands at a JSON pointer, a mark of its own where nothing does."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _ABSENT
    return value


def in_order(patterns: Sequence[CallPattern], calls: Iterable[ToolCall]) -> Iterator[ToolCall]:
    """Yield the first calls that fit the patterns one after the other, others between them; fewer if they end."""
    waiting = iter(patterns)
    wanted = next(waiting, None)
    for call in calls:
        if wanted is None:
            return
        if fits(wanted, call):
            yield call
            wanted = next(waiting, None)


def text_at(arguments: JSON, name: str) -> str:
    """Return a text argument, the empty text for anything else."""
    value = at(arguments, f"/{name}")
    return value if isinstance(value, str) else ""
