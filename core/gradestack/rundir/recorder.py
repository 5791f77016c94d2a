"""Recorders of a run: into its directory, or into memory."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, TextIO

from typing_extensions import override

from gradestack.api import Shard
from gradestack.grading.merging import ShardResult
from gradestack.grading.recording import (
    GradeColumns,
    JudgedTexts,
    Recorder,
    ShardWriter,
    ShardWriters,
)
from gradestack.jsonio.values import loads
from gradestack.model import Sample, Source
from gradestack.rows.packed import PACKED_ROWS, ROWS, PackedWriter, create_rows, open_rows
from gradestack.rows.write import RowEncoder
from gradestack.rundir.header import fingerprint
from gradestack.rundir.journal import Journal, ShardFiles
from gradestack.rundir.place import GrowingFile, Staging
from gradestack.suites.spec import RECORDED, Suite

LARGEST_IN_MEMORY = 64 << 20
"""Bytes of rows that are kept in memory."""


class RowFile(ShardWriter):
    """Writes rows into a file; without a file it keeps none."""

    def __init__(
        self, encoder: RowEncoder, rows: IO[bytes] | PackedWriter | EndOfRows | None
    ) -> None:
        self._encoder, self._rows = encoder, rows

    @override
    def encode_samples(self, samples: Sequence[Sample]) -> tuple[Any, Sequence[Sample]]:
        if self._rows is None:
            return super().encode_samples(samples)
        return self._encoder.encode_samples(samples)

    @override
    def save_rows(
        self,
        samples: Sequence[Sample],
        encoded: Any,
        columns: GradeColumns,
        texts: JudgedTexts,
    ) -> GradeColumns:
        if self._rows is None:
            return columns
        pieces, written = self._encoder.encode_rows(samples, encoded, columns, texts)
        self._rows.writelines(pieces)
        return written


_NOBODY = -1
"""Ordinal of no shard."""


class EndOfRows:
    """The end of results.jsonl, where the shard whose turn it is writes its rows at once.

    All others, and those of other processes, have files of their own, which are appended later.
    """

    def __init__(self, file: GrowingFile, ordinal: int) -> None:
        """Give the first turn to the shard with this ordinal."""
        self._file, self._ordinal, self._process = file, ordinal, os.getpid()
        self._lock = threading.Lock()

    def claim(self, shard: Shard) -> bool:
        """Return whether a shard may write here; if it is tried again, it may not."""
        with self._lock:
            is_due = shard.ordinal == self._ordinal and os.getpid() == self._process
            if is_due:
                self._ordinal = _NOBODY
            return is_due

    def pass_on(self, ordinal: int) -> None:
        """Give the turn to the shard with this ordinal."""
        with self._lock:
            self._ordinal = ordinal

    def writelines(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Write rows."""
        self._file.write_ahead(pieces)

    def close(self) -> None:
        """Leave the file open for the next shard."""


class FileShardWriters(ShardWriters):
    """Opens the files of shards in a folder.

    Attributes:
        folder: The folder; an engine on other machines checks that they see it.
        keeps_rows: Whether rows are written.
        end: Where the shard whose turn it is writes, in the process that keeps the results.
    """

    end: EndOfRows | None = None

    def __init__(self, folder: Path, encoder: RowEncoder, rows_name: str | None = ROWS) -> None:
        """Write rows into files that end like ``rows_name``; None: into none."""
        self.folder = folder
        self._encoder = encoder
        self._rows_name = rows_name
        self.keeps_rows = rows_name is not None

    @override
    def open(self, shard: Shard) -> FileShardWriter:
        # A name of its own: a shard may be done twice at once, when a machine is lost after its
        # result was handed over.
        name = self.folder / f"{shard.ordinal:08d}-{os.urandom(4).hex()}"
        if self.end is not None and self.end.claim(shard):
            return FileShardWriter(name, self._encoder, self.end)
        if self._rows_name is None:
            return FileShardWriter(name, self._encoder, None)
        return FileShardWriter(name, self._encoder, name.with_suffix(f".rows.{self._rows_name}"))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "end": None}


class FileShardWriter(RowFile):
    """Writes the files of one shard; those of native chunks are opened when first written."""

    def __init__(self, name: Path, encoder: RowEncoder, rows: Path | EndOfRows | None) -> None:
        """Write rows into a file of their own, at the end of those that are there, or nowhere."""
        self._name = name
        self._rows_path = rows if isinstance(rows, Path) else None
        super().__init__(encoder, create_rows(rows) if isinstance(rows, Path) else rows)
        self._native: dict[str, tuple[Path, TextIO]] = {}

    @override
    def save_native(self, artefact: str, text: str, separator: str) -> None:
        if artefact in self._native:
            _, file = self._native[artefact]
            file.write(separator)
        else:
            path = self._name.with_suffix(f".{len(self._native)}.native")
            file = path.open("w", encoding="utf-8", newline="", errors="surrogatepass")
            self._native[artefact] = path, file
        file.write(text)

    @override
    def close(self) -> ShardFiles:
        try:
            if self._rows is not None:
                self._rows.close()
        finally:
            for _, file in self._native.values():
                file.close()
        native = {artefact: path for artefact, (path, _) in self._native.items()}
        return ShardFiles(self._rows_path, native)


class _OneWriter(ShardWriters):
    """Writes all shards with one writer, which nobody closes: they are graded in this process."""

    def __init__(self, writer: ShardWriter) -> None:
        self._writer = writer

    @override
    def open(self, shard: Shard) -> ShardWriter:
        return self._writer


class MemoryRecorder(Recorder):
    """Keeps the rows of a run that writes no directory.

    Attributes:
        file: Rows as they would stand in results.jsonl; closed with the report.
    """

    def __init__(self, suite: Suite, *, strict: bool) -> None:
        self.file = tempfile.SpooledTemporaryFile(LARGEST_IN_MEMORY)  # noqa: SIM115
        encoder = RowEncoder.of(suite, suite.success, strict=strict)
        row_file = RowFile(encoder, self.file)
        self.writers = _OneWriter(row_file)

    @override
    def restart(self) -> None:
        self.file.seek(0)
        self.file.truncate()

    @override
    def read_places(self, rows: Sequence[int]) -> list[str]:
        end = self.file.tell()
        places = _read_places(self.file, rows)
        self.file.seek(end)
        return places


class DirectoryRecorder(Recorder):
    """Keeps the results of a run in its directory.

    Attributes:
        started: When the run was begun, by its first attempt.
        native: (input, ``exporter/artefact``) -> its pieces, in shard order.
        damaged: Whether what an earlier attempt had on record cannot be read.
    """

    def __init__(
        self, suite: Suite, staging: Staging, started: str, *, strict: bool, resume: bool
    ) -> None:
        """Prepare the writers of rows for a suite's report directory, with no journal yet."""
        self._suite = suite
        self._staging = staging
        self.started = started
        self._strict = strict
        self._keep_rows = suite.rows != "none"
        self._resume = resume
        self._rows_name = PACKED_ROWS if suite.rows == "compressed" else ROWS
        encoder = RowEncoder.of(suite, suite.success, strict=strict)
        rows_name = self._rows_name if self._keep_rows else None
        self._shard_files = FileShardWriters(staging.parts, encoder, rows_name)
        self.writers = self._shard_files
        self.native: dict[tuple[str, str], list[Path]] = {}
        self.damaged = False
        self._journal: Journal | None = None
        """Where finished shards are recorded; None where there is nothing to be continued."""
        self._rows: GrowingFile | None = None
        self._n_saved = 0
        """Shards that are kept."""

    @override
    def load_finished(self, shards: Sequence[Shard]) -> Iterator[ShardResult]:
        has_earlier = self._resume and self._staging.journal.is_file()
        if len(shards) > 1 or has_earlier:
            rows = RECORDED[self._suite.rows]
            mark = fingerprint(self._suite, strict=self._strict, rows=rows)
            self._journal = Journal(self._staging, mark, self.started, self._rows_name)
        if self._journal is not None and has_earlier:
            for result in self._journal.load(shards):
                self._n_saved += 1
                self._keep_native(result)
                yield result
            self.started = self._journal.started
            self.damaged = self._journal.damaged
        if self._keep_rows:
            size = self._journal.rows if self._journal is not None else 0
            self._rows = GrowingFile(self._staging.path / self._rows_name, size)
            if self._rows_name == ROWS:
                self._shard_files.end = EndOfRows(self._rows, self._n_saved)
        if self._journal is not None:
            self._journal.begin(self._rows)

    @override
    def save(self, result: ShardResult, shard: Shard | None) -> None:
        size = self._save_rows(result.parts.rows)
        if self._journal is not None and shard is not None and not result.interrupted:
            self._journal.note(result, shard, size)
        self._keep_native(result)
        self._n_saved += 1
        if self._shard_files.end is not None:
            self._shard_files.end.pass_on(self._n_saved)

    def _save_rows(self, rows: Path | None) -> int:
        """Take the rows of a shard, in a file of their own or written already; return bytes."""
        if self._rows is None:
            return 0
        return self._rows.accept() if rows is None else self._rows.append(rows)

    def _keep_native(self, result: ShardResult) -> None:
        for artefact, path in result.parts.native.items():
            self.native.setdefault((result.input, artefact), []).append(path)

    @override
    def finish(self) -> None:
        if self._journal is not None:
            self._journal.finish(if_worth_it=True)

    @override
    def restart(self) -> None:
        self.close()
        self._journal, self._resume, self._n_saved = None, False, 0
        self.native.clear()

    @override
    def read_places(self, rows: Sequence[int]) -> list[str]:
        if self._rows is None:
            return []
        with open_rows(self._staging.path / self._rows_name) as file:
            return _read_places(file, rows)

    def close(self, *, failed: bool = False) -> int:
        """Close the files, also after the disk ``failed``.

        Returns:
            The number of shards on record, from which the run can be continued.
        """
        recorded = self._journal.close(failed=failed) if self._journal is not None else 0
        if self._rows is not None:
            self._rows.close()
            self._rows = None
        return recorded


def _read_places(file: IO[bytes], rows: Sequence[int]) -> list[str]:
    """Return where the samples of some rows were read; rows are given in ascending order."""
    file.seek(0)
    wanted = set(rows)
    last_row = rows[-1]
    lines = islice(file, last_row + 1)
    return [_place_of(loads(line)) for number, line in enumerate(lines) if number in wanted]


def _place_of(row: Mapping[str, Any]) -> str:
    source = row["source"]
    return f"{Source(**source)}" if source is not None else f"{row['sample']['id']}"
