"""A recorder that keeps nothing on disk; what keeps or hands over its rows is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from gradestack.api import Shard
from gradestack.grading.duplicates import Span
from gradestack.grading.recording import Grades
from gradestack.grading.result import ShardResult
from gradestack.model import Sample


class InProcess:
    """Both halves of a recorder that keeps nothing on disk: one process, one shard after the other."""

    rows = True

    @property
    def pieces(self) -> Self:
        """Itself."""
        return self

    def open(self, shard: Shard) -> Self:
        """Return itself."""
        return self

    def recorded(self, sample: Sample) -> Any:
        """Return None: nothing is written."""

    def row(
        self, sample: Sample, recorded: Any, grades: Grades, submissions: Mapping[str, str]
    ) -> tuple[Sample, Grades]:
        """Return sample and grades as they are; what keeps them overrides this."""
        return sample, grades

    def native(self, artefact: str, text: str, separator: str) -> None:
        """Leave out: there is nowhere to write it."""

    def note(self, shard: Shard, position: int) -> None:
        """Leave out: there is no worker to lose."""

    def last_position(self, shard: Shard) -> tuple[int, float]:
        """Return 0, noted just now."""
        return 0, 0.0

    def close(self) -> None:
        """Keep what was taken."""

    def take_up(self, shards: Sequence[Shard]) -> Iterator[tuple[ShardResult, int]]:
        """Yield nothing: there is no earlier attempt."""
        return iter(())

    def take(self, result: ShardResult, shard: Shard | None) -> int:
        """Return 0: rows are where :meth:`row` put them."""
        return 0

    def finish(self) -> None:
        """Nothing is left to be done."""

    def places(self, wanted: Mapping[Span, Sequence[int]]) -> list[str] | None:
        """Return None: rows are not read again."""
