"""Files of somebody else's: only regular ones are opened, only UTF-8 text is read, line by line."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

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
_UNPACK = "is a {} archive, which is not supported; unpack it first"
_CONVERT = "is a {} file; write its records as JSON Lines first"
_FORMS = {
    b"\x1f\x8b": _UNPACK.format("gzip"),
    b"BZh": _UNPACK.format("bzip2"),
    b"\xfd7zXZ\x00": _UNPACK.format("xz"),
    b"\x28\xb5\x2f\xfd": _UNPACK.format("zstd"),
    b"\x04\x22\x4d\x18": _UNPACK.format("lz4"),
    b"PK\x03\x04": (
        "is a zip archive, which is not supported; an inspect .eval: run `inspect log dump`"
    ),
    b"PAR1": _CONVERT.format("Parquet"),
    b"ARROW1": _CONVERT.format("Arrow"),
    b"SQLite format 3\x00": _CONVERT.format("SQLite"),
    b"\x89HDF": _CONVERT.format("HDF5"),
    b"%PDF": _CONVERT.format("PDF"),
    b"\xd0\xcf\x11\xe0": "is an Excel workbook; save it as CSV or Parquet",
}
"""What begins with these bytes, and what to do about it."""
_OFFICE = (b"[Content_Types].xml", b"docProps/", b"xl/")
"""How the first name in a workbook of Excel begins."""
_NAME_IN_ZIP = 30  # where the first name stands


def encoding_problem(head: bytes) -> str | None:
    """Describe a file that is no UTF-8 text, by its beginning, with what to do about it.

    Else None.
    """
    if head.startswith(b"PK") and head.startswith(_OFFICE, _NAME_IN_ZIP):
        return "is an Excel workbook; save it as CSV or Parquet"
    for first, problem in _FORMS.items():
        if head.startswith(first):
            return problem
    if head[_TAR] == b"ustar":
        return _UNPACK.format("tar")
    encoding = json.detect_encoding(head[:_LOOKED_AT])
    # a NUL among text of one byte each
    is_stray = encoding in {"utf-16-be", "utf-16-le"} and head[:4].count(0) < 2
    if encoding.startswith("utf-8") or is_stray or not head.strip(b"\x00"):
        return None
    name = encoding.upper()
    command = f"`iconv -f {name} -t UTF-8 FILE`"
    return f"is {name} text, and only UTF-8 is read: convert it first, {command}"


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


def line_ranges(path: Path, size: int = SHARD_BYTES) -> Iterator[tuple[int, int, int]]:
    """Yield (first byte, end byte, one-based first line) of ranges of whole lines, each of about
    ``size`` bytes.

    An empty file yields nothing.

    Raises:
        DataError: The file is compressed, or of another encoding than UTF-8.
    """
    with open_regular(path) as file:
        require_text(file)
        file_size = os.fstat(file.fileno()).st_size
        if 0 < file_size <= size:  # whose lines need not be counted
            yield 0, file_size, 1
            return
        start, line = 0, 1
        while True:
            left, lines, piece = size, 0, b""
            while left and (more := file.read(min(left, _PIECE))):
                piece = more
                left -= len(piece)
                lines += _count_ends(piece)
            if piece and not piece.endswith(b"\n"):
                lines += _skip(file)
            end = file.tell()
            if end == start:
                return
            yield start, end, line
            start, line = end, line + lines


def _count_ends(data: bytes) -> int:
    """Count the ends of lines: ``count()`` looks at byte after byte, ``replace()`` does not."""
    return len(data) - len(data.replace(b"\n", b""))


def _skip(file: IO[bytes]) -> bool:
    """Go behind the line at hand, and return whether it ends as lines do: the last one may not."""
    piece = b""
    while piece[-1:] != b"\n" and (piece := file.readline(_LONG)):
        pass
    return piece != b""


def _line_at(file: IO[bytes], start: int, *, with_end: bool = False) -> bytes:
    """Return the line that begins at a place; for a line above the limit, a ``TooLong``.

    Pieces put together would take its size twice, and leave holes that what is made of it may or
    may not fit into: so its end is looked for first.
    """
    file.seek(start)
    ended = _skip(file)
    behind = file.tell()
    size = behind - start - ended
    if exceeds_limit(size):
        return TooLong(b"", size)
    file.seek(start)
    line = file.read(size + ended if with_end else size)
    file.seek(behind)
    return line


def whole_line(file: IO[bytes]) -> bytes:
    """Return the next line with its end, b"" at the end of the file.

    In place of a line above ``limits.record_bytes`` there is one that ``loads`` refuses.
    """
    data = file.readline(_LONG)
    if len(data) < _LONG or data.endswith(b"\n"):
        return data
    return _line_at(file, file.tell() - _LONG, with_end=True)


def line_blocks(
    file: io.BufferedReader,
    start: int = 0,
    end: int | None = None,
    first_line: int = 1,
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (number of the first line, lines) for the blocks of a byte range of a file.

    ``open_lines`` has opened the file, and the range starts at the beginning of a line. Numbers
    start at 1.

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
        if not data.endswith(b"\n") and position < last:
            begin = position - len(lines.pop())
            del data  # which may be long, and is not needed while somebody works on the lines
            lines.append(_line_at(file, begin))
            position = file.tell()
        if number == 1:
            lines[0] = lines[0].removeprefix(_MARK)
        count = len(lines)
        yield number, lines
        number += count
