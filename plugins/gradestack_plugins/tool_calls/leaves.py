"""Leaves of arguments: every scalar, and every empty list or object, at its JSON pointer (RFC 6901)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

Equality = Literal["json", "python", "text"]
SCALARS: Final = frozenset({str, int, float, bool, type(None)})
DEEPEST: Final = 1000
"""Levels of nesting; pointers get as long as arguments are deep."""


class Leaves:
    """The leaves of arguments, by pointer and in order."""

    __slots__ = ("_arguments", "marks")

    def __init__(self, arguments: Mapping[str, Any], equality: Equality) -> None:
        mark = _MARKS[equality]
        self._arguments = arguments
        self.marks: dict[str, Any] = {}
        """What is equal exactly for equal leaves; an item of a list is no member of an object."""
        for key, value in arguments.items():
            pointer = f"/{escaped(key)}"
            if type(value) in SCALARS:
                self.marks[pointer] = value if type(value) is str else mark(value)
                continue
            for inner, place, each in _walk(pointer, value):
                self.marks[inner] = mark(each) if place == inner else (place, mark(each))

    def values(self) -> dict[str, Any]:
        """Return what stands at each pointer."""
        return {
            pointer: each
            for key, value in self._arguments.items()
            for pointer, _, each in _walk(pointer_to(key), value)
        }


def _walk(pointer: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield pointer, place and value of each leaf; a place tells items of lists from members of objects."""
    waiting = [(pointer, pointer, value, 1)]
    while waiting:
        pointer, place, value, level = waiting.pop()
        if type(value) in SCALARS or not value or not isinstance(value, list | tuple | Mapping):
            yield pointer, place, value
            continue
        if level >= DEEPEST:
            raise RecursionError("nested too deeply")
        if isinstance(value, Mapping):
            words = [(escaped(key), each) for key, each in value.items()]
            inner = [(f"{pointer}/{word}", f"{place}/{word}", each, level + 1) for word, each in words]
        else:  # no escaped key has "~["
            inner = [(f"{pointer}/{at}", f"{place}~[{at}", each, level + 1) for at, each in enumerate(value)]
        inner.reverse()
        waiting += inner


def escaped(key: Any) -> str:
    """Return a key as a part of a JSON pointer."""
    text = key if isinstance(key, str) else str(key)
    return text.replace("~", "~0").replace("/", "~1") if "~" in text or "/" in text else text


def pointer_to(key: Any) -> str:
    """Return the JSON pointer of an argument."""
    return f"/{escaped(key)}"


def _json_mark(value: Any) -> Any:
    """Numbers by value, true and false only equal to themselves, NaN to nothing."""
    return ("boolean", value) if value is True or value is False else _python_mark(value)


def _python_mark(value: Any) -> Any:
    """True = 1 = 1.0, NaN equal to nothing."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value == value else object()  # noqa: PLR0124 - NaN
    if isinstance(value, Mapping):
        return ("empty", "object")
    return ("empty", "list") if isinstance(value, list | tuple) else ("odd", repr(value))


def _text_mark(value: Any) -> Any:
    if isinstance(value, Mapping):
        return "{}"
    return "[]" if isinstance(value, list | tuple) else str(value)


_MARKS: Mapping[Equality, Callable[[Any], Any]] = {"json": _json_mark, "python": _python_mark, "text": _text_mark}


def mark_of(value: Any, equality: Equality) -> frozenset[tuple[str, Any]]:
    """Return what is equal for equal JSON values, and can be in a set."""
    return frozenset(Leaves({"": value}, equality).marks.items())


def equal(left: Any, right: Any, equality: Equality) -> bool:
    """Return whether two JSON values are equal."""
    if equality == "text":
        return str(left) == str(right)
    if equality == "json" and (isinstance(left, bool) or isinstance(right, bool)):
        return left is right
    if type(left) in SCALARS or type(right) in SCALARS:
        return bool(left == right)
    return mark_of(left, equality) == mark_of(right, equality)
