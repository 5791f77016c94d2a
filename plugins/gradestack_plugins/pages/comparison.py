"""The command ``compare``, and pages of a comparison in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

import gradestack
from gradestack import GradestackError, Report, compared_rows, terminal_line, with_unit
from gradestack_plugins.pages.compare_text import comment, console_lines, verdict_text
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.panel import Panels, fill_panels
from gradestack_plugins.pages.prose import around, bar, code, prose
from gradestack_plugins.pages.text import UNDEFINED, brief, capital, counted, end, number

_MOST_CHANGES = 10
_MOST_MODELS, _MOST_COMPARED = 8, 10_000
"""Models of a run up to which its page compares them, and its runs up to which it compares figures
that are no means, too.
"""
_MOST_DRAWN = 3
"""Pairs whose figures are all drawn; of more only those with the baseline."""
_LONGEST = 120
"""Characters of a name."""
_KINDS = {"reasons": "Reasons", "tools": "Reasons by tool", "arguments": "Reasons by argument"}


def markdown_page(data: Mapping[str, Any], panels: Panels) -> str:
    """Return comparison.md: a comment on a pull request, panels folded below."""
    filled = fill_panels(panels, ("compare",), data).panels
    if not filled:
        return comment(data)
    env = environment()
    env.filters.update(md=prose, around=around, code=code, bar=bar)
    folded = env.get_template("comparison.md").render(panels=filled)
    return f"{comment(data)}{folded}"


def compared_models(report: Report) -> Mapping[str, Any] | None:
    """Return the comparison of the models of a run with the first.

    None where there is none, or too much.
    """
    entries = index_of(report).entries
    models = list(filter(None, dict.fromkeys(entry.model for entry in entries)))
    if not 1 < len(models) <= _MOST_MODELS:
        return None
    figures = None if len(entries) <= _MOST_COMPARED else ()
    try:
        data = gradestack.compare(report, figures=figures, registry=report.registry).data
    except GradestackError:  # such as models that share no task
        return None
    return {**data, "pairs": data.get("pairs") or [{**data, "a": models[0], "b": models[1]}]}


def differences(pair: Mapping[str, Any], widest: float) -> list[Shape]:
    """Return the rows of one pair.

    Those between shares have places on an axis from minus to plus ``widest``.
    """
    rows = compared_rows(pair)
    found = [[row["difference"], *(row["interval"]["ends"] or (None, None))] for row in rows]
    places = [
        [
            None if value is None or not row["share"] else round(50 + 50 * value / widest, 2)
            for value in values
        ]
        for row, values in zip(rows, found, strict=True)
    ]
    return [
        Shape(
            **row,
            at=at,
            low=low,
            high=high,
            change=_change(row),
            p_text=_p_of(row),
            word=verdict_text(row),
        )
        for row, (at, low, high) in zip(rows, places, strict=True)
    ]


def _widest(pairs: Iterable[Mapping[str, Any]]) -> float:
    """Return the largest distance from 0 of a difference between shares or an end of its interval,
    else 1.
    """
    found = [each for pair in pairs for each in compared_rows(pair) if each["share"]]
    values = [
        value
        for each in found
        for value in (each["difference"], *(each["interval"]["ends"] or ()))
        if value
    ]
    return 1.08 * max(map(abs, values), default=1 / 1.08)


def moved(data: Mapping[str, Any]) -> str:
    """Return how many trials pass on one side alone.

    Of two models who fails them, else that they changed.
    """
    trials, broken = counted(data["flips"]["fixed"], "trials"), number(data["flips"]["broken"])
    a, b = (brief(run.get("model") or "", 60) for run in data["runs"][:2])
    if not a or not b or a == b:
        return f"{trials} fixed, {broken} broken"
    return f"{b} passes {trials} that {a} fails, and fails {broken} that it passes"


def _pairs(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return data.get("pairs") or [
        {**data, "a": data["runs"][0]["name"], "b": data["runs"][1]["name"]}
    ]


def shown_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pages show of a comparison."""
    drawn = _pairs(data)
    if len(drawn) > _MOST_DRAWN:  # the matrix has the others
        drawn = [pair for pair in drawn if pair["a"] == drawn[0]["a"]]
    pairs = [{**pair, **{side: brief(pair[side], _LONGEST) for side in "ab"}} for pair in drawn]
    upward = all(row.get("better_is") == "higher" for pair in pairs for row in compared_rows(pair))
    widest = _widest(pairs)
    return {
        "data": data,
        "unmatched": any(
            row.get(f"only_{side}_count") for row in data["metrics"].values() for side in "ab"
        ),
        "sentence": brief(capital(data["sentence"]), 6 * _LONGEST),
        "directions": ("worse", "better") if upward else ("lower", "higher"),
        "drawn": [(pair, differences(pair, widest)) for pair in pairs],
        "moved": moved(data),
        "what": [
            (title, [{**row, "name": brief(row["name"], _LONGEST)} for row in rows[:_MOST_CHANGES]])
            for kind, title in _KINDS.items()
            if (rows := data["changed"][kind])
        ],
        "pairs": pairs,
        "by": data.get("by"),
        "groups": [
            {**each, "name": brief(each["name"], _LONGEST)} for each in data.get("groups", ())
        ],
    }


def _signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return UNDEFINED if value is None else f"{'+' if value > 0 else ''}{number(value)}"


def _change(row: Mapping[str, Any]) -> str:
    """Return the difference of a row with its sign, before that its unit."""
    value = row["difference"]
    if value is None or value >= 0:
        sign = "+" if value else ""
        return f"{sign}{with_unit(number(value), row['unit'])}"
    return f"-{with_unit(number(-value), row['unit'])}"


def _p_value(value: float | None) -> str:
    """Return a p value; of a small one the bound it is below."""
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def _p_of(row: Mapping[str, Any]) -> str:
    """Return p of a row, and that it is adjusted where it was tested with others."""
    return f"p (adjusted) {_p_value(row['p_holm'])}" if _is_adjusted(row) else _p_plain(row)


def _p_plain(row: Mapping[str, Any]) -> str:
    return f"p {_p_value(row['p_holm'])}"


def _is_adjusted(row: Mapping[str, Any]) -> bool:
    return bool(row.get("tests", 1) > 1)


def _end(value: float) -> str:
    """Return an end of an interval, which shows on which side of 0 it is."""
    return f"{value:.1g}" if 0 < abs(value) < 0.0005 else end(value)


def _ends(value: list[float] | None) -> str:
    """Return the ends of an interval."""
    return "no interval" if value is None else f"{_end(value[0])} to {_end(value[1])}"


def _interval(interval: Mapping[str, Any]) -> str:
    """Return the ends of an interval, or why there is none."""
    if interval["ends"] is None:
        return str(interval["reason"] or "no interval")
    return _ends(interval["ends"])


def _end_points(ends: list[float]) -> str:
    """Return the ends of an interval of shares in points."""
    low, high = (f"{100 * value:.1f}" for value in ends)
    if abs(ends[0]) < 0.0005 and ends[0]:
        low = f"{100 * ends[0]:.1g}"
    if abs(ends[1]) < 0.0005 and ends[1]:
        high = f"{100 * ends[1]:.1g}"
    return f"{low} to {high} points"


FILTERS: Mapping[str, Any] = {
    "signed": _signed,
    "ends": _ends,
    "end_points": _end_points,
    "change": _change,
    "interval": _interval,
    "p_of": _p_of,
    "verdict_text": verdict_text,
    "unit": with_unit,
    "counted": counted,
}
"""Of templates that show a comparison."""


@click.command(epilog="Example: gradestack compare before after -o comparison")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--output", metavar="DIR", help="Write comparison.json and pages into DIR.")
@click.option(
    "--baseline",
    metavar="MODEL",
    help="Model or run that the others are compared with [default: the first].",
)
@click.option(
    "--match",
    type=click.Choice(["id", "input", "ordinal"]),
    default="id",
    help="How tasks of two runs are matched [default: id].",
)
@click.option(
    "--failed",
    type=click.Choice(["zero", "skip"]),
    default="zero",
    help="Count runs that could not be graded as the worst possible score [default: zero], or skip them.",
)
@click.option(
    "--confidence", type=float, default=0.95, help="Confidence level of intervals [default: 0.95]."
)
@click.option(
    "--metric", "headline", metavar="GRADER", help="Grader whose figure is compared first."
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="PATH",
    help="Further figure, such as label.classification.macro_f1; may be repeated [default: the "
    "headline's].",
)
@click.option(
    "--by",
    metavar="FACET",
    help="Facet: show the difference within each of its values, the worst first.",
)
@click.option(
    "--filter",
    metavar="EXPR",
    help="Use only runs for which EXPR is true: 'facet.domain == \"air\"'.",
)
@click.option("--tasks", metavar="FILE", help="Use only tasks whose ids FILE lists, one per line.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Use only the first N of these tasks."
)
@click.option(
    "--allow-code",
    is_flag=True,
    help="Import Python files that the runs used. Use it only if you trust them.",
)
@click.option(
    "--previous",
    is_flag=True,
    help="RUN, or the newest below it, with the run before of its suite whose gates passed.",
)
@click.option(
    "--report-url", metavar="URL", help="Address of comparison.html, for links in comparison.md."
)
@click.option(
    "--force", is_flag=True, help="Compare even if graders, expectations or inputs differ."
)
def compare(runs: tuple[str, ...], **given: Any) -> None:
    """Compare two or more RUNs task by task.

    A RUN is a report directory, RUN::MODEL, or a result file, which is graded first.

    The first RUN is the baseline. With one RUN its models are compared. The exit code is 0 whatever
    the difference, and 3 if the runs cannot be compared.
    """
    found = gradestack.compare(*runs, **{**given, "figures": given["figures"] or None})
    shown = console_lines(found.data)
    if given["output"] is not None:
        shown += ["", f"Comparison: {given['output']}"]
    click.echo("\n".join(map(terminal_line, shown)))
