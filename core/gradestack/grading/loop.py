"""Grading: shards through an engine, results merged in order, finished ones put on record."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import attrs

from gradestack.api import Grader, Profile, Shard
from gradestack.errors import DataError
from gradestack.grading.duplicates import places_in_input, places_in_rows
from gradestack.grading.interpreter import fewer_collections
from gradestack.grading.interruption import Interruption
from gradestack.grading.merging import LISTED, Merging
from gradestack.grading.plan import GraderSlot, MetricSlot
from gradestack.grading.progress import Told
from gradestack.grading.reading import records_of, shards_of
from gradestack.grading.result import ShardResult
from gradestack.grading.selection import Selection, first_ids, last_ones
from gradestack.grading.worker import Worker
from gradestack.model import BadRecord, Sample, Source, Status
from gradestack.report import ROWS
from gradestack.rundir.fingerprint import fingerprint
from gradestack.rundir.journal import Journal
from gradestack.rundir.memory import Watch
from gradestack.rundir.rows_file import RowsFile
from gradestack.rundir.staging import Staging
from gradestack.suites.spec import Suite

_FAR = 1 << 62


@attrs.frozen(kw_only=True)
class Options:
    """How a suite is run."""

    strict: bool = False
    """Stop at the first bad record or raising grader."""
    rows: bool = True
    """Keep results.jsonl."""
    resume: bool = False
    """Continue an unfinished run of the same place."""


class Grading:
    """The samples of one run, graded.

    Attributes:
        merging: What they have come to so far.
        journal: Where finished shards are recorded; None where there is nothing to be continued.
        started: When the run was begun; for a continued one, when its first attempt was.
        resumed: Shards an earlier attempt had finished.
        damaged: Whether an earlier attempt's record could not be read.
        seconds: Spent on merging.
    """

    def __init__(self, suite: Suite, staging: Staging, options: Options, told: Told, started: str) -> None:
        self.suite, self.staging, self.options, self.told, self.started = suite, staging, options, told, started
        self.merging = Merging(suite)
        self.merged = self.merging.merged
        self.journal: Journal | None = None
        self.rows: RowsFile | None = None
        self.resumed = 0
        self.damaged = False
        self.seconds = 0.0
        self._shards: list[Shard] = []
        self._worker: Worker | None = None

    def worker(self, shards: Sequence[Shard], index: Any) -> Worker:
        """Return what engines apply to every shard."""
        suite = self.suite
        worker = Worker(
            files=suite.files,
            reader=suite.reader.component,
            index=index,
            graders=tuple(
                GraderSlot(
                    key=stage.key,
                    component=stage.name,
                    grader=stage.component,
                    extractor=stage.extractor.component if stage.extractor is not None else None,
                    profile=_profile(stage.component, suite.profile),
                )
                for stage in suite.graders
            ),
            metrics=tuple(
                MetricSlot(key=metric.stage.key, of=metric.of, aggregator=metric.stage.component)
                for metric in suite.metrics
            ),
            exporters=tuple((stage.name, stage.component) for stage in suite.exporters),
            gate=suite.rule,
            headline=suite.headline,
            parts=self.staging.parts,
            rows=self.options.rows,
            strict=self.options.strict,
            join=self._dataset(),
            by_run=suite.num_runs is not None,
            same_inputs=suite.same_inputs,
            tick=self.told.tick if self.told.wanted else None,
        )
        return attrs.evolve(worker, selection=self._selection(worker, shards))

    def _selection(self, worker: Worker, shards: Sequence[Shard]) -> Selection | None:
        """Return what limits the samples: max_samples, sample_tags, the last of several duplicates."""
        suite = self.suite
        ids = None
        if suite.max_samples and worker.join is not None:
            ids = frozenset(worker.join)  # already cut to the first rows
        elif suite.max_samples:
            ids = first_ids(worker.reader, shards, worker.index, suite.max_samples)
        last = last_ones(worker.reader, shards, worker.index) if suite.duplicates == "last" else None
        if ids is None and last is None and not suite.sample_tags:
            return None
        return Selection(ids=ids, tags=suite.sample_tags, last=last)

    def _dataset(self) -> dict[str, Sample] | None:
        """Read the dataset the kernel joins by id."""
        stage, dataset = self.suite.dataset_reader, self.suite.inputs.dataset
        if stage is None or dataset is None:
            return None
        reader = stage.component
        inputs = attrs.evolve(self.suite.inputs, data=(dataset,), dataset=None)
        shards, index = shards_of(reader, inputs)
        rows: dict[str, Sample] = {}
        for shard in shards:
            for record in records_of(reader, shard, index):
                if isinstance(record, BadRecord):
                    msg = f"{attrs.evolve(record.source, file=str(dataset.path))}: {record.reason}"
                    raise DataError(msg)
                if not self.suite.max_samples or len(rows) < self.suite.max_samples or record.id in rows:
                    rows[record.id] = record
        if not rows:
            msg = f"{dataset.path}: the dataset holds no row"
            raise DataError(msg)
        return rows

    def execute(self) -> None:
        """Grade everything an earlier attempt has not, merging results in shard order.

        Raises:
            DataError: No record could be read; a bad one under ``strict``; a repeated one where that is an error.
            ConfigError: Something an unfinished run depends on has changed, or a metric would not fit into memory.
            PluginError: A component is broken.
        """
        self._shards, index = shards_of(self.suite.reader.component, self.suite.inputs)
        self.told.plan(self._shards)
        self._open()
        worker = self._worker = self.worker(self._shards, index)
        rest = self._shards[self.resumed :]
        watch = Watch(self.suite, rest)
        try:
            with (
                fewer_collections(),
                _closing(self.suite.engine.component.map(worker, rest) if rest else iter(())) as results,
            ):
                for result, shard in zip(results, rest, strict=False):
                    with Interruption(patient=True) as interruption:
                        watch.look(result, shard)
                        self._merge(result, shard)
                    self.merged.interrupted |= interruption.requested
                    if self.merged.interrupted:
                        break
            if not self.merged.interrupted:
                self._missing(worker)
        except KeyboardInterrupt:
            self.merged.interrupted = True
        self._list_duplicates()
        if self.journal is not None:
            self.journal.finish(short=True)
        if not self.merged.samples and not self.merged.interrupted:
            raise self._nothing()

    def _open(self) -> None:
        """Open results.jsonl and, where there is anything to be continued, the journal; take up what they hold."""
        known = self.options.resume and self.staging.journal.is_file()
        if self.staging.place is not None and (len(self._shards) > 1 or known):
            mark = fingerprint(self.suite, strict=self.options.strict, rows=self.options.rows)
            self.journal = Journal(self.staging, mark, self.started)
            if self.options.resume:
                self.journal.take_up(self._shards, self._take_up)
                self.started, self.resumed = self.journal.started, self.journal.recorded
                self.damaged = known and self.journal.damaged
        if self.options.rows:
            self.rows = RowsFile(self.staging.path / ROWS, self.journal.rows if self.journal is not None else 0)
        if self.journal is not None:
            self.journal.begin(self.rows)

    def _take_up(self, result: ShardResult, shard: Shard, offset: int) -> None:
        self.merging.add(result, offset)
        self.told.merged(shard, self.merged, resumed=True)

    def _merge(self, result: ShardResult, shard: Shard | None) -> None:
        begun = time.perf_counter()
        offset = self.rows.size if self.rows is not None else 0
        size = self.rows.append(result.rows) if self.rows is not None and result.rows is not None else 0
        if self.journal is not None and shard is not None and not result.interrupted:
            self.journal.note(result, shard, size)
        self.merging.add(result, offset)
        if self.suite.duplicates == "error" and self.merging.identities.early():
            raise self._repeated()
        self.seconds += time.perf_counter() - begun
        if shard is not None:
            self.told.merged(shard, self.merged)

    def _missing(self, worker: Worker) -> None:
        """Add a missing row for every dataset row no record answers, per model seen; with ``num_runs`` per run, too."""
        if worker.join is None or not self.merged.samples:
            return
        seen = self.merged.seen
        models = sorted({model for model, _, _ in seen}) or [""]
        runs = {run: json.loads(run) if run else None for run in sorted({run for _, _, run in seen}) or [""]}
        absent = [
            attrs.evolve(row, model=model or None, status=Status.MISSING, run=number, native=None)
            for model in models
            for run, number in runs.items()
            for identifier, row in worker.join.items()
            if (model, identifier, run) not in seen
        ]
        if absent:
            last = self.suite.inputs.data[-1]
            shard = Shard(ordinal=len(self._shards), input=last, position=_FAR)
            self._merge(worker.process(shard, iter(absent)), None)

    def _list_duplicates(self) -> None:
        """Count records that repeat an earlier one, and look up where the first of them stand."""
        count, first = self.merging.identities.repeated(LISTED)
        if count and self.suite.duplicates == "error":
            raise self._repeated()
        if count:
            self.merged.duplicates += count
            self.merged.duplicates_listed += self._places(first)[: LISTED - len(self.merged.duplicates_listed)]

    def _repeated(self) -> DataError:
        _, first = self.merging.identities.repeated(1)
        place = next(iter(self._places(first)), self.suite.name)
        return DataError(
            f"{place}: repeats an (id, model, run) that was already read; use `duplicates: keep` or `last`"
        )

    def _places(self, positions: Sequence[int]) -> list[str]:
        wanted, worker = self.merging.identities.wanted(positions), self._worker
        if self.rows is not None or worker is None:
            return places_in_rows(self.staging.path / ROWS, wanted)
        known = {shard.ordinal: shard for shard in self._shards}
        return places_in_input(worker.reader, known, worker.index, wanted, worker.selection)

    def _nothing(self) -> DataError:
        suite = self.suite
        names = ", ".join(str(each.path) for each in suite.inputs.data[:3]) or suite.name
        limited = self._worker is not None and self._worker.selection is not None
        first = [f"{Source(**_place(each))}: {each['reason']}" for each in self.merged.bad_listed[:1]]
        if limited and not first:
            tags = [f"sample_tags: {', '.join(sorted(suite.sample_tags))}"] if suite.sample_tags else []
            return DataError(f"{names}: no sample is left after the suite's limits", *tags)
        return DataError(f"{names}: no record could be read", *(first or ["the input holds no record"]))

    def close(self, *, failed: bool = False) -> int:
        """Let go of the files; return the number of shards on record, from which the run can be continued.

        Args:
            failed: The disk is full or broken.
        """
        recorded = self.journal.close(failed=failed) if self.journal is not None else 0
        if self.rows is not None:
            self.rows.close()
            self.rows = None
        return recorded


def _profile(grader: Grader, inherited: Profile) -> Profile:
    """Return the profile a grader is given, which may be another than the suite's."""
    own: Any = getattr(grader, "profile", None)
    found: Profile = own if own in get_args(Profile) else inherited
    return found


def _place(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("file", "ordinal", "line")}


@contextlib.contextmanager
def _closing(results: Iterator[ShardResult]) -> Iterator[Iterator[ShardResult]]:
    """End the engine's work on leaving, whatever the reason: nobody takes its results any more."""
    try:
        yield results
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()
