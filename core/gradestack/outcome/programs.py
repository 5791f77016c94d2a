"""Results of the original programs of families on the files of an evaluation.

They run with ``--profile upstream``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from gradestack.api import Input
from gradestack.errors import error_text, storage_failed
from gradestack.exporter import Program, ProgramInput, ProgramRun
from gradestack.gates.native import NativeFiles
from gradestack.grading.merging import Merged
from gradestack.grading.plan import Stage
from gradestack.interpreter import in_progress, time_limit
from gradestack.report import Report
from gradestack.suites.spec import Suite


class ProgramResults(msgspec.Struct):
    """The results of all original programs of an evaluation."""

    entries: list[dict[str, Any]] = []
    """One for each program and input, as in summary.json."""
    files: dict[str, str] = {}
    """Path below ``native/`` -> text."""
    titles: dict[str, str] = {}
    """Path below ``native/`` -> whose program wrote it."""
    broken: dict[str, str] = {}
    """Programs that raised, with what they said."""
    folder: Path | None = None
    """``native/`` of the report directory, where exporters write too; None without a directory."""

    def native_files(self) -> NativeFiles:
        """Return the native files that gates may name."""
        return NativeFiles(self.files, self.folder, self.titles)

    def write(self) -> None:
        """Write the files of the programs into the folder."""
        for name, text in self.files.items() if self.folder is not None else ():
            path = self.folder / name  # type: ignore[operator]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="", errors="surrogatepass")


def run_programs(
    suite: Suite, merged: Merged, recorded: Report, folder: Path | None = None
) -> ProgramResults:
    """Run the original program of each format over each of its inputs.

    Args:
        suite: What is evaluated; without ``profile: upstream`` it has no programs.
        merged: The graded samples.
        recorded: Their rows.
        folder: ``native/`` of the report directory; None without one.
    """
    results = ProgramResults(folder=folder)
    is_single = len(suite.inputs.data) == 1
    for stage in suite.programs:
        program: Program = stage.component
        for reader, inputs in suite.reader.shares(suite.inputs):
            _, _, bare_name = reader.name.rpartition(":")
            if program.reader not in (reader.name, bare_name):
                continue
            for source in inputs.data:
                folder_name = "" if is_single else source.name
                rows = _RowsOf(merged, recorded, source, suite.limits.seconds_per_grade)
                try:
                    program_input = _program_input(suite, reader, source, rows)
                    run = program.run(program_input)
                    _add_results(results, stage, folder_name, run)
                except (Exception, SystemExit) as error:  # it costs its own results alone
                    if storage_failed(error):
                        raise
                    results.broken.setdefault(stage.name, error_text(error))
    return results


def _program_input(suite: Suite, reader: Stage, source: Input, rows: _RowsOf) -> ProgramInput:
    """Describe one input to a program: reader, graders, configuration and rows."""
    graders = {stage.key: stage.component for stage in suite.graders}
    max_samples = suite.max_samples or None
    return ProgramInput(
        input=source,
        reader=reader.component,
        dataset=suite.inputs.dataset,
        max_samples=max_samples,
        config=suite.config,
        graders=graders,
        rows=rows,
    )


class _RowsOf(msgspec.Struct):
    """Reads the rows of one input; a program that stays at one longer than a grade may take has
    ``TimedOut`` raised in it.
    """

    merged: Merged
    recorded: Report
    source: Input
    seconds_per_row: float | None

    def __call__(self) -> Iterator[Mapping[str, Any]]:
        numbers = set(self.merged.table.of_input(self.source.name))
        read: list[int] = []
        with time_limit(self.seconds_per_row), in_progress(read):
            for number, _, line in self.recorded.lines():
                if number - 1 in numbers:
                    yield self.recorded.row(number, line)
                    read.append(number)


def _add_results(results: ProgramResults, stage: Stage, folder: str, run: ProgramRun) -> None:
    """Add the results of a program on one input, its files below a folder if there are several."""
    title = stage.component.title or stage.name
    files = {}
    for name, text in run.files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"its file {name!r} is not below native/")
        files[(folder / path).as_posix()] = text
    names = [*files]
    results.files |= files
    results.titles |= dict.fromkeys(names, title)
    figures = msgspec.to_builtins(run.figures)
    entry = {
        "program": stage.name,
        "title": title,
        "files": names,
        "console": run.console,
        "exit_code": run.exit_code,
        "figures": figures,
    }
    results.entries.append({**entry, "input": folder} if folder else entry)
