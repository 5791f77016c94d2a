"""What one shard writes: rows and native chunks, in files of its own beside the run directory in the making."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TextIO

import msgspec

from gradestack.api import Shard
from gradestack.grading.recording import WrittenBlock
from gradestack.model import Sample
from gradestack.rows.write import Columns, Recorded, RowWriter, Texts

_BUFFER = 1 << 18
"""Bytes of rows that are written at once."""


class Parts(msgspec.Struct, frozen=True):
    """The files of one shard."""

    rows: Path | None
    native: Mapping[str, Path]
    """``exporter/artefact`` -> chunks."""


class FilePieces(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the pieces of a run that is written into a directory."""

    folder: Path
    writer: RowWriter
    rows: bool = True

    def open(self, shard: Shard) -> FilePiece:
        """Return the piece of a shard."""
        # A name of its own: a shard may be done twice at once, when a machine is lost after its result was handed over.
        return FilePiece(self.folder / f"{shard.ordinal:08d}-{os.urandom(4).hex()}", self.writer, rows=self.rows)

    def _note(self, ordinal: int) -> Path:
        return self.folder / f"{ordinal:08d}.at"

    def note(self, shard: Shard, position: int, at_work: str = "") -> None:
        """Keep the position of the record at hand, and who is at work, where it outlives this process."""
        self._note(shard.ordinal).write_text(f"{position}\n{at_work}", encoding="utf-8", errors="surrogatepass")

    def last_note(self, ordinal: int) -> tuple[int, float, str]:
        """Return the position noted last (0 without any), how many seconds ago, and the grader's key or the step."""
        if not (note := self._note(ordinal)).exists():
            return 0, 0.0, ""
        position, _, at_work = note.read_text(encoding="utf-8", errors="surrogatepass").partition("\n")
        return int(position), time.time() - note.stat().st_mtime, at_work


class RowLines:
    """Writes the rows of blocks into a file; None keeps none."""

    def __init__(self, writer: RowWriter, rows: IO[bytes] | None) -> None:
        self._writer, self._rows = writer, rows

    def recorded(self, samples: Sequence[Sample]) -> Recorded:
        """Return what is recorded of samples, written."""
        return self._writer.recorded(samples)

    def add_rows(self, samples: Sequence[Sample], recorded: Recorded, columns: Columns, texts: Texts) -> WrittenBlock:
        """Write the rows of a block; return it as it stands in them."""
        lines, kept = self._writer.lines(samples, recorded, columns, texts)
        if self._rows is not None:
            self._rows.writelines(lines)
        return kept


class FilePiece(RowLines):
    """Files of one shard; those of native chunks are opened when first written."""

    def __init__(self, name: Path, writer: RowWriter, *, rows: bool) -> None:
        self._name = name
        super().__init__(writer, name.with_suffix(".rows.jsonl").open("wb", _BUFFER) if rows else None)
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
