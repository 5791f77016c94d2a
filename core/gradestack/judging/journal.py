"""The journal: replies on record, a line for each request and vote, sorted by both.

Readers map the file into memory and search it by halves, so that processes share it and none holds it. One writer at a
time, under a lock, adds lines to ``JOURNAL.part``; at its end both are joined.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gradestack.errors import ConfigError, DataError, reading
from gradestack.jsonio.values import dumps

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

_KEY = b',"key":"'
"""Stands before the key of a line in canonical form, and nowhere within a text, whose quotes are escaped."""
_KEY_SIZE = 64
_GUESSES = 9  # of where a key stands, more than a journal of hashes needs
Place = tuple[str, int]  # key of a request, and vote


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """What a reply took, as far as the server says."""

    input: int | None = None
    output: int | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a model said."""

    content: str | None = None
    finish: str = "stop"
    """``stop``, ``length``, ``content_filter``, ``tool_calls`` …"""
    refusal: str | None = None
    model: str | None = None
    """As the server names it."""
    usage: Tokens = Tokens()


class Line(Reply, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A reply as the journal has it."""

    key: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    vote: Annotated[int, Meta(ge=0, lt=1000)]
    v: Literal[1] = 1
    mode: str = "plain"
    """Form in which it was asked for: ``json_schema``, ``json_object`` or ``plain``."""
    rejected: list[dict[str, str | None]] = []
    """Replies before it that were asked again: ``code``, ``content``, ``mode``."""

    @property
    def place(self) -> Place:
        """What it is filed under."""
        return self.key, self.vote

    def encode(self) -> bytes:
        """Return its canonical form, with the end of the line."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return dumps({k: v for k, v in data.items() if k != "rejected" or v}).encode() + b"\n"


_line = msgspec.json.Decoder(Line)
_reply = msgspec.json.Decoder(Reply)


def _lines(path: Path, *, part: bool = False) -> Iterator[tuple[str, Line, bytes]]:
    with reading(path), path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                line = _line.decode(raw)
            except ValueError as error:
                if part or not raw.strip():
                    continue
                why = f"not a judgement ({error}); remove the line and ask again"
                raise DataError(f"{path}:{number}: {why}") from error
            yield f"{path}:{number}", line, raw


class Journal:
    """The replies of one file, read without holding them."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # a worker may stand in another directory
        self.shown = path
        self._data: mmap.mmap | bytes | None = None

    def __reduce__(self) -> tuple[type[Journal], tuple[Path]]:
        return Journal, (self.path,)

    @property
    def data(self) -> mmap.mmap | bytes:
        """The file, mapped when it is first read."""
        if self._data is None:
            with reading(self.shown), self.path.open("rb") as file:
                empty = not os.fstat(file.fileno()).st_size
                self._data = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._data

    def check(self) -> None:
        """Check that it is there, and that every line is whole, in its place and contradicts no other."""
        if not self.path.is_file():
            raise ConfigError(
                f"{self.shown}: no judgements are on record; `gradestack judge` asks for them and writes this file"
            )
        self._data = None
        before, last = ("", -1), b""
        for at, line, raw in _lines(self.shown):
            if line.place == before and raw != last:
                raise DataError(f"{at}: contradicts the line before it, which has the same key and vote")
            key = raw[raw.find(_KEY) + len(_KEY) :][:_KEY_SIZE]
            if line.place < before or key != line.key.encode() or raw[-1:] != b"\n":
                how = f"`gradestack judgements merge {self.shown} -o {self.shown}` writes it anew"
                raise DataError(f"{at}: lines are not sorted or not in canonical form; {how}")
            before, last = line.place, raw

    def replies(self, keys: Sequence[str]) -> list[Reply | None]:
        """Return the reply to each of several requests; the n-th time a key comes up it is vote n."""
        known: dict[str, list[Reply | None]] = {}
        found = []
        for key in keys:
            if key not in known:
                known[key] = self._votes(key)
            votes = known[key]
            found.append(votes.pop(0) if votes else None)
        return found

    def _votes(self, key: str) -> list[Reply | None]:
        """Return all replies to a request by vote; None for a vote that is not on record."""
        data, wanted = self.data, key.encode()
        found: list[Reply | None] = []
        try:
            low = self._place(wanted)
            while low < len(data):
                end = data.find(b"\n", low)
                line = data[low : end if end >= 0 else len(data)]
                at = line.find(_KEY) + len(_KEY)
                if line[at : at + _KEY_SIZE] != wanted:
                    break
                vote = int(line[line.rindex(b":") + 1 : -1])
                found += [None] * (vote + 1 - len(found))
                found[vote] = _reply.decode(line)
                low += len(line) + 1
        except ValueError as error:
            raise DataError(f"{self.shown}: was changed while it was read: {error}") from error
        return found

    def _place(self, wanted: bytes) -> int:
        """Return where the first line begins whose key is not below a key.

        Keys are hashes, evenly spread: looked at is where it should stand, then the line before; at last the middle.
        """
        data, share, steps = self.data, _share(wanted), 0
        low, high, least, most = 0, len(data), 0.0, 1.0
        probe = int(high * share)
        while low < high:
            start = data.rfind(b"\n", low, probe) + 1 or low
            at = data.find(_KEY, start) + len(_KEY)
            if (key := data[at : at + _KEY_SIZE]) < wanted:
                low, least = data.find(b"\n", at) + 1 or len(data), _share(key)
            else:
                high, most = start, _share(key)
            steps += 1
            part = (share - least) / (most - least) if least < share < most and steps < _GUESSES else 0.5
            probe = high - 1 if key == wanted else low + int((high - low) * part)
        return low


def _share(key: bytes) -> float:
    """Return where a key stands among all there may be, 0 to 1."""
    return int(key[:13], 16) / 16**13


def recorded(path: Path, *, part: bool = False) -> dict[Place, bytes]:
    """Return the lines of a journal in canonical form, in whatever order they stand; none where there is no file.

    In a ``part`` torn lines are left out, and of two lines for one place the later counts; elsewhere both are refused.
    """
    found: dict[Place, bytes] = {}
    for at, line, _ in _lines(path, part=part) if path.exists() else ():
        text = line.encode()
        if not part and found.get(line.place, text) != text:
            raise DataError(f"{at}: contradicts an earlier line with the same key and vote")
        found[line.place] = text
    return found


def write_journal(path: Path, lines: Mapping[Place, bytes]) -> None:
    """Write a journal whole: sorted, on disk before it takes the place of an earlier one."""
    staged = path.with_name(f"{path.name}.tmp")
    try:
        with staged.open("wb") as file:
            for place in sorted(lines):
                file.write(lines[place])
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except OSError as error:
        staged.unlink(missing_ok=True)
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error


def merge_judgements(paths: Iterable[Path], output: Path) -> int:
    """Write the judgements of several journals as one; return how many there are.

    Raises:
        DataError: A journal is missing or damaged, or two have different replies to one request and vote.
    """
    found: dict[Place, bytes] = {}
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file")
        for place, line in recorded(path).items():
            if found.setdefault(place, line) != line:
                key, vote = place
                raise DataError(f"{path}: has another reply to {key[:12]}… (vote {vote}) than a journal before it")
    write_journal(output, found)
    return len(found)


@contextlib.contextmanager
def recording(path: Path) -> Generator[tuple[dict[Place, bytes], Callable[[Line], None]]]:
    """Lock a journal for writing; yield what is on record, and what adds to it, in one write.

    At the end, also after a failure or Ctrl-C, what was added is joined with it.
    """
    part = path.with_name(f"{path.name}.part")
    descriptor = _locked(path, part)
    try:
        settled, fresh = recorded(path), recorded(part, part=True)

        def write(text: bytes) -> None:
            why = "no space is left"
            try:
                written = os.write(descriptor, text)
            except OSError as error:
                written, why = 0, error.strerror or str(error)
            if written < len(text):
                raise DataError(
                    f"{part}: cannot be written: {why}; what is on record is kept: the same command goes on"
                )

        def add(line: Line) -> None:
            text = line.encode()
            write(text)
            fresh[line.place] = text

        if os.fstat(descriptor).st_size:
            write(b"\n")  # ends a line that is torn
        try:
            yield settled | fresh, add
        finally:
            if fresh:
                write_journal(path, settled | fresh)
            part.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _locked(path: Path, part: Path) -> int:
    """Return the descriptor of a journal's part, which nobody else writes."""
    while True:
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise DataError(f"{part}: cannot be written: {error.strerror or error}") from error
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise ConfigError(f"{path}: another `gradestack judge` is writing it") from error
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), part.stat()):
                return descriptor
        os.close(descriptor)  # joined and removed between opening and locking
