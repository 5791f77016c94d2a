"""What happens to one shard: samples in; rows, native parts, aggregator states and counts out.

A worker is picklable and holds everything it needs, so that any engine can run it anywhere. Only shards go to a worker
and only finished pieces come back; samples never cross a process border.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Exporter, Reader, Shard
from gradestack.gates.rules import SampleRule
from gradestack.grading.block import ShardWork
from gradestack.grading.guarded import TRACEBACKS
from gradestack.grading.interpreter import even_depth, fewer_collections
from gradestack.grading.interruption import Interruption
from gradestack.grading.plan import GraderSlot, MetricSlot
from gradestack.grading.reading import records_of
from gradestack.grading.result import ShardResult
from gradestack.grading.selection import Selection
from gradestack.model import BadRecord, Sample

TICKS_EVERY = 64
"""Samples between two reports of progress."""


@attrs.frozen(kw_only=True)
class Worker:
    """Turns shards into results; see the module's docstring."""

    files: object = None
    """The user's own code. First, so that it is loaded before what is of its classes is unpickled."""
    reader: Reader
    index: Any
    graders: tuple[GraderSlot, ...]
    metrics: tuple[MetricSlot, ...]
    exporters: tuple[tuple[str, Exporter], ...]
    gate: SampleRule | None
    headline: str
    parts: Path
    """Directory for the pieces of rows and native files."""
    rows: bool = True
    """False: no rows are written, only figures and native files."""
    strict: bool = False
    join: Mapping[str, Sample] | None = None
    """Dataset rows by id."""
    by_run: bool = False
    """Every run of a task answers for itself: a dataset row may be missing from one of them."""
    same_inputs: bool = False
    """Refuse a sample whose input differs from its dataset row's."""
    selection: Selection | None = None
    tick: Callable[[int], None] | None = attrs.field(default=None, eq=False)
    """Called with the number of samples done since the last call; dropped when the worker is pickled."""

    watch: bool = False
    """Note the position of every record before it is read, so that the one that kills the process can be named."""
    poison: frozenset[tuple[int, int]] = frozenset()
    """(shard, position) of records that kill a process: reported as failed, not graded."""

    def watched(self) -> Worker:
        """Return this worker, noting how far it got."""
        return attrs.evolve(self, watch=True)

    def last_position(self, shard: Shard) -> int:
        """Return the position of the record a watched worker was at when its process died."""
        note = self._note(shard)
        return int(note.read_text(encoding="ascii")) if note.exists() else 0

    def isolated(self, ordinal: int, position: int) -> Worker:
        """Return this worker, leaving one record of one shard ungraded."""
        return attrs.evolve(self, poison=self.poison | {(ordinal, position)})

    def _note(self, shard: Shard) -> Path:
        return self.parts / f"{shard.ordinal:08d}.at"

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in attrs.fields(Worker)}
        return {**state, "tick": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __call__(self, shard: Shard) -> ShardResult:
        """Grade one shard.

        Raises:
            DataError: The reader cannot read it at all, or a record is bad and ``strict`` is set.
            PluginError: The reader is broken, or any other component and ``strict`` is set.
        """
        return self.process(shard, records_of(self.reader, shard, self.index))

    def process(self, shard: Shard, records: Iterator[Sample | BadRecord]) -> ShardResult:
        """Grade records as the content of ``shard``."""
        result = ShardResult(ordinal=shard.ordinal, input=shard.input.name)
        TRACEBACKS.clear()
        with (
            Interruption() as interruption,
            ShardWork(self, shard, result, interruption) as work,
            even_depth(),
            fewer_collections(),
        ):
            told = 0
            take, watch, tick = work.take, self.watch, self.tick
            try:
                for record in records:
                    if interruption.requested:
                        break
                    if watch:
                        self._note(shard).write_text(str(work.position), encoding="ascii")
                    take(record)
                    if tick is not None and result.samples >= told + TICKS_EVERY:
                        tick(result.samples - told)
                        told = result.samples
            except KeyboardInterrupt:
                if work.torn:
                    raise
                result.interrupted = True
            work.finish()
            result.interrupted |= interruption.requested
            result.tracebacks = dict(TRACEBACKS)
        if tick is not None:
            tick(result.samples - told)
        return result
