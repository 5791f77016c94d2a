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
import os
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from gradestack.errors import DataError
from gradestack.interpreter import IN_FORCE
from gradestack.jsonio.files import (
    SHARD_BYTES,
    line_blocks,
    line_ranges,
    open_lines,
    require_text,
)
from gradestack.jsonio.values import JsonProblem, TooLong, exceeds_limit, loads
from gradestack.regular_files import open_regular

_PIECE = 1024 * 1024  # bytes read at once, at least
_LONGEST_TOKEN = 16  # no literal and no escape is longer
_sign = re.compile(rb'(["\[\]{}])')
_inside = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+("?)', re.DOTALL)  # of a text, and its end
_DEPTHS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_number = re.compile(rb"[-+.\deE]+")
_constant = re.compile(rb"NaN|-?Infinity")  # which Python reads, and msgspec does not
_space = re.compile(rb"[ \t\n\r]*")
_opening = re.compile(rb'(:\s*)?\{\s*("[^"\\]{0,200}")(?=\s*:)')
_LONGEST_KEY = 400  # bytes of an object's bracket and first key, with white space
_BRACKETS = {b"[", b"{"}
_skim = msgspec.json.Decoder(msgspec.Raw).decode
_TRAILING = "JSON is malformed: trailing characters (byte "
"""What msgspec says about text behind a value.

The byte is the first one behind that is not white space, from 1.
"""
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


def _skim_problem(text: bytes | memoryview) -> str:
    """Return the complaint of msgspec about a text that is not exactly one value; "" of one
    value.
    """
    try:
        _skim(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        return str(error)
    return ""


def is_cut_off(text: bytes) -> bool:
    """Return whether a text begins as an object or a list in JSON does, and ends too early."""
    return text[:1] in _BRACKETS and _skim_problem(text) == _TRUNCATED


def line_problem(line: bytes, problem: JsonProblem) -> str:
    """Return the problem of a line that is not JSON; a line that was cut off gets its own text."""
    return str(problem) if line.endswith(b"\n") or not is_cut_off(line) else _CUT_OFF


_CUT_OFF = "the line is cut off: the file was cut, or is still being written"


class Walk:
    """A place in JSON text, which is read on as it is walked through."""

    def __init__(self, file: BinaryIO, part: Range | None = None) -> None:
        """Start reading a range of a file; skip a byte order mark at the start of the file."""
        part = part or Range()
        file.seek(part.start)
        self._file = file
        self._end = sys.maxsize if part.end is None else part.end
        self._base = part.start
        self._line, self._counted = part.first_line, 0
        self.text = b""
        self.is_cut_off = False  # whether the value here is right as far as the file goes
        self._most = IN_FORCE.get().limits.record_bytes or sys.maxsize
        self.at = 0
        while len(self.text) < len(BOM_UTF8) and self.more():
            pass
        if not part.start and self.text.startswith(BOM_UTF8):
            self.at = len(BOM_UTF8)

    def more(self) -> bool:
        """Drop the text before the place and append some; False at the end."""
        size = max(_PIECE, len(self.text) - self.at)  # doubling keeps a huge element linear
        piece = self._file.read(min(size, self._end - self._base - len(self.text)))
        if not piece:
            return False
        self._base, self._line, self._counted = self.place, self.line, 0
        self.text = self.text[self.at :] + piece
        self.at = 0
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
            if self.at < len(self.text) or not self.more():
                return self.text[self.at : self.at + 1]

    def passes(self, mark: bytes) -> bool:
        """Move past white space and a mark, if it stands behind it, and return whether it does."""
        is_there = self.peek() == mark
        self.at += is_there
        return is_there

    def describe(self) -> str:
        """Return the character here as messages show it."""
        return repr(self.text[self.at : self.at + 4].decode(errors="surrogateescape")[:1])

    def take(self) -> bytes | None:
        """Return the text of the value that begins here and move past it.

        None if no end of it is found. A value above ``limits.record_bytes`` is returned as
        ``TooLong``, which ``loads`` refuses and says why.
        """
        begin = self.place
        end = self._skimmed_end()
        if end is None:
            constant = _constant.match(self.text, self.at)
            end = constant.end() if constant else self._closing_end()
        to = len(self.text) if end is None else end
        # looking for the end may have dropped the beginning of a long value
        size, text = self._base + to - begin, self.text[self.at : to]
        if size > self._most:
            self.at = to
            return TooLong(text, size)
        if end is None:
            return None
        self.at = to
        return text

    def _skimmed_end(self) -> int | None:
        """Return the place behind the value here.

        None of what msgspec refuses, what is cut off, and what is too long.
        """
        while True:
            text = memoryview(self.text)[self.at :]
            problem = _skim_problem(text)
            byte = problem.removeprefix(_TRAILING)[:-1]
            self.is_cut_off = problem in {"", _TRUNCATED}
            if byte.isdecimal():
                return self.at + int(byte) - 1
            is_open = self.is_cut_off or len(text) < _LONGEST_TOKEN or _number.fullmatch(text)
            if not is_open or len(text) > self._most:
                return None
            if not self.more():
                return None if problem else len(self.text)

    def _closing_end(self) -> int | None:
        """Return the place behind the text, list or object here by its quotes and brackets alone.

        None of anything else, and of what is cut off. Of what is too long only the end is held.
        """
        if self.text[self.at : self.at + 1] not in {*_BRACKETS, b'"'}:
            return None
        depth, quoted, at = 0, False, self.at
        while True:
            match = (_inside.match if quoted else _sign.search)(self.text, at)
            sign = match[1] if match else b""
            at = match.end() if match else len(self.text)
            if sign:
                depth += _DEPTHS.get(sign, 0)
                quoted ^= sign == b'"'
                if depth == 0 and not quoted:
                    return at
                continue
            self.at = at if at - self.at > self._most else self.at
            ahead = at - self.at
            if not self.more():
                return None
            at = ahead

    def value(self) -> tuple[Any, str | None, bool]:
        """Decode the value at this position and move past it.

        Returns:
            The value, or None; the problem with it, if any; whether this position is now behind the
            value. It is not where the value has no end.
        """
        text = self.take()
        # of a value without an end, what stands behind it may not be UTF-8
        rest = self.text[self.at :].decode(errors="surrogateescape") if text is None else ""
        try:
            return loads(rest if text is None else text), None, True
        except JsonProblem as error:
            problem = str(error)
            if rest.startswith(("[", "{")):
                problem += " (the list is cut off here)"
            return None, problem, text is not None


def opened(walk: Walk, path: Path, bracket: bytes = b"[") -> Walk:
    """Move past the bracket that opens a list, or an object."""
    if walk.passes(bracket):
        return walk
    what = "the file is empty"
    if walk.peek():
        kind = "list" if bracket == b"[" else "object"
        what = f"expected a JSON {kind}, found {walk.describe()}"
    raise DataError(f"{path}:{walk.line}: {what}")


def elements(walk: Walk, row: int = 0, end: int = sys.maxsize) -> Iterator[Element]:
    """Yield elements up to a place, from behind a list's opening bracket or in front of an element
    on.

    Lists that follow the first are read on. What cannot be read counts by the records in it.
    """
    problem: str | None = None
    is_first = True  # of its list: no comma stands before it
    while walk.place < end:
        char = walk.peek()
        if is_first and char == b"]":
            walk.at += 1
            if walk.passes(b"["):
                continue
            if walk.peek():
                yield from _unread(walk, row, "text after the end of the list")
            return
        problem = "the list is cut off here: no closing ']'"
        line = walk.line
        if char:
            value, problem, is_complete = walk.value()
        if not char or not is_complete:
            yield from _unread(walk, row, problem)
            return
        yield Element(row, line, value, problem)
        del value
        row += 1
        char = walk.peek()
        is_first = char == b"]"
        if walk.place < end and not is_first and not walk.passes(b","):
            problem = "the list is cut off here"
            if char:
                problem = f"expected ',' or ']' between elements, found {walk.describe()}"
            yield from _unread(walk, row, problem)
            return


def _unread(walk: Walk, row: int, problem: str | None) -> Iterator[Element]:
    """Yield an element with a problem for each record in the rest of a file.

    Records are told by their first key: each object that begins with the first key of the first
    object there. What is cut off within a record holds no other.
    """
    line, key = walk.line, None
    yield Element(row, line, problem=problem, fatal=True)
    problem = f"not read: it follows what is broken in line {line}"
    while not walk.is_cut_off:
        while (opening := _opening.search(walk.text, walk.at)) is not None:
            walk.at = opening.end()
            is_nested = opening[1] is not None
            if key is None:
                key = opening[2]
            elif opening[2] == key and not is_nested:
                row += 1
                yield Element(row, walk.line, problem=problem, fatal=True)
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
            if part or walk.passes(b"["):
                *closed, begin = _ranges(walk, begin, size)
                yield from closed
    yield msgspec.structs.replace(begin, end=part and part.end)


def _ranges(walk: Walk, begin: Range, size: int) -> Iterator[Range]:
    """Yield the ranges of a list up to its closing bracket or what is broken.

    The last has no end.
    """
    row, brackets = begin.first_row, True
    while (first := walk.peek()) and walk.take() is not None:
        row += 1
        brackets = brackets and first in _BRACKETS
        far = walk.peek() == b"," and walk.place >= begin.start + size
        if not walk.passes(b","):
            break
        following = Range(walk.place, None, walk.line, row) if far else begin
        if far and brackets and walk.peek() in _BRACKETS:
            yield msgspec.structs.replace(begin, end=following.start)
            begin = following
    yield begin


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
            ranges = _element_ranges(walk, size) if opening == b"[" else None
            is_complete = not ranges or ranges[-1].end is not None
            if ranges is None:
                is_complete = walk.take() is not None
            yield Member(
                key=key,
                start=start,
                end=walk.place if is_complete else None,
                line=line,
                ranges=ranges,
            )
            more = is_complete and walk.passes(b",")


def _key(walk: Walk) -> str | None:
    if walk.peek() != b'"':
        return None
    key, problem, _ = walk.value()
    return key if problem is None and walk.passes(b":") else None


def _element_ranges(walk: Walk, size: int) -> tuple[Range, ...]:
    """Return the ranges of the list here; the end of the last is None where it is broken."""
    walk.at += 1
    if walk.passes(b"]"):
        return ()
    *closed, last = _ranges(walk, Range(walk.place, None, walk.line), size)
    if walk.passes(b"]"):
        last = msgspec.structs.replace(last, end=walk.place - 1)
    return (*closed, last)


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
    return _is_list(file.peek()[:4096])


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
    with open_lines(path) as file:
        for first, lines in line_blocks(file, part.start, part.end, part.first_line):
            lines.reverse()  # a long one is not held while somebody works on what it holds
            for number in range(first, first + len(lines)):
                if lines[-1] and not lines[-1].isspace():
                    yield _element(number, lines.pop(), decode)
                else:
                    lines.pop()


def _element(number: int, line: bytes, decode: Callable[[bytes], Any]) -> Element:
    """Decode a line of JSON Lines into an element, with the problem if it is broken."""
    try:
        return Element(number - 1, number, decode(line.removesuffix(b"\n")))
    except JsonProblem as problem:
        return Element(number - 1, number, problem=line_problem(line, problem))
    except RecursionError:
        return Element(number - 1, number, problem="nested too deeply")


_FIRST, _FIRST_FAR = 100, 20  # records of a beginning that are decoded
_HEAD = 64 * 1024  # bytes of a beginning that is not the whole file
_FAR_DOCUMENT = 1024 * 1024  # bytes of a document that are decoded to recognise it
_ALIKE = 10  # records of a beginning that readers look at, however alike they are


class Head(bytes):
    """The beginning of a file, which many readers look at: its records are decoded once."""

    far: list[tuple[Element, bytes]] | None = None
    """The first records far into the file, once a reader has asked for them."""
    document: tuple[Element, bytes] | None = None
    """The document that the file is, and its text, once a reader has asked for them."""

    @cached_property
    def is_list(self) -> bool:
        """Whether the file begins as a JSON list."""
        return _is_list(self)

    @cached_property
    def is_document(self) -> bool:
        """Whether the file is one document: an object over several lines."""
        if not self.removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
            return False
        lines = [element.value for element, _ in islice(_records_in(self), 2)]
        return len(lines) > 1 and not any(isinstance(line, dict) for line in lines)

    @cached_property
    def records(self) -> list[tuple[Element, bytes]]:
        """The first records in it, each with its text."""
        return list(islice(_records_in(self), _FIRST))

    @cached_property
    def varied_records(self) -> list[tuple[Element, bytes]]:
        """The first records, and later ones only where their keys or ``type`` are new."""
        varied = self.records[:_ALIKE]
        forms = {_form_of(element) for element, _ in varied}
        for element, text in self.records[_ALIKE:]:
            form = _form_of(element)
            if form not in forms:
                forms.add(form)
                varied.append((element, text))
        return varied


def _form_of(element: Element) -> tuple[Any, ...]:
    """Return the features that alike records share: ``type`` and keys, or the Python type."""
    value = element.value
    if not isinstance(value, dict):
        return (type(value), element.problem is None)
    kind = value.get("type")
    return (kind if isinstance(kind, str) else None, *value)


def first_records(
    head: bytes, count: int, layout: Layout = "either"
) -> Iterator[tuple[Element, bytes]]:
    """Yield the first records at the beginning of a file, each with its text, or with that of the
    list it stands in.

    Nothing of a file that does not begin as the layout has it. Behind the first ten records of a
    ``Head``, those that are like earlier ones are left out.
    """
    beginning = head if isinstance(head, Head) else None
    if layout != "either":
        is_list = beginning.is_list if beginning else _is_list(head)
        if is_list != (layout == "list"):
            return
    yield from islice(beginning.varied_records if beginning else _records_in(head), count)


def _records_in(head: bytes) -> Iterator[tuple[Element, bytes]]:
    """Yield the records at the beginning of a JSON list or JSON Lines, each with its text."""
    text = head.removeprefix(BOM_UTF8).lstrip()
    if text.startswith(b"["):
        yield from ((element, text) for element in elements(Walk(io.BytesIO(text[1:]))))
        return
    lines = filter(None, (line.strip() for line in text.split(b"\n")))
    yield from ((_element(number, line, loads), line) for number, line in enumerate(lines, 1))


def whole_lines(text: bytes) -> tuple[bytes, bytes]:
    """Return the lines at the beginning of a longer file that end within it, and the beginning of
    one that does not.
    """
    complete_lines, _, cut = text.rpartition(b"\n")
    return complete_lines, cut


def far_records(path: Path, head: bytes, count: int) -> list[tuple[Element, bytes]]:
    """Return the first records in the first 16 MB of a file, as ``first_records`` yields them."""
    far = head.far if isinstance(head, Head) else None
    if far is None:
        cut = b""
        with open_regular(path) as file:
            text = file.read(_FAR)
            if file.read(1) and not _is_list(text):  # decoding what is cut off takes its memory
                text, cut = whole_lines(text)
        far = list(islice(_records_in(text), _FIRST_FAR))
        if cut:
            far.append((Element(len(far), None, problem="too long to be looked at"), cut))
    if isinstance(head, Head):
        head.far = far
    return far[:count]


def far_document(path: Path, head: Head) -> tuple[Element, bytes]:
    """Return the document that a file is, or what is wrong with its first 1 MB, and their text."""
    if head.document is None:
        text: bytes = head
        if len(head) >= _HEAD:
            with suppress(OSError), open_regular(path) as file:  # reading it will say so
                text = file.read(_FAR_DOCUMENT)
        head.document = _element(1, text.removeprefix(BOM_UTF8), loads), text
    return head.document


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
        line, usual_size = (
            rows.line_num + 1,
            csv.field_size_limit(_LARGEST_CELL),
        )  # others in the process go by theirs
        try:
            cells = next(rows, None)
        except csv.Error as error:
            why = next(
                (reason for beginning, reason in _CSV.items() if beginning in str(error)),
                f"is no CSV: {error}",
            )
            raise CsvProblem(why, line) from error
        finally:
            csv.field_size_limit(usual_size)
        if cells is None:
            return
        yield line, cells
