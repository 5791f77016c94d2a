"""Files of somebody else's: only regular ones are opened, only UTF-8 text is read, line by line."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from gradestack.errors import DataError
from gradestack.jsonio.values import TooLong, exceeds_limit
from gradestack.regular_files import open_regular, read_bounded


def read_regular(path: Path) -> bytes:
    """Return the content of a file that holds one JSON document.

    Of one above ``limits.record_bytes``, or 1 GiB, what ``loads`` refuses with the reason.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if exceeds_limit(size):
            return TooLong(b"", size)
    return read_bounded(path, _LARGEST_DOCUMENT)


_LARGEST_DOCUMENT = 1 << 30


_LOOKED_AT = 512  # bytes
_TAR = slice(257, 262)
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
}
_BINARY = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"SQLite format 3\x00": "SQLite",
    b"\x89HDF": "HDF5",
    b"%PDF": "PDF",
}


def encoding_problem(head: bytes) -> str | None:
    """Return what a file is by its beginning if not UTF-8 text, with what to do about it.

    Else None.
    """
    for first, name in _PACKED.items():
        if head.startswith(first):
            advice = (
                "an inspect .eval: run `inspect log dump`" if name == "zip" else "unpack it first"
            )
            return f"is a {name} archive, which is not supported; {advice}"
    if head[_TAR] == b"ustar":
        return "is a tar archive, which is not supported; unpack it first"
    for first, name in _BINARY.items():
        if head.startswith(first):
            return f"is a {name} file; write its records as JSON Lines first"
    encoding = json.detect_encoding(head[:_LOOKED_AT])
    stray = (
        encoding in {"utf-16-be", "utf-16-le"} and head[:4].count(0) < 2
    )  # a NUL among text of one byte each
    if not encoding.startswith("utf-8") and head.strip(b"\x00") and not stray:
        name = encoding.upper()
        return (
            f"is {name} text, and only UTF-8 is read: convert it first, `iconv -f {name} -t "
            "UTF-8 FILE`"
        )
    return None


def require_text(file: io.BufferedReader) -> None:
    """Refuse a file that is no UTF-8 text, open at its beginning, and leave it there."""
    problem = encoding_problem(file.read(_LOOKED_AT))
    file.seek(0)
    if problem is not None:
        raise DataError(f"{file.name}: {problem}")


SHARD_BYTES = (
    8 * 1024 * 1024
)  # size of a shard. Fixed, so that results never depend on the number of workers.

_MARK = b"\xef\xbb\xbf"
_LONG = 1 << 18  # bytes of a line that is not held here while somebody works on it
_BLOCK = (
    96 * 1024
)  # bytes of lines worked on together: they and what is made of them fit into a core's second cache
_PIECE = 256 * 1024  # bytes read at once


def open_lines(path: Path) -> io.BufferedReader:
    """Return a file opened for reading line by line.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    return open_regular(path, _PIECE)


class Line(msgspec.Struct, frozen=True):
    """One non-blank line of a file."""

    number: int  # one-based
    data: bytes


def line_ranges(path: Path, size: int = SHARD_BYTES) -> Iterator[tuple[int, int, int]]:
    """Yield (first byte, end byte, one-based first line) of ranges of whole lines, each of about
    ``size`` bytes.

    An empty file yields nothing.

    Raises:
        DataError: The file is compressed, or of another encoding than UTF-8.
    """
    with open_regular(path) as file:
        require_text(file)
        start, line = 0, 1
        whole = os.fstat(file.fileno()).st_size
        if 0 < whole <= size:  # whose lines need not be counted
            yield 0, whole, 1
            return
        while True:
            left, lines, last = size, 0, b"\n"
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                last = piece[-1:]
                lines += len(io.BytesIO(piece).readlines()) - (
                    last != b"\n"
                )  # count() looks at byte after byte
            if last != b"\n":
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
    """Return the next line, b"" at the end of the file, what ``loads`` refuses for one above the
    limit.

    Pieces put together would take its size twice, and leave holes that what is made of it may or
    may not fit into: so the end of a long line is looked for first.
    """
    data = file.readline(_LONG)
    if len(data) == _LONG and data[-1:] != b"\n":
        start = file.tell() - _LONG
        _skip(file)
        size = file.tell() - start
        if exceeds_limit(size):
            return TooLong(data, size)
        del data
        file.seek(start)
        data = file.read(size)
    return data


def line_blocks(
    file: io.BufferedReader,
    start: int = 0,
    end: int | None = None,
    first_line: int = 1,
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (one-based number of the first, lines) of a byte range that starts at the beginning of
    a line, of a file that ``open_lines`` has opened.

    Lines may come with their ends, blank ones too, about ``_BLOCK`` bytes together. A byte-order
    mark is removed. Lines added to the file behind the range are not looked at. In place of a line
    above ``limits.record_bytes`` there is one that ``loads`` refuses with the reason.

    Raises:
        DataError: The file is compressed, or of another encoding than UTF-8.
    """
    number, position = first_line, start
    last = sys.maxsize if end is None else end
    if start:
        file.seek(start)
    else:
        require_text(file)
    while data := file.read(min(_BLOCK, last - position)):
        position += len(data)
        lines = io.BytesIO(data).readlines()  # split() looks at byte after byte
        rest = b"" if data.endswith(b"\n") else lines.pop()
        if rest and position < last:
            begin = position - len(rest)
            ended = _skip(file)
            position = file.tell()
            size = position - begin - ended
            file.seek(begin)
            rest = TooLong(rest, size) if exceeds_limit(size) else file.read(size)
            file.seek(position)
        if rest:
            lines.append(rest)
        if number == 1:
            lines[0] = lines[0].removeprefix(_MARK)
        count = len(lines)
        del (
            data,
            rest,
        )  # which may be long, and are not needed while somebody works on the lines
        yield number, lines
        number += count


def iter_lines(
    path: Path, start: int = 0, end: int | None = None, first_line: int = 1
) -> Iterator[Line]:
    """Yield the non-blank lines of a range; see ``line_blocks``."""
    with open_lines(path) as file:
        for number, lines in line_blocks(file, start, end, first_line):
            lines.reverse()
            for at in range(len(lines)):
                if lines[-1] and not lines[-1].isspace():
                    yield Line(number + at, lines.pop().removesuffix(b"\n"))
                else:
                    lines.pop()
