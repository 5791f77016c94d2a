"""The recorder of a run directory: rows joined in order, native chunks kept, finished ranges on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from gradestack.api import Shard
from gradestack.grading.duplicates import Span, picked
from gradestack.grading.result import ShardResult
from gradestack.jsonio.values import loads
from gradestack.model import Source, Status
from gradestack.report import ROWS
from gradestack.rundir.fingerprint import fingerprint
from gradestack.rundir.journal import Journal
from gradestack.rundir.memory import MemoryGuard
from gradestack.rundir.pieces import FilePieces, RowWriter
from gradestack.rundir.rows_file import RowsFile
from gradestack.rundir.staging import Staging
from gradestack.suites.spec import RECORDED, Suite


class DirectoryRecorder:
    """Takes the results of a run into the directory it is written in.

    Attributes:
        pieces: Its half that travels.
        native: (input, ``exporter/artefact``) -> chunks, in shard order.
        started: When the run was begun; for a continued one, when its first attempt was.
        damaged: Whether an earlier attempt's record could not be read.
    """

    def __init__(self, suite: Suite, staging: Staging, started: str, *, strict: bool, resume: bool) -> None:
        self._suite, self._staging, self.started = suite, staging, started
        self._strict, self._keep_rows, self._resume = strict, suite.rows != "none", resume
        writer = RowWriter.of(suite, suite.success, strict=strict, slim=suite.rows == "slim")
        self.pieces = FilePieces(folder=staging.parts, rows=self._keep_rows, writer=writer)
        self.native: dict[tuple[str, str], list[Path]] = {}
        self.damaged = False
        self._journal: Journal | None = None
        """Where finished shards are recorded; None where there is nothing to be continued."""
        self._rows: RowsFile | None = None
        self._memory: MemoryGuard | None = None

    def take_up(self, shards: Sequence[Shard]) -> Iterator[tuple[ShardResult, int]]:
        """Open results.jsonl and, where there is anything to be continued, the journal; yield what they hold."""
        known = self._resume and self._staging.journal.is_file()
        done = 0
        if len(shards) > 1 or known:
            mark = fingerprint(self._suite, strict=self._strict, rows=RECORDED[self._suite.rows])
            self._journal = Journal(self._staging, mark, self.started)
            if self._resume:
                for result, offset in self._journal.take_up(shards):
                    self._keep_native(result)
                    done += 1
                    yield result, offset
                self.started, self.damaged = self._journal.started, known and self._journal.damaged
        if self._keep_rows:
            self._rows = RowsFile(self._staging.path / ROWS, self._journal.rows if self._journal is not None else 0)
        if self._journal is not None:
            self._journal.begin(self._rows)
        self._memory = MemoryGuard(shards[done:])

    def take(self, result: ShardResult, shard: Shard | None) -> int:
        """Add a result's rows to results.jsonl and have it recorded; return where its rows start."""
        if self._memory is not None and shard is not None:
            self._memory.look(result, shard)
        offset = self._rows.size if self._rows is not None else 0
        rows = result.parts.rows
        size = self._rows.append(rows) if self._rows is not None and rows is not None else 0
        if self._journal is not None and shard is not None and not result.interrupted:
            self._journal.note(result, shard, size)
        self._keep_native(result)
        return offset

    def _keep_native(self, result: ShardResult) -> None:
        for artefact, path in result.parts.native.items():
            self.native.setdefault((result.input, artefact), []).append(path)

    def finish(self) -> None:
        """Have everything taken down on disk; where little was, there is little to lose."""
        if self._journal is not None:
            self._journal.finish(short=True)

    def places(self, wanted: Mapping[Span, Sequence[int]]) -> list[str] | None:
        """Return where samples were read, from their rows; None without rows."""
        if self._rows is None:
            return None
        with (self._staging.path / ROWS).open("rb") as rows:
            return places_in_rows(rows, wanted)

    def close(self, *, failed: bool = False) -> int:
        """Let go of the files; return the number of shards on record, from which the run can be continued."""
        recorded = self._journal.close(failed=failed) if self._journal is not None else 0
        if self._rows is not None:
            self._rows.close()
            self._rows = None
        return recorded


def places_in_rows(rows: IO[bytes], wanted: Mapping[Span, Sequence[int]]) -> list[str]:
    """Return the places of samples, by shard and position in it, from the rows written so far."""
    found: list[str] = []
    for span, positions in wanted.items():
        rows.seek(span.offset)
        read = (loads(line) for line in islice(rows, span.samples))
        found += picked((_place(row) for row in read if row["status"] != Status.MISSING), positions)
    return found


def _place(row: Mapping[str, Any]) -> str:
    source = row["source"]
    return f"{Source(**source)}" if source is not None else f"{row['sample']['id']}"
