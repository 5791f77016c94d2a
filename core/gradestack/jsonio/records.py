"""Records of a file, whether it is JSON Lines or holds one JSON list.

One at a time, and ranges of them.

Why no event parser (ijson and the like) for lists: its C backend turns a lone surrogate into "?"
without a word and refuses NaN, Infinity and integers over 64 bits, all of which ``json`` reads and
recorded runs contain. msgspec finds where a value ends without building anything, in what it
refuses the brackets are counted; each value is decoded alone.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, tee
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import msgspec

from gradestack.errors import DataError
from gradestack.interpreter import IN_FORCE
from gradestack.jsonio.files import SHARD_BYTES, iter_lines, line_ranges, require_text
from gradestack.jsonio.values import MARKS, JsonProblem, TooLong, exceeds_limit, loads, too_long
from gradestack.regular_files import open_regular

_PIECE = 1024 * 1024  # bytes read at once, at least
_LONGEST_TOKEN = 16  # no literal and no escape is longer
_marks = re.compile(MARKS.encode(), re.DOTALL)
_signs = re.compile(rb'["\[\]{}]')
_inside = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_number = re.compile(rb"[-+.\deE]+")
_decoder = json.JSONDecoder()
_space = re.compile(rb"[ \t\n\r]*")
_opening = re.compile(rb'(:\s*)?\{\s*("[^"\\]{0,200}")(?=\s*:)')
_LONGEST_KEY = 400  # bytes of an object's bracket and first key, with white space
_BRACKETS = {b"[", b"{"}
_skim = msgspec.json.Decoder(msgspec.Raw).decode
_TRAILING = "JSON is malformed: trailing characters (byte "
"""What msgspec says about text behind a value.

The byte is the first one behind that is not white space, from 1.
"""
_TOO_LONG = -1
_TRUNCATED = "Input data was truncated"


class Element(msgspec.Struct, frozen=True):
    """One element of a JSON list in a file; exactly one of ``value`` and ``problem`` is meant."""

    ordinal: int
    line: int | None
    value: Any = None
    problem: str | None = None
    fatal: bool = False  # true when nothing after this place can be read


class Range(msgspec.Struct, frozen=True):
    """Some elements of a list, in bytes of its file."""

    start: int = 0  # the first byte behind a comma between two elements, or of the file
    end: int | None = (
        None  # the first byte behind the comma that ends the range; None means the end of the file
    )
    first_line: int = 1  # line number (one-based) of the first byte
    first_row: int = 0  # ordinal (zero-based) of the first element


def _for_msgspec(text: bytes) -> bytes:
    """Return JSON with what only Python reads replaced, lone surrogates too.

    All brackets and quotes stay in place.
    """
    text = text.replace(b"NaN", b"0.0").replace(b"Infinity", b"0.000000")
    return text.replace(b"\\ud", b"\\u0").replace(b"\\uD", b"\\u0")


class Walk:
    """A place in JSON text, which is read on as it is walked through."""

    def __init__(self, file: BinaryIO, part: Range | None = None) -> None:
        part = part or Range()
        file.seek(part.start)
        self._file = file
        self._end = part.end
        self._base = part.start
        self._line, self._counted = part.first_line, 0
        self.text = self._skimmed = b""
        self._odd = False
        self.is_cut_off = False  # whether the value here is right as far as the file goes
        self._most = IN_FORCE.get().limits.record_bytes or sys.maxsize
        self.at = 0
        while len(self.text) < len(BOM_UTF8) and self.more():
            pass
        if not part.start and self.text.startswith(BOM_UTF8):
            self.at = len(BOM_UTF8)

    def more(self) -> bool:
        """Drop the text before the place and append some; False at the end."""
        left = sys.maxsize if self._end is None else self._end - self._base - len(self.text)
        size = max(_PIECE, len(self.text) - self.at)  # doubling keeps a huge element linear
        piece = self._file.read(min(size, left))
        if not piece:
            return False
        self._base, self._line, self._counted = self.place, self.line, 0
        self.text = self.text[self.at :] + piece
        self.at = 0
        self._skimmed = _for_msgspec(self.text) if self._odd else self.text
        return True

    @property
    def place(self) -> int:
        """The offset in the file."""
        return self._base + self.at

    @property
    def line(self) -> int:
        """The line number, from 1."""
        self._line += self.text.count(b"\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def peek(self) -> bytes:
        """Move past white space and return the character there, empty at the end."""
        while True:
            space = _space.match(self.text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.text):
                return self.text[self.at : self.at + 1]
            if not self.more():
                return b""

    def passes(self, mark: bytes) -> bool:
        """Move past white space and a mark, if it stands behind it, and return whether it does."""
        found = self.peek() == mark
        self.at += found
        return found

    def describe(self) -> str:
        """Return the character here as messages show it."""
        return repr(self.text[self.at : self.at + 4].decode(errors="surrogateescape")[:1])

    def end(self) -> int | None:
        """Return the place behind the value here.

        None of what has no brackets and is no JSON, or is cut off.

        Of one above ``limits.record_bytes`` no more is read: -1.
        """
        while (
            len(self.text) - self.at < _LONGEST_TOKEN or _number.fullmatch(self.text, self.at)
        ) and self.more():
            pass
        while True:
            truncated = True
            try:
                _skim(memoryview(self._skimmed)[self.at :])
            except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
                words = str(error)
                place = words[len(_TRAILING) : -1]
                if words.startswith(_TRAILING) and place.isdecimal():
                    return self.at + int(place) - 1
                truncated = words == _TRUNCATED
            if truncated and len(self.text) - self.at > self._most:
                return _TOO_LONG
            if truncated and self.more():
                continue
            self.is_cut_off = truncated
            if not truncated and not self._odd:
                self._odd, self._skimmed = True, _for_msgspec(self.text)
                continue
            if self.text[self.at : self.at + 1] not in _BRACKETS:
                return None
            if (end := self._closing()) is not None or truncated or not self.more():
                return end

    def _closing(self) -> int | None:
        depth = 0
        for match in _marks.finditer(self.text, self.at):
            mark = match[0]
            if mark == b'"':  # brackets behind it are text
                return None
            depth += (mark in b"[{") - (mark in b"]}")
            if depth == 0:
                return match.end()
        return None

    def _pass_over(self) -> bool:
        """Move past a long value by its quotes and brackets alone.

        False where it has none, or is cut off.
        """
        if self.text[self.at : self.at + 1] not in _BRACKETS:
            return False
        depth, quoted = 0, False
        while True:
            if quoted and (inside := _inside.match(self.text, self.at)):
                self.at = inside.end()
                quoted = self.text[self.at : self.at + 1] != b'"'
                self.at += not quoted
            elif sign := _signs.search(self.text, self.at):
                self.at = sign.end()
                quoted = sign[0] == b'"'
                depth += (sign[0] in b"[{") - (sign[0] in b"]}")
                if depth == 0:
                    return True
            else:
                self.at = len(self.text)
            if (
                len(self.text) - self.at < _LONGEST_TOKEN
                and not self.more()
                and self.at == len(self.text)
            ):
                return False

    def skip(self) -> bool:
        """Move past a value; False where that cannot be done."""
        end = self.end()
        if end == _TOO_LONG:
            return self._pass_over()
        self.at = self.at if end is None else end
        return end is not None

    def value(self) -> tuple[Any, str | None, bool]:
        """Return the value here, or None with the problem, and whether it was passed."""
        end = self.end()
        if end == _TOO_LONG or (end is not None and end - self.at > self._most):
            begin, passed = self.place, self._pass_over()
            return None, too_long(max(self.place - begin, self._most)), passed
        text, problem, value = self.text[self.at : end], None, None
        try:  # of a value without an end, what stands behind it may not be UTF-8
            value = loads(text if end is not None else text.decode(errors="surrogateescape"))
        except JsonProblem as error:
            problem = str(error)
        if end is None and problem is not None:
            return None, problem + " (the list is cut off here)" * (text[:1] in _BRACKETS), False
        self.at += len(text)
        return value, problem, True


def opened(walk: Walk, path: Path, bracket: bytes = b"[") -> Walk:
    """Move past the bracket that opens a list, or an object."""
    if not walk.passes(bracket):
        kind = "a JSON list" if bracket == b"[" else "a JSON object"
        what = f"expected {kind}, found {walk.describe()}" if walk.peek() else "the file is empty"
        raise DataError(f"{path}:{walk.line}: {what}")
    return walk


def elements(walk: Walk, row: int = 0, end: int = sys.maxsize) -> Iterator[Element]:
    """Yield elements up to a place, from behind a list's opening bracket or in front of an element
    on.

    Lists that follow the first are read on. What cannot be read counts by the records in it.
    """
    problem: str | None
    is_first = True  # of its list: no comma stands before it
    while walk.place < end:
        char = walk.peek()
        if is_first and char == b"]":
            walk.at += 1
            if not walk.passes(b"["):
                yield from _unread(walk, row, "text after the end of the list")
                return
            continue
        if not char:
            problem = "the list is cut off here: no closing ']'"
            yield Element(row, walk.line, problem=problem, fatal=True)
            return
        line = walk.line
        value, problem, passed = walk.value()
        if not passed:
            yield from _unread(walk, row, problem, is_cut_off=walk.is_cut_off)
            return
        yield Element(row, line, value, problem)
        del value
        row += 1
        is_first, char = False, walk.peek()
        if walk.place >= end:
            return
        if char == b",":
            walk.at += 1
        elif char == b"]":
            is_first = True
        elif not char:
            yield Element(row, walk.line, problem="the list is cut off here", fatal=True)
            return
        else:
            problem = f"expected ',' or ']' between elements, found {walk.describe()}"
            yield from _unread(walk, row, problem)
            return


def _unread(
    walk: Walk, row: int, problem: str | None, *, is_cut_off: bool = False
) -> Iterator[Element]:
    """Yield an element with a problem for each record in the rest of a file.

    Records are told by their first key: each object that begins with the first key of the first
    object there. What is cut off within a record holds no other.
    """
    if not walk.peek():
        return
    line, key = walk.line, None
    yield Element(row, line, problem=problem, fatal=True)
    if is_cut_off:
        return
    problem = f"not read: it stands behind what is broken in line {line}"
    while True:
        opening = _opening.search(walk.text, walk.at)
        while opening is not None:
            walk.at = opening.end()
            is_nested = opening[1] is not None
            if key is None:
                key = opening[2]
            elif opening[2] == key and not is_nested:
                row += 1
                yield Element(row, walk.line, problem=problem, fatal=True)
            opening = _opening.search(walk.text, walk.at)
        walk.at = max(walk.at, len(walk.text) - _LONGEST_KEY)
        if not walk.more():
            return


def iter_list(path: Path, part: Range | None = None) -> Iterator[Element]:
    """Yield the elements of a JSON list in a file, or of one of its ranges, one at a time, without
    loading the file.

    An element that cannot be read is yielded with its problem, and reading goes on behind its
    closing bracket. When the place of the next element cannot be known (the file is cut off, a
    bracket is missing) the last element yielded is ``fatal``.

    Args:
        path: The file.
        part: One of ``list_ranges``; the elements of all of them, in order, are those of the file.

    Raises:
        DataError: The file is empty, no UTF-8 text, or does not hold a list.
    """
    part = part or Range()
    with open_regular(path) as file:
        if part.start:
            walk = Walk(file, part)
        else:
            require_text(file)
            walk = opened(Walk(file, part), path)
        yield from elements(walk, part.first_row, sys.maxsize if part.end is None else part.end)


def list_ranges(path: Path, size: int = SHARD_BYTES, part: Range | None = None) -> Iterator[Range]:
    """Yield ranges of whole elements, each of about ``size`` bytes.

    A file of at most that size, or its part, is one.

    A list is cut only in front of an object or a list, and only where all elements before are
    objects or lists whose brackets are closed, with one comma between two of them: there, a reader
    of the whole file would go on as well, whatever it thinks of the values. Behind anything else,
    and where there is no list, the rest is one range.
    """
    begin = part or Range()
    with open_regular(path) as file:
        require_text(file)
        if os.fstat(file.fileno()).st_size > size:
            walk = Walk(file, part)
            for following in _cuts(walk, begin, size) if part or walk.passes(b"[") else ():
                yield msgspec.structs.replace(begin, end=following.start)
                begin = following
    yield msgspec.structs.replace(begin, end=part and part.end)


def _cuts(walk: Walk, begin: Range, size: int) -> Iterator[Range]:
    """Yield the ranges of a list behind the first, with open ends.

    Stop at its closing bracket or what is broken.
    """
    row, brackets = begin.first_row, True
    while (first := walk.peek()) and walk.skip():
        row += 1
        brackets = brackets and first in _BRACKETS
        far = walk.peek() == b"," and walk.place >= begin.start + size
        if not walk.passes(b","):
            return
        following = Range(walk.place, None, walk.line, row) if far else begin
        if far and brackets and walk.peek() in _BRACKETS:
            yield (begin := following)


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an object in a file: its key, and the bytes of its value."""

    key: str
    start: int
    end: int | None
    """One past its last byte, or white space behind it.

    None: it could not be walked over, and the rest is unknown.
    """
    line: int  # line number (one-based) of its first byte
    ranges: tuple[Range, ...] | None = None
    """Of a list, its elements in ranges for ``iter_list``, none of an empty one.

    None of what is no list.
    """

    def read(self, path: Path) -> bytes:
        """Return the text of its value; what ``loads`` refuses for one above the limit."""
        with open_regular(path) as file:
            size = (file.seek(0, os.SEEK_END) if self.end is None else self.end) - self.start
            file.seek(self.start)
            return TooLong(file.read(1), size) if exceeds_limit(size) else file.read(size)


def iter_members(
    path: Path, size: int = SHARD_BYTES, part: Range | None = None
) -> Iterator[Member]:
    """Yield the members of the object in a file, or at a part's start, up to the first that cannot
    be walked over.

    Args:
        path: The file.
        size: Bytes of a range of a list's elements, at least.
        part: One of ``list_ranges``, whose first element is meant.

    Raises:
        DataError: The file is empty, or holds no object.
    """
    with open_regular(path) as file:
        walk, more = opened(Walk(file, part), path, b"{"), True
        while more and (key := _key(walk)) is not None:
            opening, start, line = walk.peek(), walk.place, walk.line
            ranges = tuple(_element_ranges(walk, size)) if opening == b"[" else None
            whole = walk.skip() if ranges is None else not ranges or ranges[-1].end is not None
            yield Member(
                key=key, start=start, end=walk.place if whole else None, line=line, ranges=ranges
            )
            more = whole and walk.passes(b",")


def _key(walk: Walk) -> str | None:
    if walk.peek() != b'"':
        return None
    key, problem, _ = walk.value()
    return key if problem is None and walk.passes(b":") else None


def _element_ranges(walk: Walk, size: int) -> Iterator[Range]:
    walk.at += 1
    begin = Range(walk.place, None, walk.line)
    if walk.passes(b"]"):
        return
    for following in _cuts(walk, begin, size):
        yield msgspec.structs.replace(begin, end=following.start)
        begin = following
    end = walk.place if walk.peek() == b"]" else None
    yield msgspec.structs.replace(begin, end=end)
    walk.at += end is not None


_FAR = 16 * 1024 * 1024  # what is read of a file whose first records are long: conversations are

Layout = Literal["lines", "list", "either"]
"""How records lie in a file.

One per line, in one JSON list, or in whichever of both the file begins as.
"""


def _holds_list(path: Path, layout: Layout) -> bool:
    if layout != "either":
        return layout == "list"
    with open_regular(path) as file:
        return begins_list(file)


def begins_list(file: io.BufferedReader) -> bool:
    """Return whether the records of a file, open at its beginning, lie in one JSON list."""
    return _is_list(file.peek(4096)[:4096])


def _is_list(head: bytes) -> bool:
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"[")


def record_ranges(path: Path, layout: Layout = "either") -> Iterator[Range]:
    """Yield ranges of whole records, each of about ``SHARD_BYTES``."""
    if _holds_list(path, layout):
        yield from list_ranges(path, SHARD_BYTES)
        return
    for start, end, line in line_ranges(path, SHARD_BYTES):
        yield Range(start, end, line, line - 1)


def iter_records(
    path: Path,
    part: Range | None = None,
    layout: Layout = "either",
    decode: Callable[[bytes], Any] = loads,
) -> Iterator[Element]:
    """Yield the records of a file, or of one of its ranges.

    One that cannot be decoded is yielded with its problem.

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
    for each in iter_lines(path, part.start, part.end, part.first_line):
        number, line = each.number, each.data
        del each
        element = _element(number, line, decode)
        count = 1 if element.problem is None else _objects_in(line)
        del line  # which may be long, and is not needed while somebody works on what it holds
        for _ in range(count):
            yield element


def _objects_in(line: bytes) -> int:
    """Return how many objects stand one behind the other in a line that cannot be read; 1 at
    least.
    """
    text, position, count = line.decode(errors="surrogateescape").strip(), 0, 0
    while text.startswith("{", position):
        count += 1
        try:
            _, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        while text[position : position + 1].isspace():
            position += 1
    return max(1, count)


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
    """Yield the first records at the beginning of a file, each with its text, or with that of the
    list it stands in.

    Nothing is yielded of a file of the other layout. Ordinals and lines are those of what is not
    blank. Where there is more of the file, a record that does not end within the beginning is said
    to be too long.
    """
    if layout != "either" and _is_list(head) != (layout == "list"):
        return
    if not isinstance(head, Head):
        yield from islice(_records_in(head, more=more), count)
        return
    head.near[more], records = tee(head.near.get(more) or _records_in(head, more=more))
    yield from islice(records, count)


def _records_in(head: bytes, *, more: bool) -> Iterator[tuple[Element, bytes]]:
    text = head.removeprefix(BOM_UTF8).lstrip()
    number, cut = 0, b""
    if text.startswith(b"["):
        for element in elements(Walk(io.BytesIO(text[1:]))):
            if more and element.fatal:
                cut = text
                break
            number += 1
            yield element, text
    else:
        whole, cut = whole_lines(text) if more else (text, b"")
        lines = filter(None, (line.strip() for line in whole.split(b"\n")))
        for number, line in enumerate(lines, 1):
            yield _element(number, line, loads), line
    if cut.strip():
        yield Element(number, number + 1, problem="too long to be looked at", fatal=True), cut


def whole_lines(text: bytes) -> tuple[bytes, bytes]:
    """Return the lines at the beginning of a longer file that end within it, and the beginning of
    one that does not.
    """
    whole, _, cut = text.rpartition(b"\n")
    return whole, cut


class Head(bytes):
    """The beginning of a file, which many readers look at: its records are decoded once."""

    near: dict[bool, Iterator[tuple[Element, bytes]]]
    """The first records in it, by whether there is more of the file."""
    far: Iterator[tuple[Element, bytes]] | None = None
    """The first records far into the file, which are decoded once for all readers, as far as one
    asks for them.
    """

    def __new__(cls, text: bytes) -> Self:  # noqa: D102
        head = super().__new__(cls, text)
        head.near = {}
        return head


def far_records(path: Path, head: bytes, count: int) -> Iterator[tuple[Element, bytes]]:
    """Return what ``first_records`` yields of the first 16 MB of a file."""
    far = head.far if isinstance(head, Head) else None
    if far is None:
        with open_regular(path) as file:
            text, more = file.read(_FAR), bool(file.read(1))
        far = first_records(text, sys.maxsize, more=more)
    far, records = tee(far)
    if isinstance(head, Head):
        head.far = far
    return islice(records, count)


_LARGEST_CELL = 2**31 - 1
_CSV = {
    "unexpected end": 'has a quote (") that is never closed',
    "expected after": 'has text behind a closing quote ("); inside a quoted cell, quotes are '
    "doubled",
}


class CsvProblem(ValueError):
    """Why the row of CSV that begins on a line, and with it all behind, cannot be read."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(f"the row that begins here {what}")
        self.line = line


def csv_rows(lines: Iterable[str], **form: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV, blank ones too, each with the line it begins on.

    ``form`` is as ``csv.reader`` has it.

    Unless ``strict``, quotes that do not match are guessed at, and may merge rows. CsvProblem: a
    row cannot be read.
    """
    rows = csv.reader(lines, **{"strict": True, **form})
    while True:
        line, usual = (
            rows.line_num + 1,
            csv.field_size_limit(_LARGEST_CELL),
        )  # others in the process go by theirs
        try:
            cells = next(rows, None)
        except csv.Error as error:
            why = next(
                (what for said, what in _CSV.items() if said in str(error)), f"is no CSV: {error}"
            )
            raise CsvProblem(why, line) from error
        finally:
            csv.field_size_limit(usual)
        if cells is None:
            return
        yield line, cells
