"""The page over the runs of a folder: a row per run, and each figure over time."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

import attrs

from gradestack import Folder, FoundComparison, FoundRun
from gradestack.jsonio import as_count, as_list, as_map, as_text
from gradestack_plugins.reporters.environment import asset, environment, policy
from gradestack_plugins.reporters.estimate_rows import EstimateRow, rows_of
from gradestack_plugins.reporters.headline import success_of, words_of
from gradestack_plugins.reporters.reliability import Reliability
from gradestack_plugins.reporters.text import brief, token

PAGE = "runs.html"
_MOST_COLUMNS = 8
_MOST_POINTS = 60
"""Points of one line, the newest."""
_LONGEST = 200
_NARROWEST = 10.0
"""Percent of the axis that a line's box has at least: small steps shall not look like leaps."""

ColumnKey = tuple[str, str]
"""Title of a figure, and what it is called in the summary."""


@attrs.frozen
class RunLine:
    """One run, of several models one model of it.

    Attributes:
        path: Its directory, as text.
        href: Link to its page, "" without one.
        word: Its directory as one word of a shell.
        name: The last part of it, for the name of a comparison.
        number: Its place in time, from 0.
        begun: When it was graded, to the minute.
        model: The model; "" where the run has one only.
        first: Whether it is the first line of its run.
        samples: Number of samples.
        gate: ``passed``, ``failed`` or ``none``.
        gates: The rules of its gates.
        incomplete: Why not all of it was graded.
        figures: What it comes to.
    """

    path: str
    href: str
    word: str
    name: str
    number: int
    begun: str
    model: str
    first: bool
    samples: int
    gate: str
    gates: str
    incomplete: str
    figures: Mapping[ColumnKey, EstimateRow]


@attrs.frozen
class Trend:
    """One figure over the runs of a suite, for one model.

    Attributes:
        title: The figure.
        model: The model, "" where there is one only.
        last: The newest value with its interval.
        points: Place, value and ends of the interval in percent of the box, from the top and the left.
        low: Lower end of the box, as text, like the upper one.
        high: Upper end of the box.
        about: All of it in words.
    """

    title: str
    model: str
    last: EstimateRow
    points: tuple[tuple[float, float, float | None, float | None], ...]
    low: str
    high: str
    about: str


@attrs.frozen
class SuiteRuns:
    """The runs of one suite.

    Attributes:
        name: The suite.
        lines: Its runs, the newest first.
        columns: The figures they are summed up by.
        left_out: Figures of the headline without a column.
        trends: Each figure over time.
        models: Whether any run has several models.
    """

    name: str
    lines: tuple[RunLine, ...]
    columns: tuple[ColumnKey, ...]
    left_out: int
    trends: tuple[Trend, ...]
    models: bool


@attrs.frozen
class ComparisonLine:
    """A comparison in the folder; ``first`` and ``second`` are the words of its runs, "" where that is not sure."""

    path: str
    href: str
    names: str
    sentence: str
    first: str
    second: str


def runs_page(folder: Folder) -> str:
    """Return ``index.html`` of a folder, a file of its own."""
    env = environment()
    styles = [asset(env, name) for name in ("report.css", "runs.css")]
    early, script = asset(env, "theme.js"), asset(env, "runs.js")
    by_suite: dict[str, list[RunLine]] = {}
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


def _lines(run: FoundRun, number: int) -> list[RunLine]:
    """Return the lines of a run: one, or one for each of its models."""
    summary = as_map(run.summary)
    metrics = as_map(summary.get("metrics"))
    totals = {as_text(each.get("model_name")): each for each in map(as_map, as_list(metrics.get("per_model")))}
    models = list(totals) if len(totals) > 1 else [""]
    rows = rows_of(summary, success_of(summary), words_of(summary), Reliability(0, None, {}))
    gates = [as_text(as_map(gate).get("text")) for gate in as_list(summary.get("gates"))]
    passed = summary.get("gates_passed")
    return [
        RunLine(
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


def _figures(rows: Iterable[EstimateRow], models: Sequence[str], model: str) -> dict[ColumnKey, EstimateRow]:
    """Return the figures of one model; those of a run with one model have no model's name where they have a path."""
    if len(models) == 1:
        return {(row.title, row.code): row for row in rows}
    return {(row.title, ""): row for row in rows if row.code == (brief(model, 40) or "(no name)")}


def _suite(name: str, lines: list[RunLine]) -> SuiteRuns:
    every = list(dict.fromkeys(key for line in lines for key in line.figures))
    columns = tuple(every[:_MOST_COLUMNS])
    models = list(dict.fromkeys(line.model for line in lines))
    trends = (_trend(key, model, lines) for key in columns for model in models)
    return SuiteRuns(
        name=name,
        lines=tuple(lines),
        columns=columns,
        left_out=len(every) - len(columns),
        trends=tuple(each for each in trends if each is not None),
        models=any(models),
    )


def _trend(key: ColumnKey, model: str, lines: Sequence[RunLine]) -> Trend | None:
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
    return Trend(key[0], model, rows[-1], points, texts[0], texts[1], f"{key[0]} over {len(rows)} runs: {values}")


def _link(path: str, page: str) -> str:
    """Return a link from the folder to a page of a directory, whatever that is called."""
    return quote(f"./{path}/{page}" if path != "." else f"./{page}", errors="surrogateescape")


def _word(path: str) -> str:
    """Return a directory as one word of a shell; "" for a name that cannot be shown as it is."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path) if path.isprintable() else ""


def _comparison(found: FoundComparison, paths: Sequence[str]) -> ComparisonLine:
    known = [
        [path for path in paths if name.partition("::")[0] in (path, PurePosixPath(path).name)] for name in found.runs
    ]
    words = [
        _word(own[0]) if len(own) == 1 and "::" not in name else "" for own, name in zip(known, found.runs, strict=True)
    ]
    return ComparisonLine(
        path=brief(found.path, _LONGEST),
        href=_link(found.path, "comparison.html") if found.page else "",
        names=" against ".join(brief(name, 80) for name in reversed(found.runs[:2])),
        sentence=brief(found.sentence, 300),
        first=words[0] if len(words) == 2 else "",
        second=words[1] if len(words) == 2 else "",
    )
