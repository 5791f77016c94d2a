"""A run from its suite to its directory: grading, native files, figures, pages."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import attrs

from gradestack.errors import ConfigError, DataError, GradestackError, LostEngineError, PluginError, storage_failed
from gradestack.gates.scores import RowSeries
from gradestack.grading.interruption import Interruption
from gradestack.grading.loop import Grading, Options
from gradestack.grading.progress import Told
from gradestack.jsonio.values import dumps, loads
from gradestack.outcome.native import write_native
from gradestack.outcome.pages import Pages, with_broken_pages, write_pages
from gradestack.outcome.runs import write_runs
from gradestack.outcome.summary import check_without_rows, summary
from gradestack.report import HEADER, ROWS, SUMMARY, Report
from gradestack.rundir.header import Checksums, header
from gradestack.rundir.place import PATIENCE, default_place, keep_inputs, link_latest, newest_unfinished, unfinished
from gradestack.rundir.staging import Staging
from gradestack.suites.options import RunOptions
from gradestack.suites.spec import Suite

CONTINUE = "what was graded so far is kept: continue with --resume"


def run_suite(suite: Suite, asked: RunOptions) -> Report:
    """Run a suite as it is asked for, and write its run directory.

    Raises:
        ConfigError: The output cannot be written or is not ours, or an unfinished run cannot be continued.
        DataError: No record could be read, or a bad one under ``strict``; the disk is full.
        PluginError: A grader raised under ``strict``.
    """
    output, strict, rows = asked.output, asked.strict, asked.rows
    if output is not None:
        given = [*suite.inputs.data, *([suite.inputs.dataset] if suite.inputs.dataset else [])]
        keep_inputs(output, [*(each.path for each in given), *([suite.origin] if suite.origin else [])])
    if not rows:
        check_without_rows(suite)
    options = Options(strict=strict, rows=rows, resume=asked.resume)
    run = _Run(suite, options, Told(asked.progress, suite.headline), asked.say, debug=asked.debug)
    with run.staged(output, temporary=asked.temporary):
        return run.whole()


class _Run:
    """One run: where it is written, and its steps."""

    def __init__(
        self, suite: Suite, options: Options, told: Told, say: Callable[[str], None], *, debug: bool = False
    ) -> None:
        self.suite, self.options, self.told, self.say, self.debug = suite, options, told, say, debug
        self.started, self.clock = datetime.now(UTC), time.perf_counter()
        self.timings: dict[str, Any] = {}
        self.checksums: Checksums | None = None

    def staged(self, output: Path | None, *, temporary: bool) -> _Run:
        """Choose the place and open the directory the run is written in."""
        self.default = output is None and not temporary
        place = output
        if self.default:
            found = newest_unfinished(self.suite.name, PATIENCE if self.options.resume else 0)
            if found is not None and not self.options.resume:
                self.say(
                    f"an unfinished run of {self.suite.name} is left: continue it with --resume, or remove "
                    f"{found.with_name(unfinished(found).name)}"
                )
            place = found if found is not None and self.options.resume else default_place(self.suite.name, self.started)
        self.staging = Staging(None if temporary else place, resume=self.options.resume)
        if self.staging.replaced:
            self.say(f"{place}: what an unfinished run had left is removed; --resume would have continued it")
        if self.options.resume and not self.staging.journal.is_file():
            self.say(f"{place}: there is no unfinished run to continue, it is begun anew")
        timestamp = self.started.isoformat(timespec="seconds")
        self.grading = Grading(self.suite, self.staging, self.options, self.told, timestamp)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        """After a failure keep what can be continued, remove everything else, and say which."""
        if self.checksums is not None:
            self.checksums.close()
        recorded = self.grading.close(failed=error is not None and storage_failed(error))
        if error is None:
            return
        mistake = isinstance(error, ConfigError | DataError) or (self.options.strict and isinstance(error, PluginError))
        kept = bool(recorded) and (not mistake or isinstance(error, LostEngineError))
        earlier = self.options.resume and isinstance(error, ConfigError | DataError)  # work of an attempt may be in it
        if kept or earlier:
            self.staging.leave()
        else:
            self.staging.discard()
        advice = (CONTINUE,) if kept else ()
        if isinstance(error, GradestackError):
            error.problems += advice
        if isinstance(error, OSError):
            msg = f"{error.filename or self.staging.path}: {error.strerror or error}"
            raise DataError(msg, *advice) from error

    def _timed(self, name: str, begun: float) -> None:
        self.timings[name] = round(time.perf_counter() - begun, 3)

    def whole(self) -> Report:
        """Grade, join, sum up, write pages, and move the directory into its place."""
        grading, staging, begun = self.grading, self.staging, time.perf_counter()
        self.checksums = Checksums(self.suite)
        grading.execute()
        if grading.damaged:
            self.say(f"{staging.place}: what was on record of the unfinished run is damaged, it is begun anew")
        for key, text in grading.merged.tracebacks.items() if self.debug else ():
            self.say(f"grader {key!r} raised, at first:\n{text}")
        self._timed("grading", begun)
        self.timings["merging"] = round(grading.seconds, 3)
        self.timings["graders"] = {key: round(each, 3) for key, each in sorted(grading.merged.timings.items())}
        begun = time.perf_counter()
        self.told.stage("native files")
        try:
            write_native(grading.merging, staging.path)
        except KeyboardInterrupt:
            grading.merged.interrupted = True
        self._timed("native", begun)
        with Interruption(patient=True) as late:
            figures, head = self._figures(self.checksums)
        report = Report(path=staging.path, header=head, summary=figures, temporary=staging.place is None)
        self.told.stage("pages")
        pages = Pages(interrupted=True) if late.requested else write_pages(self.suite.reports, report)
        with Interruption(patient=True):
            if pages.broken or pages.interrupted:
                figures = with_broken_pages(figures, pages)
                staging.write_json(SUMMARY, figures)
            recorded = grading.close()
            unfinished_business = grading.merged.interrupted or pages.interrupted
            path = staging.commit(durable=recorded > 0, keep=recorded > 0 and unfinished_business)
        if self.default:
            link_latest(path)
        return attrs.evolve(report, path=path, summary=figures, pages=tuple(path / page for page in pages.written))

    def _figures(self, checksums: Checksums) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write summary.json and header.json; return them as a later reader of the files sees them."""
        grading, staging = self.grading, self.staging
        figures = summary(grading.merging, grading.merged, RowSeries(staging.path / ROWS))
        self.timings["seconds"] = round(time.perf_counter() - self.clock, 3)
        head = header(self.suite, grading.started, checksums, self.timings, rows=self.options.rows)
        if grading.resumed:
            head["resumed"] = grading.resumed
        if self.suite.num_runs is not None and not grading.merged.interrupted:
            figures = write_runs(grading.merging, staging, head, figures)
        staging.write_json(SUMMARY, figures)
        staging.write_json(HEADER, head)
        return loads(dumps(figures)), loads(dumps(head))
