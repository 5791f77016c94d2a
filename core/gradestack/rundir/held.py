"""The recorder of a run without a directory: rows in memory, beyond some size in a nameless file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence

import attrs

from gradestack.api import Shard
from gradestack.grading.duplicates import Span
from gradestack.grading.plan import Plan
from gradestack.grading.recording import Grades
from gradestack.grading.result import ShardResult
from gradestack.model import Sample
from gradestack.rundir.pieces import RowWriter
from gradestack.rundir.recorder import places_in_rows

LARGEST_IN_MEMORY = 64 << 20
"""Bytes of rows that are kept in memory."""


@attrs.frozen
class HeldPieces:
    """Makes pieces that hand their rows over as bytes."""

    writer: RowWriter
    rows: bool = True

    def open(self, shard: Shard) -> HeldPiece:
        """Return the piece of a shard."""
        return HeldPiece(self.writer)

    def note(self, shard: Shard, position: int) -> None:
        """Leave out: without a directory there are no workers to lose."""

    def last_position(self, shard: Shard) -> int:
        """Return 0."""
        return 0


class HeldPiece:
    """Rows of one shard."""

    def __init__(self, writer: RowWriter) -> None:
        self._line = writer.line
        self._rows = tempfile.SpooledTemporaryFile(LARGEST_IN_MEMORY)  # noqa: SIM115 - closed by who reads it

    def row(self, sample: Sample, grades: Grades, submissions: Mapping[str, str]) -> tuple[Sample, Grades]:
        """Keep the row of one sample; return both as they stand in it."""
        line, sample, grades = self._line(sample, grades, submissions)
        self._rows.write(line)
        return sample, grades

    def native(self, artefact: str, text: str, separator: str) -> None:
        """Leave out: there is nowhere to write it."""

    def close(self) -> tempfile.SpooledTemporaryFile[bytes]:
        """Return the rows."""
        return self._rows


class HeldRecorder:
    """Takes the results of a run that writes nothing.

    Attributes:
        pieces: Its half that travels.
        rows: The rows so far.
    """

    def __init__(self, plan: Plan, *, strict: bool) -> None:
        self.pieces = HeldPieces(RowWriter.of(plan, strict=strict))
        self.rows = tempfile.SpooledTemporaryFile(LARGEST_IN_MEMORY)  # noqa: SIM115 - closed by the report

    def take_up(self, shards: Sequence[Shard]) -> Iterator[tuple[ShardResult, int]]:
        """Yield nothing: there is no earlier attempt."""
        return iter(())

    def take(self, result: ShardResult, shard: Shard | None) -> int:
        """Add a result's rows; return where they start."""
        offset = self.rows.tell()
        with result.parts as rows:
            rows.seek(0)
            while chunk := rows.read(1 << 20):
                self.rows.write(chunk)
        return offset

    def finish(self) -> None:
        """Nothing is left to be done."""

    def places(self, wanted: Mapping[Span, Sequence[int]]) -> list[str] | None:
        """Return where samples were read, from their rows."""
        end = self.rows.tell()
        found = places_in_rows(self.rows, wanted)
        self.rows.seek(end)
        return found
