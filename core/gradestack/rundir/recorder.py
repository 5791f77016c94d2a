"""Recorders: what takes the results of a run, into its directory, into memory, or out to the
caller.

The journal of a directory is a file of JSON lines beside it. Its first line says what is run on
what (the fingerprint); every further line is one shard's result, in shard order. A line is written
once the shard's rows are durably in results.jsonl and its native pieces durably on disk. So after a
kill, a power failure or a full disk the lines that are whole are true, rows beyond them are cut
off, and everything else is graded again. Lines are written about once a second, for all shards
merged since.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Self, TextIO

import msgspec
from msgspec.structs import replace

from gradestack.api import Shard
from gradestack.copies.files import named_as_given
from gradestack.errors import ConfigError
from gradestack.grading.loop import Loop, ProgressCount, repeated
from gradestack.grading.merging import Grades, Mended, ShardResult
from gradestack.grading.plan import Plan
from gradestack.grading.reading import shards_in
from gradestack.grading.selection import Identity, identity_of, unanswered
from gradestack.grading.worker import ShardGrader, Worker
from gradestack.interpreter import for_a_shard
from gradestack.jsonio.values import loads
from gradestack.model import BadRecord, Sample, Source, Status
from gradestack.regular_files import open_regular
from gradestack.report import header_of
from gradestack.rows.packed import PACKED_ROWS, ROWS, PackedWriter, create_rows, open_rows
from gradestack.rows.write import Columns, RowWriter, Texts
from gradestack.rundir.header import differences, fingerprint, range_mark
from gradestack.rundir.place import GrowingFile, Staging, synchronise
from gradestack.suites.spec import RECORDED, Suite


class Parts(msgspec.Struct, frozen=True):
    """The files of one shard."""

    rows: Path | None
    native: Mapping[str, Path]  # `exporter/artefact` -> chunks


class FilePieces(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the pieces of a run that is written into a directory."""

    folder: Path
    writer: RowWriter
    rows_name: str | None = ROWS
    """What the file of rows is called in the end; None: none are written."""

    @property
    def rows(self) -> bool:
        """Whether rows are written."""
        return self.rows_name is not None

    def open(self, shard: Shard) -> FilePiece:
        """Return the piece of a shard."""
        # A name of its own: a shard may be done twice at once, when a machine is lost after its
        # result was handed over.
        name = f"{shard.ordinal:08d}-{os.urandom(4).hex()}"
        return FilePiece(self.folder / name, self.writer, self.rows_name)


class RowLines:
    """Writes the rows of blocks into a file; None keeps none."""

    def __init__(self, writer: RowWriter, rows: IO[bytes] | PackedWriter | None) -> None:
        self._writer, self._rows = writer, rows
        self.recorded = writer.recorded

    def add_rows(
        self, samples: Sequence[Sample], recorded: Any, columns: Columns, texts: Texts
    ) -> Mended:
        """Write the rows of a block; return grades that stand in them in place of those given."""
        lines, mended = self._writer.lines(samples, recorded, columns, texts)
        if self._rows is not None:
            self._rows.writelines(lines)
        return mended


class FilePiece(RowLines):
    """Files of one shard; those of native chunks are opened when first written."""

    def __init__(self, name: Path, writer: RowWriter, rows_name: str | None) -> None:
        self._name = name
        rows = None if rows_name is None else create_rows(name.with_suffix(f".rows.{rows_name}"))
        super().__init__(writer, rows)
        self._native: dict[str, tuple[Path, TextIO]] = {}

    def native(self, artefact: str, text: str, separator: str) -> None:
        """Write one chunk of an exporter's file."""
        if artefact in self._native:
            _, file = self._native[artefact]
            file.write(separator)
        else:
            path = self._name.with_suffix(f".{len(self._native)}.native")
            file = path.open("w", encoding="utf-8", newline="", errors="surrogatepass")
            self._native[artefact] = path, file
        file.write(text)

    def close(self) -> Parts:
        """Return the files, closed."""
        try:
            if self._rows is not None:
                self._rows.close()
        finally:
            for _, file in self._native.values():
                file.close()
        rows = None if self._rows is None else Path(self._rows.name)
        return Parts(rows, {artefact: path for artefact, (path, _) in self._native.items()})


_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers that the system has in a file, by name, one alone as "".

    None where it says "max".
    """
    found = {}
    with suppress(OSError, ValueError):
        for line in path.read_text(encoding="ascii", errors="replace").splitlines():
            *name, number = line.removesuffix(" kB").split()
            found["".join(name)] = int(number) * (1024 if line.endswith(" kB") else 1)
    return found


def free_memory() -> int | None:
    """Return the bytes of memory that can still be had; None where the system does not say."""
    places, entry = [_GROUPS], ""
    with suppress(OSError, IndexError):
        entry = (_PROC / "self/cgroup").read_text(encoding="utf-8").splitlines()[-1]
    if entry.startswith("0::/"):
        inner = _GROUPS / entry[4:]
        places += [inner, *(parent for parent in inner.parents if parent.is_relative_to(_GROUPS))]
    found = [_numbers(_PROC / "meminfo").get("MemAvailable:")]
    for place in places:
        limit, used = (_numbers(place / f"memory.{name}").get("") for name in ("max", "current"))
        if limit is not None and used is not None:
            found.append(limit - used + _numbers(place / "memory.stat").get("inactive_file", 0))
    return min((each for each in found if each is not None), default=None)


def _nothing(*_: Any, **__: Any) -> Any:
    """Do nothing: what is not on disk need not be prepared, closed or found again."""
    return None


class _InProcess:
    """Both halves of a recorder that keeps nothing on disk.

    One process, a shard after the other, no earlier try.
    """

    rows = True
    native = _nothing
    close = _nothing
    finish = _nothing
    take = _nothing
    restart = _nothing
    places = _nothing

    @property
    def pieces(self) -> Self:
        return self

    def open(self, shard: Shard) -> Self:
        return self

    def take_up(self, shards: Sequence[Shard]) -> Iterator[ShardResult]:
        return iter(())


LARGEST_IN_MEMORY = 64 << 20  # bytes of rows that are kept in memory


class MemoryRecorder(RowLines, _InProcess):
    """Takes the results of a run that writes nothing.

    Its ``file`` holds rows as they would stand in results.jsonl.
    """

    def __init__(self, suite: Suite, *, strict: bool) -> None:
        # closed with the report
        self.file = tempfile.SpooledTemporaryFile(LARGEST_IN_MEMORY)  # noqa: SIM115
        super().__init__(RowWriter.of(suite, suite.success, strict=strict), self.file)

    def restart(self) -> None:
        """Let go of all rows."""
        self.file.seek(0)
        self.file.truncate()

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return where samples were read, from their rows."""
        end = self.file.tell()
        found = places_in_rows(self.file, rows)
        self.file.seek(end)
        return found


class _StreamRecorder(_InProcess):
    def __init__(self) -> None:
        self.ready: list[tuple[Sample, Grades]] = []
        self.bad: list[BadRecord] = []

    def recorded(self, samples: Sequence[Sample]) -> tuple[None, Sequence[Sample]]:
        return None, samples

    def add_rows(
        self, samples: Sequence[Sample], recorded: None, columns: Columns, texts: Texts
    ) -> Mended:
        for sample, grades in zip(samples, zip(*columns.values(), strict=True), strict=True):
            self.ready.append((sample, dict(zip(columns, grades, strict=True))))
        return {}


def stream_grades(
    plan: Plan, bad: Callable[[BadRecord], None], *, strict: bool = False
) -> Iterator[tuple[Sample, Grades]]:
    """Yield every sample with its grades by grader key, in input order, those no record answers
    last; a block ahead.
    """
    with named_as_given():
        handed = _StreamRecorder()
        loop = Loop(plan, handed, ProgressCount(None, plan.main), strict=strict)
        worker = loop.open()
        known, seen, anything = set[Identity](), set[tuple[str, str, str]](), False
        for shard in loop.shards:
            with closing(worker.blocks(shard)) as blocks:
                result = ShardResult(ordinal=shard.ordinal, input=shard.input.name, seen=seen)
                for record in _graded(worker, shard, blocks, result, handed):
                    if isinstance(record, BadRecord):
                        bad(record)
                        continue
                    sample, anything = record[0], True
                    if plan.duplicates == "error" and sample.status is not Status.MISSING:
                        if (identity := identity_of(sample)) in known:
                            raise repeated(f"{sample.source or sample.id}")
                        known.add(identity)
                    yield record
            loop.files.check([shard], [each.input.path for each in shards_in(shard)])
        loop.files.check(loop.shards)
        if not anything:
            raise loop.nothing()
        if worker.dataset is not None:
            shard = Shard(ordinal=len(loop.shards), input=plan.inputs.data[-1])
            result = ShardResult(ordinal=shard.ordinal, input=shard.input.name, seen=set())
            for record in _graded(
                worker, shard, ([each] for each in unanswered(worker.dataset, seen)), result, handed
            ):
                if not isinstance(record, BadRecord):
                    yield record


def _graded(
    worker: Worker,
    shard: Shard,
    blocks: Iterator[list[Sample | BadRecord]],
    result: ShardResult,
    handed: _StreamRecorder,
) -> Iterator[tuple[Sample, Grades] | BadRecord]:
    """Yield what one shard comes to.

    What is set for the time of grading is not set while the caller works.
    """
    with ShardGrader(worker, shard, result) as grader:
        more = True
        while more:
            with for_a_shard(worker.plan.limits):
                for block in blocks:
                    grader.take(block)
                    handed.bad += [record for record in block if isinstance(record, BadRecord)]
                    if handed.ready or handed.bad:
                        break
                else:
                    grader.grade()
                    more = False
            yield from handed.ready
            yield from handed.bad
            handed.ready.clear()
            handed.bad.clear()


PAUSE, _REST = 1.0, 4
"""Seconds between two writes, and how many times what a write took is added.

A slow disk costs a fifth of a run.
"""


def to_json(result: ShardResult, base: Path) -> dict[str, Any]:
    """Return a shard's result as JSON data.

    Native pieces are named relative to ``base``, rows are not in it.
    """
    native = {name: path.relative_to(base).as_posix() for name, path in result.parts.native.items()}
    return msgspec.to_builtins(replace(result, parts=native, tracebacks={}))  # type: ignore[no-any-return]


def from_json(data: Mapping[str, Any], base: Path) -> ShardResult:
    """Return the result ``to_json`` wrote."""
    result = msgspec.convert(data, ShardResult)
    result.parts = Parts(None, {name: base / path for name, path in result.parts.items()})
    return result


class Journal:
    """What finished shards came to, written down while the run goes on.

    ``damaged``: an earlier one cannot be read.
    """

    def __init__(
        self, staging: Staging, mark: Mapping[str, Any], started: str, rows_name: str
    ) -> None:
        self._rows_name = rows_name
        self.recorded, self.rows, self.started, self.damaged = 0, 0, started, False
        self._staging, self._mark, self._whole = staging, mark, 0
        self._lines: GrowingFile | None = None
        self._rows_file: GrowingFile | None = None
        self._waiting: list[tuple[bytes, Sequence[Path]]] = []
        """Lines, each with the native pieces that have to be on disk before it."""
        self._due = time.monotonic() + PAUSE

    def take_up(self, shards: Sequence[Shard]) -> Iterator[ShardResult]:
        """Yield what an earlier attempt has on record; refuse what has changed since."""
        base = self._staging.base
        with open_regular(self._staging.journal) as lines:
            first = _parsed(lines.readline())
            self.damaged = first is None
            if first is not None:
                if changed := differences(first["fingerprint"], self._mark):
                    why = "cannot be continued, these are not the same as when it was begun"
                    raise ConfigError(f"{self._staging.place}: {why}", *changed, _ANEW)
                self.started = first["started"]
                self._whole = lines.tell()
                source = self._rows_source()
                room = source.stat().st_size if source is not None else 0
                for shard, line in zip(shards, lines, strict=False):
                    entry = _parsed(line)
                    if entry is None or self.rows + entry["rows"] > room or entry["timed_out"]:
                        # what took too long is tried again, and rows behind it have no place before
                        # it is done
                        break
                    result = from_json(entry, base)
                    if not all(path.is_file() for path in result.parts.native.values()):
                        break
                    if entry["mark"] != range_mark(shard):
                        why = f"cannot be continued, {shard.input.shown} has changed"
                        raise ConfigError(f"{self._staging.place}: {why}", _ANEW)
                    yield result
                    self.recorded, self.rows, self._whole = (
                        self.recorded + 1,
                        self.rows + entry["rows"],
                        lines.tell(),
                    )
                path = self._staging.path / self._rows_name
                if self.rows and source is not None and source != path:
                    with closing(GrowingFile(path)) as copy:
                        copy.copy(source)

    def _rows_source(self) -> Path | None:
        place, name = self._staging.place, self._rows_name
        if (path := self._staging.path / name).is_file():
            return path
        committed = header_of(place).get("timestamp") == self.started
        return place / name if committed and (place / name).is_file() else None

    def begin(self, rows: GrowingFile | None) -> None:
        """Start writing; rows go into the file given, where any are kept."""
        self._rows_file = rows
        self._lines = GrowingFile(self._staging.journal, self._whole if self.recorded else 0)
        if not self.recorded:
            self._lines.write([_line({"fingerprint": self._mark, "started": self.started})])
        self._whole = self._lines.size

    def note(self, result: ShardResult, shard: Shard, rows_size: int) -> None:
        """Take down a shard whose rows are in results.jsonl."""
        line = _line(
            {**to_json(result, self._staging.base), "mark": range_mark(shard), "rows": rows_size}
        )
        self._waiting.append((line, list(result.parts.native.values())))
        if time.monotonic() > self._due:
            self.finish()

    def _write(self, lines: GrowingFile) -> None:
        """Have rows and pieces on disk, then the lines.

        Behind what was written before, whatever became of the rest.
        """
        begun = time.monotonic()
        lines.size = self._whole
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
        self._whole = lines.size
        self.recorded += len(self._waiting)
        self._waiting = []
        now = time.monotonic()
        self._due = now + PAUSE + _REST * (now - begun)

    def finish(self, *, short: bool = False) -> None:
        """Have everything on disk.

        ``short``: not where nothing was written yet and there is little to lose.
        """
        if (
            self._lines is not None
            and self._waiting
            and (self.recorded or not short or time.monotonic() > self._due)
        ):
            self._write(self._lines)

    def close(self, *, failed: bool = False) -> int:
        """Write what can be written, making room where the disk ``failed``.

        Return the number of shards on record.
        """
        if self._lines is not None:
            with suppress(OSError):  # what was written before counts
                if failed:
                    if self._rows_file is not None:
                        self._rows_file.trim()
                    for path in self._staging.parts.glob("*.rows*"):
                        path.unlink()
                self.finish(short=not failed)
            self._lines.close()
            self._lines = None
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


class DirectoryRecorder:
    """Takes the results of a run into its directory.

    ``native``: files of exporters, in shard order.
    """

    def __init__(
        self, suite: Suite, staging: Staging, started: str, *, strict: bool, resume: bool
    ) -> None:
        self._suite, self._staging, self.started = suite, staging, started
        self._strict, self._keep_rows, self._resume = strict, suite.rows != "none", resume
        self._rows_name = PACKED_ROWS if suite.rows == "compressed" else ROWS
        writer = RowWriter.of(suite, suite.success, strict=strict)
        self.pieces = FilePieces(
            folder=staging.parts,
            writer=writer,
            rows_name=self._rows_name if self._keep_rows else None,
        )
        self.native: dict[tuple[str, str], list[Path]] = {}
        self.damaged = False
        self._journal: Journal | None = None
        """Where finished shards are recorded; None where there is nothing to be continued."""
        self._rows: GrowingFile | None = None

    def take_up(self, shards: Sequence[Shard]) -> Iterator[ShardResult]:
        """Open the file of rows and, where there is anything to be continued, the journal.

        Yield what they hold.
        """
        known = self._resume and self._staging.journal.is_file()
        if len(shards) > 1 or known:
            mark = fingerprint(self._suite, strict=self._strict, rows=RECORDED[self._suite.rows])
            self._journal = Journal(self._staging, mark, self.started, self._rows_name)
            if known:
                for result in self._journal.take_up(shards):
                    self._keep_native(result)
                    yield result
                self.started, self.damaged = self._journal.started, self._journal.damaged
        if self._keep_rows:
            self._rows = GrowingFile(
                self._staging.path / self._rows_name,
                self._journal.rows if self._journal is not None else 0,
            )
        if self._journal is not None:
            self._journal.begin(self._rows)

    def take(self, result: ShardResult, shard: Shard | None) -> None:
        """Add a result's rows to results.jsonl and have it recorded."""
        rows = result.parts.rows
        size = self._rows.append(rows) if self._rows is not None and rows is not None else 0
        if self._journal is not None and shard is not None and not result.interrupted:
            self._journal.note(result, shard, size)
        self._keep_native(result)

    def _keep_native(self, result: ShardResult) -> None:
        for artefact, path in result.parts.native.items():
            self.native.setdefault((result.input, artefact), []).append(path)

    def finish(self) -> None:
        """Have everything taken down on disk; where little was, there is little to lose."""
        if self._journal is not None:
            self._journal.finish(short=True)

    def restart(self) -> None:
        """Let go of all rows, native pieces and finished shards."""
        self.close()
        self._journal, self._resume = None, False
        self.native.clear()

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return where samples were read, from their rows; nothing without these."""
        if self._rows is None:
            return []
        with open_rows(self._staging.path / self._rows_name) as file:
            return places_in_rows(file, rows)

    def close(self, *, failed: bool = False) -> int:
        """Let go of the files.

        Return the number of shards on record, from which the run can be continued.
        """
        recorded = self._journal.close(failed=failed) if self._journal is not None else 0
        if self._rows is not None:
            self._rows.close()
            self._rows = None
        return recorded


def places_in_rows(file: IO[bytes], rows: Sequence[int]) -> list[str]:
    """Return where the samples of some rows were read, given in ascending order."""
    file.seek(0)
    wanted = set(rows)
    return [
        _place(loads(line)) for at, line in enumerate(islice(file, rows[-1] + 1)) if at in wanted
    ]


def _place(row: Mapping[str, Any]) -> str:
    source = row["source"]
    return f"{Source(**source)}" if source is not None else f"{row['sample']['id']}"
