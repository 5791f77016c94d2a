"""The elements of a JSON list read over a sliding window of text: slowly, by the standard library, whatever they hold.

A broken element is passed over where its end can be known.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from gradestack.errors import DataError
from gradestack.jsonio.depth import MARKS, decoded_at

_WINDOW = 1024 * 1024
_SPACE = re.compile(r"[ \t\n\r]*")
_STRUCTURE = re.compile(MARKS, re.DOTALL)
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_LONGEST_TOKEN = 16
"""No literal, escape or delimiter error caused by a cut is further than this from the cut."""
_NOT_UTF8 = "holds bytes that are not UTF-8"


@attrs.frozen
class Element:
    """One element of a JSON list in a file; exactly one of ``value`` and ``problem`` is meant."""

    ordinal: int
    line: int
    value: Any = None
    problem: str | None = None
    fatal: bool = False
    """True when nothing after this place can be read."""


class Window:
    """Text of a file from the current place on, read further on demand."""

    def __init__(self, file: BinaryIO, line: int = 1, encoding: str = "utf-8") -> None:
        self._file = io.TextIOWrapper(file, encoding=encoding, errors="surrogateescape", newline="")
        self.text = ""
        self.at = 0
        self.line = line
        self.complete = False
        self.suspect = False
        """True once some bytes were not UTF-8."""

    def more(self) -> bool:
        """Append further text, dropping what lies before ``at``; False at the end of the file."""
        if self.complete:
            return False
        kept = self.text[self.at :]
        piece = self._file.read(max(_WINDOW, len(kept)))  # doubling keeps a huge record linear
        self.complete = not piece
        self.suspect = self.suspect or (not piece.isascii() and _ESCAPED_BYTE.search(piece) is not None)
        self.text, self.at = kept + piece, 0
        return not self.complete

    def skip_space(self) -> str:
        """Move past white space and return the character there, "" at the end of the file."""
        while True:
            match = _SPACE.match(self.text, self.at)
            self.advance(match.end() if match else self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def advance(self, to: int) -> None:
        """Move to a place in the text, counting lines."""
        self.line += self.text.count("\n", self.at, to)
        self.at = to


def _decode(window: Window) -> tuple[Any, str | None]:
    """Decode the value at the window's place and move past it; (value, None) or (None, problem) without moving."""
    while True:
        try:
            value, end = decoded_at(window.text, window.at)
        except json.JSONDecodeError as error:
            # A value cut by the window's edge fails at the edge, or in a string that never ends.
            cut = error.pos >= len(window.text.rstrip()) - _LONGEST_TOKEN or error.msg.startswith("Unterminated string")
            if cut and window.more():
                continue
            return None, f"not JSON: {error.msg}"
        except RecursionError:
            return None, "nested too deeply"
        except ValueError as error:  # more digits than the interpreter converts; how many, the message says
            if window.text[-1:].isdigit() and window.more():
                continue
            return None, str(error)
        length = end - window.at
        if end >= len(window.text) - _LONGEST_TOKEN and window.more():
            continue  # a number may go on: 1 of 1.5, 1.5 of 1.5e3
        end = window.at + length  # reading on moves the window
        if window.suspect and _ESCAPED_BYTE.search(window.text, window.at, end):
            window.advance(end)
            return None, _NOT_UTF8
        window.advance(end)
        return value, None


def _skip_value(window: Window) -> bool:
    """Move past a value that cannot be decoded, by its brackets; False when the file ends inside it."""
    depth, at = 0, window.at
    while True:
        for match in _STRUCTURE.finditer(window.text, at):
            mark = match.group()
            if mark == '"':  # brackets behind it are text
                break
            depth += (mark in "[{") - (mark in "]}")
            if depth == 0 and mark in "]}":
                window.advance(match.end())
                return True
            if depth < 0:
                return False
            at = match.end()
        consumed = at - window.at
        if not window.more():
            return False
        at = consumed


def open_list(window: Window, path: Path) -> None:
    """Move past the bracket that opens a list."""
    first = window.skip_space()
    if first != "[":
        what = "the file is empty" if not first else f"expected a JSON list, found {first!r}"
        raise DataError(f"{path}:{window.line}: {what}")
    window.advance(window.at + 1)


def elements(window: Window, ordinal: int) -> Iterator[Element]:
    """Yield elements over the window, which stands behind a list's opening bracket or in front of an element."""
    if window.skip_space() == "]":
        yield from _trailing(window, ordinal)
        return
    while True:
        char = window.skip_space()
        line = window.line
        if not char:
            yield Element(ordinal, line, problem="the list is cut off here: no closing ']'", fatal=True)
            return
        value, problem = _decode(window)
        if problem is None:
            yield Element(ordinal, line, value)
        else:
            bracket = char in "[{"
            skipped = problem is _NOT_UTF8 or (bracket and _skip_value(window))
            note = f"{problem} (the list is cut off here)" if bracket and not skipped else problem
            yield Element(ordinal, line, problem=note, fatal=not skipped)
            if not skipped:
                return
        ordinal += 1
        char = window.skip_space()
        if char == ",":
            window.advance(window.at + 1)
        elif char == "]":
            yield from _trailing(window, ordinal)
            return
        else:
            what = f"expected ',' or ']' between elements, found {char!r}" if char else "the list is cut off here"
            yield Element(ordinal, window.line, problem=what, fatal=True)
            return


def _trailing(window: Window, ordinal: int) -> Iterator[Element]:
    window.advance(window.at + 1)
    if window.skip_space():
        yield Element(ordinal, window.line, problem="text after the end of the list", fatal=True)
