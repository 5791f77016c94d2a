"""Records of a file, whether it is JSON Lines or holds one JSON list: one at a time, and ranges of them."""

from __future__ import annotations

import io
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from gradestack.jsonio.files import SHARD_BYTES, SPREAD, Documents, iter_lines, line_ranges
from gradestack.jsonio.lists import Element, Range, Walk, elements, iter_list, last_cut, list_ranges, open_list
from gradestack.jsonio.values import JsonProblem, loads

_FAR = 16 * 1024 * 1024
"""What is read of a file whose first records are long: conversations are."""

Layout = Literal["lines", "list", "either"]
"""How records lie in a file: one per line, in one JSON list, or in whichever of both the file begins as."""


def _holds_list(path: Path, layout: Layout) -> bool:
    if layout != "either":
        return layout == "list"
    with path.open("rb") as file:
        return _begins_list(file.read(4096))


def _begins_list(head: bytes) -> bool:
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
        part: One of ``record_ranges``.
        layout: How its records lie.
        decode: What makes a value of a line, or raises ``JsonProblem``.

    Raises:
        DataError: It holds no list where the layout is ``list``.
    """
    if _holds_list(path, layout):
        yield from iter_list(path, part)
        return
    part = part or Range()
    documents = Documents(within=part.start > 0)
    for each in iter_lines(path, part.start, part.end, part.first_line):
        number, line = each.number, each.data
        del each
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


def first_records(
    head: bytes, count: int, layout: Layout = "either", *, more: bool = False
) -> Iterator[tuple[Element, bytes]]:
    """Yield the first records at the beginning of a file, each with its text, or with that of the list it stands in.

    Nothing is yielded of a file of the other layout. Ordinals and lines are those of what is not blank. Where there is
    more of the file, a record that does not end within the beginning is not decoded: that takes all its memory, and
    fails.
    """
    text = head.removeprefix(BOM_UTF8).lstrip()
    listed = text.startswith(b"[")
    if layout == ("lines" if listed else "list"):
        return
    whole, cut = text, b""
    if more:
        whole, cut = (text[: last_cut(text)], text) if listed else whole_lines(text)
    number = 0
    if listed:
        for element in islice(elements(open_list(Walk(io.BytesIO(whole)), Path())) if whole else (), count):
            if more and element.fatal:
                break
            number += 1
            yield element, whole
    else:
        lines = filter(None, (line.strip() for line in whole.split(b"\n")))
        for number, line in enumerate(islice(lines, count), 1):
            yield _element(number, line, loads), line
    if cut.strip() and number < count:
        yield Element(number, number + 1, problem="too long to be looked at", fatal=True), cut


def whole_lines(text: bytes) -> tuple[bytes, bytes]:
    """Return the lines at the beginning of a longer file that end within it, and the beginning of one that does not."""
    whole, _, cut = text.rpartition(b"\n")
    return whole, cut


class Beginnings:
    """First records of files, far into them: many readers look at the same, which is decoded once while ``shared``."""

    _shared = False
    _state: object = None
    _listed = False
    _known: tuple[tuple[Element, bytes], ...] = ()
    _rest: Iterator[tuple[Element, bytes]] = iter(())

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Have the first records of one file at a time in memory, for all that ask for them meanwhile."""
        self._shared = True
        try:
            yield
        finally:
            self.__dict__.clear()

    def records(self, path: Path, count: int, layout: Layout) -> Sequence[tuple[Element, bytes]]:
        """Return what ``first_records`` yields of the first 16 MB of a file."""
        about = path.stat()
        state = (path, about.st_size, about.st_mtime_ns)
        if self._state != state:
            with path.open("rb") as file:
                text, more = file.read(_FAR), bool(file.read(1))
            self._state, self._listed, self._known = state, _begins_list(text), ()
            self._rest = first_records(text, sys.maxsize, more=more)
        self._known = (*self._known, *islice(self._rest, max(count - len(self._known), 0)))
        records = () if layout == ("lines" if self._listed else "list") else self._known[:count]
        if not self._shared:
            self.__dict__.clear()
        return records


beginnings = Beginnings()
