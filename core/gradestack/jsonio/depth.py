"""JSON as Python 3.11 reads it, whatever Python this is: as deeply, and with its words for what is wrong.

Python 3.11 counts each level of a list or an object that is read as it counts a function that is called, and has one
limit for both. Later ones count functions alone and read thousands of levels, how many depends on the version and from
3.14 on on the size of the stack. What was read here would then be refused there, so the levels are counted again.
"""

from __future__ import annotations

import json
import re
import sys
from types import FrameType
from typing import Any

TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
MARKS = rf'{TEXT}|["\[\]{{}}]'
"""A whole string, or a bracket; a lone quote opens a string that has not ended yet."""
_COUNTED = sys.version_info < (3, 12)
"""Whether the interpreter counts levels itself."""
_ALWAYS = 500
"""Levels that fit wherever records are read."""
_space = re.compile(r"[ \t\n\r]*")
_raw_decode = json.JSONDecoder().raw_decode
_texts = re.compile(TEXT, re.DOTALL)
_texts_in_bytes = re.compile(TEXT.encode(), re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_depth(text: str | bytes, start: int = 0, end: int | None = None) -> None:
    """Check that JSON is not nested more deeply than there is room for; what follows a broken string is not looked at.

    Args:
        text: Holds the JSON.
        start: Where it begins.
        end: Where it ends.

    Raises:
        RecursionError: It is.
    """
    end = len(text) if end is None else end
    if _COUNTED or end - start <= _ALWAYS:
        return
    if isinstance(text, str):
        opening = text.count("[", start, end) + text.count("{", start, end)
    else:
        opening = text.count(b"[", start, end) + text.count(b"{", start, end)
    if opening > _ALWAYS and opening > (room := _room()):
        _count(text[start:end], room)


def _room() -> int:
    """Return how many functions could still be called where the check was."""
    used = -2  # this function and the check
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the one way to know
    while frame is not None:
        used, frame = used + 1, frame.f_back
    return sys.getrecursionlimit() - used


def _count(text: str | bytes, room: int) -> None:
    found = _texts.sub("", text).encode(errors="replace") if isinstance(text, str) else _texts_in_bytes.sub(b"", text)
    found = found.partition(b'"')[0]  # what is behind a text that does not end is text
    depth = 0
    for bracket in found.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > room:
            raise RecursionError("nested too deeply")


def _in_old_words(error: json.JSONDecodeError) -> json.JSONDecodeError:
    """Return an error as Python 3.11 words it; 3.13 has words of its own for a comma before a bracket."""
    if not error.msg.startswith("Illegal trailing comma"):
        return error
    behind = _space.match(error.doc, error.pos + 1)
    msg = "Expecting property name enclosed in double quotes" if error.msg.endswith("object") else "Expecting value"
    return json.JSONDecodeError(msg, error.doc, behind.end() if behind else error.pos)


def decoded_at(text: str, at: int = 0) -> tuple[Any, int]:
    """Return the value that begins at a place of a text, and where it ends.

    Raises:
        JSONDecodeError: There is none.
        RecursionError: It is nested too deeply, in front of what is no JSON if there is any.
        ValueError: A whole number has more digits than the interpreter reads.
    """
    try:
        value, end = _raw_decode(text, at)
    except json.JSONDecodeError as error:
        check_depth(text, at, error.pos)
        raise _in_old_words(error) from None
    check_depth(text, at, end)
    return value, end


def standard_loads(text: str | bytes) -> Any:
    """Return what :func:`json.loads` returns.

    Raises:
        RecursionError: It is nested too deeply, in front of what is no JSON if there is any.
        ValueError: As that function.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        check_depth(error.doc, 0, error.pos)
        raise _in_old_words(error) from None
    check_depth(text)
    return value
