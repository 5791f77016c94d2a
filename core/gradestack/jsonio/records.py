"""Records of a file, whether it is JSON Lines or holds one JSON list: one at a time, and ranges of them."""

from __future__ import annotations

import io
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from gradestack.jsonio.documents import SPREAD, Documents
from gradestack.jsonio.lines import SHARD_BYTES, line_ranges, numbered_lines
from gradestack.jsonio.lists import Range, iter_list, list_ranges
from gradestack.jsonio.tolerant import Element, Window, elements, open_list
from gradestack.jsonio.values import JsonProblem, loads

Layout = Literal["lines", "list", "either"]
"""How records lie in a file: one per line, in one JSON list, or in whichever of both the file begins as."""


def _holds_list(path: Path, layout: Layout) -> bool:
    if layout != "either":
        return layout == "list"
    with path.open("rb") as file:
        head = file.read(4096)
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"[")


def record_ranges(path: Path, layout: Layout = "either") -> Iterator[Range]:
    """Yield ranges of whole records, each of about ``SHARD_BYTES``."""
    if _holds_list(path, layout):
        yield from list_ranges(path, SHARD_BYTES)
        return
    for start, end, line in line_ranges(path, SHARD_BYTES):
        yield Range(start, end, line, line - 1)


def iter_records(
    path: Path, part: Range | None = None, layout: Layout = "either", decode: Callable[[bytes], Any] = loads
) -> Iterator[Element]:
    """Yield the records of a file, or of one of its ranges; one that cannot be decoded is yielded with its problem.

    A document over several lines among records of one line each is one that cannot be decoded.

    Args:
        path: The file.
        part: One of :func:`record_ranges`.
        layout: How its records lie.
        decode: What makes a value of a line, or raises :class:`JsonProblem`.

    Raises:
        DataError: It holds no list where the layout is ``list``.
    """
    if _holds_list(path, layout):
        yield from iter_list(path, part)
        return
    part = part or Range()
    documents = Documents(within=part.start > 0)
    for number, line in numbered_lines(path, part.start, part.end, part.first_line):
        if documents.inside and documents.go_on(line):
            continue
        found = _element(number, line, decode)
        if found.problem is not None and documents.begin(line):
            found = Element(number - 1, number, problem=SPREAD)
        del line  # which may be long, and is not needed while somebody works on what it holds
        yield found


def _element(number: int, line: bytes, decode: Callable[[bytes], Any]) -> Element:
    try:
        return Element(number - 1, number, decode(line))
    except JsonProblem as problem:
        return Element(number - 1, number, problem=str(problem))
    except RecursionError:
        return Element(number - 1, number, problem="nested too deeply")


def first_records(head: bytes, count: int, layout: Layout = "either") -> Iterator[tuple[Element, bytes]]:
    """Yield the first records at the beginning of a file, each with its text, or with that of the list it stands in.

    Nothing is yielded of a file of the other layout. Ordinals and lines are those of what is not blank.
    """
    text = head.removeprefix(BOM_UTF8).lstrip()
    listed = text.startswith(b"[")
    if layout == ("lines" if listed else "list"):
        return
    if listed:
        window = Window(io.BytesIO(text))
        open_list(window, Path())
        yield from ((element, text) for element in islice(elements(window, 0), count))
        return
    lines = filter(None, (line.strip() for line in text.split(b"\n")))
    yield from ((_element(number, line, loads), line) for number, line in enumerate(islice(lines, count), 1))
