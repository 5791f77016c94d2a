"""Runs that can be continued: what every finished range came to, on disk before it counts as finished.

The journal is a file of JSON lines beside the run directory in the making. Its first line says what is run on what
(the fingerprint); every further line is one shard's result, in shard order. A line is written once the shard's rows
are durably in results.jsonl and its native pieces durably on disk. So after a kill, a power failure or a full disk the
lines that are whole are true, rows beyond them are cut off, and everything else is graded again. Lines are written
about once a second, for all shards merged since.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from gradestack.api import Shard
from gradestack.errors import ConfigError
from gradestack.grading.merging import ShardResult
from gradestack.jsonio.files import open_regular
from gradestack.report import ROWS, header_of
from gradestack.rundir.header import differences, range_mark
from gradestack.rundir.place import RowsFile, Staging, cut_off, synchronise, write_all

PAUSE, _REST = 1.0, 4
"""Seconds between two writes, and how many times what a write took is added: a slow disk costs a fifth of a run."""


class Parts(msgspec.Struct, frozen=True):
    """The files of one shard."""

    rows: Path | None
    native: Mapping[str, Path]
    """``exporter/artefact`` -> chunks."""


def to_json(result: ShardResult, base: Path) -> dict[str, Any]:
    """Return a shard's result as JSON data; native pieces are named relative to ``base``, rows are not in it."""
    native = {name: path.relative_to(base).as_posix() for name, path in result.parts.native.items()}
    return msgspec.to_builtins(replace(result, parts=native, tracebacks={}))  # type: ignore[no-any-return]


def from_json(data: Mapping[str, Any], base: Path) -> ShardResult:
    """Return the result ``to_json`` wrote."""
    result = msgspec.convert(data, ShardResult)
    result.parts = Parts(None, {name: base / path for name, path in result.parts.items()})
    return result


class Journal:
    """What finished shards came to, written down while the run goes on; ``damaged``: an earlier one cannot be read."""

    def __init__(self, staging: Staging, mark: Mapping[str, Any], started: str) -> None:
        self.recorded, self.rows, self.started, self.damaged = 0, 0, started, False
        self._staging, self._mark = staging, mark
        self._to = os.open(staging.journal, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        self._rows_file: RowsFile | None = None
        self._waiting: list[tuple[bytes, Sequence[Path]]] = []
        """Lines, each with the native pieces that have to be on disk before it."""
        self._due = time.monotonic() + PAUSE
        self._size = 0

    def take_up(self, shards: Sequence[Shard]) -> Iterator[tuple[ShardResult, int]]:
        """Yield what an earlier attempt has on record, and where its rows start; refuse what has changed since."""
        base, size = self._staging.base, 0
        with open_regular(self._staging.journal) as lines:
            first = _parsed(lines.readline())
            self.damaged = first is None
            if first is not None:
                if changed := differences(first["fingerprint"], self._mark):
                    why = "cannot be continued, these are not the same as when it was begun"
                    raise ConfigError(f"{self._staging.place}: {why}", *changed, _ANEW)
                self.started = first["started"]
                size = lines.tell()
                source = self._rows_source()
                room = source.stat().st_size if source is not None else 0
                for shard, line in zip(shards, lines, strict=False):
                    entry = _parsed(line)
                    if entry is None or self.rows + entry["rows"] > room or entry["timed_out"]:
                        break  # what took too long is tried again, and rows behind it have no place before it is done
                    result = from_json(entry, base)
                    if not all(path.is_file() for path in result.parts.native.values()):
                        break
                    if entry["mark"] != range_mark(shard):
                        why = f"cannot be continued, {shard.input.shown} has changed"
                        raise ConfigError(f"{self._staging.place}: {why}", _ANEW)
                    yield result, self.rows
                    self.recorded, self.rows, size = self.recorded + 1, self.rows + entry["rows"], lines.tell()
                path = self._staging.path / ROWS
                if self.rows and source is not None and source != path:
                    with contextlib.closing(RowsFile(path)) as copy:
                        copy.copy(source)
        cut_off(self._to, size)

    def _rows_source(self) -> Path | None:
        place = self._staging.place
        if (path := self._staging.path / ROWS).is_file():
            return path
        committed = header_of(place).get("timestamp") == self.started
        return place / ROWS if committed and (place / ROWS).is_file() else None

    def begin(self, rows: RowsFile | None) -> None:
        """Start writing; rows go into the file given, where any are kept."""
        self._rows_file = rows
        if not self.recorded:
            cut_off(self._to, 0)
            write_all(self._to, _line({"fingerprint": self._mark, "started": self.started}))
        self._size = os.lseek(self._to, 0, os.SEEK_CUR)

    def note(self, result: ShardResult, shard: Shard, rows_size: int) -> None:
        """Take down a shard whose rows are in results.jsonl."""
        line = _line({**to_json(result, self._staging.base), "mark": range_mark(shard), "rows": rows_size})
        self._waiting.append((line, list(result.parts.native.values())))
        if time.monotonic() > self._due:
            self._write()

    def _write(self) -> None:
        """Have rows and pieces on disk, then the lines; behind what was written before, whatever became of the rest."""
        begun = time.monotonic()
        try:
            cut_off(self._to, self._size)
            if self._rows_file is not None:
                self._rows_file.synchronise()
            for path in chain.from_iterable(native for _, native in self._waiting):
                synchronise(path)
            if not self.recorded:
                synchronise(self._staging.path)
                synchronise(self._staging.base)
            write_all(self._to, b"".join(line for line, _ in self._waiting))
            os.fsync(self._to)
        except OSError as error:
            error.filename = error.filename or str(self._staging.journal)
            raise
        self._size = os.lseek(self._to, 0, os.SEEK_CUR)
        self.recorded += len(self._waiting)
        self._waiting = []
        now = time.monotonic()
        self._due = now + PAUSE + _REST * (now - begun)

    def finish(self, *, short: bool = False) -> None:
        """Have everything on disk; ``short``: not where nothing was written yet and there is little to lose."""
        if self._waiting and (self.recorded or not short or time.monotonic() > self._due):
            self._write()

    def close(self, *, failed: bool = False) -> int:
        """Let go of the file, having written what can be written; return the number of shards on record.

        On a disk that is full or broken (``failed``) room is made, and even what is a moment old is written.
        """
        with contextlib.suppress(OSError):  # what was written before counts
            if failed and self._to >= 0:
                if self._rows_file is not None:
                    self._rows_file.trim()
                for path in self._staging.parts.glob("*.rows*"):
                    path.unlink()
            self.finish(short=not failed)
        if self._to >= 0:
            os.close(self._to)
            self._to = -1
        return self.recorded


_ANEW = "run without --resume to start anew"
_HEAD = b'{"check":%d,'


def _line(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return _HEAD % zlib.crc32(text[1:]) + text[1:] + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return a line's content; None for one that was not written to its end, or changed since."""
    head, _, text = line.removesuffix(b"\n").partition(b",")
    if not line.endswith(b"\n") or head + b"," != _HEAD % zlib.crc32(text):
        return None
    return json.loads(b"{" + text)  # type: ignore[no-any-return]
