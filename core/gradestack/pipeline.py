"""What happens to one shard: samples in; rows, native parts, aggregator states and counts out.

A worker is picklable and holds everything it needs, so that any engine can run it anywhere. Only shards go to a worker
and only finished pieces come back; samples never cross a process border.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Aggregator, Exporter, Reader, Shard
from gradestack.collector import fewer_collections
from gradestack.depth import even_depth
from gradestack.gate import SampleRule
from gradestack.guard import Interruption, records_of
from gradestack.model import BadRecord, Sample
from gradestack.selection import Selection
from gradestack.shardwork import ShardWork
from gradestack.slots import GraderSlot
from gradestack.tally import Tally

TICKS_EVERY = 64
"""Samples between two reports of progress."""


@attrs.frozen(kw_only=True)
class MetricSlot:
    """An aggregator, its key, and the key of the grader it reads."""

    key: str
    of: str
    aggregator: Aggregator[Any]


@attrs.define(kw_only=True)
class ShardResult:
    """Everything one shard came to."""

    ordinal: int
    input: str
    samples: int = 0
    rows: Path | None = None
    native: dict[str, Path] = attrs.field(factory=dict)
    states: dict[str, Any] = attrs.field(factory=dict)
    """``grader/metric`` -> aggregator state."""
    tally: Tally = attrs.field(factory=dict)
    bad: int = 0
    bad_listed: list[dict[str, Any]] = attrs.field(factory=list)
    keys: bytearray = attrs.field(factory=bytearray)
    """Eight bytes per sample that is not missing: digests of (id, model, run), for finding duplicates."""
    superseded: list[str] = attrs.field(factory=list)
    """Places of records left out because a later one of the same (id, model, run) counts."""
    seen: set[tuple[str, str, str]] = attrs.field(factory=set)
    """(model, id, run as JSON or "" where runs are not told apart), only kept when a dataset is joined."""
    broken: dict[str, str] = attrs.field(factory=dict)
    """Aggregators (``grader/metric``) and exporters (name) that raised, with what they said."""
    timings: dict[str, float] = attrs.field(factory=dict)
    """Grader key -> seconds."""
    interrupted: bool = False


@attrs.frozen(kw_only=True)
class Worker:
    """Turns shards into results; see the module's docstring."""

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
        if tick is not None:
            tick(result.samples - told)
        return result
