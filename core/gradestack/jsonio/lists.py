"""JSON lists in files: their elements one at a time, and ranges of elements that can be read independently.

Why not an event parser (ijson and the like): its C backend turns a lone surrogate into "?" without a word and refuses
NaN, Infinity and integers over 64 bits, all of which :mod:`json` reads and recorded runs contain. Two ways lead to the
same elements instead. The slow one decodes element by element over a sliding window of text, with the standard
library's values, and knows how to go on behind an element that is broken. The fast one lets msgspec find where the
elements end, without building anything, and decodes each of them with :func:`.values.loads`; whatever it
refuses is left to the slow one, from that place on.
"""

from __future__ import annotations

import io
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import attrs

from gradestack.errors import DataError
from gradestack.jsonio.boundaries import OPENING, cuts, lengths
from gradestack.jsonio.foreign import require_text
from gradestack.jsonio.lines import SHARD_BYTES
from gradestack.jsonio.tolerant import Element, Window, elements, open_list
from gradestack.jsonio.values import JsonProblem, loads

__all__ = ["Element", "Range", "iter_list", "list_ranges"]

_PIECE = 1024 * 1024
"""A whole file is read in ranges of this size."""
_AT_ONCE = 2 * SHARD_BYTES
"""A range without an end that is longer than this is not loaded, but read over the sliding window."""
_COMMA = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")


@attrs.frozen
class Range:
    """Some elements of a list, in bytes of its file."""

    start: int = 0
    """The first byte behind a comma between two elements, or of the file."""
    end: int | None = None
    """The first byte behind the comma that ends the range; None means the end of the file."""
    first_line: int = 1
    """Line number (one-based) of the first byte."""
    first_row: int = 0
    """Ordinal (zero-based) of the first element."""


def iter_list(path: Path, part: Range | None = None) -> Iterator[Element]:
    """Yield the elements of a JSON list in a file, or of one of its ranges, one at a time, without loading the file.

    An element that cannot be read is yielded with its problem, and reading goes on behind its closing bracket. When the
    place of the next element cannot be known (the file is cut off, a bracket is missing) the last element yielded is
    ``fatal``.

    Args:
        path: The file.
        part: One of :func:`list_ranges`; the elements of all of them, in order, are those of the file.

    Raises:
        DataError: The file is empty, no UTF-8 text, or does not hold a list.
    """
    for each in _ranges(path, _PIECE, hurried=True) if part is None else (part,):
        yield from _range(path, each)


def list_ranges(path: Path, size: int = SHARD_BYTES) -> Iterator[Range]:
    """Yield ranges of whole elements, each of about ``size`` bytes; a file of at most that size is one range.

    A list is cut only in front of an object or a list, and only where all elements before are objects or lists whose
    brackets are closed, with one comma between two of them: there, a reader of the whole file would go on as well,
    whatever it thinks of the values. From the first place on where anything else stands, the rest is one range. A file
    that holds no list is one range too.
    """
    return _ranges(path, size)


def _ranges(path: Path, size: int, *, hurried: bool = False) -> Iterator[Range]:
    begin = Range()
    with path.open("rb") as file:
        require_text(path, file)
        if os.fstat(file.fileno()).st_size > size:
            for offset, line, row in cuts(file, size, hurried=hurried):
                yield attrs.evolve(begin, end=offset)
                begin = Range(offset, None, line, row)
    yield begin


def _range(path: Path, part: Range) -> Iterator[Element]:
    """Yield the elements of a range."""
    encoding = "utf-8" if part.start else "utf-8-sig"
    with path.open("rb") as file:
        if part.start:
            file.seek(part.start)
        else:
            require_text(path, file)
        if part.end is None and os.fstat(file.fileno()).st_size - part.start > _AT_ONCE:
            window = Window(file, part.first_line, encoding)
            if not part.start:
                open_list(window, path)
            yield from elements(window, part.first_row)
            return
        text = _text(file, part)
    found = lengths(text.removeprefix(BOM_UTF8))
    if found is not None:
        yield from _known(text, found, part)
        return
    window = Window(io.BytesIO(text), part.first_line, encoding)
    open_list(window, path)
    yield from elements(window, part.first_row)


def _text(file: BinaryIO, part: Range) -> bytes:
    """Return a range, at whose beginning the file stands, as the text of a list of its own."""
    opening = b"[" if part.start else b""
    if part.end is None:
        return opening + file.read()
    text = file.read(part.end - part.start)
    if len(text) < part.end - part.start:
        raise DataError(
            f"{file.name}: was cut short while it was read: it held {part.end} bytes, now {part.start + len(text)}"
        )
    end = len(text) - text.endswith(b",")
    return b"".join((opening, memoryview(text)[:end], b"]"))


def _known(text: bytes, sizes: list[int], part: Range) -> Iterator[Element]:
    """Yield the elements of a list that is all JSON, as far as brackets go, and whose elements have these lengths."""
    opening = OPENING.match(text)
    start = opening.end() if opening else 0
    line = part.first_line + text.count(b"\n", 0, start)
    for row, length in enumerate(sizes, part.first_row):
        element = text[start : start + length]
        try:
            value = loads(element if element.isascii() else element.decode())
        except (JsonProblem, UnicodeDecodeError):
            yield from elements(Window(io.BytesIO(text[start:]), line), row)
            return
        yield Element(row, line, value)
        comma = _COMMA.match(text, start + length)
        if comma:
            line += text.count(b"\n", start, comma.end())
            start = comma.end()
