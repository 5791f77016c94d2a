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
from gradestack.grading.loop import Loop
from gradestack.grading.progress import ProgressCount
from gradestack.interpreter import Interruption, collected_seldom, limited
from gradestack.jsonio.values import dumps, loads
from gradestack.metrics.of_run import RunFigures
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
    """Run a suite and write its report directory."""
    if options.output is not None:
        inputs = [original(input_.path) for input_ in suite.inputs.files]
        paths = [*inputs, *([suite.origin] if suite.origin else [])]
        keep_inputs(options.output, paths)
    if suite.rows == "none":
        check_without_rows(suite)
    # Rows are our own: they may be longer than a record.
    with (
        limited(suite.limits._replace(record_bytes=None)),
        collected_seldom(),
        _DirectoryRun(suite, options) as run,
    ):
        return run.execute()


@named_as_given()
def grade_suite(suite: Suite, options: RunOptions) -> Report:
    """Run a suite and write nothing: figures and rows are held for the report."""
    clock = _Clock()
    baselines = Baselines(suite, None)
    recorder = MemoryRecorder(suite, strict=options.strict)
    try:
        loop = Loop(suite, recorder, ProgressCount(), strict=options.strict)
        loop.execute(suite.engine.component)
        recorded = {"rows": RECORDED[suite.rows]}
        report = Report(
            path=None,
            header=recorded,
            summary={},
            row_buffer=recorder.file,
            registry=suite.registry,
        )
        run_figures = RunFigures(suite, loop.merged, strict=options.strict)
        with limited(suite.limits._replace(record_bytes=None)):
            programs = run_programs(suite, loop.merged, report)
            evaluation = Evaluation(suite, run_figures, loop.merged, report, baselines, programs)
            figures = summarise(evaluation)
        timings = _timings(loop, clock.seconds())
        head = header(suite, loop, clock.started_text, timings) | baselines.digests()
    except BaseException:
        recorder.file.close()
        raise
    report = attrs.evolve(report, header=_as_read(head), summary=_as_read(figures))
    return report.closing_itself()


class _Clock:
    """When a run was begun, by the calendar and in seconds."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self.started, self._begun = now, time.perf_counter()

    @property
    def started_text(self) -> str:
        return self.started.isoformat(timespec="seconds")

    def seconds(self) -> float:
        """Return the seconds since, rounded."""
        return round(time.perf_counter() - self._begun, 3)


def _timings(loop: Loop, seconds: float) -> dict[str, Any]:
    timings = sorted(loop.merged.timings.items())
    graders = {key: round(spent, 3) for key, spent in timings}
    merging = round(loop.seconds, 3)
    return {"grading": seconds, "merging": merging, "graders": graders}


def _as_read(content: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = loads(dumps(content))
    return read


class _DirectoryRun:
    """A run that is written into a directory."""

    def __init__(self, suite: Suite, options: RunOptions) -> None:
        """Choose and lock the report directory, and prepare baselines, recorder and loop."""
        self._suite = suite
        self._options = options
        self._echo = options.echo
        self._progress = ProgressCount(options.progress)
        self._clock = _Clock()
        self._timings: dict[str, Any] = {}
        run_folder = options.output if options.output is not None else self._choose_place()
        self._baselines = Baselines(suite, run_folder)
        self._staging = Staging(run_folder, resume=options.resume)
        if self._staging.replaced:
            what = "what an unfinished run had left is removed"
            self._echo(f"{run_folder}: {what}; --resume would have continued it")
        if options.resume and not self._staging.journal.is_file():
            self._echo(f"{run_folder}: there is no unfinished run to continue, it is begun anew")
        started, strict = self._clock.started_text, options.strict
        self._recorder = DirectoryRecorder(
            suite, self._staging, started, strict=strict, resume=options.resume
        )
        self._loop = Loop(suite, self._recorder, self._progress, strict=strict)

    def _choose_place(self) -> Path:
        """Return the directory of the run to resume, or a new one; mention an unfinished run."""
        name = self._suite.name
        is_resumed = self._options.resume
        earlier = newest_unfinished(name, PATIENCE if is_resumed else 0)
        if earlier is not None and is_resumed:
            return earlier
        if earlier is not None:
            folder = earlier.with_name(unfinished(earlier).name)
            advice = f"continue it with --resume, or remove {folder}"
            self._echo(f"an unfinished run of {name} is left: {advice}")
        return default_place(name, self._clock.started)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        """After a failure, keep a run that can be resumed, remove any other, and add advice."""
        has_failed = error is not None and storage_failed(error)
        recorded = self._recorder.close(failed=has_failed)
        if error is None:
            return
        staging = self._staging
        was_removed = not staging.base.is_dir()
        is_refused = isinstance(error, ConfigError | DataError)
        is_kept = bool(recorded) and staging.journal.is_file() and not self._is_mistake(error)
        if is_kept or (self._options.resume and is_refused):  # work of an attempt may be in it
            staging.leave()
        else:
            staging.discard()
        advice: tuple[str, ...] = (CONTINUE,) if is_kept else ()
        if staging.committed:
            command = f"`gradestack report {staging.path}`"
            advice = (f"results are kept, pages are missing: {command} writes them",)
        elif not is_kept and has_failed:
            advice = (NOTHING_KEPT,)
        if isinstance(error, GradestackError):
            error.problems += advice
        if isinstance(error, OSError) and was_removed:
            what = "was removed while the run was writing there; nothing is left of it"
            raise DataError(f"{staging.base}: {what}") from error
        if isinstance(error, OSError):
            path = error.filename or staging.path
            raise DataError(f"{path}: {error.strerror or error}", *advice) from error

    def _is_mistake(self, error: BaseException) -> bool:
        """Check whether a run that ended by an error would end by it again."""
        is_strict = self._options.strict and isinstance(error, PluginError)
        is_refused = isinstance(error, ConfigError | DataError)
        return (is_refused or is_strict) and not isinstance(error, LostEngineError)

    def execute(self) -> Report:
        """Grade everything, write the directory and its pages, and return the report."""
        self._grade()
        self._write_native()
        suite = self._suite
        loop = self._loop
        staging = self._staging
        with Interruption(patient=True) as interruption:
            figures = self._write_figures()
            recorded = self._recorder.close()
            path = staging.commit(durable=recorded > 0)  # before pages, which may take it with them
        loop.merged.table = Table(())  # something for every sample, which pages do not need
        loop.merged.answered.clear()
        report = Report(
            path=path, header=_read_header(path), summary=figures, registry=suite.registry
        )
        self._progress.begin_phase("pages")
        if interruption.requested:
            pages = Pages(interrupted=True)
        else:
            pages = write_pages(suite.reports, report, path)
        with Interruption(patient=True):
            if pages != Pages(written=pages.written):
                figures = with_broken_pages(figures, pages, strict=self._options.strict)
                staging.write_json(SUMMARY, figures)
            if recorded and (loop.merged.interrupted or pages.interrupted):
                staging.leave()
            else:
                staging.discard()
        if self._options.output is None:
            link_latest(path)
        written = tuple(path / page for page in pages.written)
        return attrs.evolve(report, header=_read_header(path), summary=figures, pages=written)

    def _grade(self) -> None:
        """Grade all samples, prepare the figures and print what users must know of the grading."""
        clock = _Clock()
        self._loop.execute(self._suite.engine.component)
        merged = self._loop.merged
        self._figures = RunFigures(self._suite, merged, strict=self._options.strict)
        if self._recorder.damaged:
            what = "what was on record of the unfinished run is damaged, it is begun anew"
            self._echo(f"{self._staging.run_folder}: {what}")
        if self._options.debug:
            for key, text in merged.tracebacks.items():
                self._echo(f"the first error of grader {key!r}:")
                for line in text.split("\n"):
                    self._echo(line)
        self._timings |= _timings(self._loop, clock.seconds())

    def _write_native(self) -> None:
        clock = _Clock()
        self._progress.begin_phase("native files")
        try:
            write_native(self._suite, self._figures, self._recorder.native, self._staging.path)
        except KeyboardInterrupt:
            self._loop.merged.interrupted = True
        self._timings["native"] = clock.seconds()

    def _write_figures(self) -> dict[str, Any]:
        """Write summary.json and header.json, those of several runs too; return the summary."""
        suite = self._suite
        loop = self._loop
        staging = self._staging
        rows = RECORDED[suite.rows]
        recorded = Report(path=staging.path, header={"rows": rows}, summary={})
        folder = staging.path / "native"
        programs = run_programs(suite, loop.merged, recorded, folder)
        programs.write()
        run_figures, baselines = self._figures, self._baselines
        evaluation = Evaluation(suite, run_figures, loop.merged, recorded, baselines, programs)
        figures = summarise(evaluation)
        self._timings["seconds"] = self._clock.seconds()
        head = header(suite, loop, self._recorder.started, self._timings) | baselines.digests()
        if suite.num_runs is not None and not loop.merged.interrupted:
            from gradestack.outcome.runs import write_runs  # noqa: PLC0415 - for several runs alone

            figures = write_runs(evaluation, staging, head, figures)
        written: dict[str, Any] = staging.write_json(SUMMARY, figures)
        staging.write_json(HEADER, head)
        return written


def _read_header(path: Path) -> dict[str, Any]:
    text = (path / HEADER).read_bytes()
    head: dict[str, Any] = loads(text)
    return head
