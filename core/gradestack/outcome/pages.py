"""Report pages: written at the end of a run, or again from a run directory alone."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gradestack.errors import ConfigError, DataError, GradestackError, PluginError, error_text, guarded, storage_failed
from gradestack.grading.plan import Stage, is_foreign
from gradestack.interpreter import IN_FORCE, TOLD, collected_seldom, note, step
from gradestack.outcome.trajectories import with_trajectories
from gradestack.registry import BUILT_IN, Registry
from gradestack.report import Report, Reporter
from gradestack.run_files import is_run
from gradestack.rundir.place import filling
from gradestack.suites.strict import Problems, structure

PAGES_MISSING = "interrupted: all samples are graded, report pages are missing"
"""What a summary says of a run that was interrupted while its pages were written."""


class Pages(msgspec.Struct):
    """What the reporters of a run wrote, relative to the run directory, and which of them failed with what."""

    written: list[Path] = msgspec.field(default_factory=list)
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    """Reporters that could not write with what the suite gave them, such as a template of its own, and why."""
    told: list[str] = msgspec.field(default_factory=list)
    """What reporters have to say of the pages."""
    ended: dict[str, str] = msgspec.field(default_factory=dict)
    """Panels that were ended for their time."""
    interrupted: bool = False


def write_pages(stages: Iterable[Stage], report: Report, out: Path) -> Pages:
    """Let every reporter write into the run directory ``out``; a failure costs its page, never the results."""
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
            text = error.line.removeprefix(f"{name} raised ") if isinstance(error, PluginError) else error_text(error)
            pages.broken[f"reporter {stage.name}"] = text.replace(f"{out}/", "")
    pages.told += dict.fromkeys(report.told)
    pages.ended = {name: text for name, text in IN_FORCE.get().ended.items() if name.startswith("panel")}
    return pages


def _written(reporter: Reporter, report: Report, out: Path, name: str) -> list[Path]:
    """Return a reporter's pages relative to ``out``; with code of others in it, it writes in a process that may end."""
    with filling(out, reporter.beside) as new:

        def write() -> Any:
            pages = [page.relative_to(new) for page in reporter.write(report, new)]
            return pages, report.told, IN_FORCE.get().ended

        found, report.told[:], IN_FORCE.get().ended = apart(name, write, reporter, report.registry)
        return list[Path](found)


def apart(name: str, write: Callable[[], Any], reporter: Reporter, registry: Registry | None) -> Any:
    """Return what a function of a reporter does; with code of others in it, done in a process that may end."""
    foreign = is_foreign(reporter) or any(
        component.kind == "panel" and plugin.distribution != BUILT_IN
        for component, plugin in (registry.components() if registry else ())
    )
    named = guarded(name)(step(f"{name}: write")(write))
    return _in_a_child(named) if foreign and sys.platform == "linux" else named()


def _in_a_child(write: Callable[[], Any]) -> Any:
    """Return what a function returns in a process that it may end; until then its answer is the step it is at."""

    def replace(text: bytes) -> None:
        answer.truncate(0)
        os.pwrite(answer.fileno(), text, 0)

    sys.stdout.flush()
    with tempfile.TemporaryFile(buffering=0) as answer, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of ours only look on
        if not (child := os.fork()):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
            TOLD[threading.get_ident()] = lambda step: replace(step.encode(errors="replace"))
            try:
                found: Any = write()
            except BaseException as error:  # noqa: BLE001 - all of them are told
                ours = isinstance(error, GradestackError | OSError | KeyboardInterrupt)
                found = error if ours else PluginError(error_text(error))
            with suppress(BaseException):
                replace(pickle.dumps(found))
                sys.stdout.flush()
            os._exit(0)
        try:
            status = os.waitpid(child, 0)[1]
        except BaseException as error:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            if isinstance(error, KeyboardInterrupt):
                note(f"interrupted in {answer.read().decode()}")
            raise
        if (data := answer.read())[:1] != pickle.PROTO:
            who, code = data.decode().rpartition(":")[0], os.waitstatus_to_exitcode(status)
            raise PluginError(f"{who} ended the process while pages were written (exit code {code})")
        found = pickle.loads(data)  # noqa: S301 - of code that runs here as well
        if isinstance(found, BaseException):
            raise found
        return found


def rewrite_pages(
    report: Report, registry: Registry, formats: Iterable[str], out: Path, say: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Write the pages of a finished run again, by the reporters named, else those it had, with their options."""
    chosen: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in formats]
    chosen = chosen or [
        (each["name"], each["options"]) for each in report.header.get("components", ()) if each["kind"] == "reporter"
    ]
    written: list[Path] = []
    report = attrs.evolve(with_trajectories(report, registry, say), registry=registry)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not is_run(out):
            keep_foreign(*(out / page for page in REPORT_PAGES))
        for name, options in chosen or [("html", {}), ("markdown", {})]:
            target = registry.load("reporter", name)
            with collected_seldom(), guarded(f"reporter {name}"):
                try:
                    reporter = structure(options, target) if options else target()
                except Problems as problems:
                    raise PluginError(
                        f"reporter {name!r} does not take the options of this run; name it with --format",
                        *(f"{place}: {text}" for place, text in problems.found),
                    ) from problems
                written += [out / page for page in _written(reporter, report, out, f"reporter {name}")]
        for text in dict.fromkeys(report.told):
            say(f"warning: {text}")
    except OSError as error:
        raise (DataError if storage_failed(error) else ConfigError)(
            f"{error.filename or out}: cannot be written: {error.strerror or error}"
        ) from error
    return written


def with_broken_pages(summary: dict[str, Any], pages: Pages, *, strict: bool) -> dict[str, Any]:
    """Return a summary that tells what pages lack, and why; where it is ``strict``, what is left out is broken, too."""
    told = [f"{name} is broken, its page is missing: {text}" for name, text in sorted(pages.broken.items())]
    told += [f"{name} has written no page: {text}" for name, text in sorted(pages.refused.items())]
    told += pages.told
    found = {**summary, "warnings": [*summary["warnings"], *told]}
    broken = {**pages.broken, **pages.ended, **({"panels": pages.told[0]} if strict and pages.told else {})}
    if broken:
        found["broken"] = {**summary.get("broken", {}), **broken}
    if pages.refused:
        found["refused"] = pages.refused
    if pages.interrupted:
        found.setdefault("incomplete", PAGES_MISSING)
    return found


COMPARISON, COMPARISON_PAGE, COMPARISON_TEXT = "comparison.json", "comparison.html", "comparison.md"
COMPARISON_PARTS = "comparison_data/*.js"
"""What a page of a comparison may have beside it."""
REPORT_PAGES = ("report.html", "report.md")
_MARKS = {".html": b'<meta name="generator" content="gradestack', ".json": b'{"baseline":', ".md": b" gradestack "}
"""What stands near the beginning of a page, and of a comparison."""
_BEGINNING = 8192


def keep_foreign(*pages: Path) -> None:
    """Refuse to write where a file of somebody else's stands."""
    for page in pages:
        if not page.exists():
            continue
        if not page.is_file():  # a pipe would be waited for
            raise _in_the_way(page)
        with page.open("rb") as file:
            if _MARKS[page.suffix] not in file.read(_BEGINNING):
                raise _in_the_way(page)


def publish(out: Path, pages: Mapping[str, str]) -> None:
    """Write pages into a directory that anybody may have filled: links there are replaced, pages of others are not.

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
    """Refuse to write a comparison where a file of somebody else's stands."""
    data, page, text = (out / name for name in (COMPARISON, COMPARISON_PAGE, COMPARISON_TEXT))
    keep_foreign(data if data.exists() else page)
    if text.exists() and not data.exists() and not page.exists():
        raise _in_the_way(text)


def _in_the_way(page: Path) -> ConfigError:
    return ConfigError(f"{page}: is there already and was not written by gradestack; move it away")
