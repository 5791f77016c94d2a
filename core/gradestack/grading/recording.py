"""Keeping what a run comes to: a writer for every shard, and one recorder for all of them.

A shard writer works where its shard is graded, maybe in another process. The recorder stays with
the run: it takes finished shards in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradestack.api import Shard
from gradestack.grading.merging import ShardResult
from gradestack.model import Grade, Sample

GradeColumns = dict[str, list[Grade]]
"""Grader key -> its grades of a block."""
JudgedTexts = Mapping[str, Sequence[str | None]]
"""Key of a grader of texts -> the texts it judged in a block."""


class ShardWriter:
    """Takes what one shard comes to. This one keeps nothing."""

    def encode_samples(self, samples: Sequence[Sample]) -> tuple[Any, Sequence[Sample]]:
        """Encode a block before graders, who may change samples, see it.

        Returns:
            What ``save_rows`` needs of the block, and the samples that are to be graded.
        """
        return None, samples

    def save_rows(
        self,
        samples: Sequence[Sample],
        encoded: Any,
        columns: GradeColumns,
        texts: JudgedTexts,
    ) -> GradeColumns:
        """Write the rows of a block.

        Returns:
            The grades as they stand in the rows: a failed one in place of each that cannot be
            written. A column in which nothing was replaced is the list that was given.
        """
        return columns

    def save_native(self, artefact: str, text: str, separator: str) -> None:
        """Write one chunk of an exporter's file, behind a separator where it is not the first."""

    def close(self) -> Any:
        """Close the files and return where they are; the answer can be pickled."""
        return None


class ShardWriters:
    """Opens a writer for each shard; can be pickled where its shards are graded elsewhere."""

    keeps_rows = True
    """Whether samples are wanted one by one; without, figures and native chunks alone are."""

    def open(self, shard: Shard) -> ShardWriter:
        """Return a new writer for a shard."""
        return ShardWriter()


class Recorder:
    """Keeps the results of a run. This one keeps nothing."""

    writers: ShardWriters

    def load_finished(self, shards: Sequence[Shard]) -> Iterator[ShardResult]:
        """Yield the results that an earlier attempt has on record, those of the first shards."""
        return iter(())

    def save(self, result: ShardResult, shard: Shard | None) -> None:
        """Keep the next result; without a shard it is of samples that no record answers."""

    def finish(self) -> None:
        """Force everything that was saved to the disk."""

    def restart(self) -> None:
        """Drop everything that was saved: all of it is graded anew."""

    def read_places(self, rows: Sequence[int]) -> list[str]:
        """Return where the samples of some rows were read, in ascending order of the rows.

        The answer is empty where no rows are kept.
        """
        return []
