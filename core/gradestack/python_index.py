"""The runs in a folder and the page over them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradestack.errors import ConfigError, DataError
from gradestack.jsonio.files import read_regular
from gradestack.jsonio.values import JsonProblem, as_list, as_map, as_text, loads
from gradestack.outcome.foreign import COMPARISON, COMPARISON_PAGE, keep_foreign
from gradestack.registry import Registry
from gradestack.report import HEADER, is_run, load_report
from gradestack.run_folder import Folder, FoundComparison, FoundRun
from gradestack.rundir.place import UNFINISHED, filling

INDEX = "index.html"


def folder_of(path: str | Path) -> Folder:
    """Return the runs at and below a directory, whatever order its file system has.

    What is inside a run is part of it. Symbolic links to directories are not followed.

    Raises:
        DataError: There is no such directory.
    """
    root = Path(path)
    if not root.is_dir():
        msg = f"{root}: {'not a directory' if root.exists() else 'no such directory'}"
        raise DataError(msg)
    runs: list[FoundRun] = []
    unfinished: list[str] = []
    unreadable: list[tuple[str, str]] = []
    comparisons: list[FoundComparison] = []
    for place, files in _places(root, unfinished, unreadable):
        name = place.relative_to(root).as_posix()
        if COMPARISON in files and (found := _comparison(place, name)) is not None:
            comparisons.append(found)
        if HEADER not in files:
            continue
        try:
            report = load_report(place)
            page = "report.html" in files
            runs.append(FoundRun(path=name, header=report.header, summary=report.summary, page=page))
        except (DataError, OSError) as error:
            unreadable.append((name, _reason(error, place)))
    runs.sort(key=lambda run: (run.begun, run.path))
    return Folder(
        runs=tuple(runs),
        unfinished=tuple(sorted(unfinished)),
        unreadable=tuple(sorted(unreadable)),
        comparisons=tuple(sorted(comparisons, key=lambda each: each.path)),
    )


def _places(root: Path, unfinished: list[str], unreadable: list[tuple[str, str]]) -> Iterator[tuple[Path, set[str]]]:
    """Yield the directories that may be runs, with the names of their files; note those of unfinished runs."""

    def note(error: OSError) -> None:
        place = Path(error.filename or root)
        unreadable.append((place.relative_to(root).as_posix(), error.strerror or "cannot be read"))

    for name, folders, files in os.walk(root, onerror=note):
        place = Path(name)
        for each in [each for each in folders if each.startswith(".")]:
            folders.remove(each)
            if each.endswith(UNFINISHED):
                stem = each.removeprefix(".").removesuffix(UNFINISHED)
                unfinished.append((place / stem).relative_to(root).as_posix())
        folders.sort()
        if HEADER in files and is_run(place):
            folders.clear()
        yield place, set(files)


def _reason(error: Exception, place: Path) -> str:
    """Return what is wrong with a directory, without where the folder lies."""
    text = str(error.strerror or error) if isinstance(error, OSError) else str(error)
    return text.removeprefix(f"{place}: ").replace(f"{place}{os.sep}", "").replace(str(place), place.name)


def _comparison(place: Path, name: str) -> FoundComparison | None:
    try:
        data = as_map(loads(read_regular(place / COMPARISON)))
    except (OSError, JsonProblem):
        return None
    names = tuple(as_text(as_map(each).get("name")) for each in as_list(data.get("runs")))
    if len(names) < 2:
        return None
    page = (place / COMPARISON_PAGE).is_file()
    return FoundComparison(path=name, runs=names, sentence=as_text(data.get("sentence")), page=page)


def write_index(folder: Folder, path: str | Path, registry: Registry) -> Path:
    """Write ``index.html`` over the runs of a folder into it; the same bytes for the same folder.

    Raises:
        ConfigError: It cannot be written, or there is an ``index.html`` that is not one of ours.
        DataError: There is no run.
    """
    page = Path(path) / INDEX
    if not folder.runs:
        others = len(folder.unfinished) + len(folder.unreadable)
        msg = f"{path}: no finished run in it or below" + (f"; {others} that cannot be shown" if others else "")
        raise DataError(msg, *(f"{name}: {reason}" for name, reason in _problems(folder)))
    try:
        keep_foreign(page)
        text: Any = registry.load("reporter", "html")().runs(folder)
        with filling(page.parent) as new:
            (new / INDEX).write_text(text, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        msg = f"{page}: cannot be written: {error.strerror or error}"
        raise ConfigError(msg) from error
    return page


def _problems(folder: Folder) -> list[tuple[str, str]]:
    return [*((name, "unfinished; --resume continues it") for name in folder.unfinished), *folder.unreadable]


def problem_lines(folder: Folder) -> list[str]:
    """Return a line for each run that could not be shown, and for each that was interrupted."""
    broken = [(run.path, run.incomplete) for run in folder.runs if run.incomplete]
    return [f"{name}: {reason}" for name, reason in [*_problems(folder), *broken]]
