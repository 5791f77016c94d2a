"""What happens to one shard: samples in; rows, native chunks, aggregator states and counts out.

A worker is picklable, so that any engine can run it anywhere. Samples never cross a process border.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import attrs

from gradestack.api import Shard
from gradestack.grading.block import Assignment, ShardGrader
from gradestack.grading.guarded import TRACEBACKS
from gradestack.grading.interruption import Interruption
from gradestack.grading.reading import blocks_of
from gradestack.grading.result import ShardResult
from gradestack.interpreter import for_a_shard
from gradestack.model import BadRecord, Fault, Sample, replace

_REPORTED_EVERY = 64
"""Samples between two reports of progress."""


@attrs.frozen(kw_only=True)
class Worker(Assignment):
    """Turns shards into results; see the module's docstring."""

    progress: Callable[[int], None] | None = attrs.field(default=None, eq=False)
    """Called with the number of samples done since the last call; dropped when the worker is pickled."""

    def watched(self) -> Worker:
        """Return this worker, noting how far it got."""
        return attrs.evolve(self, noting=True)

    def last_note(self, shard: Shard) -> tuple[int, float, str]:
        """Return the record a watched worker was at when its process died, for how many seconds, and in which step."""
        return self.pieces.last_note(shard.ordinal)

    def isolated(self, ordinal: int, position: int, fault: Fault) -> Worker:
        """Return this worker, leaving one record of one shard ungraded; by the grader alone that was at work on it."""
        place = (ordinal, position)
        graders = {stage.key: stage for stage in self.plan.graders}
        stage, known = graders.get(self.pieces.last_note(ordinal)[2]), self.spared.get(place, {})
        if stage is None or stage.key in known:
            return attrs.evolve(self, poison={**self.poison, place: fault})
        named = replace(fault, component=stage.signature)
        return attrs.evolve(self, spared={**self.spared, place: {**known, stage.key: named}})

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in attrs.fields(Worker)}
        return {**state, "progress": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def blocks(self, shard: Shard) -> Generator[list[Sample | BadRecord]]:
        """Yield the records of a shard, some at a time."""
        return blocks_of(self.plan.reader.component, shard, self.index)

    def __call__(self, shard: Shard) -> ShardResult:
        """Grade one shard."""
        return self.process(shard, self.blocks(shard))

    def process(self, shard: Shard, blocks: Iterable[list[Sample | BadRecord]]) -> ShardResult:
        """Grade records as the content of ``shard``."""
        result = ShardResult(ordinal=shard.ordinal, input=shard.input.name)
        TRACEBACKS.clear()
        with (
            Interruption() as interruption,
            ShardGrader(self, shard, result, interruption) as grader,
            for_a_shard(self.plan.limits) as found,
        ):
            reported, progress = 0, self.progress
            try:
                for block in blocks:
                    if interruption.requested:
                        break
                    grader.take(block)
                    if progress is not None and result.samples >= reported + _REPORTED_EVERY:
                        progress(result.samples - reported)
                        reported = result.samples
            except KeyboardInterrupt:
                if grader.torn:
                    raise
                result.interrupted = True
            grader.finish()
            result.interrupted |= interruption.requested
            result.timed_out += found.timed_out
            result.tracebacks = dict(TRACEBACKS)
        if progress is not None:
            progress(result.samples - reported)
        return result
