"""One shard, anywhere: samples in; a row each, columns of the table, native chunks and counts out.

A worker is picklable, so that any engine can run it anywhere. Nothing here keeps a sample, none
crosses processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Self

import attrs

from gradestack.api import Exporter, Shard
from gradestack.errors import DataError, PluginError, error_text, storage_failed
from gradestack.grading.graders import TRACEBACKS, Column, Graded, Graders, begin_grading
from gradestack.grading.merging import LISTED, Grades, ShardResult
from gradestack.grading.metrics import wanted
from gradestack.grading.plan import (
    ERROR_COUNTS,
    FAILED_ON_RECORD,
    TO_COMPARE,
    Plan,
    named_graders,
)
from gradestack.grading.reading import blocks_of
from gradestack.grading.recording import ShardWriters
from gradestack.grading.selection import Place, Selection, joined
from gradestack.interpreter import Interruption, for_a_shard, under_way
from gradestack.model import (
    IMPOSSIBLE_AMOUNT,
    BadRecord,
    Fault,
    Sample,
    Status,
    failed,
    failed_verdict,
    impossible_amounts,
)
from gradestack.table import RAN, Columns

LARGEST_BLOCK = 64
"""Samples graded together at most: with their grades they fit into a core's second cache."""
QUICK_BLOCK = 0.01
"""Seconds a block may take, with its reading, for the next one to be larger."""
_MISSING = Status.MISSING
_REPORTED_EVERY = 64
"""Samples between two reports of progress."""


@attrs.frozen(kw_only=True, slots=False)
class Worker:
    """Turns shards into results; it knows all that is needed to grade one."""

    plan: Plan
    index: Any
    """What the reader made of side files."""
    writers: ShardWriters
    strict: bool = False
    """Raise at the first bad record or broken component."""
    dataset: Mapping[str, Sample] | None = None
    """Dataset rows by id, to be joined."""
    selection: Selection | None = None
    positions: range | None = None
    """Samples of a shard that are graded, by their positions; None: all. The others are left out."""
    faults: Mapping[tuple[int, int], Fault] = attrs.field(factory=dict)
    """(shard, position) of samples that end a process, and how: failed for all graders."""
    progress: Callable[[int], None] | None = attrs.field(default=None, eq=False)
    """Called with the number of samples done since the last call.

    Dropped when the worker is pickled.
    """

    def limited(self, positions: range) -> Worker:
        """Return this worker, grading the samples at some positions of a shard alone."""
        return attrs.evolve(self, positions=positions)

    def without(self, ordinal: int, position: int, fault: Fault) -> Worker:
        """Return this worker, leaving one sample of one shard ungraded."""
        return attrs.evolve(self, faults={**self.faults, (ordinal, position): fault})

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "progress": None}

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
                if grader.partially_written:
                    raise
                result.interrupted = True
            grader.finish()
            result.interrupted |= interruption.requested
            result.timed_out += found.timed_out
            result.tracebacks = dict(TRACEBACKS)
        if progress is not None:
            progress(result.samples - reported)
        return result


class ShardGrader:
    """One shard being graded, in small blocks: its writer, counts and columns.

    Use it as a context manager.

    A block is graded grader by grader. It starts with one sample and grows while blocks take little
    time, so that slow graders are not far from being interrupted. What is interrupted keeps the
    samples every grader has judged; counting them and writing their rows is not interrupted.

    Attributes:
        position: How many samples of the shard were met, left out ones included.
        partially_written: Whether a block is being counted, or was not counted to its end: rows and figures do
            not agree.
    """

    def __init__(
        self,
        worker: Worker,
        shard: Shard,
        result: ShardResult,
        interruption: Interruption | None = None,
    ) -> None:
        begin_grading()
        self.worker, self.shard, self.result = worker, shard, result
        self._interruption = interruption or Interruption()
        self.partially_written = False
        self.position = 0
        plan = self._plan = worker.plan
        plain = worker.dataset is None and worker.selection is None
        self._usual = plain and not worker.faults and worker.positions is None
        self._strict = worker.strict
        self._broken = partial(_broken, result, worker.strict)
        keys = [stage.key for stage in plan.graders]
        needs = wanted(keys, plan.metrics, plan.facets)
        explain = worker.writers.keeps_rows or bool(plan.exporters)
        self._graders = Graders(plan.graders, needs.parts, explain=explain, strict=worker.strict)
        self._columns = Columns(needs, self._broken) if plan.table else None
        self._writer = worker.writers.open(shard)
        self._pending: list[Sample] = []
        self._size = 1
        self._begun = perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.result.parts = self._writer.close()

    def finish(self) -> None:
        """Grade what is left and put counts and columns into the result."""
        result = self.result
        try:
            self.grade()
        except KeyboardInterrupt:
            if self.partially_written:
                raise
            result.interrupted = True
        result.table = b"" if self._columns is None else self._columns.to_bytes()
        result.timings, result.timed_out = self._graders.seconds, self._graders.timed_out

    def take(self, records: Sequence[Sample | BadRecord]) -> None:
        """Take records; they are graded with their block."""
        if self._usual and not self._strict and BadRecord not in map(type, records):
            self.position += len(records)
            self._pending += records  # type: ignore[arg-type]
        else:
            for record in records:
                if self._interruption.requested:
                    return
                self._take(record)
        if len(self._pending) >= self._size:
            self.grade()

    def _take(self, record: Sample | BadRecord) -> None:
        if isinstance(record, BadRecord):
            self.grade()
            self._bad(record)
            return
        if (
            self._strict
            and record.status is Status.FAILED
            and record.error
            and record.error.category == "data"
        ):
            raise DataError(
                f"{record.source or record.id}: {record.error.message or record.error.code}"
            )
        place = (self.shard.ordinal, self.position)
        self.position += 1
        positions = self.worker.positions
        if positions is not None and place[1] not in positions:
            self.result.left_out += 1
            return
        if (fault := self.worker.faults.get(place)) is not None:
            self.grade()
            self._leave_ungraded(self._joined(record), fault)
            return
        record = self._joined(record)  # first: tags may stand in the dataset
        if self._takes(record, place):
            self._pending.append(record)
            if self._strict:
                self.grade()

    def _takes(self, sample: Sample, place: Place) -> bool:
        selection = self.worker.selection
        if selection is None:
            return True
        if selection.subset.filter:
            self.result.facets.update(sample.facets)
        if selection.takes(sample, place):
            return True
        if selection.superseded(sample, place):
            self.result.superseded.append(f"{sample.source or sample.id}")
        else:
            self.result.left_out += 1
        return False

    def _joined(self, sample: Sample) -> Sample:
        if self.worker.dataset is None:
            return sample
        sample = joined(sample, self.worker.dataset, same_inputs=self._plan.same_inputs)
        run = json.dumps(sample.run) if self._plan.num_runs is not None else ""
        self.result.seen.add((sample.model or "", sample.id, run))
        return sample

    def _leave_ungraded(self, sample: Sample, fault: Fault) -> None:
        encoded, block = self._writer.encode_samples([sample])
        grades: dict[str, Column] = {stage.key: [failed(fault)] for stage in self._plan.graders}
        self._count(block, encoded, Graded(grades, {}, {}))
        self._graders.timed_out += fault.code == "timed_out"

    def grade(self) -> None:
        """Grade and count the samples taken since the last block."""
        pending, self._pending, done = self._pending, [], 0
        while done < len(pending) and not (
            self._interruption.requested and len(pending) - done > self._size
        ):
            block = pending[done : done + self._size]
            done += len(block)
            self._grade(block)
            now = perf_counter()
            quick, self._begun = now - self._begun < QUICK_BLOCK, now
            self._size = min(LARGEST_BLOCK, 2 * self._size) if quick else max(1, self._size // 2)

    def _grade(self, samples: list[Sample]) -> None:
        encoded, block = self._writer.encode_samples(samples)
        graded = self._graders.grade(block)
        if self._graders.interrupted:
            block = block[: min(map(len, graded.columns.values()))]
        if block:
            self._count(block, encoded, graded)
        if self._graders.interrupted:
            raise KeyboardInterrupt

    def _count(self, block: Sequence[Sample], encoded: Any, graded: Graded) -> None:
        with self._interruption.held():
            self.partially_written = True
            columns = self._writer.save_rows(block, encoded, graded.columns, graded.texts)
            verdicts = {
                key: verdicts
                for key, verdicts in graded.verdicts.items()
                if columns[key] is graded.columns[key]
            }
            if self._columns is not None:
                with under_way([]):  # who keeps the time of grades keeps that of numbers, too
                    self._columns.add(
                        block, columns, [RAN[sample.status] for sample in block], verdicts
                    )
            if self._plan.exporters:
                for number, sample in enumerate(block):
                    self._export(sample, {key: grades[number] for key, grades in columns.items()})
            result = self.result
            result.samples += len(block)
            self._take_remarks(block, columns)
            for kind, grader in self._plan.unused.items():
                lost = [each for each in block if getattr(each.expected, kind) is not None]
                if lost := [
                    each for each in lost if kind != "label" or each.expected.text is None
                ]:  # one word is both
                    what = (
                        f"expected {kind}: read by no grader of this run, in no figure; "
                        f"{TO_COMPARE}grader {grader}"
                    )
                    result.remarks.setdefault(what, [0, f"{lost[0].source or lost[0].id}"])[0] += (
                        len(lost)
                    )
            for each in [
                sample
                for sample in block
                if sample.id.isdecimal() and sample.status is not _MISSING
            ]:
                form = "number" if each.source and each.source.id is not None else "text"
                if form not in result.ids:
                    result.ids[form] = f"{each.source or each.id}"
            self.partially_written = False

    def _take_remarks(self, block: Sequence[Sample], columns: Mapping[str, Column]) -> None:
        """Count what readers remarked, amounts that cannot be any, runs that count although they
        ended in an error, and failures on record that no grader reads.
        """
        for sample in block:
            if sample.agent_usage is not None and (lost := impossible_amounts(sample.agent_usage)):
                self._remark(IMPOSSIBLE_AMOUNT, lost, sample)
        for sample in [each for each in block if each.remarks]:
            for kind, times in sample.remarks.items():
                self._remark(kind, times, sample)
        grades = columns.get(self._plan.main, ())
        for number, sample in enumerate(block[: len(grades)]):
            if sample.status is Status.FAILED and grades[number].score is not None:
                self._remark(ERROR_COUNTS, 1, sample)
        if not self._plan.reads_verdicts:
            self._take_failed_verdicts(block)

    def _take_failed_verdicts(self, block: Sequence[Sample]) -> None:
        """Count runs that are failures by a recorded verdict, by its name."""
        for sample in block:
            name = failed_verdict(sample.recorded) if sample.recorded else None
            if name is not None:
                how = f"{name} is read by no grader of this run; to grade by it, --stack recorded"
                self._remark(f"{FAILED_ON_RECORD}: {how}", 1, sample)

    def _remark(self, kind: str, times: int, sample: Sample) -> None:
        place = f"{sample.source or sample.id}"
        self.result.remarks.setdefault(kind, [0, place])[0] += times

    def _bad(self, record: BadRecord) -> None:
        source, result = record.source, self.result
        if self.worker.strict:
            raise DataError(f"{source}: {record.reason}")
        result.bad += 1
        result.bad_parts += record.is_part
        if len(result.bad_listed) < LISTED:
            place = {"file": source.file, "ordinal": source.ordinal, "line": source.line}
            result.bad_listed.append({**place, "reason": record.reason})
        self._export(record, {})

    def _export(self, record: Sample | BadRecord, grades: Grades) -> None:
        for stage in self._plan.exporters:
            exporter: Exporter = stage.component
            if stage.name in self.result.broken:
                continue
            try:
                graders = named_graders(exporter, self._plan.graders) if grades else {}
                named = {name: grades[stage.key] for name, stage in graders.items()}
                for artefact, text in exporter.row(record, named, self.shard):
                    self._writer.save_native(f"{stage.name}/{artefact}", text, exporter.separator)
            except (Exception, SystemExit) as error:  # a native file is a convenience
                if storage_failed(error):
                    raise
                self._broken(stage.name, error)


def _broken(result: ShardResult, strict: bool, what: str, error: BaseException) -> None:
    """Note what raised.

    No method, which would keep a shard and all that is noted of it in a circle.
    """
    if strict:
        raise PluginError(f"{what} raised {error_text(error)}") from error
    result.broken.setdefault(what, error_text(error))
