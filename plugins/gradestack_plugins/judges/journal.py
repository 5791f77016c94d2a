"""The journal: replies on record, a line for each request and vote, sorted by both.

Readers map the file into memory and search it by halves, so that processes share it and none holds
it. One writer at a time, under a lock, adds lines to ``JOURNAL.part``; at its end both are joined.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gradestack import ConfigError, DataError, reading
from gradestack.jsonio import append_regular, dumps, open_regular

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

__all__ = ["Journal", "Reply", "Tokens", "merge_judgements"]

_KEY = b',"key":"'
"""Stands before the key of a line in canonical form, and nowhere within a text, whose quotes are
escaped.
"""
_KEY_SIZE = 64
Place = tuple[str, int]  # key of a request, and vote


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """The tokens of a reply, as far as the server says."""

    input: int | None = None
    output: int | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A reply of a model."""

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
    rejected: list[dict[str, str | None]] | UnsetType = UNSET
    """Replies before it that were asked again: ``code``, ``content``, ``mode``."""

    @property
    def place(self) -> Place:
        """The key and the vote it is filed under."""
        return self.key, self.vote

    def encode(self) -> bytes:
        """Return its canonical form, with the end of the line."""
        text = dumps(msgspec.to_builtins(self)).encode()
        return text + b"\n"


_line = msgspec.json.Decoder(Line)
_vote: Any = msgspec.json.Decoder(
    msgspec.defstruct("Vote", [("vote", int)], bases=(Reply,), frozen=True, gc=False)
)


def _lines(path: Path, *, part: bool = False) -> Iterator[tuple[str, Line, bytes]]:
    """Yield (file and line number, judgement, bytes) of each line of a journal.

    ``part``: lines that cannot be read are left out.

    Raises:
        DataError: A line is no judgement.
    """
    with reading(path), open_regular(path) as file:
        for number, raw in enumerate(file, 1):
            try:
                line = _line.decode(raw)
            except ValueError as error:
                if part or not raw.strip():
                    continue
                why = f"not a judgement ({error}); remove the line and ask again"
                raise DataError(f"{path}:{number}: {why}") from error
            yield f"{path}:{number}", line, raw


def numbered(keys: Iterable[str]) -> Iterator[Place]:
    """Yield keys of requests, each with its vote: how often it came up before."""
    votes: Counter[str] = Counter()
    for key in keys:
        yield key, votes[key]
        votes[key] += 1


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
            with reading(self.shown), open_regular(self.path) as file:
                empty = not os.fstat(file.fileno()).st_size
                if empty:
                    self._data = b""
                else:
                    self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._data

    def check(self) -> None:
        """Check that the journal is there, and that each line is whole, in place and consistent."""
        if not self.path.is_file():
            fix = "`gradestack judge` asks for them and writes this file"
            raise ConfigError(f"{self.shown}: no judgements are on record; {fix}")
        self._data = None
        before = ("", -1)
        last = b""
        for at, line, raw in _lines(self.shown):
            if line.place == before and raw != last:
                raise DataError(
                    f"{at}: contradicts the line before it, which has the same key and vote"
                )
            key = _key_of(raw)
            is_canonical = key == line.key.encode() and raw.endswith(b"\n")
            if line.place < before or not is_canonical:
                how = f"`gradestack judgements merge {self.shown} -o {self.shown}` writes it anew"
                raise DataError(f"{at}: lines are not sorted or not in canonical form; {how}")
            before, last = line.place, raw

    def replies(self, keys: Sequence[str]) -> list[Reply | None]:
        """Return the reply to each of several requests.

        The n-th time a key comes up it is vote n.
        """
        known = {key: self.votes(key) for key in dict.fromkeys(keys)}
        return [known[key].get(vote) for key, vote in numbered(keys)]

    def votes(self, key: str) -> dict[int, Reply]:
        """Return all replies to a request by vote.

        Those of the first line with its key, and of the next ones.
        """
        data = self.data
        wanted = key.encode()
        replies = dict[int, Reply]()

        def key_at(position: int) -> bytes:
            return _key_of(data, data.rfind(b"\n", 0, position) + 1)

        try:
            at = bisect_left(range(len(data)), wanted, key=key_at)
            while at < len(data) and _key_of(data, at) == wanted:
                end = data.find(b"\n", at) + 1 or len(data)
                line = _vote.decode(data[at:end])
                replies[line.vote], at = line, end
        except ValueError as error:
            raise DataError(f"{self.shown}: was changed while it was read: {error}") from error
        return replies


def _key_of(data: mmap.mmap | bytes, start: int = 0) -> bytes:
    """Return the key of the line that begins at a place."""
    at = data.find(_KEY, start) + len(_KEY)
    return data[at : at + _KEY_SIZE]


def recorded(path: Path, *, part: bool = False) -> dict[Place, bytes]:
    """Return the lines of a journal in canonical form, in whatever order they stand.

    None where there is no file.

    In a ``part`` torn lines are left out, and of two lines for one place the later counts;
    elsewhere both are refused.
    """
    lines: dict[Place, bytes] = {}
    for at, line, _ in _lines(path, part=part) if path.exists() else ():
        text = line.encode()
        if not part and lines.get(line.place, text) != text:
            raise DataError(f"{at}: contradicts an earlier line with the same key and vote")
        lines[line.place] = text
    return lines


def _cannot_write(path: Path, why: OSError | str, more: str = "") -> DataError:
    return DataError(f"{path}: cannot be written: {getattr(why, 'strerror', None) or why}{more}")


def _write(path: Path, lines: Mapping[Place, bytes]) -> None:
    """Write a journal whole: sorted, on disk before it takes the place of an earlier one."""
    staged = path.with_name(f"{path.name}.tmp")
    try:
        staged.unlink(missing_ok=True)  # of an earlier end, or a link that leads elsewhere
        with staged.open("xb") as file:
            file.writelines(lines[key_and_vote] for key_and_vote in sorted(lines))
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except OSError as error:
        staged.unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def merge_judgements(paths: Iterable[Path], output: Path) -> int:
    """Write the judgements of several journals as one; return how many there are.

    Raises:
        DataError: A journal is missing or damaged, or two have different replies to one request and
            vote.
    """
    lines: dict[Place, bytes] = {}
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file")
        for (key, vote), line in recorded(path).items():
            if lines.setdefault((key, vote), line) != line:
                problem = f"has another reply to {key[:12]}… (vote {vote})"
                raise DataError(f"{path}: {problem} than a journal before it")
    _write(output, lines)
    return len(lines)


def part_of(path: Path) -> Path:
    """Return where a journal is written until it is whole."""
    return path.with_name(f"{path.name}.part")


@contextlib.contextmanager
def recording(  # noqa: C901
    path: Path,
) -> Generator[tuple[dict[Place, bytes], Callable[[Line], None]]]:
    """Lock a journal for writing; yield what is on record, and what adds to it, in one write.

    At the end, also after a failure or Ctrl-C, what was added is joined with it.
    """
    part = part_of(path)
    try:
        file = append_regular(part)
    except OSError as error:
        raise _cannot_write(part, error) from error
    with file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.path.samestat(
                os.fstat(file.fileno()), part.stat()
            )  # not joined and removed before the lock
        except OSError:
            mine = False
        if not mine:
            raise ConfigError(f"{path}: another `gradestack judge` is writing it")
        settled = recorded(path)
        fresh = recorded(part, part=True)

        def write(text: bytes) -> None:
            why: OSError | str = "no space is left"
            try:
                if file.write(text) == len(text):
                    return
            except OSError as error:
                why = error
            raise _cannot_write(part, why, "; what is on record is kept: the same command goes on")

        def add(line: Line) -> None:
            text = line.encode()
            write(text)
            fresh[line.place] = text

        if file.tell():
            write(b"\n")  # ends a line that is torn
        try:
            yield settled | fresh, add
        finally:
            if fresh:
                _write(path, settled | fresh)
            part.unlink(missing_ok=True)
