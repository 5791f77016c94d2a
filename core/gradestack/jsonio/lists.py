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
import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from gradestack.errors import DataError
from gradestack.jsonio.files import SHARD_BYTES, require_text
from gradestack.jsonio.values import MARKS, JsonProblem, decoded_at, loads

_WINDOW = 1024 * 1024
_SPACE = re.compile(r"[ \t\n\r]*")
_STRUCTURE = re.compile(MARKS, re.DOTALL)
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_LONGEST_TOKEN = 16
"""No literal, escape or delimiter error caused by a cut is further than this from the cut."""
_NOT_UTF8 = "holds bytes that are not UTF-8"


class Element(msgspec.Struct, frozen=True):
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


WHITE = b" \t\n\r"
OPENING = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\n\r]*\[[ \t\n\r]*")
"""The beginning of a file that holds a list."""
_PIECE = 1024 * 1024
_LONGEST_ELEMENT = 64 * 1024 * 1024
"""No cut is looked for behind an element longer than this."""
_marks = re.compile(MARKS.encode(), re.DOTALL)
_space = re.compile(rb"[ \t\n\r]*")
_CLOSERS = b"]}"

_skim = msgspec.json.Decoder(msgspec.Raw).decode
_skim_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_REFUSED = (msgspec.MsgspecError, RecursionError, UnicodeError)
_TRAILING = "JSON is malformed: trailing characters (byte "
"""What msgspec says about text behind a value; the byte is the first one behind that is not white space, from 1."""
_TRUNCATED = "Input data was truncated"
_BOUNDARY = re.compile(rb'\}[ \t\n\r]*,[ \t\n\r]*\{[ \t\n\r]*(?:"[^"\\]{0,64}":)?')
"""What stands between two objects, with the first key of the second one."""
_GUESSES = 4
_SHORTEST_LEAP = 64 * 1024


class _Object(msgspec.Struct, gc=False):
    """Any object, of which nothing is kept."""


_skim_objects = msgspec.json.Decoder(list[_Object]).decode


def plain(text: bytes) -> bytes:
    """Return JSON as Python writes it with what msgspec refuses replaced; all brackets and quotes stay in place."""
    text = text.replace(b"NaN", b"0.0").replace(b"Infinity", b"0.000000")
    return text.replace(b"\\ud", b"\\u0").replace(b"\\uD", b"\\u0")  # surrogates, for the sake of lone ones


def lengths(text: bytes) -> list[int] | None:
    """Return the lengths in bytes of the elements of a whole list; None when msgspec refuses it.

    That it passes says nothing about its values but where they end.
    """
    try:
        return [memoryview(raw).nbytes for raw in _skim_list(text)]
    except _REFUSED:
        return None


def cuts(file: BinaryIO, size: int, *, hurried: bool = False) -> Iterator[tuple[int, int, int]]:
    """Yield places between two elements of a list, ``size`` bytes or more apart: offset, line, ordinal of the next one.

    Before such a place stand only objects and lists whose brackets are closed, with one comma between two of them and
    one at the end; behind it begins another. Nothing is yielded from the first place on where this does not hold.
    """
    walk = Walk(file, hurried=hurried)
    at = walk.first()
    last = row = 0
    while at is not None:
        leap = walk.leap(at, last + size)
        if leap is not None:
            at, objects = leap
            row += objects
            continue
        end = walk.behind(at)
        wanted = end is not None and walk.base + end >= last + size
        following = walk.character(end + 1) if end is not None and wanted else b"?"
        if end is None or not following:
            at = 0 if walk.more(at) else None
            continue
        if not walk.closed(at, end) or following not in b"?{[":
            return
        at = end + 1
        row += 1
        if wanted:
            last = walk.base + at
            yield last, walk.line(at), row


class Walk:
    """JSON text of a file, read on as it is walked through."""

    def __init__(self, file: BinaryIO, *, hurried: bool) -> None:
        self._file = file
        self._hurried = hurried
        self._replaced = False
        self._line, self._counted = 1, 0
        self._mark = b""
        self._failures = self._leapt = 0
        self.base = 0
        """The place of the text in the file."""
        self._take(file.read(_PIECE))

    def _take(self, text: bytes) -> None:
        self.text = plain(text) if self._replaced else text
        self._view = memoryview(self.text)

    def line(self, at: int) -> int:
        """Return the line number of a place, at or behind all places asked for before."""
        self._line += self.text.count(b"\n", self._counted, at)
        self._counted = at
        return self._line

    def first(self) -> int | None:
        """Return the place of the first element; None when there is no list."""
        opening = OPENING.match(self.text)
        return opening.end() if opening else None

    def more(self, at: int) -> bool:
        """Drop the text before ``at`` and append some; False at the end of the file or in a monstrous element."""
        kept = len(self.text) - at
        piece = self._file.read(max(_PIECE, kept))  # doubling keeps a huge element linear
        if not piece or kept > _LONGEST_ELEMENT:
            return False
        self.line(at)
        self._counted = 0
        self.base += at
        self._take(self.text[at:] + piece)
        return True

    def leap(self, at: int, goal: int) -> tuple[int, int] | None:
        """Return a place behind ``at`` and before ``goal`` where an object begins, and the number of objects between.

        The place is guessed, as two records of a file seldom meet in a way that is not that of the first two. Only the
        walk over everything in between shows whether the guess is right. None when there is nothing to be gained.
        """
        limit = min(len(self.text), goal - self.base)
        if not self._mark or self._failures >= _GUESSES or limit - max(at, self._leapt - self.base) < _SHORTEST_LEAP:
            return None
        self._leapt = self.base + limit
        found = limit
        for _ in range(_GUESSES):
            found = self.text.rfind(self._mark, at, found)
            if found < 0:
                break
            try:
                objects = len(_skim_objects(b"".join((b"[", self._view[at : found + 1], b"]"))))
            except _REFUSED:
                continue
            return found + self._mark.index(b",") + 1, objects
        self._failures += 1
        return None

    def behind(self, at: int) -> int | None:
        """Return the place of what stands behind the value at ``at``, white space left out; None: not in this text.

        Of something that cannot be walked over, its own place is returned.
        """
        try:
            _skim(self._view[at:])
        except _REFUSED as error:
            said = str(error)
            place = said[len(_TRAILING) : -1]
            if said.startswith(_TRAILING) and place.isdecimal():
                return at + int(place) - 1
            if said == _TRUNCATED:
                return None
        else:
            return None
        if self._hurried:
            return at
        if self._replaced:
            return self._behind_brackets(at)
        self._replaced = True
        self._take(self.text)
        return self.behind(at)

    def _behind_brackets(self, at: int) -> int | None:
        """Return what :meth:`behind` returns, going by brackets alone."""
        if self.character(at) not in (b"{", b"["):
            return at
        depth = 0
        for match in _marks.finditer(self.text, at):
            mark = match[0]
            if mark == b'"':  # brackets behind it are text
                return None
            depth += (mark in b"[{") - (mark in b"]}")
            if depth == 0:
                return self.solid(match.end())
        return None

    def solid(self, at: int) -> int | None:
        """Return the place of the first character from ``at`` on that is not white space."""
        space = _space.match(self.text, at)
        found = space.end() if space else at
        return found if found < len(self.text) else None

    def character(self, at: int) -> bytes:
        """Return the first character from ``at`` on that is not white space, empty at the end of the text."""
        found = self.solid(at)
        return b"" if found is None else self.text[found : found + 1]

    def closed(self, at: int, end: int) -> bool:
        """Return whether an object or a list stands between two places, followed by a comma."""
        if end <= at or self.text[end] != ord(","):
            return False
        closing = end - 1
        if self.text[closing] not in _CLOSERS:
            closing = at + len(self.text[at:end].rstrip(WHITE)) - 1
        if not self._mark:
            boundary = _BOUNDARY.match(self.text, closing)
            self._mark = boundary[0] if boundary else b""
        return self.text[closing] in _CLOSERS


_AT_ONCE = 2 * SHARD_BYTES
"""A range without an end that is longer than this is not loaded, but read over the sliding window."""
_COMMA = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")


class Range(msgspec.Struct, frozen=True):
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
                yield msgspec.structs.replace(begin, end=offset)
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


_BOM = b"\xef\xbb\xbf"


class Member(msgspec.Struct, frozen=True, kw_only=True):
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
        ranges = tuple(_element_ranges(scan, size))
        end = None if ranges and ranges[-1].end is None else scan.place()
        return Member(key=key, start=start, end=end, line=line, ranges=ranges)
    end = scan.place() if scan.skip() else None
    return Member(key=key, start=start, end=end, line=line)


def _element_ranges(scan: _Scan, size: int) -> Iterator[Range]:
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
