"""Leaves of arguments: every scalar, and every empty list or object, at its JSON pointer (RFC 6901)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

Equality = Literal["json", "python", "text"]
Token = Any
"""What is equal exactly for equal values, and can be in a set."""
EMPTY_LIST: Final = ("empty", "list")
EMPTY_OBJECT: Final = ("empty", "object")


def json_token(value: Any) -> Token:
    """Return a scalar by JSON's equality: numbers by value, true and false only equal to themselves, NaN to nothing."""
    if value is True or value is False:
        return ("boolean", value)
    return python_token(value)


def python_token(value: Any) -> Token:
    """Return a scalar by Python's equality: True = 1 = 1.0, NaN equal to nothing."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value == value else object()  # noqa: PLR0124 - NaN
    if isinstance(value, Mapping):
        return EMPTY_OBJECT
    return EMPTY_LIST if isinstance(value, list | tuple) else ("odd", repr(value))


def text_token(value: Any) -> Token:
    """Return a scalar as Python's text of it."""
    if isinstance(value, Mapping):
        return "{}"
    return "[]" if isinstance(value, list | tuple) else str(value)


TOKENS: Mapping[Equality, Callable[[Any], Token]] = {"json": json_token, "python": python_token, "text": text_token}
SCALARS: Final = frozenset({str, int, float, bool, type(None)})


DEEPEST: Final = 1000
"""Levels of nesting; pointers get as long as arguments are deep."""


class Leaves:
    """The leaves of one call's arguments.

    Attributes:
        values: JSON pointer -> value, in order.
        marks: JSON pointer -> what is equal for equal leaves; an item of a list is no member of an object.
        equals: All marks.
    """

    __slots__ = ("equals", "marks", "values")

    def __init__(self, arguments: Mapping[str, Any], equality: Equality) -> None:
        token = TOKENS[equality]
        self.values: dict[str, Any] = {}
        self.marks: dict[str, tuple[str, Token]] = {}
        if is_flat(arguments):
            for key, value in arguments.items():
                pointer = "/" + key
                self.values[pointer] = value
                self.marks[pointer] = (pointer, value if type(value) is str else token(value))
        else:
            for pointer, place, value in walk(arguments):
                self.values[pointer] = value
                self.marks[pointer] = (place, token(value))
        self.equals = set(self.marks.values())


def is_flat(arguments: Mapping[str, Any]) -> bool:
    """Return whether arguments are scalars under keys that need no escape, as most are."""
    for key, value in arguments.items():
        if type(value) not in SCALARS or type(key) is not str or "/" in key or "~" in key:
            return False
    return True


@lru_cache(maxsize=1024)
def flat_pointers(keys: tuple[str, ...]) -> list[str]:
    """Return the pointers of scalars under these keys; a list that is shared, not to be changed.

    Raises:
        TypeError: A key is no text. Such keys are equal where their pointers are not, as 1 and true are.
    """
    "".join(keys)
    return [f"/{escaped(key)}" for key in keys]


def walk(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the pointer, the place and the value of each leaf; a place tells items of lists from members of objects.

    Raises:
        RecursionError: They are nested more than 1,000 levels deep.
    """
    waiting: list[Iterator[tuple[str, str, Any]]] = [_members("", "", arguments)]
    while waiting:
        if len(waiting) > DEEPEST:
            raise RecursionError("nested too deeply")
        for pointer, place, value in waiting[-1]:
            kind = type(value)
            if kind in SCALARS or not value:
                yield pointer, place, value
            elif kind is list or isinstance(value, list | tuple):
                waiting.append(_items(pointer, place, value))
                break
            elif kind is dict or isinstance(value, Mapping):
                waiting.append(_members(pointer, place, value))
                break
            else:
                yield pointer, place, value
        else:
            waiting.pop()


def _members(pointer: str, place: str, value: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for key, each in value.items():
        word = escaped(key)
        yield f"{pointer}/{word}", f"{place}/{word}", each


def _items(pointer: str, place: str, value: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
    for index, each in enumerate(value):
        yield f"{pointer}/{index}", f"{place}~[{index}", each  # which no escaped key has


def escaped(key: Any) -> str:
    """Return a key as a part of a JSON pointer."""
    text = key if isinstance(key, str) else str(key)
    return text.replace("~", "~0").replace("/", "~1") if "~" in text or "/" in text else text


def token_of(value: Any, equality: Equality) -> Token:
    """Return any JSON value as one token: equal values have equal ones."""
    leaves = Leaves({"": value}, equality)
    return frozenset(leaves.equals)


def equal(left: Any, right: Any, equality: Equality) -> bool:
    """Return whether two JSON values are equal."""
    if equality == "text":
        return str(left) == str(right)
    if equality == "json" and (isinstance(left, bool) or isinstance(right, bool)):
        return left is right
    if type(left) in SCALARS or type(right) in SCALARS:
        return bool(left == right)
    return bool(token_of(left, equality) == token_of(right, equality))
