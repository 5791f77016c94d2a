"""Lines of files, found without loading the files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import attrs

from gradestack.errors import DataError
from gradestack.jsonio.foreign import require_text

SHARD_BYTES = 8 * 1024 * 1024
"""Size of a shard. Fixed, so that results never depend on the number of workers."""

_MARK = b"\xef\xbb\xbf"
_NEWLINE = 0x0A
_LONG = 1 << 18
"""Bytes of a line that is not held here while somebody works on it."""
_PIECE = 256 * 1024
"""Bytes read at once."""


@attrs.frozen
class Line:
    """One non-blank line of a file."""

    number: int
    """One-based."""
    data: bytes


def line_ranges(path: Path, size: int = SHARD_BYTES) -> Iterator[tuple[int, int, int]]:
    """Yield (first byte, end byte, one-based first line) of ranges of whole lines, each of about ``size`` bytes.

    An empty file yields nothing.

    Raises:
        DataError: The file is compressed, or of another encoding than UTF-8.
    """
    held = bytearray(min(size, _PIECE))  # one for all pieces: fresh memory takes longer to get than to fill
    piece = memoryview(held)
    with path.open("rb") as file:
        require_text(path, file)
        start, line = 0, 1
        while True:
            left, lines, whole = size, 0, True
            while left and (got := file.readinto(piece[:left])):
                left -= got
                lines += held.count(b"\n", 0, got)
                whole = held[got - 1] == _NEWLINE
            if not whole:
                lines += _skip(file)
            end = file.tell()
            if end == start:
                return
            yield start, end, line
            start, line = end, line + lines


def _skip(file: IO[bytes]) -> bool:
    """Go behind the line at hand, and return whether it ends as lines do: the last one may not."""
    piece = b""
    while piece[-1:] != b"\n" and (piece := file.readline(_LONG)):
        pass
    return piece != b""


def whole_line(file: IO[bytes]) -> bytes:
    """Return the next line, b"" at the end of the file.

    Pieces put together would take its size twice, and leave holes that what is made of it may or may not fit into: so
    the end of a long line is looked for first.
    """
    data = file.readline(_LONG)
    if len(data) == _LONG and data[-1] != _NEWLINE:
        start = file.tell() - _LONG
        del data
        _skip(file)
        end = file.tell()
        file.seek(start)
        data = file.read(end - start)
    return data


def numbered_lines(
    path: Path, start: int = 0, end: int | None = None, first_line: int = 1
) -> Iterator[tuple[int, bytes]]:
    """Yield (one-based number, bytes) of the non-blank lines of a byte range that starts at the beginning of a line.

    A byte-order mark is removed. Lines added to the file behind the range are not looked at.

    Raises:
        DataError: The file ends before the range does: it was cut short since the range was planned. Or it is
            compressed, or of another encoding than UTF-8.
    """
    number = first_line
    position = start
    last = sys.maxsize if end is None else end
    with path.open("rb", buffering=_PIECE) as file:
        if start:
            file.seek(start)
        else:
            require_text(path, file)
        for data in iter(partial(whole_line, file), b""):
            if position >= last:
                return
            position += len(data)
            if number == 1 and data.startswith(_MARK):
                data = data.removeprefix(_MARK)  # noqa: PLW2901
            if not data.isspace() and data:
                if len(data) < _LONG:
                    yield number, data
                else:
                    held = [data]
                    del data
                    yield number, held.pop()
            number += 1
        if end is not None and position < end:
            raise DataError(f"{path}: was cut short while it was read: it held {end} bytes, now {path.stat().st_size}")


def iter_lines(path: Path, start: int = 0, end: int | None = None, first_line: int = 1) -> Iterator[Line]:
    """Yield what :func:`numbered_lines` yields, as objects."""
    return (Line(number, data) for number, data in numbered_lines(path, start, end, first_line))
