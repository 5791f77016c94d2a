"""Samples with their grades, one after the other, a block ahead of who asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from typing_extensions import override

from gradestack.api import Shard
from gradestack.copies.files import named_as_given
from gradestack.grading.loop import Loop, ProgressCount, repeated
from gradestack.grading.merging import Grades, ShardResult
from gradestack.grading.plan import Plan
from gradestack.grading.reading import shards_in
from gradestack.grading.recording import (
    GradeColumns,
    JudgedTexts,
    Recorder,
    ShardWriter,
    ShardWriters,
)
from gradestack.grading.selection import Identity, identity_of, unanswered
from gradestack.grading.worker import ShardGrader, Worker
from gradestack.interpreter import for_a_shard
from gradestack.model import BadRecord, Sample, Status


class _Outbox(ShardWriter, ShardWriters, Recorder):
    """Holds graded samples until the caller takes them."""

    def __init__(self) -> None:
        self.writers = self
        self.graded: list[tuple[Sample, Grades]] = []
        self.bad: list[BadRecord] = []

    @override
    def open(self, shard: Shard) -> ShardWriter:
        return self

    @override
    def save_rows(
        self,
        samples: Sequence[Sample],
        encoded: None,
        columns: GradeColumns,
        texts: JudgedTexts,
    ) -> GradeColumns:
        for sample, grades in zip(samples, zip(*columns.values(), strict=True), strict=True):
            self.graded.append((sample, dict(zip(columns, grades, strict=True))))
        return columns

    def take_all(self) -> Iterator[tuple[Sample, Grades] | BadRecord]:
        """Yield everything that is held, and hold nothing afterwards."""
        yield from self.graded
        yield from self.bad
        self.graded.clear()
        self.bad.clear()


def stream_grades(
    plan: Plan, bad: Callable[[BadRecord], None], *, strict: bool = False
) -> Iterator[tuple[Sample, Grades]]:
    """Yield every sample with its grades by grader key.

    Samples come in input order, those that no record answers last.

    Raises:
        DataError: A record repeats an earlier one where the plan forbids it, an input changed
            meanwhile, or nothing could be read.
    """
    outbox = _Outbox()
    loop = Loop(plan, outbox, ProgressCount(None, plan.main), strict=strict)
    with named_as_given():
        worker = loop.open()
        identities, answered, is_empty = set[Identity](), set[tuple[str, str, str]](), True
        for shard in loop.shards:
            result = ShardResult(ordinal=shard.ordinal, input=shard.input.name, seen=answered)
            with closing(worker.blocks(shard)) as blocks:
                for record in _grade_blocks(worker, shard, blocks, result, outbox):
                    if isinstance(record, BadRecord):
                        bad(record)
                        continue
                    is_empty = False
                    if plan.duplicates == "error":
                        _check_new(record[0], identities)
                    yield record
            loop.files.check([shard], [each.input.path for each in shards_in(shard)])
        loop.files.check(loop.shards)
        if is_empty:
            raise loop.nothing()
        if worker.dataset is None:
            return
        shard = Shard(ordinal=len(loop.shards), input=plan.inputs.data[-1])
        result = ShardResult(ordinal=shard.ordinal, input=shard.input.name, seen=set())
        absent = ([sample] for sample in unanswered(worker.dataset, answered))
        for record in _grade_blocks(worker, shard, absent, result, outbox):
            if not isinstance(record, BadRecord):
                yield record


def _check_new(sample: Sample, identities: set[Identity]) -> None:
    """Refuse a record that repeats one of those before it."""
    if sample.status is Status.MISSING:
        return
    identity = identity_of(sample)
    if identity in identities:
        raise repeated(f"{sample.source or sample.id}")
    identities.add(identity)


def _grade_blocks(
    worker: Worker,
    shard: Shard,
    blocks: Iterable[Sequence[Sample | BadRecord]],
    result: ShardResult,
    outbox: _Outbox,
) -> Iterator[tuple[Sample, Grades] | BadRecord]:
    """Yield what one shard comes to.

    The settings of the interpreter for grading are in force while graders work, and not while the
    caller does.
    """
    waiting = iter(blocks)
    with ShardGrader(worker, shard, result) as grader:
        is_done = False
        while not is_done:
            with for_a_shard(worker.plan.limits):
                for block in waiting:
                    grader.take(block)
                    outbox.bad += [record for record in block if isinstance(record, BadRecord)]
                    if outbox.graded or outbox.bad:
                        break
                else:
                    grader.grade()
                    is_done = True
            yield from outbox.take_all()
