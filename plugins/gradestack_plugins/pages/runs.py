"""The runs in a folder and the page over them: the command ``index``."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import click
import msgspec

import gradestack
from gradestack import (
    ConfigError,
    DataError,
    Declarations,
    GradestackError,
    Report,
    is_run,
    load_report,
    publish,
    terminal_line,
)
from gradestack.jsonio import (
    JsonProblem,
    as_count,
    as_list,
    as_map,
    as_number,
    as_text,
    loads,
    read_regular,
)
from gradestack_plugins.pages.compare_text import (
    change_text,
    ends_text,
    pairs_of,
    question_of,
    verdict_text,
)
from gradestack_plugins.pages.draw import Shape, draw_figure
from gradestack_plugins.pages.environment import asset, environment, policy
from gradestack_plugins.pages.figures import Result, end_text, results_of
from gradestack_plugins.pages.text import brief, counted, token

INDEX, TEMPLATE = "index.html", "runs.html"
HEADER, COMPARISON = "header.json", "comparison.json"
REPORT_PAGE, COMPARISON_PAGE = "report.html", "comparison.html"
UNFINISHED = ".unfinished"
"""What the directory of a run ends in until it is finished."""
_MOST_COLUMNS = 8
_MOST_POINTS = 60
"""Points of one line, the newest."""
_LONGEST = 200
_MOST_COMPARED, _MOST_SAMPLES = 10, 20_000
"""Runs of a suite that are compared with the one before, and runs of an agent in both."""
_NARROWEST = 10.0
"""Percent of the axis that a line's box has at least: small steps shall not look like leaps."""


class Folder(msgspec.Struct, frozen=True):
    """Content of a folder, by paths from it, with slashes; ``.`` is the folder itself."""

    runs: list[Shape]
    """Finished runs, the oldest first."""
    comparisons: list[Shape]
    unfinished: list[str]
    unreadable: list[tuple[str, str]]
    """Directories that look like a run and cannot be read, each with the reason."""

    @property
    def problems(self) -> list[str]:
        """A line for each run that cannot be shown."""
        unfinished = [(name, "unfinished; --resume continues it") for name in self.unfinished]
        return [f"{name}: {reason}" for name, reason in (*unfinished, *self.unreadable)]


def folder_of(path: str | Path) -> Folder:
    """Find the runs in a directory and below it, in the same order on any file system.

    A run's own folders are not searched. Symbolic links to directories are not followed.
    """
    root = Path(path)
    if not root.is_dir():
        raise DataError(f"{root}: {'not a directory' if root.exists() else 'no such directory'}")
    folder = Folder([], [], [], [])

    def note_error(path: Path, error: Exception) -> None:
        name = path.relative_to(root).as_posix()
        reason = _reason_of(error, path)
        folder.unreadable.append((name, reason))

    def note_closed_folder(error: OSError) -> None:
        note_error(Path(error.filename or root), error)

    for path_of_directory, folders, files in os.walk(root, onerror=note_closed_folder):
        directory = Path(path_of_directory)
        name = directory.relative_to(root).as_posix()
        hidden = [inner for inner in folders if inner.startswith(".")]
        unfinished = _unfinished_in(directory, hidden, root)
        folder.unfinished.extend(unfinished)
        folders[:] = sorted({*folders} - {*hidden})
        if COMPARISON in files:
            folder.comparisons.extend(_comparison(directory, name))
        if HEADER in files:
            if is_run(directory):
                folders.clear()
            try:
                report = load_report(directory)
                folder.runs.append(_run(report, name, page=REPORT_PAGE in files))
            except (DataError, OSError) as error:
                note_error(directory, error)
    folder.runs.sort(key=lambda run: (run.begun, run.path))
    folder.comparisons.sort(key=lambda comparison: comparison.path)
    folder.unfinished.sort()
    folder.unreadable.sort()
    return folder


def _reason_of(error: Exception, path: Path) -> str:
    """Return the text of an error without the place of a directory."""
    text = str(error)
    if isinstance(error, OSError):
        text = str(error.strerror or error)
    text = text.removeprefix(f"{path}: ").replace(f"{path}{os.sep}", "")
    return text.replace(str(path), path.name)


def _unfinished_in(directory: Path, hidden: Sequence[str], root: Path) -> Iterator[str]:
    """Yield the paths that runs still in progress in a directory will have."""
    for name in hidden:
        if name.endswith(UNFINISHED):
            final = directory / name[1:].removesuffix(UNFINISHED)
            yield final.relative_to(root).as_posix()


def _run(report: Report, path: str, *, page: bool) -> Shape:
    """Return a run with its lines: one, or one for each of its models."""
    summary = as_map(report.summary)
    gates = [as_text(as_map(gate).get("text")) for gate in as_list(summary.get("gates"))]
    passed = summary.get("gates_passed")
    folder_name = PurePosixPath(path).name
    suite = brief(as_text(summary.get("suite")), _LONGEST)
    href = _link(path, REPORT_PAGE) if page else ""
    word = _word(path)
    return Shape(
        path=path,
        suite=suite,
        href=href,
        word=word,
        name=token(folder_name).strip("._-") or "run",
        begun=as_text(report.header.get("timestamp")),
        gate="none" if passed is None else "passed" if passed is True else "failed",
        gates="; ".join(gates),
        incomplete=str(summary.get("incomplete") or ""),
        lines=_lines_of(report),
    )


def _lines_of(report: Report) -> list[Shape]:
    """Return the lines of a run: one, or one for each of its models."""
    summary = as_map(report.summary)
    metrics = as_map(summary.get("metrics"))
    per_model = metrics.get("per_model")
    entries = as_list(per_model)
    by_model = [as_map(entry) for entry in entries]
    totals = {as_text(entry.get("model_name")): entry for entry in by_model}
    results = results_of(summary, Declarations(report.header))
    rows = [_row_of(result) for result in results]
    if len(totals) < 2:
        return [_line("", metrics, rows)]
    lines = []
    for model, of_model in totals.items():
        name = brief(model, 40)
        shown_name = name or "(no name)"
        lines.append(_line(name, of_model, [row for row in rows if row.model == shown_name]))
    return lines


def _line(model: str, metrics: Mapping[str, Any], rows: Sequence[Shape]) -> Shape:
    figures = {(row.title, row.path): row for row in rows}
    samples = as_count(metrics.get("total"))
    return Shape(model=model, samples=samples, figures=figures, change=None)


def _row_of(result: Result) -> Shape:
    """Return a figure of a run as it is drawn, with its path and direction."""
    shape = draw_figure(result.figure)
    shape.path = result.path
    shape.better = result.better
    shape.unit = result.figure.unit
    shape.number = as_number(result.figure.value)
    return shape


def _comparison(directory: Path, path: str) -> list[Shape]:
    try:
        text = read_regular(directory / COMPARISON)
        document = loads(text)
        data = as_map(document)
    except (OSError, JsonProblem):
        return []
    runs = data.get("runs")
    names = [as_text(as_map(run).get("name")) for run in as_list(runs)]
    if len(names) < 2:
        return []
    has_page = (directory / COMPARISON_PAGE).is_file()
    href = _link(path, COMPARISON_PAGE) if has_page else ""
    sentence = as_text(data.get("sentence"))
    return [Shape(path=path, names=names, sentence=sentence, href=href)]


def _link(path: str, page: str) -> str:
    """Return a link from the folder to a page of a directory, whatever that is called."""
    return quote(f"./{path}/{page}" if path != "." else f"./{page}", errors="surrogateescape")


def _word(path: str) -> str:
    """Return a directory as one word of a shell; "" for a name that cannot be shown as it is."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path) if path.isprintable() else ""


def runs_page(folder: Folder, *, served: bool = False) -> str:
    """Return ``index.html`` of a folder, a file of its own.

    Args:
        folder: The folder's runs.
        served: Whether a server makes the page of every run, and of any two compared.
    """
    env = environment()
    env.filters.update(brief=brief, counted=counted)
    styles = [asset(env, name) for name in ("report.css", "runs.css")]
    early = asset(env, "theme.js")
    script = asset(env, "runs.js")
    suites: dict[str, list[Shape]] = {}
    for number, run in reversed(list(enumerate(folder.runs))):
        numbered_run = Shape(**vars(run), number=number)
        if served:
            numbered_run.href = _link(run.path, REPORT_PAGE)
        suites.setdefault(run.suite, []).append(numbered_run)
    comparisons = []
    for comparison in folder.comparisons:
        words = [_known(name, folder.runs) for name in comparison.names]
        both = words if len(words) == 2 else ["", ""]
        comparisons.append((comparison, *both))
    return env.get_template(TEMPLATE).render(
        suites=[_suite(name, runs) for name, runs in suites.items()],
        figures=[_figures_of(run) for run in folder.runs],
        folder=folder,
        served=served,
        comparisons=comparisons,
        styles=styles,
        early=early,
        script=script,
        policy=policy(styles, [early, script]),
    )


def _figures_of(run: Shape) -> list[dict[str, Any]]:
    """Return the figures of each line of a run, for the page to subtract from another run's."""
    lines = []
    for line in run.lines:
        figures = []
        for row in line.figures.values():
            if row.number is not None and math.isfinite(row.number):
                figures.append([row.title, row.value, row.number, row.unit, row.path])
        described: dict[str, Any] = {"model": line.model, "figures": figures}
        if line.change is not None:
            described["against"] = line.change.before
            ends = f" ({line.change.ends})" if line.change.ends else ""
            verdict = f"{line.change.text}{ends}, {line.change.verdict}"
            described["paired"] = [line.change.label, verdict]
        lines.append(described)
    return lines


def _known(name: str, runs: Sequence[Shape]) -> str:
    """Return the only run of the folder that a comparison calls so, as a word.

    "" where there is none.
    """
    words = []
    for run in runs:
        folder_name = PurePosixPath(run.path).name
        if name in {run.path, folder_name}:
            words.append(run.word)
    return str(words[0]) if len(words) == 1 else ""


def _suite(name: str, runs: Sequence[Shape]) -> Shape:
    """Return the runs of one suite, the newest first, with the figures they have and what these
    were over time.
    """
    lines = [line for run in runs for line in run.lines]
    better = {key: row.better for line in lines for key, row in line.figures.items()}
    columns = list(better)[:_MOST_COLUMNS]
    models = list(dict.fromkeys(line.model for line in lines))
    for run in runs:
        name_of_run = brief(run.path, 60)
        for row in _rows_of_run(run):
            row.run = name_of_run
    trends = []
    for key in columns:
        for model in models:
            of_model = [line for line in lines if line.model == model and key in line.figures]
            figures = [line.figures[key] for line in of_model]
            rows = figures[:_MOST_POINTS]
            if len(rows) > 1 and all(row.at is not None for row in rows):
                title = key[0]
                trend = _trend(title, model, rows[::-1])
                trends.append(trend)
    left_out = len(better) - len(columns)
    changed = any(line.change for line in lines)
    return Shape(
        name=name,
        runs=runs,
        columns=columns,
        left_out=left_out,
        better=better,
        trends=trends,
        models=any(models),
        changed=changed,
    )


def _rows_of_run(run: Shape) -> Iterator[Shape]:
    """Yield the figures of all models of a run."""
    for line in run.lines:
        yield from line.figures.values()


def _trend(title: str, model: str, rows: Sequence[Shape]) -> Shape:
    """Return a figure over time, all of it between 0 and 1, from the oldest run to the newest."""
    gate = rows[-1].threshold
    ends = [end for row in rows for end in (row.at, row.low, row.high) if end is not None]
    ends += [] if gate is None else [gate]
    low = min(ends)
    high = max(ends)
    if high - low < _NARROWEST:
        low = max(0.0, min((low + high - _NARROWEST) / 2, 100 - _NARROWEST))
        high = low + _NARROWEST

    def height(value: float | None) -> float | None:
        return None if value is None else round(100 * (high - value) / (high - low), 2)

    values = ", ".join(row.value for row in rows)
    points = []
    for number, row in enumerate(rows):
        across = round(100 * number / (len(rows) - 1), 2)
        points.append((across, height(row.at), height(row.low), height(row.high)))
    last_row = rows[-1]
    return Shape(
        title=title,
        model=model,
        last=last_row,
        gate=height(gate),
        gate_text=rows[-1].gate,
        names=[_name_point(row) for row in rows],
        points=points,
        ends=[end_text(value / 100, rows[-1].unit) for value in (low, high)],
        about=f"{title} over {len(rows)} runs: {values}",
    )


def _name_point(row: Shape) -> str:
    """Return the run, value and interval of a point, for who points at it or taps it."""
    ends = f" ({row.interval})" if row.interval else ""
    return f"{row.run}: {row.value}{ends}"


def add_changes(folder: Folder, root: Path) -> None:
    """Add to the newest runs of each suite their difference to the run before, with its verdict."""
    by_suite: dict[str, list[Shape]] = {}
    for run in folder.runs:
        by_suite.setdefault(run.suite, []).append(run)
    for runs in by_suite.values():
        pairs = [*pairwise(runs)][-_MOST_COMPARED:]
        for before, run in pairs:
            sizes = [line.samples for shape in (before, run) for line in shape.lines]
            if sum(sizes) <= _MOST_SAMPLES:
                _add_change(root, before, run)


def _add_change(root: Path, before: Shape, run: Shape) -> None:
    """Add the difference from the run before to each line; none where the runs do not compare."""
    try:
        comparison = gradestack.compare(root / before.path, root / run.path, figures=())
    except GradestackError:
        return
    models = {side.name: brief(side.model or "", 40) for side in comparison.sides}
    for pair in pairs_of(comparison.data):
        row = question_of(pair)
        verdict = verdict_text(row)
        tone = {"better": "good", "worse": "bad"}.get(verdict, "")
        share = row["share"]
        points = " points" if share and row["difference"] is not None else ""
        text = f"{change_text(row)}{points}"
        ends = ends_text(row)
        change = Shape(text=text, ends=ends, verdict=verdict)
        change.tone = tone
        change.before = before.path
        change.label = row["label"]
        is_alone = len(run.lines) == 1
        for line in run.lines:
            if is_alone or line.model == models.get(pair["b"]):
                line.change = change


def write_index(folder: Folder, path: str | Path) -> Path:
    """Write ``index.html`` over the runs of a folder into it.

    The same bytes for the same folder.
    """
    page = Path(path) / INDEX
    if not folder.runs:
        others = f"; {len(folder.problems)} that cannot be shown" if folder.problems else ""
        raise DataError(f"{path}: no finished run in it or below{others}", *folder.problems)
    add_changes(folder, Path(path))
    try:
        pages = {INDEX: runs_page(folder)}
        publish(page.parent, pages)
    except OSError as error:
        raise ConfigError(f"{page}: cannot be written: {error.strerror or error}") from error
    return page


@click.command(epilog="Example: gradestack index gradestack-runs")
@click.argument("directory")
def index(directory: str) -> None:
    """Write index.html into DIRECTORY.

    The page has a row for each report directory below DIRECTORY, and figures over time.

    Report directories that are unfinished or cannot be read are named. The exit code is 3 if no
    report directory is there.
    """
    folder = folder_of(directory)
    page = write_index(folder, directory)
    stopped = [f"{run.path}: {run.incomplete}" for run in folder.runs if run.incomplete]
    for line in (*folder.problems, *stopped):
        click.echo(terminal_line(f"warning: {line}"), err=True)
    runs = counted(len(folder.runs), "runs")
    text = f"Index: {page} ({runs})"
    click.echo(terminal_line(text))
