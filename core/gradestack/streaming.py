"""Samples with their grades, one after the other, a block ahead of who asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from typing_extensions import override

from gradestack.api import Shard
from gradestack.copies.files import named_as_given
from gradestack.grading.loop import Loop, repeated_record
from gradestack.grading.merging import Grades, ShardResult
from gradestack.grading.plan import Plan
from gradestack.grading.progress import ProgressCount
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

Graded = tuple[Sample, Grades]
Blocks = Iterable[Sequence[Sample | BadRecord]]


class _Outbox(ShardWriter, ShardWriters, Recorder):
    """Holds graded samples until the caller takes them."""

    def __init__(self) -> None:
        self.writers = self
        self.graded: list[Graded] = []

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
        rows = zip(*columns.values(), strict=True)
        for sample, grades in zip(samples, rows, strict=True):
            pairs = dict(zip(columns, grades, strict=True))
            self.graded.append((sample, pairs))
        return columns

    def take_all(self) -> Iterator[Graded]:
        """Yield everything that is held, and hold nothing afterwards."""
        yield from self.graded
        self.graded.clear()


def stream_grades(
    plan: Plan, on_bad: Callable[[BadRecord], None], *, strict: bool = False
) -> Iterator[Graded]:
    """Yield every sample with its grades by grader key.

    Samples come in input order, those that no record answers last.

    Raises:
        DataError: A record repeats an earlier one where the plan forbids it, an input changed
            meanwhile, or nothing could be read.
    """
    outbox = _Outbox()
    loop = Loop(plan, outbox, ProgressCount(), strict=strict)
    with named_as_given():
        worker = loop.open()
        identities = set[Identity]()
        answered = set[tuple[str, str, str]]()
        is_empty = True
        for shard in loop.shards:
            with closing(worker.blocks(shard)) as blocks:
                for graded in _grade_blocks(worker, shard, blocks, answered, outbox, on_bad):
                    is_empty = False
                    if plan.duplicates == "error":
                        _check_new(graded[0], identities)
                    yield graded
            paths = [member.input.path for member in shards_in(shard)]
            loop.files.check([shard], paths)
        loop.files.check(loop.shards)
        if is_empty:
            raise loop.nothing_left()
        if worker.dataset is not None:
            ordinal = len(loop.shards)
            shard = Shard(ordinal=ordinal, input=plan.inputs.data[-1])
            samples = unanswered(worker.dataset, answered)
            absent = ([sample] for sample in samples)
            yield from _grade_blocks(worker, shard, absent, set(), outbox, on_bad)


def _check_new(sample: Sample, identities: set[Identity]) -> None:
    """Refuse a record that repeats one of those before it."""
    if sample.status is Status.MISSING:
        return
    identity = identity_of(sample)
    if identity in identities:
        raise repeated_record(f"{sample.source or sample.id}")
    identities.add(identity)


def _grade_blocks(
    worker: Worker,
    shard: Shard,
    blocks: Blocks,
    answered: set[tuple[str, str, str]],
    outbox: _Outbox,
    on_bad: Callable[[BadRecord], None],
) -> Iterator[Graded]:
    """Yield the graded samples of one shard; note which rows of the dataset they answer.

    The settings of the interpreter for grading are in force while graders work, and not while the
    caller does.
    """
    result = ShardResult(ordinal=shard.ordinal, input=shard.input.name, answered=answered)
    waiting, is_done = iter(blocks), False
    with ShardGrader(worker, shard, result) as grader:
        while not is_done:
            bad: list[BadRecord] = []
            with for_a_shard(worker.plan.limits):
                while not outbox.graded and not bad and not is_done:
                    block = next(waiting, None)
                    if block is None:
                        grader.grade()
                        is_done = True
                    else:
                        grader.take(block)
                        bad = [record for record in block if isinstance(record, BadRecord)]
            yield from outbox.take_all()
            for record in bad:
                on_bad(record)
