"""The run loop: shards through an engine, results merged in order, a run directory written."""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import attrs

from gradestack import tally
from gradestack.api import Aggregator, Shard
from gradestack.composite import judge_groups, needs_series
from gradestack.errors import DataError
from gradestack.gate import GateSpec, evaluate
from gradestack.guard import Interruption, records_of, said, shards_of
from gradestack.header import header
from gradestack.jsontext import dumps, loads
from gradestack.model import BadRecord, Outcome, Sample, Source, Status
from gradestack.multirun import RowSeries, write_runs
from gradestack.native import write_native
from gradestack.pages import Pages, with_broken_pages, write_pages
from gradestack.pipeline import MetricSlot, ShardResult, Worker
from gradestack.report import Report
from gradestack.selection import Selection, first_ids, last_ones
from gradestack.slots import GraderSlot
from gradestack.store import HEADER, ROWS, SUMMARY, Staging, default_place, keep_inputs, link_latest
from gradestack.suitespec import Suite
from gradestack.tally import Tally

LISTED = 1000
_FAR = 1 << 62


@attrs.define
class Merged:
    """What all shards came to."""

    samples: int = 0
    tally: Tally = attrs.field(factory=dict)
    states: dict[str, Any] = attrs.field(factory=dict)
    by_input: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    """Input name -> states, for exporters."""
    tally_by_input: dict[str, Tally] = attrs.field(factory=dict)
    native: dict[tuple[str, str], list[Path]] = attrs.field(factory=dict)
    bad: int = 0
    bad_listed: list[dict[str, Any]] = attrs.field(factory=list)
    digests: set[int] = attrs.field(factory=set)
    duplicates: int = 0
    duplicates_listed: list[str] = attrs.field(factory=list)
    seen: set[tuple[str, str]] = attrs.field(factory=set)
    broken: dict[str, str] = attrs.field(factory=dict)
    interrupted: bool = False


class Run:
    """One run of a suite."""

    def __init__(self, suite: Suite, staging: Staging, *, strict: bool, tick: Callable[[int], None] | None) -> None:
        self.suite, self.staging, self.strict, self.tick = suite, staging, strict, tick
        self.metrics = {f"{metric.of}/{metric.stage.key}": metric.stage.component for metric in suite.metrics}
        self.merged = Merged()

    def worker(self, shards: Sequence[Shard], index: Any) -> Worker:
        """Return what engines apply to every shard."""
        suite = self.suite
        worker = Worker(
            reader=suite.reader.component,
            index=index,
            graders=tuple(
                GraderSlot(
                    key=stage.key,
                    component=stage.name,
                    grader=stage.component,
                    extractor=stage.extractor.component if stage.extractor is not None else None,
                    profile=suite.profile,
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
            strict=self.strict,
            join=self._dataset(),
            same_inputs=suite.same_inputs,
            tick=self.tick,
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
                    msg = f"{dataset.path}: {record.source}: {record.reason}"
                    raise DataError(msg)
                if not self.suite.max_samples or len(rows) < self.suite.max_samples or record.id in rows:
                    rows[record.id] = record
        if not rows:
            msg = f"{dataset.path}: the dataset holds no row"
            raise DataError(msg)
        return rows

    def execute(self) -> None:
        """Grade everything, merging results in shard order."""
        suite, reader = self.suite, self.suite.reader.component
        shards, index = shards_of(reader, suite.inputs)
        worker = self.worker(shards, index)
        with (self.staging.path / ROWS).open("wb") as rows:
            try:
                for result in suite.engine.component.map(worker, shards):
                    with Interruption(patient=True) as interruption:
                        self._merge(result, rows)
                    self.merged.interrupted |= interruption.requested
                    if self.tick is not None and suite.engine.component.remote:
                        self.tick(result.samples)
                    if self.merged.interrupted:
                        break
                else:
                    self._missing(worker, shards, rows)
            except KeyboardInterrupt:
                self.merged.interrupted = True
        if not self.merged.samples and not self.merged.interrupted:
            names = ", ".join(str(each.path) for each in suite.inputs.data[:3]) or suite.name
            msg = f"{names}: no record could be read"
            chosen = (
                "the input holds no record" if worker.selection is None else "none is left after the suite's limits"
            )
            first = [f"{Source(**_place(each))}: {each['reason']}" for each in self.merged.bad_listed[:1]]
            raise DataError(msg, *(first or [chosen]))

    def _merge(self, result: ShardResult, rows: Any) -> None:
        merged = self.merged
        if result.rows is not None:
            with result.rows.open("rb") as part:
                shutil.copyfileobj(part, rows)
            result.rows.unlink()
        for artefact, path in result.native.items():
            merged.native.setdefault((result.input, artefact), []).append(path)
        merged.broken = {**result.broken, **merged.broken}
        self._merge_states(merged.states, result.states)
        tally.merge(merged.tally, result.tally)
        if self.suite.exporters:
            # Merging may have taken pieces of the states over, so these need their own.
            self._merge_states(merged.by_input.setdefault(result.input, {}), copy.deepcopy(result.states))
            tally.merge(merged.tally_by_input.setdefault(result.input, {}), result.tally)
        merged.samples += result.samples
        merged.bad += result.bad
        merged.bad_listed += result.bad_listed[: LISTED - len(merged.bad_listed)]
        merged.seen |= result.seen
        merged.interrupted |= result.interrupted
        merged.duplicates += len(result.superseded)
        merged.duplicates_listed += result.superseded[: LISTED - len(merged.duplicates_listed)]
        for identity, place in result.keys:
            if identity in merged.digests:
                merged.duplicates += 1
                if len(merged.duplicates_listed) < LISTED:
                    merged.duplicates_listed.append(place)
            else:
                merged.digests.add(identity)
        if merged.duplicates and self.suite.duplicates == "error":
            place = merged.duplicates_listed[0]
            msg = f"{place}: repeats an (id, model, run) that was already read; use `duplicates: keep` or `last`"
            raise DataError(msg)

    def _merge_states(self, into: dict[str, Any], states: dict[str, Any]) -> None:
        for name, state in states.items():
            if name in self.merged.broken:
                continue
            aggregator: Aggregator[Any] = self.metrics[name]
            try:
                into[name] = aggregator.merge(into[name] if name in into else aggregator.start(), state)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the other metrics must not be lost with it
                self.merged.broken[name] = said(error)

    def _missing(self, worker: Worker, shards: Sequence[Shard], rows: Any) -> None:
        """Add a missing row for every dataset row no record answers, per model seen."""
        if worker.join is None or not self.merged.samples:
            return
        models = sorted({model for model, _ in self.merged.seen}) or [""]
        absent = [
            attrs.evolve(row, model=model or None, status=Status.MISSING, run=None, native=None)
            for model in models
            for identifier, row in worker.join.items()
            if (model, identifier) not in self.merged.seen
        ]
        if absent:
            last = self.suite.inputs.data[-1]
            shard = Shard(ordinal=len(shards), input=last, position=_FAR)
            self._merge(worker.process(shard, iter(absent)), rows)

    def finish_states(self, states: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return finished metrics: grader key -> aggregator key -> metrics; a broken one says so."""
        done: dict[str, dict[str, Any]] = {stage.key: {} for stage in self.suite.graders}
        for metric in self.suite.metrics:
            name = f"{metric.of}/{metric.stage.key}"
            try:
                if name not in self.merged.broken:
                    state = states[name] if name in states else metric.stage.component.start()
                    finished = dict(metric.stage.component.finish(state))
                    dumps(finished)
                    done[metric.of][metric.stage.key] = finished
                    continue
            except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
                self.merged.broken[name] = said(error)
            done[metric.of][metric.stage.key] = {"error": self.merged.broken[name]}
        return done

    def _gates(self, figures: dict[str, dict[str, Any]], series: RowSeries) -> list[dict[str, Any]]:
        """Return every gate's verdict; only forms beyond the flat one need the scores of all rows."""
        suite, found = self.suite, []
        for gate in suite.gates:
            own_rule = gate is not suite.rule and getattr(gate, "metric", "") == "accuracy"
            if needs_series([gate]) or own_rule:
                found.append(judge_groups(gate, series.groups, series.everything, suite.headline, suite.profile))
                continue
            key = getattr(gate, "metric_key", None) or suite.headline
            compared = {
                "attempted": figures[key]["total_attempted"],
                "avg_score": figures[key]["avg_score_attempted"],
                "pass_rate": figures[key]["pass_rate"],
            }
            found.append(evaluate(cast(GateSpec, gate), key, compared, suite.profile))
        return found

    def summary(self, merged: Merged, series: RowSeries) -> dict[str, Any]:
        """Return the content of summary.json for everything, or for one run of several.

        Args:
            merged: The counts and states to report.
            series: Scores of the rows, read when a gate needs them.
        """
        suite = self.suite
        keys = [stage.key for stage in suite.graders]
        counts = tally.overall(merged.tally, keys)
        figures = {key: tally.figures(count, suite.profile) for key, count in counts.items()}
        head = figures[suite.headline]
        aggregates = self.finish_states(merged.states)
        gates = self._gates(figures, series)
        short = ("avg_score_attempted", "avg_score_total", "pass_rate", "passed_attempts", "failed_attempts")
        named = any(merged.tally)
        content: dict[str, Any] = {
            "suite": suite.name,
            "config": suite.config,
            "metrics": {
                **{name: head[name] for name in head if name != "pass_rate"},
                "per_model": [self._model_row(model, merged) for model in merged.tally] if named else None,
                "by_metric": {key: {name: figures[key][name] for name in short} for key in keys},
                "metrics": {key: figures[key]["pass_rate"] for key in keys},
                "states": {key: counts[key]["states"] for key in keys},
                "aggregates": aggregates,
            },
            "gates": gates,
            "gates_passed": all(gate["passed"] for gate in gates) if gates else None,
            "bad_records": {"count": merged.bad, "listed": merged.bad_listed},
            "duplicates": {
                "policy": suite.duplicates,
                "count": merged.duplicates,
                "listed": merged.duplicates_listed,
            },
            "warnings": self._warnings(merged),
        }
        if merged.broken:
            content["broken"] = merged.broken
        if merged.interrupted:
            content["incomplete"] = "interrupted: the figures cover the samples graded before"
            content["gates_passed"] = False if gates else None
        return content

    def _model_row(self, model: str, merged: Merged) -> dict[str, Any]:
        profile, counts = self.suite.profile, merged.tally[model]
        head = tally.figures(counts[self.suite.headline], profile)
        return {
            "model_name": model or None,
            "total": head["total"],
            "total_attempted": head["total_attempted"],
            "avg_score_attempted": head["avg_score_attempted"],
            "avg_score_total": head["avg_score_total"],
            "passed_samples": head["passed_attempts"],
            "failed_samples": head["failed_attempts"],
            "metrics": {key: tally.figures(count, profile)["pass_rate"] for key, count in counts.items()},
        }

    def _warnings(self, merged: Merged) -> list[str]:
        said = list(self.suite.warnings)
        if merged.duplicates:
            first = merged.duplicates_listed[0]
            what = {"keep": "all are kept", "last": "the last is kept"}[self.suite.duplicates]
            said.append(f"{merged.duplicates} record(s) repeat an (id, model, run), the first at {first}; {what}")
        for key, count in tally.overall(merged.tally, [stage.key for stage in self.suite.graders]).items():
            if merged.samples and not count["states"][Outcome.GRADED]:
                others = ", ".join(f"{number} {state}" for state, number in count["states"].items() if number)
                said.append(f"grader {key!r} graded no sample ({others}); the rows say why")
        said += [f"{name} is broken and left out: {text}" for name, text in sorted(merged.broken.items())]
        return said


def _place(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("file", "ordinal", "line")}


def run_suite(
    suite: Suite,
    output: Path | None,
    *,
    strict: bool = False,
    tick: Callable[[int], None] | None = None,
    temporary: bool = False,
) -> Report:
    """Run a suite and write its run directory.

    Args:
        suite: What to run.
        output: Run directory; None for the default place under ``gradestack-runs``.
        strict: Stop at the first bad record or raising grader.
        tick: Called with the number of samples done since the last call.
        temporary: Write into a temporary directory instead, removed by ``Report.close``.

    Raises:
        ConfigError: The output cannot be written or is not ours.
        DataError: No record could be read, or a bad one under ``strict``.
        PluginError: A grader raised under ``strict``.
    """
    if output is not None:
        given = [*suite.inputs.data, *([suite.inputs.dataset] if suite.inputs.dataset else [])]
        keep_inputs(output, [*(each.path for each in given), *([suite.origin] if suite.origin else [])])
    started, clock = datetime.now(UTC), time.perf_counter()
    place = None if temporary else output or default_place(suite.name, started)
    staging = Staging(place)
    try:
        run = Run(suite, staging, strict=strict, tick=tick)
        run.execute()
        try:
            write_native(run)
        except KeyboardInterrupt:
            run.merged.interrupted = True
        with Interruption(patient=True) as late:
            summary = run.summary(run.merged, RowSeries(staging.path / ROWS))
            head = header(suite, started, time.perf_counter() - clock)
            if suite.num_runs is not None and not run.merged.interrupted:
                summary = write_runs(run, staging, head, summary)
            staging.write_json(SUMMARY, summary)
            staging.write_json(HEADER, head)
        summary, head = loads(dumps(summary)), loads(dumps(head))  # reporters see what a later reader of the files sees
        report = Report(path=staging.path, header=head, summary=summary, temporary=temporary)
        pages = Pages(interrupted=True) if late.requested else write_pages(suite.reports, report)
        with Interruption(patient=True):
            if pages.broken or pages.interrupted:
                summary = with_broken_pages(summary, pages)
                staging.write_json(SUMMARY, summary)
            path = staging.commit()
    except OSError as error:
        staging.discard()
        msg = f"{error.filename or staging.path}: {error.strerror or error}"
        raise DataError(msg) from error
    except BaseException:
        staging.discard()
        raise
    if output is None and place is not None:
        link_latest(place)
    return attrs.evolve(report, path=path, summary=summary, pages=tuple(path / page for page in pages.written))
