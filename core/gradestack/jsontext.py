"""JSON in and out: values as the standard library reads them, lines found in files without loading the files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gradestack.errors import DataError

LINE_SHARD_BYTES = 8 * 1024 * 1024
"""Size of a shard of a line-oriented file. Fixed, so that results never depend on the number of workers."""


_MARK = b"\xef\xbb\xbf"
_NEWLINE = 0x0A
_PIECE = 256 * 1024
"""Bytes read at once."""


class JsonProblem(ValueError):
    """Text that is not JSON, or too deeply nested to be read. The message says where and what."""


_decode = msgspec.json.Decoder().decode


def loads(text: str | bytes) -> Any:
    """Return the value :func:`json.loads` returns.

    msgspec decodes what it can: it accepts less (no NaN, no lone surrogates, no number beyond a float), and what
    it accepts has the same value. Everything else is the standard library's.

    Raises:
        JsonProblem: Not JSON, not UTF-8, or nested too deeply for the interpreter.
    """
    try:
        return _decode(text)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        return _loads_slowly(text)


def _loads_slowly(text: str | bytes) -> Any:
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


@cache
def _encoder(indent: int | None, *, escaped: bool) -> json.JSONEncoder:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.JSONEncoder(ensure_ascii=escaped, sort_keys=True, indent=indent, separators=separators, allow_nan=False)


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Return strict JSON with sorted keys, the form of every file gradestack writes in its own name.

    Numbers are written as Python writes them. NaN and infinities, which JSON lacks, become the texts ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"``. Non-ASCII text is kept, except in a value holding lone surrogates, which UTF-8
    cannot carry: that one is escaped.
    """
    encoder = _encoder(indent, escaped=False)
    try:
        text = encoder.encode(value)
    except ValueError:
        value = _no_nan(value)
        text = encoder.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _encoder(indent, escaped=True).encode(value)
    return text


_compact = json.JSONEncoder(ensure_ascii=False).encode


def compact(value: Any) -> str:
    """Return one-line JSON in the value's own key order, for messages."""
    try:
        return _compact(value)
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
    held = bytearray(min(size, _PIECE))  # one for all pieces: fresh memory takes longer to get than to fill
    piece = memoryview(held)
    with path.open("rb") as file:
        start, line = 0, 1
        while True:
            left, lines, whole = size, 0, True
            while left and (got := file.readinto(piece[:left])):
                left -= got
                lines += held.count(b"\n", 0, got)
                whole = held[got - 1] == _NEWLINE
            rest = b"" if whole else file.readline()
            end = start + size - left + len(rest)
            if end == start:
                return
            yield start, end, line
            start, line = end, line + lines + rest.endswith(b"\n")


def numbered_lines(
    path: Path, start: int = 0, end: int | None = None, first_line: int = 1
) -> Iterator[tuple[int, bytes]]:
    """Yield (one-based number, bytes) of the non-blank lines of a byte range that starts at the beginning of a line.

    A byte-order mark is removed. Lines added to the file behind the range are not looked at.

    Raises:
        DataError: The file ends before the range does: it was cut short since the range was planned.
    """
    number = first_line
    position = start
    last = sys.maxsize if end is None else end
    with path.open("rb", buffering=_PIECE) as file:
        file.seek(start)
        for data in file:
            if position >= last:
                return
            position += len(data)
            if number == 1 and data.startswith(_MARK):
                data = data.removeprefix(_MARK)  # noqa: PLW2901
            if not data.isspace() and data:
                yield number, data
            number += 1
        if end is not None and position < end:
            msg = f"{path}: was cut short while it was read: it held {end} bytes, now {path.stat().st_size}"
            raise DataError(msg)


def iter_lines(path: Path, start: int = 0, end: int | None = None, first_line: int = 1) -> Iterator[Line]:
    """Yield what :func:`numbered_lines` yields, as objects."""
    return (Line(number, data) for number, data in numbered_lines(path, start, end, first_line))
