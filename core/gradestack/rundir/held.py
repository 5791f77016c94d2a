"""The recorder of a run without a directory: rows in memory, beyond some size in a nameless file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence

from gradestack.api import Shard
from gradestack.grading.duplicates import Span
from gradestack.grading.recording import Grades
from gradestack.grading.result import ShardResult
from gradestack.model import Sample
from gradestack.rows.mending import Recorded
from gradestack.rundir.in_process import InProcess
from gradestack.rundir.pieces import RowWriter
from gradestack.rundir.recorder import places_in_rows
from gradestack.suites.spec import Suite

LARGEST_IN_MEMORY = 64 << 20
"""Bytes of rows that are kept in memory."""


class HeldRows(InProcess):
    """Takes the results of a run that writes nothing.

    Attributes:
        file: The rows so far, as they would stand in results.jsonl.
    """

    def __init__(self, suite: Suite, *, strict: bool) -> None:
        self._writer = RowWriter.of(suite, suite.success, strict=strict)
        self.file = tempfile.SpooledTemporaryFile(LARGEST_IN_MEMORY)  # noqa: SIM115 - closed with the report
        self._offset = 0

    def recorded(self, sample: Sample) -> Recorded:
        """Return what is recorded of a sample, written."""
        return self._writer.recorded(sample)

    def row(
        self, sample: Sample, recorded: Recorded, grades: Grades, submissions: Mapping[str, str]
    ) -> tuple[Sample, Grades]:
        """Keep the row of one sample; return both as they stand in it."""
        line, grades = self._writer.line(sample, recorded, grades, submissions)
        self.file.writelines(line)
        return recorded.sample, grades

    def lines(self) -> Iterator[bytes]:
        """Yield the rows of a run that has ended."""
        self.file.seek(0)
        return iter(self.file)

    def take(self, result: ShardResult, shard: Shard | None) -> int:
        """Return where the rows of the shard start."""
        offset, self._offset = self._offset, self.file.tell()
        return offset

    def places(self, wanted: Mapping[Span, Sequence[int]]) -> list[str] | None:
        """Return where samples were read, from their rows."""
        end = self.file.tell()
        found = places_in_rows(self.file, wanted)
        self.file.seek(end)
        return found
