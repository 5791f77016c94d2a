"""What happens to one shard: samples in; rows, native parts, aggregator states and counts out.

A worker is picklable and holds everything it needs, so that any engine can run it anywhere. Only shards go to a worker
and only finished pieces come back; samples never cross a process border.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TextIO

import attrs

from gradestack import tally
from gradestack.api import Aggregator, Exporter, Reader, Shard
from gradestack.errors import DataError, PluginError
from gradestack.gate import SampleRule, passes
from gradestack.guard import Interruption, records_of, said
from gradestack.jsontext import dumps
from gradestack.model import BadRecord, Fault, Grade, Key, Sample, Source, Status, failed
from gradestack.rows import grade_to_json, sample_row
from gradestack.selection import Selection, digest
from gradestack.slots import GraderSlot, grade_sample
from gradestack.tally import Tally

LISTED_BAD_RECORDS = 1000
"""Bad records are all counted; this many per shard are listed with their reason."""


_KILLER = Fault(
    category="grading",
    code="worker_died",
    message="grading this record ended the worker process (out of memory, killed, or a crash in native code)",
)


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
    keys: list[tuple[int, str]] = attrs.field(factory=list)
    """Digest of (id, model, run) and the place, per sample, for finding duplicates."""
    superseded: list[str] = attrs.field(factory=list)
    """Places of records left out because a later one of the same (id, model, run) counts."""
    seen: set[tuple[str, str]] = attrs.field(factory=set)
    """(model, id) pairs, only kept when a dataset is joined."""
    broken: dict[str, str] = attrs.field(factory=dict)
    """Aggregators (``grader/metric``) and exporters (name) that raised, with what they said."""
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
    strict: bool = False
    join: Mapping[str, Sample] | None = None
    """Dataset rows by id."""
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
        rows = self.parts / f"{shard.ordinal:08d}.rows.jsonl"
        sinks = _Sinks(self.parts, shard.ordinal)
        states = [metric.aggregator.start() for metric in self.metrics]
        position = pending = 0
        with rows.open("w", encoding="utf-8", newline="\n") as out, sinks, Interruption() as interruption:
            try:
                for record in records:
                    if interruption.requested:
                        break
                    if self.watch:
                        self._note(shard).write_text(str(position), encoding="ascii")
                    if isinstance(record, BadRecord):
                        self._bad(record, result, sinks, shard)
                        continue
                    if self.selection is not None and not self.selection.takes(record, (shard.ordinal, position)):
                        if self.selection.superseded(record, (shard.ordinal, position)):
                            result.superseded.append(f"{record.source or record.id}")
                        position += 1
                        continue
                    self._sample(record, shard, position, result, states, out, sinks)
                    position += 1
                    pending += 1
                    if self.tick is not None and pending >= 64:
                        self.tick(pending)
                        pending = 0
            except KeyboardInterrupt:
                result.interrupted = True
            result.interrupted |= interruption.requested
        if self.tick is not None:
            self.tick(pending)
        result.rows = rows
        result.native = sinks.paths
        result.states = {f"{metric.of}/{metric.key}": state for metric, state in zip(self.metrics, states, strict=True)}
        return result

    def _sample(
        self,
        sample: Sample,
        shard: Shard,
        position: int,
        result: ShardResult,
        states: list[Any],
        out: TextIO,
        sinks: _Sinks,
    ) -> None:
        if self.join is not None:
            sample = joined(sample, self.join, same_inputs=self.same_inputs)
            result.seen.add((sample.model or "", sample.id))
        if (shard.ordinal, position) in self.poison:
            judged: dict[str, tuple[Grade, str | None]] = {slot.key: (failed(_KILLER), None) for slot in self.graders}
        else:
            judged = {slot.key: grade_sample(slot, sample, strict=self.strict) for slot in self.graders}
        grades = {key: grade for key, (grade, _) in judged.items()}
        submissions = {key: text for key, (_, text) in judged.items() if text is not None}
        line, grades, written = self._row(sample, grades, submissions)
        out.write(line)
        out.write("\n")
        key = Key(
            id=sample.id,
            model=sample.model,
            run=sample.run,
            ordinal=shard.position + position,
            facets=written.facets,
        )
        for number, metric in enumerate(self.metrics):
            try:
                states[number] = metric.aggregator.add(states[number], key, grades[metric.of])
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the rows and the other metrics must not be lost with it
                self._broken(f"{metric.of}/{metric.key}", error, result)
        tally.add(result.tally, sample.model or "", grades, self.gate, ran=sample.status is Status.OK)
        if self.exporters:
            by_component = {slot.component: grades[slot.key] for slot in reversed(self.graders)}
            self._export(sample, by_component, shard, result, sinks)
        result.samples += 1
        if sample.status is not Status.MISSING:
            result.keys.append((digest(sample), f"{sample.source or sample.id}"))

    def _row(
        self, sample: Sample, grades: dict[str, Grade], submissions: dict[str, str]
    ) -> tuple[str, dict[str, Grade], Sample]:
        """Return the row's text, grades and sample; what cannot be written as JSON is kept as a failure without it."""
        try:
            return self._line(sample, grades, submissions), grades, sample
        except (RecursionError, TypeError, ValueError):
            grades = {slot.key: self._writable(slot, grades[slot.key], sample) for slot in self.graders}
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

    def _line(self, sample: Sample, grades: dict[str, Grade], submissions: dict[str, str]) -> str:
        score = grades[self.headline].score
        passed = None if score is None else passes(self.gate, score)
        return dumps(sample_row(sample, grades, self.headline, passed=passed, submissions=submissions))

    def _writable(self, slot: GraderSlot, grade: Grade, sample: Sample) -> Grade:
        try:
            dumps(grade_to_json(grade))
        except RecursionError:
            return failed(Fault(category="data", code="too_deep", message="nested too deeply to be written"))
        except (TypeError, ValueError) as error:
            why = f"the grade is not JSON: {error}"
            if self.strict:
                msg = f"grader {slot.key!r} ({slot.signature}) broke its contract on {sample.source or sample.id}"
                raise PluginError(msg, why) from error
            kind = type(error).__name__
            fault = Fault(category="grading", code="bad_grade", message=why, type=kind, component=slot.signature)
            return failed(fault)
        return grade

    def _bad(self, record: BadRecord, result: ShardResult, sinks: _Sinks, shard: Shard) -> None:
        if self.strict:
            msg = f"{record.source}: {record.reason}"
            raise DataError(msg)
        result.bad += 1
        if len(result.bad_listed) < LISTED_BAD_RECORDS:
            result.bad_listed.append({**_place(record.source), "reason": record.reason})
        self._export(record, {}, shard, result, sinks)

    def _export(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard, result: ShardResult, sinks: _Sinks
    ) -> None:
        for name, exporter in self.exporters:
            try:
                sinks.write(name, exporter, exporter.row(record, grades, shard))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a native file is a convenience
                self._broken(name, error, result)

    def _broken(self, what: str, error: BaseException, result: ShardResult) -> None:
        if self.strict:
            msg = f"{what} raised {said(error)}"
            raise PluginError(msg) from error
        result.broken.setdefault(what, said(error))


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

    def __init__(self, parts: Path, ordinal: int) -> None:
        self._parts, self._ordinal = parts, ordinal
        self._files: dict[str, TextIO] = {}
        self.paths: dict[str, Path] = {}

    def write(self, exporter: str, component: Exporter, chunks: Any) -> None:
        for artefact, text in chunks:
            name = f"{exporter}/{artefact}"
            file = self._files.get(name)
            if file is None:
                path = self._parts / f"{self._ordinal:08d}.{len(self._files)}.native"
                file = self._files[name] = path.open("w", encoding="utf-8", newline="", errors="surrogatepass")
                self.paths[name] = path
            else:
                file.write(component.separator)
            file.write(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()
