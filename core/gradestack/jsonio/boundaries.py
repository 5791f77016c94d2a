"""Where the elements of a JSON list begin and end, found without building a value.

msgspec walks over JSON several times faster than any decoder, and says where the value it walked over ended. It is
stricter than :mod:`json`: what only the standard library reads is replaced first, byte by byte. What it still refuses
is walked over by its brackets alone, as the reader of broken elements does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from gradestack.jsonio.depth import MARKS

WHITE = b" \t\n\r"
OPENING = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\n\r]*\[[ \t\n\r]*")
"""The beginning of a file that holds a list."""
_PIECE = 1024 * 1024
_LONGEST_ELEMENT = 64 * 1024 * 1024
"""No cut is looked for behind an element longer than this."""
_marks = re.compile(MARKS.encode(), re.DOTALL)
_space = re.compile(rb"[ \t\n\r]*")
_COMMA = ord(",")
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
        if end <= at or self.text[end] != _COMMA:
            return False
        closing = end - 1
        if self.text[closing] not in _CLOSERS:
            closing = at + len(self.text[at:end].rstrip(WHITE)) - 1
        if not self._mark:
            boundary = _BOUNDARY.match(self.text, closing)
            self._mark = boundary[0] if boundary else b""
        return self.text[closing] in _CLOSERS
