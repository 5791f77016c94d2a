"""The run loop: shards through an engine, results merged in order and handed to a recorder."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from gradestack.api import Engine, Inputs, Shard
from gradestack.errors import DataError, GradestackError, PluginError
from gradestack.grading.merging import LISTED, Merged, Merging, ShardResult
from gradestack.grading.plan import Plan
from gradestack.grading.reading import (
    InputFiles,
    Separated,
    bundled,
    separated,
    shards_in,
    shards_of,
)
from gradestack.grading.recording import Recorder
from gradestack.grading.selection import (
    Selection,
    first_ids,
    joined,
    last_ones,
    read_dataset,
    unanswered,
    unmatched,
)
from gradestack.grading.subset import Fields, not_found
from gradestack.grading.worker import Worker
from gradestack.interpreter import Interruption, limited
from gradestack.model import Outcome, Sample, Source

Phase = Literal["grading", "native files", "pages"]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is."""

    phase: Phase = "grading"
    samples: int = 0
    """Samples graded so far, those of ranges under way included where the engine works in this
    process.
    """
    resumed: int = 0
    """Those of them an earlier attempt had graded."""
    states: dict[str, int] = msgspec.field(default_factory=dict)
    """State of the main grade -> samples, over finished ranges."""
    bad: int = 0
    """Records that could not be read, over finished ranges."""
    share: float | None = None
    """Share of the input in finished ranges, by bytes; None while nothing is known of it."""


ProgressCallback = Callable[[Progress], None]


def _in_notebook() -> ProgressCallback | None:
    """Return what shows progress below a notebook's cell, which the reporter ``html`` brings.

    None elsewhere.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    from gradestack.registry import discover  # noqa: PLC0415 - here alone

    with suppress(GradestackError, AttributeError):
        return discover().load("reporter", "html")().progress()  # type: ignore[no-any-return]
    return None


class ProgressCount:
    """Keeps count, and calls back with the whole."""

    def __init__(self, callback: ProgressCallback | None, main: str) -> None:
        self._callback, self._main = callback or _in_notebook(), main
        self._under_way = 0
        self._done, self._all = 0, 1
        self.state = Progress()

    @property
    def wanted(self) -> bool:
        """Whether anybody wants to know."""
        return self._callback is not None

    def plan(self, shards: Sequence[Shard]) -> None:
        """Take note of what there is to do."""
        self._done = self._under_way = 0
        self._all = sum(shard.size() for shard in shards) or 1

    def add(self, samples: int) -> None:
        """Count samples of the range under way."""
        self._under_way += samples
        self._change(samples=max(self.state.samples, self._under_way))

    def merged(self, shard: Shard, merged: Merged, *, resumed: bool = False) -> None:
        """Count a finished range; its samples count now if they did not while it was under way."""
        self._done += shard.size()
        self._under_way = max(self._under_way, merged.samples)
        states = {str(outcome): merged.states[str(outcome)] for outcome in Outcome}
        share = self._done / self._all
        before = merged.samples if resumed else self.state.resumed
        self._change(
            samples=self._under_way, states=states, bad=merged.bad, share=share, resumed=before
        )

    def phase(self, phase: Phase) -> None:
        """Say that the next phase begins."""
        self._change(phase=phase)

    def _change(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)
        if self._callback is not None:
            self._callback(self.state)


_FAR = 1 << 62


class Loop:
    """The samples of one run, graded.

    Attributes:
        merging: What they have come to so far.
        files: The files of the inputs, as they were when the run began.
        notes: What the inputs decided.
        resumed: Shards an earlier attempt had finished.
        seconds: Spent on merging.
    """

    def __init__(
        self, plan: Plan, recorder: Recorder, progress: ProgressCount, *, strict: bool = False
    ) -> None:
        self.plan, self.recorder, self.progress, self.strict = plan, recorder, progress, strict
        self.merging = Merging(plan, strict=strict)
        self.merged = self.merging.merged
        self.files = InputFiles(Inputs(data=()))
        self.notes: list[str] = []
        self.resumed = 0
        self.seconds = 0.0
        self.shards: list[Shard] = []
        self._worker: Worker | None = None
        self._next_look = 1
        """So many samples have to be there for the next look for repeated ones."""

    def execute(self, engine: Engine) -> None:
        """Grade everything an earlier attempt has not, merging results in shard order.

        Where a run was recorded twice under one name, everything is graded anew without the
        earlier copies: rows and native files are written already when the later one is met.
        """
        self._execute(engine, self.open())
        if self._has_copies():
            self._restart()
            self._execute(engine, self.open(drop_copies=True))
        self.merged.table.forget()
        self._list_duplicates()
        self.recorder.finish()
        if not self.merged.samples and not self.merged.interrupted:
            raise self.nothing()

    def _has_copies(self) -> bool:
        """Return whether records have to be dropped for a later one of the same named run."""
        plan = self.plan
        if plan.duplicates != "keep" or plan.keeps_copies or self.merged.interrupted:
            return False
        return bool(self.merged.table.repeated(named=True))

    def _restart(self) -> None:
        self.recorder.restart()
        self.merging = Merging(self.plan, strict=self.strict)
        self.merged = self.merging.merged
        self.resumed = 0

    def _execute(self, engine: Engine, worker: Worker) -> None:
        rest = self.shards[self.resumed :]
        try:
            with contextlib.closing(_results(engine, worker, rest)) as results:
                for result, shard in zip(results, rest, strict=False):
                    with Interruption(patient=True) as interruption:
                        self._merge(result, shard)
                    self.merged.interrupted |= interruption.requested
                    if self.merged.interrupted:
                        break
            if not self.merged.interrupted and (absent := self._unanswered(worker)):
                shard = Shard(
                    ordinal=len(self.shards), input=self.plan.inputs.data[-1], position=_FAR
                )
                self._merge(worker.process(shard, [[each] for each in absent]), None)
        except KeyboardInterrupt:
            self.merged.interrupted = True
        except PluginError:  # maybe for no other reason
            self.files.check(self.shards)
            raise
        self.files.check(self.shards)

    def open(self, *, drop_copies: bool = False) -> Worker:
        """Plan the shards, load those that an earlier attempt has on record, and return what grades
        the others.
        """
        plan, reader = self.plan, self.plan.reader.component
        for stage in plan.graders:
            if getattr(stage.component, "judgements", None) is not None:
                stage.component.journal.check()
        with limited(plan.limits):
            self.files = InputFiles(plan.inputs)
            shards, index = shards_of(reader, plan.inputs)
            index = separated(reader, plan.inputs, shards, index)
            self.shards = shards if plan.exporters else bundled(shards)  # their files are of inputs
            self.notes = [index.note] if isinstance(index, Separated) else []
            self.progress.plan(self.shards)
            for result, shard in zip(
                self.recorder.load_finished(self.shards), self.shards, strict=False
            ):
                self.merging.add(result)
                self.progress.merged(shard, self.merged, resumed=True)
                self.resumed += 1
            dataset, self.merged.contradicted = read_dataset(plan)
            self._worker = Worker(
                plan=plan.bare(),
                index=index,
                writers=self.recorder.writers,
                strict=self.strict,
                dataset=dataset,
                selection=_selection(plan, self.shards, index, dataset, drop_copies=drop_copies),
                progress=self.progress.add if self.progress.wanted else None,
            )
        return self._worker

    def _merge(self, result: ShardResult, shard: Shard | None) -> None:
        begun = time.perf_counter()
        if shard is not None:
            self.files.check([shard], [each.input.path for each in shards_in(shard)])
        self.recorder.save(result, shard)
        self.merging.add(result)
        if self.plan.duplicates == "error" and len(self.merged.table) >= self._next_look:
            self._next_look = 2 * len(self.merged.table)
            self._list_duplicates()
        self.seconds += time.perf_counter() - begun
        if shard is not None:
            self.progress.merged(shard, self.merged)

    def _unanswered(self, worker: Worker) -> list[Sample]:
        if worker.dataset is None or not self.merged.samples:
            return []
        if not self.plan.max_samples:
            self.merged.unmatched = unmatched(worker.dataset, self.merged.seen)
        return list(unanswered(worker.dataset, self.merged.seen))

    def _list_duplicates(self) -> None:
        if not (rows := self.merged.table.repeated()):
            return
        ids, listed = (
            self.merged.table.keys["id"],
            rows[: LISTED - len(self.merged.duplicates_listed)],
        )
        places = self.recorder.read_places(listed) or [
            f"task {ids.values[ids.codes[row]]}" for row in listed
        ]
        if self.plan.duplicates == "error":
            raise repeated(places[0])
        self.merged.duplicates += len(rows)
        self.merged.duplicates_listed += places

    def nothing(self) -> DataError:
        """Return the error of an input in which nothing could be read, or of which
        nothing is left.
        """
        plan = self.plan
        names = ", ".join(str(each.path) for each in plan.inputs.data[:3]) or plan.name
        limited = self._worker is not None and self._worker.selection is not None
        first = [f"{_source(each)}: {each['reason']}" for each in self.merged.bad_listed[:1]]
        if limited and not first:
            tags = (
                [f"sample_tags: {', '.join(sorted(plan.sample_tags))}"] if plan.sample_tags else []
            )
            tags += [f"{plan.subset}"] if plan.subset else []
            tags += not_found(plan.subset, self.merged.facets, ())
            return DataError(f"{names}: no sample is left after the suite's limits", *tags)
        return DataError(
            f"{names}: no record could be read", *(first or ["the input holds no record"])
        )


def _selection(
    plan: Plan,
    shards: Sequence[Shard],
    index: Any,
    dataset: Mapping[str, Sample] | None,
    *,
    drop_copies: bool,
) -> Selection | None:
    reader = plan.reader.component
    ids = None
    if plan.max_samples and dataset is not None and not plan.subset:
        ids = frozenset(dataset)
    elif plan.max_samples:

        def takes(sample: Sample) -> bool:
            return plan.subset.admits(
                Fields.of(sample if dataset is None else joined(sample, dataset))
            )

        ids = first_ids(reader, shards, index, plan.max_samples, takes)
    last = None
    if plan.duplicates == "last" or drop_copies:
        last = last_ones(reader, shards, index, named=drop_copies)
    if ids is None and last is None and not plan.sample_tags and not plan.subset:
        return None
    return Selection(ids=ids, tags=plan.sample_tags, subset=plan.subset, last=last)


def repeated(place: str) -> DataError:
    """Return the error of a record that repeats an earlier one."""
    return DataError(
        f"{place}: repeats an (id, model, run) that was already read; use `duplicates: keep` or "
        "`last`"
    )


def _source(entry: dict[str, Any]) -> Source:
    return Source(**{name: entry[name] for name in ("file", "ordinal", "line")})


def _results(engine: Engine, worker: Worker, shards: Sequence[Shard]) -> Generator[ShardResult]:
    """Yield an engine's results.

    Closed, it ends the engine's work: nobody takes its results any more.
    """
    if not shards:
        return
    for result, shard in zip(engine.map(worker, shards), shards, strict=False):
        if result.ordinal != shard.ordinal:
            name = type(engine).__name__
            raise PluginError(
                f"engine {name} gives results in another order than its shards; yield work(shard) "
                "in shard order"
            )
        yield result
