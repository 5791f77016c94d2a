"""The path every sample takes: graded, written as a row, counted, folded into the metrics, exported.

Whatever can be looked up once per shard is: bound methods, keys, files. Nothing here keeps a sample.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TextIO

import attrs

from gradestack.api import Exporter, Shard
from gradestack.errors import DataError, PluginError, storage_failed
from gradestack.grading.counts import Counting, passes
from gradestack.grading.graders import Column, Judge
from gradestack.grading.interruption import Interruption
from gradestack.grading.plan import GraderSlot
from gradestack.grading.selection import digest
from gradestack.model import BadRecord, Fault, Grade, Key, Sample, Source, Status, failed
from gradestack.plugin_errors import error_text
from gradestack.quick import maker
from gradestack.rows.forms import encode
from gradestack.rows.write import grade_to_json, row_bytes

if TYPE_CHECKING:
    from gradestack.grading.result import ShardResult
    from gradestack.grading.worker import Worker

LISTED_BAD_RECORDS = 1000
"""Bad records are all counted; this many per shard are listed with their reason."""
LARGEST_BLOCK = 64
"""Samples of a block at most."""
QUICK_BLOCK = 0.01
"""Seconds a block may take for the next one to be larger."""
_KILLER = Fault(
    category="grading",
    code="worker_died",
    message="grading this record ended the worker process (out of memory, killed, or a crash in native code)",
)
_key, _OK = maker(Key), Status.OK


class ShardWork:
    """One shard being graded, in small blocks: its files, counts and states. Use it as a context manager.

    A block is graded grader by grader, counted metric by metric. It starts with one sample and grows while blocks take
    little time, so that slow graders are not far from being interrupted. What is interrupted keeps the samples every
    grader has judged; counting them and writing their rows is not interrupted.

    Attributes:
        position: How many samples of the shard were met, left out ones included.
        torn: Whether a block is being counted, or was not counted to its end: rows and figures do not agree.
    """

    def __init__(self, worker: Worker, shard: Shard, result: ShardResult, interruption: Interruption) -> None:
        self.worker, self.shard, self.result = worker, shard, result
        self._interruption = interruption
        self.torn = False
        self.position = 0
        self._plain = worker.join is None and worker.selection is None and not worker.poison
        explained = worker.rows or worker.exporters or any(each.aggregator.reads_reasons for each in worker.metrics)
        self._judge = Judge(worker.graders, strict=worker.strict, brief=not explained)
        metrics = [(each.of, each.aggregator) for each in worker.metrics]
        self._counting = Counting([slot.key for slot in worker.graders], metrics, worker.gate, self._broken_metric)
        # A name of its own: a shard may be done twice at once, when a machine is lost after its result was handed over.
        self._piece = worker.parts / f"{shard.ordinal:08d}-{secrets.token_hex(4)}"
        self._sinks = _Sinks(self._piece)
        self._rows: BinaryIO | None = None
        self._block: list[Sample] = []
        self._ordinals: list[int] = []
        self._size = 1

    def __enter__(self) -> Self:
        if self.worker.rows:
            self.result.rows = self._piece.with_suffix(".rows.jsonl")
            self._rows = self.result.rows.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._rows is not None:
                self._rows.close()
        finally:
            self._sinks.close()

    def finish(self) -> None:
        """Grade what is left and put counts and states into the result."""
        result = self.result
        try:
            self._grade_block()
        except KeyboardInterrupt:
            if self.torn:
                raise
            result.interrupted = True
        result.tally = self._counting.tally()
        result.native = self._sinks.paths
        result.timings = self._judge.seconds
        metrics = self.worker.metrics
        result.states = {
            f"{each.of}/{each.key}": state for each, state in zip(metrics, self._counting.states, strict=True)
        }

    def take(self, record: Sample | BadRecord) -> None:
        """Take one record; it is graded with its block.

        Raises:
            DataError: It is bad, and the run is strict.
            KeyboardInterrupt: A grader was interrupted.
            PluginError: A component raised on its block, and the run is strict.
        """
        if isinstance(record, BadRecord):
            self._grade_block()
            self._bad(record)
            return
        position = self.position
        self.position = position + 1
        if not self._plain:
            place = (self.shard.ordinal, position)
            if place in self.worker.poison:
                self._grade_block()
                self._kill(self._joined(record))
                return
            record = self._joined(record)  # first: tags may stand in the dataset
            if not self._takes(record, place):
                return
        self._ordinals.append(self.shard.position + position)
        self._block.append(record)
        if len(self._block) >= self._size:
            self._grade_block()

    def _takes(self, sample: Sample, place: tuple[int, int]) -> bool:
        selection = self.worker.selection
        if selection is None or selection.takes(sample, place):
            return True
        if selection.superseded(sample, place):
            self.result.superseded.append(f"{sample.source or sample.id}")
        return False

    def _joined(self, sample: Sample) -> Sample:
        if self.worker.join is None:
            return sample
        sample = joined(sample, self.worker.join, same_inputs=self.worker.same_inputs)
        run = json.dumps(sample.run) if self.worker.by_run else ""
        self.result.seen.add((sample.model or "", sample.id, run))
        return sample

    def _kill(self, sample: Sample) -> None:
        """Count a sample that ends every process that grades it."""
        ordinal = self.shard.position + self.position - 1
        self._count([sample], [ordinal], {slot.key: [failed(_KILLER)] for slot in self.worker.graders}, {})

    def _grade_block(self) -> None:
        block = self._block
        if not block:
            return
        started = perf_counter()
        ordinals, self._ordinals, self._block = self._ordinals, [], []
        columns, texts = self._judge.columns(block)
        if self._judge.interrupted:
            block = block[: min(map(len, columns.values()))]
        if block:
            self._count(block, ordinals[: len(block)], columns, texts)
        if self._judge.interrupted:
            raise KeyboardInterrupt
        if not self.worker.watch and not self.worker.strict:
            quick = perf_counter() - started < QUICK_BLOCK
            self._size = min(LARGEST_BLOCK, 2 * self._size) if quick else max(1, self._size // 2)

    def _count(
        self,
        block: list[Sample],
        ordinals: list[int],
        columns: dict[str, Column],
        texts: dict[str, list[str | None]],
    ) -> None:
        with self._interruption.held():
            self.torn = True
            self._counted(block, ordinals, columns, texts)
            self.torn = False

    def _counted(
        self,
        block: list[Sample],
        ordinals: list[int],
        columns: dict[str, Column],
        texts: dict[str, list[str | None]],
    ) -> None:
        lines: list[bytes] = []
        written = block
        if self._rows is not None:
            written = [self._row(number, sample, columns, texts, lines) for number, sample in enumerate(block)]
        keys = [
            _key(sample.id, sample.model, sample.run, ordinal, sample.facets)
            for sample, ordinal in zip(written, ordinals, strict=True)
        ]
        self._counting.add(keys, columns, [sample.status is _OK for sample in block])
        result = self.result
        if self.worker.exporters:
            for number, sample in enumerate(block):
                graders = reversed(self.worker.graders)
                self._export(sample, {slot.component: columns[slot.key][number] for slot in graders})
        if self._rows is not None:
            self._rows.write(b"".join(lines))
        result.samples += len(block)
        result.keys += b"".join([digest(each) for each in block if each.status is not Status.MISSING])

    def _row(
        self,
        number: int,
        sample: Sample,
        columns: dict[str, Column],
        texts: dict[str, list[str | None]],
        lines: list[bytes],
    ) -> Sample:
        """Append a sample's row and return what was written; failures of writing replace grades in the columns."""
        grades = {key: column[number] for key, column in columns.items()}
        judged = {key: text for key, column in texts.items() if (text := column[number]) is not None}
        try:
            lines.append(self._line(sample, grades, judged))
        except (RecursionError, TypeError, ValueError):
            line, changed, sample = self._mended(sample, grades, judged)
            lines.append(line)
            for key, grade in changed.items():
                columns[key][number] = grade
        return sample

    def _mended(
        self, sample: Sample, grades: dict[str, Grade], submissions: dict[str, str]
    ) -> tuple[bytes, dict[str, Grade], Sample]:
        """Return row, grades and sample without what cannot be written as JSON, kept as a failure."""
        grades = {slot.key: self._writable(slot, grades[slot.key], sample) for slot in self.worker.graders}
        try:
            return self._line(sample, grades, submissions), grades, sample
        except (RecursionError, TypeError, ValueError) as error:
            deep = isinstance(error, RecursionError)
            code, why = ("too_deep", "nested too deeply to be written") if deep else ("not_json", f"not JSON: {error}")
            fault = Fault(category="data", code=code, message=why)
            bare = attrs.evolve(
                sample,
                turns=(),
                calls=None,
                plan=None,
                expected=attrs.evolve(sample.expected, calls=None, plan=None),
                recorded={},
                usage=None,
                facets={},
                status=Status.FAILED,
                error=fault,
            )
            grades = {key: failed(fault) for key in grades}
            return self._line(bare, grades, {}), grades, bare

    def _line(self, sample: Sample, grades: dict[str, Grade], submissions: dict[str, str]) -> bytes:
        headline = self.worker.headline
        score = grades[headline].score
        passed = None if score is None else passes(self.worker.gate, score)
        return row_bytes(sample, grades, headline, passed=passed, submissions=submissions)

    def _writable(self, slot: GraderSlot, grade: Grade, sample: Sample) -> Grade:
        try:
            encode(grade_to_json(grade))
        except RecursionError:
            return failed(Fault(category="data", code="too_deep", message="nested too deeply to be written"))
        except (TypeError, ValueError) as error:
            why = f"the grade is not JSON: {error}"
            if self.worker.strict:
                msg = f"grader {slot.key!r} ({slot.signature}) broke its contract on {sample.source or sample.id}"
                raise PluginError(msg, why) from error
            kind = type(error).__name__
            fault = Fault(category="grading", code="bad_grade", message=why, type=kind, component=slot.signature)
            return failed(fault)
        return grade

    def _bad(self, record: BadRecord) -> None:
        if self.worker.strict:
            msg = f"{record.source}: {record.reason}"
            raise DataError(msg)
        result = self.result
        result.bad += 1
        if len(result.bad_listed) < LISTED_BAD_RECORDS:
            result.bad_listed.append({**_place(record.source), "reason": record.reason})
        self._export(record, {})

    def _export(self, record: Sample | BadRecord, grades: Mapping[str, Grade]) -> None:
        for name, exporter in self.worker.exporters:
            try:
                self._sinks.write(name, exporter, exporter.row(record, grades, self.shard))
            except (Exception, SystemExit) as error:  # a native file is a convenience
                if storage_failed(error):
                    raise
                self._broken(name, error)

    def _broken_metric(self, number: int, error: BaseException) -> None:
        metric = self.worker.metrics[number]
        self._broken(f"{metric.of}/{metric.key}", error)

    def _broken(self, what: str, error: BaseException) -> None:
        if self.worker.strict:
            msg = f"{what} raised {error_text(error)}"
            raise PluginError(msg) from error
        self.result.broken.setdefault(what, error_text(error))


def _place(source: Source) -> dict[str, Any]:
    return {"file": source.file, "ordinal": source.ordinal, "line": source.line}


def joined(sample: Sample, dataset: Mapping[str, Sample], *, same_inputs: bool = False) -> Sample:
    """Return a sample with what the dataset knows of its task: expectations always, tools and input if it has none."""
    row = dataset.get(sample.id)
    if row is None:
        return sample
    if same_inputs and None not in (row.input, sample.input) and row.input != sample.input:
        msg = f"{sample.source or sample.id}: the input of sample {sample.id!r} differs from the dataset's"
        raise DataError(msg, "the recording was made with another dataset; grade it with that one")
    changes: dict[str, Any] = {"expected": row.expected}
    if row.facets:
        changes["facets"] = {**row.facets, **sample.facets}
    if sample.tools is None and row.tools is not None:
        changes["tools"] = row.tools
    if sample.input is None and row.input is not None:
        changes["input"] = row.input
    return attrs.evolve(sample, **changes)


class _Sinks:
    """Part files of native artefacts, opened when first written."""

    def __init__(self, piece: Path) -> None:
        self._piece = piece
        self._files: dict[str, TextIO] = {}
        self.paths: dict[str, Path] = {}

    def write(self, exporter: str, component: Exporter, chunks: Any) -> None:
        for artefact, text in chunks:
            name = f"{exporter}/{artefact}"
            file = self._files.get(name)
            if file is None:
                path = self._piece.with_suffix(f".{len(self._files)}.native")
                file = self._files[name] = path.open("w", encoding="utf-8", newline="", errors="surrogatepass")
                self.paths[name] = path
            else:
                file.write(component.separator)
            file.write(text)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
