"""The run loop: shards through an engine, results merged in order and handed to a recorder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from gradestack.api import Engine, Inputs, Shard
from gradestack.errors import DataError, PluginError
from gradestack.grading.filters import Fields
from gradestack.grading.input_files import InputFiles
from gradestack.grading.merging import LISTED, Merged, ShardResult
from gradestack.grading.plan import Plan
from gradestack.grading.progress import ProgressCount
from gradestack.grading.reading import bundle_shards, shards_in, shards_of
from gradestack.grading.recording import Recorder
from gradestack.grading.selection import (
    Selection,
    first_ids,
    joined,
    last_records,
    read_dataset,
    unanswered,
    unmatched,
)
from gradestack.grading.separate_tasks import disambiguate_ids
from gradestack.grading.subset import not_found
from gradestack.grading.worker import Worker
from gradestack.interpreter import Interruption, limited
from gradestack.model import Sample, Source

_BEHIND_ALL = 1 << 62
"""Position of the samples that no record answers."""
_NAMED_INPUTS = 3


class Loop:
    """The samples of one run, graded.

    Attributes:
        merged: What they have come to so far.
        files: The files of the inputs, as they were when the run began.
        shards: The pieces of the input, in order.
        notes: What the inputs decided.
        resumed: Shards an earlier attempt had finished.
        seconds: Spent on merging.
    """

    def __init__(
        self, plan: Plan, recorder: Recorder, progress: ProgressCount, *, strict: bool = False
    ) -> None:
        """Start with no shards, nothing merged and no files checked."""
        self.plan, self.recorder, self.progress, self.strict = plan, recorder, progress, strict
        self.merged = Merged.of(plan)
        self.files = InputFiles(Inputs(data=()))
        self.notes: list[str] = []
        self.resumed = 0
        self.seconds = 0.0
        self.shards: list[Shard] = []
        self._is_selective = False
        self._next_look = 1
        """So many samples have to be there for the next look for repeated ones."""

    def execute(self, engine: Engine) -> None:
        """Grade everything an earlier attempt has not, merging results in shard order.

        Where a run was recorded twice under one name, everything is graded anew without the
        earlier copies: rows and native files are written already when the later one is met.
        """
        self._execute(engine, self.open())
        if self._has_copies():
            self.recorder.restart()
            self.merged, self.resumed = Merged.of(self.plan), 0
            self._execute(engine, self.open(drop_copies=True))
        self.merged.table.forget()
        self._list_duplicates()
        self.recorder.finish()
        if not self.merged.samples and not self.merged.interrupted:
            raise self.nothing_left()

    def _has_copies(self) -> bool:
        """Return whether records have to be dropped for a later one of the same named run."""
        plan = self.plan
        if plan.duplicates != "keep" or plan.keeps_copies or self.merged.interrupted:
            return False
        return bool(self.merged.table.repeated_by_name())

    def _execute(self, engine: Engine, worker: Worker) -> None:
        """Grade the shards not yet recorded and merge their results, until interrupted."""
        rest = self.shards[self.resumed :]
        try:
            with contextlib.closing(_results(engine, worker, rest)) as results:
                for result, shard in zip(results, rest, strict=False):
                    with Interruption(patient=True) as interruption:
                        self._merge(result, shard)
                    self.merged.interrupted |= interruption.requested
                    if self.merged.interrupted:
                        break
            if not self.merged.interrupted:
                self._add_unanswered(worker)
        except KeyboardInterrupt:
            self.merged.interrupted = True
        except PluginError:  # maybe for no other reason
            self.files.check(self.shards)
            raise
        self.files.check(self.shards)

    def open(self, *, drop_copies: bool = False) -> Worker:
        """Plan the shards, load the recorded ones, and return the worker that grades the others."""
        plan, reader = self.plan, self.plan.reader.component
        for stage in plan.graders:
            if getattr(stage.component, "judgements", None) is not None:
                stage.component.journal.check()
        with limited(plan.limits):
            self.files = InputFiles(plan.inputs)
            shards, index = shards_of(reader, plan.inputs)
            disambiguated = disambiguate_ids(reader, plan.inputs, shards, index)
            self.notes = [disambiguated.note] if disambiguated is not None else []
            index = disambiguated or index
            self.shards = shards if plan.exporters else bundle_shards(shards)
            self.progress.plan(self.shards)
            self._load_finished()
            dataset, self.merged.contradicted = read_dataset(plan)
            selection = _select(plan, self.shards, index, dataset, drop_copies=drop_copies)
            self._is_selective = selection is not None
            return Worker(
                plan=plan.bare(),
                index=index,
                writers=self.recorder.writers,
                strict=self.strict,
                dataset=dataset,
                selection=selection,
                progress=self.progress.add if self.progress.wanted else None,
            )

    def _load_finished(self) -> None:
        finished = self.recorder.load_finished(self.shards)
        for result, shard in zip(finished, self.shards, strict=False):
            self.merged.add(result)
            self.progress.add_shard(shard, self.merged, resumed=True)
            self.resumed += 1

    def _merge(self, result: ShardResult, shard: Shard | None) -> None:
        """Save a shard's result, add it to the merged results and report progress."""
        begun = time.perf_counter()
        if shard is not None:
            self.files.check([shard], [member.input.path for member in shards_in(shard)])
        self.recorder.save(result, shard)
        self.merged.add(result)
        samples = len(self.merged.table)
        if self.plan.duplicates == "error" and samples >= self._next_look:
            self._next_look = 2 * samples
            self._list_duplicates()
        self.seconds += time.perf_counter() - begun
        if shard is not None:
            self.progress.add_shard(shard, self.merged)

    def _add_unanswered(self, worker: Worker) -> None:
        """Add the samples of the dataset that no record answers."""
        dataset, answered = worker.dataset, self.merged.answered
        if dataset is None or not self.merged.samples:
            return
        if not self.plan.max_samples:
            self.merged.unmatched = unmatched(dataset, answered)
        samples: list[list[Sample | Any]] = [[sample] for sample in unanswered(dataset, answered)]
        if samples:
            input_ = self.plan.inputs.data[-1]
            shard = Shard(ordinal=len(self.shards), input=input_, position=_BEHIND_ALL)
            self._merge(worker.process(shard, samples), None)

    def _list_duplicates(self) -> None:
        """Count repeated records and list their places; raise where the plan forbids them."""
        rows = self.merged.table.repeated()
        if not rows:
            return
        listed = rows[: LISTED - len(self.merged.duplicates_listed)]
        ids = self.merged.table.keys["id"]
        places = self.recorder.read_places(listed)
        places = places or [f"task {ids.values[ids.codes[row]]}" for row in listed]
        if self.plan.duplicates == "error":
            raise repeated_record(places[0])
        self.merged.duplicates += len(rows)
        self.merged.duplicates_listed += places

    def nothing_left(self) -> DataError:
        """Return the error of an input in which nothing could be read, or of which
        nothing is left.
        """
        plan = self.plan
        paths = [str(input_.path) for input_ in plan.inputs.data[:_NAMED_INPUTS]]
        names = ", ".join(paths) or plan.name
        for entry in self.merged.bad_listed:
            source = Source(file=entry["file"], ordinal=entry["ordinal"], line=entry["line"])
            first = f"{source}: {entry['reason']}"
            return DataError(f"{names}: no record could be read", first)
        if not self._is_selective:
            return DataError(f"{names}: no record could be read", "the input holds no record")
        reasons = []
        if plan.sample_tags:
            reasons.append(f"sample_tags: {', '.join(sorted(plan.sample_tags))}")
        if plan.subset:
            reasons.append(f"{plan.subset}")
        reasons += not_found(plan.subset, self.merged.facets, ())
        return DataError(f"{names}: no run is left after the suite's limits", *reasons)


def _select(
    plan: Plan,
    shards: Sequence[Shard],
    index: Any,
    dataset: Mapping[str, Sample] | None,
    *,
    drop_copies: bool,
) -> Selection | None:
    """Select the samples of the input that count; None where all do."""
    reader = plan.reader.component

    def admits(sample: Sample) -> bool:
        return plan.subset.admits(Fields.of(joined(sample, dataset or {})))

    ids = last = None
    if plan.max_samples and dataset is not None and not plan.subset:
        ids = frozenset(dataset)
    elif plan.max_samples:
        ids = first_ids(reader, shards, index, plan.max_samples, admits)
    if plan.duplicates == "last" or drop_copies:
        last = last_records(reader, shards, index, named=drop_copies)
    if ids is None and last is None and not plan.sample_tags and not plan.subset:
        return None
    return Selection(ids=ids, tags=plan.sample_tags, subset=plan.subset, last=last)


def repeated_record(shown: str) -> DataError:
    """Return the error of a record that repeats an earlier one."""
    problem = "repeats an (id, model, run) that was already read"
    return DataError(f"{shown}: {problem}; use `duplicates: keep` or `last`")


def _results(engine: Engine, worker: Worker, shards: Sequence[Shard]) -> Generator[ShardResult]:
    """Yield an engine's results.

    Closed, it ends the engine's work: nobody takes its results any more.
    """
    if not shards:
        return
    for result, shard in zip(engine.map(worker, shards), shards, strict=False):
        if result.ordinal != shard.ordinal:
            problem = (
                f"engine {type(engine).__name__} gives results in another order than its shards"
            )
            raise PluginError(f"{problem}; yield work(shard) in shard order")
        yield result
