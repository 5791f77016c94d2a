"""The recorder that hands grades to the caller as they are made: one sample after the other, nothing kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

from gradestack.api import Shard
from gradestack.grading.block import Blocks
from gradestack.grading.dataset import unanswered
from gradestack.grading.loop import Loop
from gradestack.grading.plan import Plan
from gradestack.grading.recording import Grades
from gradestack.grading.result import ShardResult
from gradestack.grading.worker import Worker
from gradestack.interpreter import for_a_shard
from gradestack.model import BadRecord, Sample
from gradestack.progress import ProgressCount
from gradestack.rundir.in_process import InProcess


class _Handed(InProcess):
    """Graded samples and bad records, kept until the caller has fetched them."""

    def __init__(self) -> None:
        self.ready: list[tuple[Sample, Grades]] = []
        self.bad: list[BadRecord] = []

    def row(
        self, sample: Sample, recorded: None, grades: Grades, submissions: Mapping[str, str]
    ) -> tuple[Sample, Grades]:
        self.ready.append((sample, grades))
        return sample, grades


def stream_grades(
    plan: Plan, bad: Callable[[BadRecord], None], *, strict: bool = False
) -> Iterator[tuple[Sample, Grades]]:
    """Yield every sample with its grades by grader key, in input order, those no record answers last.

    A block of samples at most is graded ahead of the caller; files are closed when the caller leaves the loop.
    """
    handed = _Handed()
    loop = Loop(plan, handed, ProgressCount(None, plan.main), strict=strict)
    worker = loop.open()
    identities, seen = loop.merging.identities, set[tuple[str, str, str]]()
    anything = False
    for shard in loop.shards:
        with closing(worker.records(shard)) as records:
            result = ShardResult(ordinal=shard.ordinal, input=shard.input.name, seen=seen)
            for record in _graded(worker, shard, records, result, handed):
                if isinstance(record, BadRecord):
                    bad(record)
                else:
                    anything = True
                    yield record
        identities.add(bytes(result.keys), shard.ordinal)
        if identities.repeated(1)[0]:
            raise loop.repeated()
    if not anything:
        raise loop.nothing()
    if worker.dataset is not None:
        shard = Shard(ordinal=len(loop.shards), input=plan.inputs.data[-1])
        result = ShardResult(ordinal=shard.ordinal, input=shard.input.name, seen=set())
        for record in _graded(worker, shard, unanswered(worker.dataset, seen), result, handed):
            if not isinstance(record, BadRecord):
                yield record


def _graded(
    worker: Worker, shard: Shard, records: Iterator[Sample | BadRecord], result: ShardResult, handed: _Handed
) -> Iterator[tuple[Sample, Grades] | BadRecord]:
    """Yield what one shard comes to; what is set for the time of grading is not set while the caller works."""
    with Blocks(worker, shard, result) as blocks:
        more = True
        while more:
            with for_a_shard():
                more = _next_block(records, blocks, handed)
            yield from handed.ready
            yield from handed.bad
            handed.ready.clear()
            handed.bad.clear()
            if worker.plan.duplicates != "error":
                result.keys.clear()


def _next_block(records: Iterator[Sample | BadRecord], blocks: Blocks, handed: _Handed) -> bool:
    """Grade until there is something to hand over; return whether there may be more."""
    for record in records:
        blocks.take(record)
        if isinstance(record, BadRecord):
            handed.bad.append(record)
        if handed.ready or handed.bad:
            return True
    blocks.grade()
    return False
