"""Values encoded by msgspec, which is quick, where it writes what the standard library would.

It writes NaN as null without a word, and sets, bytes and dates in forms of its own: values are checked before.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from gradestack.jsonio.values import dumps, json_data

write = msgspec.json.Encoder(order="deterministic").encode
"""Encodes rows and their parts, keys sorted. Beware: NaN becomes null."""
_SAFE = frozenset({str, int, bool, type(None)})
_LONG = 16
"""Lists longer than this are looked at by their kinds first."""
_MOST_HELD, _LARGEST_HELD = 4096, 2048
"""Encoded objects kept, and bytes of each at most."""


def _check(value: Any) -> None:
    """Refuse what JSON lacks, and what msgspec would write in a form of its own (sets, bytes, dates, ...).

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: Something is not of the kinds JSON has.
        ValueError: Something is NaN or infinite.
    """
    kind = type(value)
    if kind is dict:
        for item in value.values():
            if type(item) not in _SAFE:
                _check(item)
    elif kind is list or kind is tuple:
        if len(value) > _LONG and _SAFE.issuperset(map(type, value)):
            return
        for item in value:
            if type(item) not in _SAFE:
                _check(item)
    elif kind is not float:
        msg = f"Object of type {kind.__name__} is not JSON serializable"
        raise TypeError(msg)
    elif not isfinite(value):
        msg = "NaN"
        raise ValueError(msg)


def checked(value: Any) -> Any:
    """Return data of others that msgspec may write as it is; what is not of JSON's own kinds is turned into such.

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: It is not JSON.
        ValueError: It holds NaN or an infinity.
    """
    if type(value) in _SAFE:
        return value
    try:
        _check(value)
    except TypeError:
        value = json_data(value)
        _check(value)
    return value


def encode(value: Any) -> bytes:
    """Return JSON data as bytes, in the form of a row.

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: It is not JSON.
        ValueError: The same.
    """
    try:
        return write(checked(value))
    except (TypeError, ValueError):  # for the standard library to judge
        return dumps(value).encode()


class Once:
    """Encodes objects that come again and again once: the grade of all runs without fault, the reference of a task.

    They are known by their identity; an entry holds its object, so that no other can take the identity over.
    """

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self._held: dict[int, tuple[Any, msgspec.Raw]] = {}

    def __call__(self, value: Any) -> msgspec.Raw:
        """Return an object as JSON.

        Raises:
            TypeError: It is not JSON.
            ValueError: The same.
        """
        held = self._held.get(id(value))
        if held is not None and held[0] is value:
            return held[1]
        text = self._encode(value)
        made = msgspec.Raw(text)
        if len(text) <= _LARGEST_HELD:
            if len(self._held) >= _MOST_HELD:
                self._held.clear()
            self._held[id(value)] = (value, made)
        return made
