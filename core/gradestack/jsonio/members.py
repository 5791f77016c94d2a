"""The members of a JSON object in a file: where each value stands, and where a list among them can be cut.

Formats that keep their records in a list inside one object (``{"info": …, "runs": [...]}``) are read range by range
this way; no more of the file is held than one member, or one element of a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from gradestack.errors import DataError
from gradestack.jsonio.boundaries import Walk
from gradestack.jsonio.lines import SHARD_BYTES
from gradestack.jsonio.lists import Range
from gradestack.jsonio.values import JsonProblem, loads

_BOM = b"\xef\xbb\xbf"


@attrs.frozen(kw_only=True)
class Member:
    """A member of an object in a file: its key, and the bytes of its value."""

    key: str
    start: int
    end: int | None
    """One past its last byte, or white space behind it; None: it could not be walked over, and the rest is unknown."""
    line: int
    """Line number (one-based) of its first byte."""
    ranges: tuple[Range, ...] | None = None
    """Of a list, its elements in ranges for :func:`.iter_list`, none of an empty one; None of what is no list."""

    def read(self, path: Path) -> bytes:
        """Return the text of its value."""
        with path.open("rb") as file:
            file.seek(self.start)
            return file.read() if self.end is None else file.read(self.end - self.start)


def iter_members(path: Path, size: int = SHARD_BYTES) -> Iterator[Member]:
    """Yield the members of the object a file holds, in file order, up to the first that cannot be walked over.

    Args:
        path: The file.
        size: Bytes of a range of a list's elements, at least.

    Raises:
        DataError: The file is empty, or holds no object.
    """
    with path.open("rb") as file:
        scan = _Scan(Walk(file, hurried=False))
        first = scan.peek()
        if first != b"{":
            what = (
                "the file is empty"
                if not first
                else f"expected a JSON object, found {first.decode(errors='replace')!r}"
            )
            raise DataError(f"{path}:{scan.line()}: {what}")
        scan.at += 1
        while scan.peek() not in {b"}", b""}:
            member = _member(scan, size)
            if member is None:
                return
            yield member
            if member.end is None or scan.peek() != b",":
                return
            scan.at += 1


def _member(scan: _Scan, size: int) -> Member | None:
    """Return the member at the scan's place and move past it; None where there is none."""
    key = scan.key()
    if key is None:
        return None
    opening = scan.peek()
    start, line = scan.place(), scan.line()
    if opening == b"[":
        ranges = tuple(_ranges(scan, size))
        end = None if ranges and ranges[-1].end is None else scan.place()
        return Member(key=key, start=start, end=end, line=line, ranges=ranges)
    end = scan.place() if scan.skip() else None
    return Member(key=key, start=start, end=end, line=line)


def _ranges(scan: _Scan, size: int) -> Iterator[Range]:
    """Yield the elements of the list at the scan's place in ranges, moving past it; the last is open if it breaks."""
    scan.at += 1
    start, line, first, row = scan.place(), scan.line(), 0, 0
    if scan.peek() == b"]":
        scan.at += 1
        return
    while scan.skip():
        row += 1
        mark = scan.peek()
        if mark == b"]":
            yield Range(start, scan.place(), line, first)
            scan.at += 1
            return
        if mark != b",":
            break
        scan.at += 1
        if scan.place() - start >= size:
            yield Range(start, scan.place(), line, first)
            start, line, first = scan.place(), scan.line(), row
    yield Range(start, None, line, first)


class _Scan:
    """A place in a walk."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self.at = len(_BOM) if walk.text.startswith(_BOM) else 0

    def place(self) -> int:
        """Return the offset in the file."""
        return self._walk.base + self.at

    def line(self) -> int:
        """Return the line number; never asked for behind where it was asked for before."""
        return self._walk.line(self.at)

    def peek(self) -> bytes:
        """Move past white space and return the character there, empty at the end of the file."""
        while (found := self._walk.solid(self.at)) is None:
            if not self._more():
                return b""
        self.at = found
        return self._walk.text[found : found + 1]

    def skip(self) -> bool:
        """Move past a value and the white space behind it; False where it cannot be walked over, without moving."""
        self.peek()
        while (end := self._walk.behind(self.at)) is None:
            if not self._more():
                return False
        if end <= self.at:
            return False
        self.at = end
        return True

    def key(self) -> str | None:
        """Move past a key and its colon and return it; None where there is none."""
        if self.peek() != b'"':
            return None
        while (end := self._walk.behind(self.at)) is None:
            if not self._more():
                return None
        text = self._walk.text[self.at : end]
        if self._walk.text[end : end + 1] != b":":
            return None
        self.at = end + 1
        try:
            return str(loads(text))
        except JsonProblem:
            return None

    def _more(self) -> bool:
        if not self._walk.more(self.at):
            return False
        self.at = 0
        return True
