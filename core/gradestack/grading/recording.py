"""The seam between grading and whatever keeps its results: a directory, memory, or the caller.

It has two halves. ``Pieces`` travels with the worker and takes what one shard writes; a ``Recorder`` stays
with the run and takes finished shards, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gradestack.api import Shard
from gradestack.grading.merging import ShardResult
from gradestack.grading.selection import Span
from gradestack.model import Grade, Sample

Grades = Mapping[str, Grade]
"""Grader key -> grade."""


class WrittenBlock(NamedTuple):
    """A block of samples as it stands in its rows."""

    samples: Sequence[Sample]
    mended: Mapping[tuple[str, int], Grade]
    """Grader key and place in the block -> a failed grade, in place of one that cannot be written."""


class Piece(Protocol):
    """Takes what one shard writes."""

    def recorded(self, samples: Sequence[Sample]) -> Any:
        """Return what ``add_rows`` needs of a block before graders see it, who may change it."""

    def add_rows(
        self,
        samples: Sequence[Sample],
        recorded: Any,
        columns: dict[str, list[Grade]],
        texts: Mapping[str, Sequence[str | None]],
    ) -> WrittenBlock:
        """Take the grades of a block by grader key, and what graders of texts judged."""

    def native(self, artefact: str, text: str, separator: str) -> None:
        """Take one chunk of an exporter's file; ``separator`` stands between two chunks."""

    def close(self) -> Any:
        """Return what the recorder needs to find all that; picklable."""


class Pieces(Protocol):
    """Makes a piece per shard; picklable.

    Attributes:
        rows: Whether samples are wanted one by one; without, only figures and native chunks are.
    """

    @property
    def rows(self) -> bool: ...  # noqa: D102 - above

    def open(self, shard: Shard) -> Piece:
        """Return the piece of a shard."""

    def note(self, shard: Shard, position: int, at_work: str = "") -> None:
        """Keep the position of the record at hand, and who is at work, where it outlives this process."""

    def last_note(self, ordinal: int) -> tuple[int, float, str]:
        """Return the position noted last (0 without any), how many seconds ago, and the grader's key or the step."""


class Recorder(Protocol):
    """Takes finished shards, in order."""

    @property
    def pieces(self) -> Pieces:
        """Its half that travels."""

    def take_up(self, shards: Sequence[Shard]) -> Iterator[tuple[ShardResult, int]]:
        """Yield what an earlier attempt has on record of the first shards, and where their rows start."""

    def take(self, result: ShardResult, shard: Shard | None) -> int:
        """Take the next result and return where its rows start; no shard: samples that no record answers."""

    def finish(self) -> None:
        """Have everything taken safe."""

    def places(self, wanted: Mapping[Span, Sequence[int]]) -> list[str] | None:
        """Return where samples were read, by shard and position in it; None where that is not known."""
