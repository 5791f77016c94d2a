"""The journal of a report directory: what finished shards came to, written while the run goes on.

It is a file of JSON lines beside the directory. Its first line says what is run on what (the
fingerprint); every further line is one shard's result, in shard order. A line is written once the
shard's rows are durably in results.jsonl and its native pieces durably on disk. So after a kill, a
power failure or a full disk the lines that are whole are true, rows beyond them are cut off, and
everything else is graded again. Lines are written about once a second, for all shards merged since.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from gradestack.api import Shard
from gradestack.errors import ConfigError
from gradestack.grading.merging import ShardResult
from gradestack.regular_files import open_regular
from gradestack.report import header_of
from gradestack.rows.write import encode
from gradestack.rundir.header import differences, range_mark
from gradestack.rundir.place import GrowingFile, Staging, synchronise

SECONDS_BETWEEN_WRITES = 1.0
_REST = 4
"""The next write waits this many times as long as the last one took: it costs a fifth at most."""
_ANEW = "run without --resume to start anew"
_HEAD = b'{"check":%d,'


class ShardFiles(msgspec.Struct, frozen=True):
    """The files of one shard."""

    rows: Path | None
    native: Mapping[str, Path]
    """``exporter/artefact`` -> file of its chunks."""


def result_to_json(result: ShardResult, base: Path) -> dict[str, Any]:
    """Return a shard's result as JSON data, without its rows.

    Native pieces are named relative to a folder.
    """
    native = {name: path.relative_to(base).as_posix() for name, path in result.parts.native.items()}
    recorded = replace(result, parts=native, tracebacks={})
    as_json: dict[str, Any] = msgspec.to_builtins(recorded)
    return as_json


def result_from_json(data: Mapping[str, Any], base: Path) -> ShardResult:
    """Return the result that ``result_to_json`` was given."""
    result = msgspec.convert(data, ShardResult)
    parts = result.parts.items()
    native = {name: base / path for name, path in parts}
    result.parts = ShardFiles(None, native)
    return result


class Journal:
    """Records finished shards, and loads those of an earlier attempt.

    Attributes:
        recorded: Number of shards on record.
        rows: Bytes of results.jsonl that belong to them.
        started: When the run was begun, by its first attempt.
        damaged: Whether the journal of an earlier attempt cannot be read.
    """

    def __init__(
        self, staging: Staging, fingerprint: Mapping[str, Any], started: str, rows_name: str
    ) -> None:
        """Begin a journal with nothing recorded and no files open."""
        self.recorded = 0
        self.rows = 0
        self.started = started
        self.damaged = False
        self._staging = staging
        self._fingerprint = fingerprint
        self._rows_name = rows_name
        self._size = 0
        """Bytes of the journal that are true."""
        self._lines: GrowingFile | None = None
        self._rows_file: GrowingFile | None = None
        self._waiting: list[tuple[bytes, Sequence[Path]]] = []
        """Lines, each with the native pieces that have to be on disk before it."""
        self._due = time.monotonic() + SECONDS_BETWEEN_WRITES

    def load(self, shards: Sequence[Shard]) -> Iterator[ShardResult]:
        """Yield the results that an earlier attempt has on record.

        Raises:
            ConfigError: The suite, the versions or an input have changed since.
        """
        with open_regular(self._staging.journal) as lines:
            first = _parse_line(lines.readline())
            self.damaged = first is None
            if first is None:
                return
            changes = differences(first["fingerprint"], self._fingerprint)
            if changes:
                why = "these are not the same as when it was begun"
                raise self._refusal(why, *changes)
            self.started = first["started"]
            self._size = lines.tell()
            earlier_rows = self._find_rows()
            rows_size = earlier_rows.stat().st_size if earlier_rows is not None else 0
            for shard, line in zip(shards, lines, strict=False):
                entry = _parse_line(line)
                result = self._load_entry(entry, rows_size)
                if entry is None or result is None:
                    break
                if entry["mark"] != range_mark(shard):
                    raise self._refusal(f"{shard.input.shown} has changed")
                yield result
                self.recorded += 1
                self.rows += entry["rows"]
                self._size = lines.tell()
            path = self._staging.path / self._rows_name
            if self.rows and earlier_rows is not None and earlier_rows != path:
                with closing(GrowingFile(path)) as copy:
                    copy.copy(earlier_rows)

    def _load_entry(self, entry: dict[str, Any] | None, rows_size: int) -> ShardResult | None:
        """Return the result of a line, whose rows and pieces are there; None where they are not.

        What took too long is tried again, and rows behind it have no place before it.
        """
        if entry is None or entry["timed_out"] or self.rows + entry["rows"] > rows_size:
            return None
        result = result_from_json(entry, self._staging.base)
        native = result.parts.native.values()
        has_pieces = all(path.is_file() for path in native)
        return result if has_pieces else None

    def _refusal(self, why: str, *more: str) -> ConfigError:
        return ConfigError(f"{self._staging.run_folder}: cannot be continued, {why}", *more, _ANEW)

    def _find_rows(self) -> Path | None:
        """Return the rows of the earlier attempt: in the making, or moved into their place."""
        making = self._staging.path / self._rows_name
        if making.is_file():
            return making
        committed = self._staging.run_folder / self._rows_name
        header = header_of(self._staging.run_folder)
        timestamp = header.get("timestamp")
        is_same_run = timestamp == self.started
        return committed if is_same_run and committed.is_file() else None

    def begin(self, rows: GrowingFile | None) -> None:
        """Start to write; rows go into the file given, where any are kept."""
        self._rows_file = rows
        self._lines = GrowingFile(self._staging.journal, self._size if self.recorded else 0)
        if not self.recorded:
            first = {"fingerprint": self._fingerprint, "started": self.started}
            self._lines.write([_format_line(first)])
        self._size = self._lines.size

    def note(self, result: ShardResult, shard: Shard, rows_size: int) -> None:
        """Record a finished shard.

        Args:
            result: Its sums and what it wrote.
            shard: The shard.
            rows_size: Bytes of its rows in results.jsonl.
        """
        entry = result_to_json(result, self._staging.base)
        line = _format_line({**entry, "mark": range_mark(shard), "rows": rows_size})
        native = list(result.parts.native.values())
        self._waiting.append((line, native))
        if time.monotonic() > self._due:
            self.finish()

    def finish(self, *, if_worth_it: bool = False) -> None:
        """Write the waiting lines to the disk, with the rows and pieces they tell of.

        With ``if_worth_it`` nothing is written while the first write is not due: then there is
        little to lose.
        """
        if self._lines is None or not self._waiting:
            return
        if if_worth_it and not self.recorded and time.monotonic() <= self._due:
            return
        self._write(self._lines)

    def _write(self, lines: GrowingFile) -> None:
        """Force rows and native pieces to the disk, then append the lines that record them."""
        begun = time.monotonic()
        lines.size = self._size
        lines.trim()
        if self._rows_file is not None:
            self._rows_file.synchronise()
        for path in chain.from_iterable(native for _, native in self._waiting):
            synchronise(path)
        if not self.recorded:
            synchronise(self._staging.path)
            synchronise(self._staging.base)
        lines.write(line for line, _ in self._waiting)
        lines.synchronise()
        self._size = lines.size
        self.recorded += len(self._waiting)
        self._waiting = []
        now = time.monotonic()
        self._due = now + SECONDS_BETWEEN_WRITES + _REST * (now - begun)

    def close(self, *, failed: bool = False) -> int:
        """Write what can be written and return the number of shards on record.

        Where the disk ``failed``, files that are not needed are removed first, to make room.
        """
        if self._lines is None:
            return self.recorded
        with suppress(OSError):  # what was written before counts
            if failed:
                self._make_room()
            self.finish(if_worth_it=not failed)
        self._lines.close()
        self._lines = None
        return self.recorded

    def _make_room(self) -> None:
        if self._rows_file is not None:
            self._rows_file.trim()
        for path in self._staging.parts.glob("*.rows*"):
            path.unlink()


def _format_line(content: Mapping[str, Any]) -> bytes:
    text = encode(content)
    return _HEAD % zlib.crc32(text[1:]) + text[1:] + b"\n"


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """Return a line's content; None for one that was not written to its end, or changed since."""
    head, _, text = line.removesuffix(b"\n").partition(b",")
    if not line.endswith(b"\n") or head + b"," != _HEAD % zlib.crc32(text):
        return None
    return json.loads(b"{" + text)  # type: ignore[no-any-return]
