"""The command ``compare``, and pages of a comparison in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

import gradestack
from gradestack import GradestackError, Report, terminal_line
from gradestack_plugins.pages.compare_text import comment, console_lines
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.panel import Panels, fill_panels
from gradestack_plugins.pages.prose import around, bar, code, prose
from gradestack_plugins.pages.text import brief, capital, counted, number

_MOST_MODELS, _MOST_COMPARED = 8, 10_000
"""Models of a run up to which its page compares them, and its runs up to which it compares figures
that are no means, too.
"""
_MOST_SENTENCES, _LONGEST_SENTENCES = 3, 900
"""Models that are compared with the first in sentences, and characters of these."""


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
    pairs = data.get("pairs")
    return {**data, "pairs": pairs or [{**data, "a": models[0], "b": models[1]}]}


def moved(data: Mapping[str, Any]) -> str:
    """Return the sentence with the numbers of trials that only one of the two sides passes.

    It names both models where they differ, else it says how many trials were fixed and broken.
    """
    flips = data["flips"]
    trials = counted(flips["fixed"], "trials")
    broken = number(flips["broken"])
    runs = data["runs"][:2]
    a, b = (brief(run.get("model") or "", 60) for run in runs)
    if not a or not b or a == b:
        return f"{trials} fixed, {broken} broken"
    return f"{b} passes {trials} that {a} fails, and fails {broken} that it passes"


def _against_the_first(data: Mapping[str, Any]) -> str:
    """Return the result of each other side against the first in sentences."""
    first = data["runs"][0]["name"]
    pairs = [pair for pair in data.get("pairs") or () if pair["a"] == first and "sentence" in pair]
    sentences = [pair["sentence"] for pair in pairs] or [data["sentence"]]
    return ". ".join(capital(sentence) for sentence in sentences[:_MOST_SENTENCES])


def overview_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a comparison that a page shows beside its sections."""
    rows = data["metrics"].values()
    has_changed_tasks = bool(data["flips"]["count"])
    return {
        "has_changed_tasks": has_changed_tasks,
        "moved": moved(data),
        "sentence": brief(_against_the_first(data), _LONGEST_SENTENCES),
        "unmatched": any(row.get(f"only_{side}_count") for row in rows for side in "ab"),
    }


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
    help="Count runs that could not be graded as the worst possible score [default: zero], or "
    "skip them.",
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
def compare(runs: tuple[str, ...], **options: Any) -> None:
    """Compare two or more RUNs task by task.

    A RUN is a report directory, RUN::MODEL, or a result file, which is graded first.

    The first RUN is the baseline. With one RUN its models are compared. The exit code is 0 whatever
    the difference, and 3 if the runs cannot be compared.
    """
    options["figures"] = options["figures"] or None
    comparison = gradestack.compare(*runs, **options)
    shown = console_lines(comparison.data)
    if options["output"] is not None:
        shown += ["", f"Comparison: {options['output']}"]
    click.echo("\n".join(map(terminal_line, shown)))
