"""A run from its suite to its directory: grading, native files, figures, pages."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import attrs

from gradestack.copies.files import named_as_given, original
from gradestack.errors import (
    ConfigError,
    DataError,
    GradestackError,
    LostEngineError,
    PluginError,
    storage_failed,
)
from gradestack.grading.loop import Loop, ProgressCount
from gradestack.interpreter import Interruption, collected_seldom, limited
from gradestack.jsonio.values import dumps, loads
from gradestack.outcome.baselines import Baselines
from gradestack.outcome.pages import (
    Pages,
    with_broken_pages,
    write_native,
    write_pages,
)
from gradestack.outcome.programs import run_programs
from gradestack.outcome.summary import Evaluation, check_without_rows, summarise
from gradestack.report import HEADER, SUMMARY, Report
from gradestack.rundir.header import header
from gradestack.rundir.place import (
    PATIENCE,
    Staging,
    default_place,
    keep_inputs,
    link_latest,
    newest_unfinished,
    unfinished,
)
from gradestack.rundir.recorder import DirectoryRecorder, MemoryRecorder
from gradestack.suites.spec import RECORDED, RunOptions, Suite
from gradestack.table import Table

CONTINUE = "what was graded so far is kept: continue with --resume"
NOTHING_KEPT = "nothing is kept for --resume: no range of 8 MiB of the input was finished"


@named_as_given()
def run_suite(suite: Suite, options: RunOptions) -> Report:
    """Run a suite and write its run directory."""
    if options.output is not None:
        given = [original(each.path) for each in suite.inputs.files]
        keep_inputs(options.output, [*given, *([suite.origin] if suite.origin else [])])
    if suite.rows == "none":
        check_without_rows(suite)
    # Rows are our own: they may be longer than a record.
    with (
        limited(suite.limits._replace(record_bytes=None)),
        collected_seldom(),
        _Run(suite, options).staged() as run,
    ):
        return run.whole()


@named_as_given()
def grade_suite(suite: Suite, options: RunOptions) -> Report:
    """Run a suite and write nothing: figures and rows are held for the report."""
    started, begun = datetime.now(UTC), time.perf_counter()
    baselines = Baselines(suite, None)
    held = MemoryRecorder(suite, strict=options.strict)
    try:
        loop = Loop(suite, held, ProgressCount(None, suite.main), strict=options.strict)
        loop.execute(suite.engine.component)
        report = Report(
            path=None,
            header={"rows": RECORDED[suite.rows]},
            summary={},
            held=held.file,
            registry=suite.registry,
        )
        with limited(suite.limits._replace(record_bytes=None)):
            programs = run_programs(suite, loop.merging, report)
            figures = summarise(
                Evaluation(suite, loop.merging, loop.merged, report, baselines, programs)
            )
        timings = _timings(loop, time.perf_counter() - begun)
        head = (
            header(suite, loop, started.isoformat(timespec="seconds"), timings)
            | baselines.digests()
        )
    except BaseException:
        held.file.close()
        raise
    return attrs.evolve(report, header=_as_read(head), summary=_as_read(figures)).closing_itself()


def _timings(loop: Loop, seconds: float) -> dict[str, Any]:
    return {
        "grading": round(seconds, 3),
        "merging": round(loop.seconds, 3),
        "graders": {key: round(each, 3) for key, each in sorted(loop.merged.timings.items())},
    }


def _as_read(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = loads(dumps(content))
    return found


class _Run:
    def __init__(self, suite: Suite, options: RunOptions) -> None:
        self.suite, self.options, self.say = suite, options, options.say
        self.progress = ProgressCount(options.progress, suite.main)
        self.started, self.clock = datetime.now(UTC), time.perf_counter()
        self.timings: dict[str, Any] = {}

    def staged(self) -> _Run:
        suite, options = self.suite, self.options
        self.default = options.output is None
        place = options.output if options.output is not None else self._default_place()
        self.baselines = Baselines(suite, place)
        self.staging = Staging(place, resume=options.resume)
        if self.staging.replaced:
            self.say(
                f"{place}: what an unfinished run had left is removed; --resume would have "
                "continued it"
            )
        if options.resume and not self.staging.journal.is_file():
            self.say(f"{place}: there is no unfinished run to continue, it is begun anew")
        self.recorder = DirectoryRecorder(
            suite,
            self.staging,
            self.started.isoformat(timespec="seconds"),
            strict=options.strict,
            resume=options.resume,
        )
        self.loop = Loop(suite, self.recorder, self.progress, strict=options.strict)
        return self

    def _default_place(self) -> Path:
        found = newest_unfinished(self.suite.name, PATIENCE if self.options.resume else 0)
        if found is not None and self.options.resume:
            return found
        if found is not None:
            self.say(
                f"an unfinished run of {self.suite.name} is left: continue it with --resume, or "
                "remove "
                f"{found.with_name(unfinished(found).name)}"
            )
        return default_place(self.suite.name, self.started)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        """After a failure keep what can be continued, remove everything else, and say which."""
        recorded = self.recorder.close(failed=error is not None and storage_failed(error))
        if error is None:
            return
        mistake = isinstance(error, ConfigError | DataError) or (
            self.options.strict and isinstance(error, PluginError)
        )
        removed = not self.staging.base.is_dir()
        kept = (
            bool(recorded)
            and self.staging.journal.is_file()
            and (not mistake or isinstance(error, LostEngineError))
        )
        earlier = self.options.resume and isinstance(
            error, ConfigError | DataError
        )  # work of an attempt may be in it
        if kept or earlier:
            self.staging.leave()
        else:
            self.staging.discard()
        advice: tuple[str, ...] = (CONTINUE,) if kept else ()
        if self.staging.committed:
            advice = (
                (
                    f"results are kept, pages are missing: `gradestack report {self.staging.path}` "
                    "writes them"
                ),
            )
        elif not kept and storage_failed(error):
            advice = (NOTHING_KEPT,)
        if isinstance(error, GradestackError):
            error.problems += advice
        if isinstance(error, OSError) and removed:
            raise DataError(
                f"{self.staging.base}: was removed while the run was writing there; nothing is "
                "left of it"
            ) from error
        if isinstance(error, OSError):
            raise DataError(
                f"{error.filename or self.staging.path}: {error.strerror or error}", *advice
            ) from error

    def whole(self) -> Report:
        suite, loop, staging, begun = self.suite, self.loop, self.staging, time.perf_counter()
        loop.execute(suite.engine.component)
        if self.recorder.damaged:
            self.say(
                f"{staging.place}: what was on record of the unfinished run is damaged, it is "
                "begun anew"
            )
        for key, text in loop.merged.tracebacks.items() if self.options.debug else ():
            for line in (f"the first error of grader {key!r}:", *text.split("\n")):
                self.say(line)
        self.timings |= _timings(loop, time.perf_counter() - begun)
        begun = time.perf_counter()
        self.progress.phase("native files")
        try:
            write_native(suite, loop.merging, self.recorder.native, staging.path)
        except KeyboardInterrupt:
            loop.merged.interrupted = True
        self.timings["native"] = round(time.perf_counter() - begun, 3)
        with Interruption(patient=True) as late:
            figures = self._figures()
            recorded = self.recorder.close()
            path = staging.commit(durable=recorded > 0)  # before pages, which may take it with them
        loop.merged.table = Table(())  # something for every sample, which pages do not need
        loop.merged.seen.clear()
        header_read = loads((path / HEADER).read_bytes())
        report = Report(path=path, header=header_read, summary=figures, registry=suite.registry)
        self.progress.phase("pages")
        pages = (
            Pages(interrupted=True) if late.requested else write_pages(suite.reports, report, path)
        )
        with Interruption(patient=True):
            if pages != Pages(written=pages.written):
                figures = with_broken_pages(figures, pages, strict=self.options.strict)
                staging.write_json(SUMMARY, figures)
            if recorded and (loop.merged.interrupted or pages.interrupted):
                staging.leave()
            else:
                staging.discard()
        if self.default:
            link_latest(path)
        head, written = (
            loads((path / HEADER).read_bytes()),
            tuple(path / page for page in pages.written),
        )
        return attrs.evolve(report, header=head, summary=figures, pages=written)

    def _figures(self) -> dict[str, Any]:
        suite, loop, staging = self.suite, self.loop, self.staging
        recorded = Report(path=staging.path, header={"rows": RECORDED[suite.rows]}, summary={})
        programs = run_programs(suite, loop.merging, recorded, staging.path / "native")
        programs.write()
        evaluation = Evaluation(
            suite, loop.merging, loop.merged, recorded, self.baselines, programs
        )
        figures = summarise(evaluation)
        self.timings["seconds"] = round(time.perf_counter() - self.clock, 3)
        head = header(suite, loop, self.recorder.started, self.timings) | self.baselines.digests()
        if suite.num_runs is not None and not loop.merged.interrupted:
            from gradestack.outcome.runs import write_runs  # noqa: PLC0415 - for several runs alone

            figures = write_runs(evaluation, staging, head, figures)
        found: dict[str, Any] = staging.write_json(SUMMARY, figures)
        staging.write_json(HEADER, head)
        return found
