"""Values of arguments: their leaves by pointer, and when two of them are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from gradestack.jsonio import is_beyond_json, pointer_to

Equality = Literal["json", "python", "text"]
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_DEEPEST: Final = 1000
"""Levels of nesting; pointers get as long as arguments are deep."""


class Leaves:
    """The leaves of arguments, by pointer and in order."""

    __slots__ = ("_arguments", "marks")

    def __init__(self, arguments: Mapping[str, Any], equality: Equality) -> None:
        """Mark every leaf of the arguments, so that equal marks mean equal leaves."""
        mark = _MARKS[equality]
        self._arguments = arguments
        self.marks: dict[str, Any] = {}
        """Pointer -> mark, which is equal exactly for equal leaves."""
        for key, value in arguments.items():
            pointer = pointer_to(key)
            if type(value) in _SCALARS:
                self.marks[pointer] = value if type(value) is str else mark(value)
                continue
            for inner, path, leaf in _walk(pointer, value):
                # an item of a list is no member of an object
                self.marks[inner] = mark(leaf) if path == inner else (path, mark(leaf))

    def select(self, is_compared: Callable[[str], bool]) -> None:
        """Leave out the marks of all leaves at whose pointer nothing is compared."""
        marks = self.marks.items()
        self.marks = {at: mark for at, mark in marks if is_compared(at)}

    def values(self) -> dict[str, Any]:
        """Return the value at each pointer."""
        arguments = self._arguments.items()
        return {
            pointer: leaf
            for key, value in arguments
            for pointer, _, leaf in _walk(pointer_to(key), value)
        }


def _walk(pointer: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield pointer, path and value of each leaf.

    A path is a pointer that tells items of lists from members of objects.
    """
    waiting = [(pointer, pointer, value, 1)]
    while waiting:
        pointer, path, value, level = waiting.pop()
        if type(value) in _SCALARS or not value or not isinstance(value, list | tuple | Mapping):
            yield pointer, path, value
            continue
        if level >= _DEEPEST:
            raise RecursionError("nested too deeply")
        if isinstance(value, Mapping):
            steps = [pointer_to(key) for key in value]
            marks = steps
            members = list(value.values())
        else:
            steps = [f"/{index}" for index in range(len(value))]
            marks = [f"~[{index}" for index in range(len(value))]  # no escaped key has "~["
            members = list(value)
        inner = [
            (pointer + step, path + mark, member, level + 1)
            for step, mark, member in zip(steps, marks, members, strict=True)
        ]
        waiting += reversed(inner)


def _json_mark(value: Any) -> Any:
    """Numbers by value, true and false only equal to themselves, NaN and infinities to nothing."""
    if value is True or value is False:
        return ("boolean", value)
    if is_beyond_json(value):
        return object()
    return _python_mark(value)


def _python_mark(value: Any) -> Any:
    """True = 1 = 1.0, NaN equal to nothing."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value == value else object()  # noqa: PLR0124 - NaN
    if isinstance(value, Mapping):
        return ("empty", "object")
    if isinstance(value, list | tuple):
        return ("empty", "list")
    return ("odd", repr(value))


def _text_mark(value: Any) -> Any:
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return str(value)


_MARKS: Final[Mapping[Equality, Callable[[Any], Any]]] = {
    "json": _json_mark,
    "python": _python_mark,
    "text": _text_mark,
}


def mark_of(value: Any, equality: Equality) -> frozenset[tuple[str, Any]]:
    """Return a mark that equal JSON values share, and that can be in a set."""
    leaves = Leaves({"": value}, equality)
    return frozenset(leaves.marks.items())


def equal(left: Any, right: Any, equality: Equality) -> bool:
    """Return whether two JSON values are equal."""
    if equality == "text":
        return str(left) == str(right)
    if equality == "json" and (isinstance(left, bool) or isinstance(right, bool)):
        return left is right
    if equality == "json" and is_beyond_json(left):
        return False
    if type(left) in _SCALARS or type(right) in _SCALARS:
        return bool(left == right)
    mark = mark_of(left, equality)
    return mark == mark_of(right, equality)
