"""The runs in a folder and the page over them: the command ``index``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import click
import msgspec

from gradestack import JSON, ConfigError, DataError, Declarations, is_run, load_report, publish, terminal_line
from gradestack.jsonio import JsonProblem, as_count, as_list, as_map, as_text, loads, read_regular
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.environment import asset, environment, policy
from gradestack_plugins.pages.figures import FigureRow, rows_of
from gradestack_plugins.pages.tasks import Reliability
from gradestack_plugins.pages.text import brief, token


class FoundRun(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run in a folder."""

    path: str
    """Its directory, from the folder, with slashes; ``.`` for the folder itself."""
    header: Mapping[str, JSON]
    summary: Mapping[str, JSON]
    page: bool
    """Whether it has a ``report.html``."""

    @property
    def incomplete(self) -> str:
        """Why not all of it was graded; "" for a complete run."""
        return str(self.summary.get("incomplete") or "")

    @property
    def begun(self) -> str:
        """When it was graded, as it stands in its header."""
        return str(self.header.get("timestamp") or "")

    @property
    def name(self) -> str:
        """Name of the suite."""
        return str(self.summary["suite"])


class FoundComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison in a folder."""

    path: str
    runs: tuple[str, ...]
    """What the runs are called in it, the baseline first."""
    sentence: str
    page: bool


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """The runs in a folder, the oldest first."""

    runs: tuple[FoundRun, ...]
    unfinished: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    """Directories that look like a run and cannot be read, each with the reason."""
    comparisons: tuple[FoundComparison, ...] = ()


PAGE = "runs.html"
_MOST_COLUMNS = 8
_MOST_POINTS = 60
"""Points of one line, the newest."""
_LONGEST = 200
_NARROWEST = 10.0
"""Percent of the axis that a line's box has at least: small steps shall not look like leaps."""

ColumnKey = tuple[str, str]
"""Title of a figure, and what it is called in the summary."""


def runs_page(folder: Folder) -> str:
    """Return ``index.html`` of a folder, a file of its own."""
    env = environment()
    styles = [asset(env, name) for name in ("report.css", "runs.css")]
    early, script = asset(env, "theme.js"), asset(env, "runs.js")
    by_suite: dict[str, list[Shape]] = {}
    for number, run in reversed(list(enumerate(folder.runs))):
        by_suite.setdefault(brief(run.name, _LONGEST), []).extend(_lines(run, number))
    return env.get_template(PAGE).render(
        suites=[_suite(name, lines) for name, lines in by_suite.items()],
        runs=len(folder.runs),
        incomplete=sum(bool(run.incomplete) for run in folder.runs),
        unfinished=[brief(name, _LONGEST) for name in folder.unfinished],
        unreadable=[(brief(name, _LONGEST), brief(reason, 300)) for name, reason in folder.unreadable],
        comparisons=[_comparison(each, [run.path for run in folder.runs]) for each in folder.comparisons],
        styles=styles,
        early=early,
        script=script,
        policy=policy(styles, [early, script]),
    )


def _lines(run: FoundRun, number: int) -> list[Shape]:
    """Return the lines of a run: one, or one for each of its models."""
    summary = as_map(run.summary)
    metrics = as_map(summary.get("metrics"))
    totals = {as_text(each.get("model_name")): each for each in map(as_map, as_list(metrics.get("per_model")))}
    models = list(totals) if len(totals) > 1 else [""]
    rows = rows_of(summary, Declarations(run.header), Reliability(0, None, {}))
    gates = [as_text(as_map(gate).get("text")) for gate in as_list(summary.get("gates"))]
    passed = summary.get("gates_passed")
    return [
        Shape(
            path=brief(run.path, _LONGEST),
            href=_link(run.path, "report.html") if run.page else "",
            word=_word(run.path),
            name=token(PurePosixPath(run.path).name).strip("._-") or "run",
            number=number,
            begun=brief(run.begun[:16].replace("T", " "), 16),
            model=brief(model, 40),
            first=place == 0,
            samples=as_count(totals[model].get("total")) if model else as_count(metrics.get("total")),
            gate="none" if passed is None else "passed" if passed is True else "failed",
            gates=brief("; ".join(gates), _LONGEST),
            incomplete=brief(run.incomplete, 100),
            figures=_figures(rows, models, model),
        )
        for place, model in enumerate(models)
    ]


def _figures(rows: Iterable[FigureRow], models: Sequence[str], model: str) -> dict[ColumnKey, FigureRow]:
    """Return the figures of one model; those of a run with one model have no model's name where they have a path."""
    if len(models) == 1:
        return {(row.title, row.code): row for row in rows}
    return {(row.title, ""): row for row in rows if row.code == (brief(model, 40) or "(no name)")}


def _suite(name: str, lines: list[Shape]) -> Shape:
    every = list(dict.fromkeys(key for line in lines for key in line.figures))
    columns = tuple(every[:_MOST_COLUMNS])
    models = list(dict.fromkeys(line.model for line in lines))
    trends = (_trend(key, model, lines) for key in columns for model in models)
    return Shape(
        name=name,
        lines=tuple(lines),
        columns=columns,
        left_out=len(every) - len(columns),
        better={key: row.better for line in lines for key, row in line.figures.items()},
        trends=tuple(each for each in trends if each is not None),
        models=any(models),
    )


def _trend(key: ColumnKey, model: str, lines: Sequence[Shape]) -> Shape | None:
    """Return a figure over time; None for a single run, and for what does not lie between 0 and 1."""
    found = [line.figures[key] for line in lines if line.model == model and key in line.figures][:_MOST_POINTS]
    rows = [row for row in reversed(found) if row.at is not None]
    if len(rows) < 2 or len(rows) < len(found):
        return None
    ends = [end for row in rows for end in (row.at, row.low, row.high) if end is not None]
    low, high = min(ends), max(ends)
    if high - low < _NARROWEST:
        low = max(0.0, min((low + high - _NARROWEST) / 2, 100 - _NARROWEST))
        high = low + _NARROWEST

    def height(value: float | None) -> float | None:
        return None if value is None else round(100 * (high - value) / (high - low), 2)

    points = tuple(
        (round(100 * place / (len(rows) - 1), 2), height(row.at) or 0.0, height(row.low), height(row.high))
        for place, row in enumerate(rows)
    )
    unit = rows[-1].unit
    texts = [f"{value:.0f}%" if unit else f"{value / 100:.2f}" for value in (low, high)]
    values = ", ".join(f"{row.value}{row.unit}" for row in rows)
    about = f"{key[0]} over {len(rows)} runs: {values}"
    return Shape(title=key[0], model=model, last=rows[-1], points=points, low=texts[0], high=texts[1], about=about)


def _link(path: str, page: str) -> str:
    """Return a link from the folder to a page of a directory, whatever that is called."""
    return quote(f"./{path}/{page}" if path != "." else f"./{page}", errors="surrogateescape")


def _word(path: str) -> str:
    """Return a directory as one word of a shell; "" for a name that cannot be shown as it is."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path) if path.isprintable() else ""


def _comparison(found: FoundComparison, paths: Sequence[str]) -> Shape:
    known = [
        [path for path in paths if name.partition("::")[0] in (path, PurePosixPath(path).name)] for name in found.runs
    ]
    words = [
        _word(own[0]) if len(own) == 1 and "::" not in name else "" for own, name in zip(known, found.runs, strict=True)
    ]
    return Shape(
        path=brief(found.path, _LONGEST),
        href=_link(found.path, "comparison.html") if found.page else "",
        names=" against ".join(brief(name, 80) for name in reversed(found.runs[:2])),
        sentence=brief(found.sentence, 300),
        first=words[0] if len(words) == 2 else "",
        second=words[1] if len(words) == 2 else "",
    )


INDEX = "index.html"
HEADER, COMPARISON, COMPARISON_PAGE = "header.json", "comparison.json", "comparison.html"
UNFINISHED = ".unfinished"
"""What the directory of a run ends in until it is finished."""


def folder_of(path: str | Path) -> Folder:
    """Return the runs at and below a directory, whatever order its file system has.

    What is inside a run is part of it. Symbolic links to directories are not followed.
    """
    root = Path(path)
    if not root.is_dir():
        raise DataError(f"{root}: {'not a directory' if root.exists() else 'no such directory'}")
    runs: list[FoundRun] = []
    unfinished: list[str] = []
    unreadable: list[tuple[str, str]] = []
    comparisons: list[FoundComparison] = []
    for place, files in _places(root, unfinished, unreadable):
        name = place.relative_to(root).as_posix()
        if COMPARISON in files and (found := _found_comparison(place, name)) is not None:
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


def _found_comparison(place: Path, name: str) -> FoundComparison | None:
    try:
        data = as_map(loads(read_regular(place / COMPARISON)))
    except (OSError, JsonProblem):
        return None
    names = tuple(as_text(as_map(each).get("name")) for each in as_list(data.get("runs")))
    if len(names) < 2:
        return None
    page = (place / COMPARISON_PAGE).is_file()
    return FoundComparison(path=name, runs=names, sentence=as_text(data.get("sentence")), page=page)


def write_index(folder: Folder, path: str | Path) -> Path:
    """Write ``index.html`` over the runs of a folder into it; the same bytes for the same folder."""
    page = Path(path) / INDEX
    if not folder.runs:
        others = len(folder.unfinished) + len(folder.unreadable)
        msg = f"{path}: no finished run in it or below" + (f"; {others} that cannot be shown" if others else "")
        raise DataError(msg, *(f"{name}: {reason}" for name, reason in _problems(folder)))
    try:
        publish(page.parent, {INDEX: runs_page(folder)})
    except OSError as error:
        raise ConfigError(f"{page}: cannot be written: {error.strerror or error}") from error
    return page


def _problems(folder: Folder) -> list[tuple[str, str]]:
    return [*((name, "unfinished; --resume continues it") for name in folder.unfinished), *folder.unreadable]


def problem_lines(folder: Folder) -> list[str]:
    """Return a line for each run that could not be shown, and for each that was interrupted."""
    broken = [(run.path, run.incomplete) for run in folder.runs if run.incomplete]
    return [f"{name}: {reason}" for name, reason in [*_problems(folder), *broken]]


@click.command(epilog="Example: gradestack index gradestack-runs")
@click.argument("directory")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def index(directory: str) -> None:
    """Write index.html into DIRECTORY: a row for every run in it and below, and its figures over time.

    Runs that are unfinished or cannot be read are named. Exit code 3 where there is no run.
    """
    found = folder_of(directory)
    page = write_index(found, directory)
    for line in problem_lines(found):
        click.echo(terminal_line(f"warning: {line}"), err=True)
    runs = f"{len(found.runs):,} run{'' if len(found.runs) == 1 else 's'}"
    click.echo(terminal_line(f"Index: {page} ({runs})"))
