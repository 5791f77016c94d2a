"""Native files, and report pages, which may be written again from a report directory alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import msgspec

from gradestack.api import Input
from gradestack.copies.files import folder_of_runs
from gradestack.errors import (
    ConfigError,
    DataError,
    PluginError,
    error_text,
    guarded,
    storage_failed,
    writing,
)
from gradestack.exporter import Exporter, ExportSummary, GraderSummary
from gradestack.grading.plan import Stage, named_graders
from gradestack.interpreter import collected_seldom
from gradestack.metrics.counts import merge_counts
from gradestack.metrics.of_run import RunFigures
from gradestack.registry import Registry
from gradestack.regular_files import open_regular
from gradestack.report import Report, Reporter, is_run
from gradestack.rundir.place import filling, reserve
from gradestack.suites.options import Problems, structure
from gradestack.suites.spec import Suite

_CHUNK = 1 << 20
Chunks = Mapping[tuple[str, str], list[Path]]
"""Name of an input and ``EXPORTER/FILE`` -> the parts of that file, one for each shard."""


def write_native(suite: Suite, run: RunFigures, chunks: Chunks, folder: Path) -> None:
    """Join native parts and let every exporter finish, once per input."""
    merged = run.merged
    inputs = suite.inputs.data
    native = folder / "native"
    for stage in suite.exporters:
        for source in inputs:
            has_rows = bool(merged.table.of_input(source.name))
            if not has_rows or stage.name in merged.broken:
                continue
            out = native if len(inputs) == 1 else native / source.name
            try:
                _write_native(suite, run, chunks, stage, source, out)
            # a native file is a convenience; the run is not lost for it
            except (Exception, SystemExit) as error:
                if storage_failed(error):
                    raise
                text = error_text(error)
                text = text.replace(f"{folder}/", "")
                merged.broken.setdefault(stage.name, text)


def _write_native(
    suite: Suite, run: RunFigures, chunks: Chunks, stage: Stage, source: Input, out: Path
) -> None:
    """Write the files of one exporter for one input."""
    out.mkdir(parents=True, exist_ok=True)
    exporter: Exporter = stage.component
    summary = _summary_for_exporter(suite, run, exporter, source)
    for (input_name, artefact), parts in sorted(chunks.items()):
        exporter_name, _, file_name = artefact.partition("/")
        if (input_name, exporter_name) == (source.name, stage.name):
            head, tail = exporter.frame(file_name, summary)
            name = Path(file_name).name
            with (out / name).open("wb") as file:
                file.write(head.encode("utf-8", "surrogatepass"))
                _copy_parts(parts, exporter.separator.encode(), file)
                file.write(tail.encode("utf-8", "surrogatepass"))
    for file_name, text in exporter.finish(summary).items():
        path = out / Path(file_name).name
        path.write_text(text, encoding="utf-8", newline="", errors="surrogatepass")


def _copy_parts(parts: Iterable[Path], separator: bytes, file: BinaryIO) -> None:
    for number, part in enumerate(parts):
        if number:
            file.write(separator)
        with part.open("rb") as source:
            shutil.copyfileobj(source, file, _CHUNK)


def _summary_for_exporter(
    suite: Suite, run: RunFigures, exporter: Exporter, source: Input
) -> ExportSummary:
    """Return the figures of the graders that an exporter writes, over the rows of one input."""
    rows = run.merged.table.of_input(source.name)
    aggregates = run.figures(rows)
    counts = run.counts(rows)
    graders = {}
    for name, stage in named_graders(exporter, suite.graders).items():
        by_model = counts[stage.key].values()
        states = merge_counts(by_model).states
        figures = aggregates[stage.key]
        graders[name] = GraderSummary(
            key=stage.key, grader=stage.component, states=states, aggregates=figures
        )
    max_samples = suite.max_samples or None
    reader = suite.reader.component
    dataset = suite.inputs.dataset
    return ExportSummary(
        input=source,
        reader=reader,
        dataset=dataset,
        max_samples=max_samples,
        graders=graders,
    )


PAGES_MISSING = "interrupted: all runs are graded, report pages are missing"
"""What a summary says of a run that was interrupted while its pages were written."""


class Pages(msgspec.Struct):
    """The pages that reporters wrote, and why others are missing."""

    written: list[Path] = []
    """Relative to the report directory."""
    broken: dict[str, str] = {}
    """Reporter -> its error."""
    refused: dict[str, str] = {}
    """Reporter -> why it cannot write with what the suite gave it, such as a template."""
    warnings: list[str] = []
    """Warnings of reporters about their pages."""
    interrupted: bool = False


def write_pages(stages: Iterable[Stage], report: Report, out: Path) -> Pages:
    """Let every reporter write into the report directory ``out``.

    A failure costs its page, never the results.
    """
    pages = Pages()
    for stage in stages:
        title = f"reporter {stage.name} ({stage.distribution})"
        try:
            pages.written += _write_page(stage.component, report, out, title)
        except KeyboardInterrupt:
            pages.interrupted = True
            break
        except ConfigError as error:
            name = f"reporter {stage.name}"
            pages.refused[name] = str(error)
        except (Exception, SystemExit) as error:  # the results are worth more than a page
            if storage_failed(error):  # nothing else could be written either
                raise
            text = error_text(error)
            if isinstance(error, PluginError):
                text = error.line.removeprefix(f"{title} raised ")
            name = f"reporter {stage.name}"
            pages.broken[name] = text.replace(f"{out}/", "")
    pages.warnings += dict.fromkeys(report.warnings)
    return pages


def _write_page(reporter: Reporter, report: Report, out: Path, title: str) -> list[Path]:
    """Let a reporter write its pages; return their paths relative to ``out``."""
    with filling(out, reporter.data_files) as folder, guarded(title):
        pages = reporter.write(report, folder)
        return [page.relative_to(folder) for page in pages]


def rewrite_pages(
    report: Report,
    registry: Registry,
    formats: Iterable[str],
    out: Path,
    echo: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the pages of a finished run again.

    Args:
        report: The run.
        registry: The reporters there are.
        formats: Names of reporters; none for those the run had, with their options.
        out: Directory of the pages.
        echo: Called with warnings.

    Returns:
        The paths of the pages.
    """
    options_by_reporter: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in formats]
    components = report.header.get("components", ())
    for component in () if options_by_reporter else components:
        if component["kind"] == "reporter":
            options = component.get("options", {})
            options_by_reporter.append((component["name"], options))
    written: list[Path] = []
    report = attrs.evolve(report, registry=registry)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with reserve(out), writing(out):
        if not is_run(out):
            refuse_foreign(out / "report.html", out / "report.md")
        for name, options in options_by_reporter or [("html", {}), ("markdown", {})]:
            title = f"reporter {name}"
            with collected_seldom(), guarded(title):
                reporter = _make_reporter(registry, name, options)
                pages = _write_page(reporter, report, out, title)
            written += [out / page for page in pages]
        for text in dict.fromkeys(report.warnings):
            echo(f"warning: {text}")
    return written


def _make_reporter(registry: Registry, name: str, options: dict[str, Any]) -> Reporter:
    """Make a reporter from the options that a run recorded; refuse options it does not take."""
    target = registry.load("reporter", name)
    try:
        reporter: Reporter = structure(options, target, folder_of_runs())
    except Problems as problems:
        texts = [text for _, text in problems.listed]
        what = f"reporter {name!r} does not take the options of this run; name it with --format"
        raise DataError(what, *texts) from problems
    return reporter


def with_broken_pages(summary: dict[str, Any], pages: Pages, *, strict: bool) -> dict[str, Any]:
    """Return a summary that says which pages are missing, and why.

    Where it is ``strict``, a part that is left out of a page is broken, too.
    """
    warnings = [*summary["warnings"]]
    for name, text in sorted(pages.broken.items()):
        warnings.append(f"{name} is broken, its page is missing: {text}")
    for name, text in sorted(pages.refused.items()):
        warnings.append(f"{name} has written no page: {text}")
    warnings += pages.warnings
    content = {**summary, "warnings": warnings}
    broken = {**pages.broken}
    if strict and pages.warnings:
        broken["panels"] = pages.warnings[0]
    if broken:
        known = summary.get("broken", {})
        content["broken"] = known | broken
    if pages.refused:
        content["refused"] = pages.refused
    if pages.interrupted:
        content.setdefault("incomplete", PAGES_MISSING)
    return content


COMPARISON, COMPARISON_PARTS = "comparison.json", "comparison_data/*.js"
"""The data of a comparison, and files that its page may have beside it."""
_MARKS = {
    ".html": b'<meta name="generator" content="gradestack',
    ".json": b'{"baseline":',
    ".md": b" gradestack ",
}
"""Marks near the beginning of our own pages and comparisons, by ending."""
_BEGINNING = 8192


def refuse_foreign(*pages: Path) -> None:
    """Raise where one of the pages is there and was not written by gradestack.

    Ours have a mark near their beginning.
    """
    for page in filter(Path.exists, pages):
        if not page.is_file():
            raise _in_the_way(page)
        with open_regular(page) as file:
            mark = _MARKS[page.suffix]
            if mark not in file.read(_BEGINNING):
                raise _in_the_way(page)


def publish(out: Path, pages: Mapping[str, str]) -> None:
    """Write pages into a directory that anybody may have filled.

    Links there are replaced, pages of others are not.

    Args:
        out: The directory.
        pages: File name -> text.

    Raises:
        ConfigError: A page of that name is there and was not written by gradestack.
        OSError: It cannot be written.
    """
    refuse_foreign(*(out / name for name in pages))
    with filling(out) as folder:
        for name, text in pages.items():
            path = folder / name
            path.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def refuse_foreign_comparison(out: Path) -> None:
    """Refuse to write a comparison where a file of somebody else's stands.

    A text alone is, as it has no mark.
    """
    data, page, text = (out / f"comparison.{ending}" for ending in ("json", "html", "md"))
    refuse_foreign(data if data.exists() else page)
    if text.exists() and not data.exists() and not page.exists():
        raise _in_the_way(text)


def _in_the_way(page: Path) -> ConfigError:
    return ConfigError(f"{page}: is there already and was not written by gradestack; move it away")
