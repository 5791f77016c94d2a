"""What msgspec, which is quick, writes as the standard library would.

It writes NaN as null without a word, and sets, bytes and dates in forms of its own: values are checked before.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

import msgspec

from gradestack.jsonio.values import dumps, json_data

write = msgspec.json.Encoder().encode
"""Encodes rows and their parts. Beware: NaN becomes null."""
SAFE = frozenset({str, int, bool, type(None)})
"""Classes whose values need no check."""
_LONG = 16
"""Lists longer than this are looked at by their kinds first."""


def check(value: Any) -> None:
    """Refuse what JSON lacks, and what msgspec would write in a form of its own (sets, bytes, dates, ...).

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: Something is not of the kinds JSON has.
        ValueError: Something is NaN or infinite.
    """
    kind = type(value)
    if kind is dict:
        for item in value.values():
            inner = type(item)
            if inner not in SAFE and not (inner is list and SAFE.issuperset(map(type, item))):
                check(item)
    elif kind is list or kind is tuple:
        if len(value) > _LONG and SAFE.issuperset(map(type, value)):
            return
        for item in value:
            if type(item) not in SAFE:
                check(item)
    elif kind is float:
        if not isfinite(value):
            msg = "NaN"
            raise ValueError(msg)
    elif kind not in SAFE:
        msg = f"Object of type {kind.__name__} is not JSON serializable"
        raise TypeError(msg)


def check_all(values: Iterable[Any]) -> None:
    """Refuse the same in any of several values."""
    for value in [value for value in values if type(value) not in SAFE]:
        check(value)


def encode(value: Any) -> bytes:
    """Return JSON data as bytes, in the form of a row.

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: It is not JSON.
        ValueError: The same.
    """
    try:
        check(value)
        return write(value)
    except (TypeError, ValueError):  # for the standard library to judge
        return dumps(json_data(value)).encode()
