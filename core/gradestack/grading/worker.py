"""One shard, anywhere: samples in; a row each, columns of the table, native chunks and counts out.

A worker is picklable, so that any engine can run it anywhere. Nothing here keeps a sample, none
crosses processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import attrs

from gradestack.api import Shard
from gradestack.errors import DataError, PluginError, error_text, storage_failed
from gradestack.grading.graders import Graded, Graders, begin_grading
from gradestack.grading.merging import LISTED, Grades, ShardResult
from gradestack.grading.notices import count_remarks
from gradestack.grading.plan import Plan, named_graders, needs_of_figures
from gradestack.grading.reading import blocks_of
from gradestack.grading.recording import ShardWriters
from gradestack.grading.selection import Place, Selection, joined
from gradestack.interpreter import Interruption, for_a_shard, in_progress
from gradestack.model import BadRecord, Fault, Sample, Status, failed
from gradestack.table import Columns

if TYPE_CHECKING:
    from gradestack.exporter import Exporter

LARGEST_BLOCK = 64
"""Samples graded together at most: with their grades they fit into a core's second cache."""
QUICK_BLOCK = 0.01
"""Seconds a block may take, with its reading, for the next one to be larger."""
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
    """Positions of the samples of a shard that are graded; None: all. Others are left out."""
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
        with (
            Interruption() as interruption,
            ShardGrader(self, shard, result, interruption) as grader,
            for_a_shard(self.plan.limits) as limits,
        ):
            try:
                for block in blocks:
                    if interruption.requested:
                        break
                    grader.take(block)
            except KeyboardInterrupt:
                if grader.partially_written:
                    raise
                result.interrupted = True
            grader.finish()
            result.interrupted |= interruption.requested
            result.timed_out += limits.timed_out
        return result


class ShardGrader:
    """One shard being graded, in small blocks: its writer, counts and columns.

    Use it as a context manager.

    A block is graded grader by grader. It starts with one sample and grows while blocks take little
    time, so that slow graders are not far from being interrupted. What is interrupted keeps the
    samples every grader has judged; counting them and writing their rows is not interrupted.

    Attributes:
        partially_written: Whether a block is being counted, or was not counted to its end: rows
            and figures do not agree.
    """

    def __init__(
        self,
        worker: Worker,
        shard: Shard,
        result: ShardResult,
        interruption: Interruption | None = None,
    ) -> None:
        """Prepare graders, table columns and the row writer for one shard."""
        begin_grading()
        self.worker, self.shard, self.result = worker, shard, result
        self._interruption = interruption or Interruption()
        self.partially_written = False
        self._plan, self._strict = worker.plan, worker.strict
        choices = (worker.dataset, worker.selection, worker.positions)
        self._takes_all = choices == (None, None, None) and not worker.faults
        self._note_broken = partial(_note_broken, result, worker.strict)
        plan = worker.plan
        needs = needs_of_figures([stage.key for stage in plan.graders], plan.metrics, plan.facets)
        explain = worker.writers.keeps_rows or bool(plan.exporters)
        self._graders = Graders(plan.graders, needs.parts, explain=explain, strict=worker.strict)
        self._columns = Columns(needs, self._note_broken) if plan.table else None
        self._writer = worker.writers.open(shard)
        self._position = 0
        """How many samples of the shard were met, left out ones included."""
        self._pending: list[Sample] = []
        self._block_size = 1
        self._block_begun = perf_counter()
        self._reported = 0

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
        self._report_progress()
        result.table = b"" if self._columns is None else self._columns.to_bytes()
        result.timings, result.tracebacks = self._graders.seconds, self._graders.tracebacks
        result.timed_out += self._graders.timed_out

    def take(self, records: Sequence[Sample | BadRecord]) -> None:
        """Take records; they are graded with their block."""
        if self._takes_all and not self._strict and BadRecord not in map(type, records):
            self._position += len(records)
            self._pending += records  # type: ignore[arg-type]
        else:
            for record in records:
                if self._interruption.requested:
                    return
                self._take(record)
        if len(self._pending) >= self._block_size:
            self.grade()
        if self.result.samples >= self._reported + _REPORTED_EVERY:
            self._report_progress()

    def _report_progress(self) -> None:
        if self.worker.progress is not None:
            self.worker.progress(self.result.samples - self._reported)
            self._reported = self.result.samples

    def _take(self, record: Sample | BadRecord) -> None:
        """Join a record with its dataset and queue it for grading; count bad and left out ones."""
        if isinstance(record, BadRecord):
            self.grade()
            self._take_bad(record)
            return
        if self._strict:
            _require_sound(record)
        location = (self.shard.ordinal, self._position)
        self._position += 1
        positions = self.worker.positions
        if positions is not None and location[1] not in positions:
            self.result.left_out += 1
            return
        sample = self._join(record)  # first: tags may stand in the dataset
        fault = self.worker.faults.get(location)
        if fault is not None:
            self.grade()
            self._leave_ungraded(sample, fault)
        elif self._selects(sample, location):
            self._pending.append(sample)
            if self._strict:
                self.grade()

    def _selects(self, sample: Sample, location: Place) -> bool:
        """Check whether a sample counts, and count one that does not."""
        selection = self.worker.selection
        if selection is None:
            return True
        if selection.subset.filter:
            self.result.facets.update(sample.facets)
        if selection.takes(sample, location):
            return True
        if selection.superseded(sample, location):
            self.result.superseded.append(f"{sample.source or sample.id}")
        else:
            self.result.left_out += 1
        return False

    def _join(self, sample: Sample) -> Sample:
        """Return a sample with what its dataset knows of it."""
        if self.worker.dataset is None:
            return sample
        sample = joined(sample, self.worker.dataset, same_inputs=self._plan.same_inputs)
        run = json.dumps(sample.run) if self._plan.num_runs is not None else ""
        self.result.answered.add((sample.model or "", sample.id, run))
        return sample

    def _leave_ungraded(self, sample: Sample, fault: Fault) -> None:
        encoded, block = self._writer.encode_samples([sample])
        columns = {stage.key: [failed(fault)] for stage in self._plan.graders}
        self._count(block, encoded, Graded(columns, {}, {}))
        self.result.timed_out += fault.code == "timed_out"

    def grade(self) -> None:
        """Grade and count the samples taken since the last block."""
        pending, self._pending, done = self._pending, [], 0
        while done < len(pending):
            size, waiting = self._block_size, len(pending) - done
            if self._interruption.requested and waiting > size:
                return
            block = pending[done : done + size]
            done += len(block)
            self._grade_block(block)
            now = perf_counter()
            is_quick = now - self._block_begun < QUICK_BLOCK
            self._block_begun = now
            self._block_size = min(LARGEST_BLOCK, 2 * size) if is_quick else max(1, size // 2)

    def _grade_block(self, samples: list[Sample]) -> None:
        """Grade and count a block of samples; if interrupted, those that all graders reached."""
        encoded, block = self._writer.encode_samples(samples)
        graded = self._graders.grade(block)
        if self._graders.interrupted:
            block = block[: min(map(len, graded.columns.values()))]
        if block:
            self._count(block, encoded, graded)
        if self._graders.interrupted:
            raise KeyboardInterrupt

    def _count(self, samples: Sequence[Sample], encoded: Any, graded: Graded) -> None:
        """Write the rows of graded samples and count them, without interruption."""
        with self._interruption.deferred():
            self.partially_written = True
            columns = self._writer.save_rows(samples, encoded, graded.columns, graded.texts)
            if self._columns is not None:
                verdicts = {
                    key: verdicts
                    for key, verdicts in graded.verdicts.items()
                    if columns[key] is graded.columns[key]
                }
                is_missing = [sample.status is Status.MISSING for sample in samples]
                with in_progress([]):  # who keeps the time of grades keeps that of numbers, too
                    self._columns.add(samples, columns, is_missing, verdicts)
            for number, sample in enumerate(samples if self._plan.exporters else ()):
                self._export(sample, {key: grades[number] for key, grades in columns.items()})
            self.result.samples += len(samples)
            count_remarks(self.result, self._plan, samples, columns.get(self._plan.main, ()))
            self.partially_written = False

    def _take_bad(self, record: BadRecord) -> None:
        """Count a bad record, list it with its position, and export it; raise in strict mode."""
        source, result = record.source, self.result
        if self._strict:
            raise DataError(f"{source}: {record.reason}")
        result.bad += 1
        result.bad_parts += record.is_part
        if len(result.bad_listed) < LISTED:
            location = {"file": source.file, "ordinal": source.ordinal, "line": source.line}
            result.bad_listed.append({**location, "reason": record.reason})
        self._export(record, {})

    def _export(self, record: Sample | BadRecord, grades: Grades) -> None:
        """Write each exporter's rows of a record to its native files; note exporters that fail."""
        for stage in self._plan.exporters:
            exporter: Exporter = stage.component
            if stage.name in self.result.broken:
                continue
            graders = named_graders(exporter, self._plan.graders) if grades else {}
            try:
                named = {name: grades[grader.key] for name, grader in graders.items()}
                for artefact, text in exporter.row(record, named, self.shard):
                    self._writer.save_native(f"{stage.name}/{artefact}", text, exporter.separator)
            except (Exception, SystemExit) as error:  # a native file is a convenience
                if storage_failed(error):
                    raise
                self._note_broken(stage.name, error)


def _require_sound(sample: Sample) -> None:
    """Refuse a run that failed for what is wrong with its data."""
    error = sample.error
    if sample.status is Status.FAILED and error is not None and error.category == "data":
        raise DataError(f"{sample.source or sample.id}: {error.message or error.code}")


def _note_broken(result: ShardResult, strict: bool, name: str, error: BaseException) -> None:
    """Note what raised.

    No method, which would keep a shard and all that is noted of it in a circle.
    """
    if strict:
        raise PluginError(f"{name} raised {error_text(error)}") from error
    result.broken.setdefault(name, error_text(error))
