"""JSON in and out: values as the standard library reads them, records found in files without loading the files.

Why not an event parser (ijson and the like) for big lists: its C backend turns a lone surrogate into "?" without a
word and refuses NaN, Infinity and integers over 64 bits, all of which :mod:`json` reads and recorded runs contain.
Decoding record by record over a sliding window keeps the standard library's values and a bounded memory.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from gradestack.errors import DataError

LINE_SHARD_BYTES = 8 * 1024 * 1024
"""Size of a shard of a line-oriented file. Fixed, so that results never depend on the number of workers."""

_WINDOW = 1024 * 1024
_SPACE = re.compile(r"[ \t\n\r]*")
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|["\[\]{}]', re.DOTALL)
"""A whole string, or a bracket; a lone quote opens a string that has not ended yet."""
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_LONGEST_TOKEN = 16
"""No literal, escape or delimiter error caused by a cut is further than this from the cut."""
_decoder = json.JSONDecoder()
_NOT_UTF8 = "holds bytes that are not UTF-8"


class JsonProblem(ValueError):
    """Text that is not JSON, or too deeply nested to be read. The message says where and what."""


def loads(text: str | bytes) -> Any:
    """Return the value :func:`json.loads` returns.

    Raises:
        JsonProblem: Not JSON, not UTF-8, or nested too deeply for the interpreter.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        msg = f"not JSON: {error.msg} at character {error.pos}"
        raise JsonProblem(msg) from error
    except UnicodeDecodeError as error:
        msg = f"not UTF-8: byte {error.start} cannot be decoded"
        raise JsonProblem(msg) from error
    except RecursionError as error:
        msg = "nested too deeply"
        raise JsonProblem(msg) from error
    except ValueError as error:  # integers over the interpreter's digit limit
        raise JsonProblem(str(error)) from error


def _no_nan(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124
    if isinstance(value, Mapping):
        return {key: _no_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_no_nan(item) for item in value]
    return value


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Return strict JSON with sorted keys, the form of every file gradestack writes in its own name.

    Numbers are written as Python writes them. NaN and infinities, which JSON lacks, become the texts ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"``. Non-ASCII text is kept, except in a value holding lone surrogates, which UTF-8
    cannot carry: that one is escaped.
    """
    separators = (",", ":") if indent is None else (",", ": ")
    options: dict[str, Any] = {"sort_keys": True, "indent": indent, "separators": separators, "allow_nan": False}
    try:
        text = json.dumps(value, ensure_ascii=False, **options)
    except ValueError:
        value = _no_nan(value)
        text = json.dumps(value, ensure_ascii=False, **options)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=True, **options)
    return text


def compact(value: Any) -> str:
    """Return one-line JSON in the value's own key order, for messages."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


@attrs.frozen
class Line:
    """One non-blank line of a file."""

    number: int
    """One-based."""
    data: bytes


def line_ranges(path: Path, size: int = LINE_SHARD_BYTES) -> Iterator[tuple[int, int, int]]:
    """Yield (first byte, end byte, one-based first line) of ranges of whole lines, each of about ``size`` bytes.

    An empty file yields nothing.
    """
    with path.open("rb") as file:
        start, line = 0, 1
        while block := file.read(size):
            if not block.endswith(b"\n"):
                block += file.readline()
            yield start, start + len(block), line
            start += len(block)
            line += block.count(b"\n")


def iter_lines(path: Path, start: int = 0, end: int | None = None, first_line: int = 1) -> Iterator[Line]:
    """Yield the non-blank lines of a byte range that starts at the beginning of a line (byte-order mark removed)."""
    with path.open("rb") as file:
        file.seek(start)
        position, number = start, first_line
        for data in file:
            if end is not None and position >= end:
                return
            position += len(data)
            text = data[3:] if number == 1 and data.startswith(b"\xef\xbb\xbf") else data
            if text.strip():
                yield Line(number, text)
            number += 1


@attrs.frozen
class Element:
    """One element of a JSON list in a file; exactly one of ``value`` and ``problem`` is meant."""

    ordinal: int
    line: int
    value: Any = None
    problem: str | None = None
    fatal: bool = False
    """True when nothing after this place can be read."""


class _Window:
    """Text of a file from the current place on, read further on demand."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self.text = ""
        self.at = 0
        self.line = 1
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
        self.line += self.text.count("\n", self.at, to)
        self.at = to


def _decode(window: _Window) -> tuple[Any, str | None]:
    """Decode the value at the window's place and move past it; (value, None) or (None, problem) without moving."""
    while True:
        try:
            value, end = _decoder.raw_decode(window.text, window.at)
        except json.JSONDecodeError as error:
            # A value cut by the window's edge fails at the edge, or in a string that never ends.
            cut = error.pos >= len(window.text.rstrip()) - _LONGEST_TOKEN or error.msg.startswith("Unterminated string")
            if cut and window.more():
                continue
            return None, f"not JSON: {error.msg}"
        except RecursionError:
            return None, "nested too deeply"
        except ValueError as error:
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


def _skip_value(window: _Window) -> bool:
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


def iter_list(path: Path) -> Iterator[Element]:
    """Yield the elements of a JSON list in a file, one at a time, without loading the file.

    An element that cannot be read is yielded with its problem, and reading goes on behind its closing bracket. When the
    place of the next element cannot be known (the file is cut off, a bracket is missing) the last element yielded is
    ``fatal``.

    Raises:
        DataError: The file is empty or does not hold a list.
    """
    with path.open("rb") as file:
        window = _Window(file)
        first = window.skip_space()
        if first != "[":
            what = "the file is empty" if not first else f"expected a JSON list, found {first!r}"
            msg = f"{path}:{window.line}: {what}"
            raise DataError(msg)
        window.advance(window.at + 1)
        yield from _elements(window)


def _elements(window: _Window) -> Iterator[Element]:
    ordinal = 0
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


def _trailing(window: _Window, ordinal: int) -> Iterator[Element]:
    window.advance(window.at + 1)
    if window.skip_space():
        yield Element(ordinal, window.line, problem="text after the end of the list", fatal=True)
