"""What others read of a run.

Native files, and pages, which may be written again from a run directory alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gradestack.api import Exporter, ExportSummary, GraderSummary, Input
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


def write_native(suite: Suite, run: RunFigures, chunks: Chunks, place: Path) -> None:
    """Join native parts and let every exporter finish, once per input."""
    merged = run.merged
    several = len(suite.inputs.data) > 1
    for stage in suite.exporters:
        for given in suite.inputs.data:
            if not merged.table.of_input(given.name) or stage.name in merged.broken:
                continue
            out = place / "native" / (given.name if several else "")
            try:
                _write_native(suite, run, chunks, stage, given, out)
            except (
                Exception,
                SystemExit,
            ) as error:  # a native file is a convenience; the run is not lost for it
                if storage_failed(error):
                    raise
                merged.broken.setdefault(stage.name, error_text(error).replace(f"{place}/", ""))


def _write_native(
    suite: Suite, run: RunFigures, chunks: Chunks, stage: Stage, given: Input, out: Path
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    exporter: Exporter = stage.component
    rows = run.merged.table.of_input(given.name)
    aggregates, counts = run.figures(rows), run.counts(rows)
    summary = ExportSummary(
        input=given,
        reader=suite.reader.component,
        dataset=suite.inputs.dataset,
        max_samples=suite.max_samples or None,
        graders={
            name: GraderSummary(
                key=each.key,
                grader=each.component,
                states=merge_counts(counts[each.key].values()).states,
                aggregates=aggregates[each.key],
            )
            for name, each in named_graders(exporter, suite.graders).items()
        },
    )
    for (owner, artefact), parts in sorted(chunks.items()):
        exporter_name, _, file_name = artefact.partition("/")
        if (owner, exporter_name) == (given.name, stage.name):
            head, tail = exporter.frame(file_name, summary)
            with (out / Path(file_name).name).open("wb") as to:
                to.write(head.encode("utf-8", "surrogatepass"))
                for number, part in enumerate(parts):
                    to.write(exporter.separator.encode() if number else b"")
                    with part.open("rb") as file:
                        shutil.copyfileobj(file, to, _CHUNK)
                to.write(tail.encode("utf-8", "surrogatepass"))
    for file_name, text in exporter.finish(summary).items():
        (out / Path(file_name).name).write_text(
            text, encoding="utf-8", newline="", errors="surrogatepass"
        )


PAGES_MISSING = "interrupted: all samples are graded, report pages are missing"
"""What a summary says of a run that was interrupted while its pages were written."""


class Pages(msgspec.Struct):
    """What the reporters of a run wrote, relative to the run directory, and which of them failed
    with what.
    """

    written: list[Path] = msgspec.field(default_factory=list)
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    """Reporters that could not write with what the suite gave them, such as a template of its own,
    and why.
    """
    told: list[str] = msgspec.field(default_factory=list)  # what reporters have to say of the pages
    interrupted: bool = False


def write_pages(stages: Iterable[Stage], report: Report, out: Path) -> Pages:
    """Let every reporter write into the run directory ``out``.

    A failure costs its page, never the results.
    """
    pages = Pages()
    for stage in stages:
        name = f"reporter {stage.name} ({stage.distribution})"
        try:
            pages.written += _written(stage.component, report, out, name)
        except KeyboardInterrupt:
            pages.interrupted = True
            break
        except ConfigError as error:
            pages.refused[f"reporter {stage.name}"] = str(error)
        except (Exception, SystemExit) as error:  # the results are worth more than a page
            if storage_failed(error):  # nothing else could be written either
                raise
            text = (
                error.line.removeprefix(f"{name} raised ")
                if isinstance(error, PluginError)
                else error_text(error)
            )
            pages.broken[f"reporter {stage.name}"] = text.replace(f"{out}/", "")
    pages.told += dict.fromkeys(report.told)
    return pages


def _written(reporter: Reporter, report: Report, out: Path, name: str) -> list[Path]:
    """Return a reporter's pages relative to ``out``."""
    with filling(out, reporter.beside) as new, guarded(name):
        return [page.relative_to(new) for page in reporter.write(report, new)]


def rewrite_pages(
    report: Report,
    registry: Registry,
    formats: Iterable[str],
    out: Path,
    say: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the pages of a finished run again, by the reporters named, else those it had, with
    their options.
    """
    chosen: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in formats]
    used = report.header.get("components", ())
    chosen = chosen or [
        (each["name"], each.get("options", {})) for each in used if each["kind"] == "reporter"
    ]
    written: list[Path] = []
    report = attrs.evolve(report, registry=registry)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with reserve(out), writing(out):
        if not is_run(out):
            keep_foreign(out / "report.html", out / "report.md")
        for name, options in chosen or [("html", {}), ("markdown", {})]:
            target = registry.load("reporter", name)
            with collected_seldom(), guarded(f"reporter {name}"):
                try:
                    reporter = structure(options, target, folder_of_runs()) if options else target()
                except Problems as problems:
                    raise DataError(
                        f"reporter {name!r} does not take the options of this run; name it with "
                        "--format",
                        *(text for _, text in problems.found),
                    ) from problems
                written += [
                    out / page for page in _written(reporter, report, out, f"reporter {name}")
                ]
        for text in dict.fromkeys(report.told):
            say(f"warning: {text}")
    return written


def with_broken_pages(summary: dict[str, Any], pages: Pages, *, strict: bool) -> dict[str, Any]:
    """Return a summary that tells what pages lack, and why.

    Where it is ``strict``, what is left out is broken, too.
    """
    told = [
        f"{name} is broken, its page is missing: {text}"
        for name, text in sorted(pages.broken.items())
    ]
    told += [f"{name} has written no page: {text}" for name, text in sorted(pages.refused.items())]
    found = {**summary, "warnings": [*summary["warnings"], *told, *pages.told]}
    if broken := pages.broken | ({"panels": pages.told[0]} if strict and pages.told else {}):
        found["broken"] = summary.get("broken", {}) | broken
    if pages.refused:
        found["refused"] = pages.refused
    if pages.interrupted:
        found.setdefault("incomplete", PAGES_MISSING)
    return found


COMPARISON, COMPARISON_PARTS = "comparison.json", "comparison_data/*.js"
"""The data of a comparison, and what its page may have beside it."""
_MARKS = {
    ".html": b'<meta name="generator" content="gradestack',
    ".json": b'{"baseline":',
    ".md": b" gradestack ",
}
"""What stands near the beginning of a page, and of a comparison."""
_BEGINNING = 8192


def keep_foreign(*pages: Path) -> None:
    """Refuse to write where a file of somebody else's stands."""
    for page in filter(Path.exists, pages):
        if not page.is_file():
            raise _in_the_way(page)
        with open_regular(page) as file:
            if _MARKS[page.suffix] not in file.read(_BEGINNING):
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
    keep_foreign(*(out / name for name in pages))
    with filling(out) as new:
        for name, text in pages.items():
            (new / name).write_text(text, encoding="utf-8", errors="replace", newline="\n")


def keep_foreign_comparison(out: Path) -> None:
    """Refuse to write a comparison where a file of somebody else's stands.

    A text alone is, as it has no mark.
    """
    data, page, text = (out / f"comparison.{ending}" for ending in ("json", "html", "md"))
    keep_foreign(data if data.exists() else page)
    if text.exists() and not data.exists() and not page.exists():
        raise _in_the_way(text)


def _in_the_way(page: Path) -> ConfigError:
    return ConfigError(f"{page}: is there already and was not written by gradestack; move it away")
