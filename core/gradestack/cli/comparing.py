"""The command ``compare``. Only click is imported here; everything else when it runs."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--output", metavar="DIR", help="Write comparison.json and its pages into DIR.")
@click.option("--baseline", metavar="MODEL", help="Model or run the others are compared with [default: the first].")
@click.option(
    "--match", type=click.Choice(["id", "input", "ordinal"]), default="id", help="What makes two samples one task."
)
@click.option(
    "--failed", type=click.Choice(["zero", "skip"]), default="zero", help="What failed trials count as [default: zero]."
)
@click.option("--confidence", type=float, default=0.95, help="Of the intervals [default: 0.95].")
@click.option("--metric", "headline", metavar="GRADER", help="Grader of the sentence and the leaderboard.")
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="PATH",
    help="Figure that is no mean, such as label.classification.macro_f1; may be repeated [default: the headline's].",
)
@click.option("--by", metavar="FACET", help="Differences within each value of a facet, the worst first.")
@click.option("--allow-code", is_flag=True, help="Import Python files that the runs used. Only if you trust them.")
@click.option("--force", is_flag=True, help="Compare runs whose graders, expectations or inputs differ all the same.")
def compare(runs: tuple[str, ...], **given: Any) -> None:
    """Compare two or more RUNs task by task: run directories, RUN::MODEL, or result files, which are graded first.

    The first is the baseline; of one run its models are compared. Exit code 0 whatever the difference, 3 when the runs
    cannot be compared.
    """
    from gradestack.cli import console  # noqa: PLC0415 - not needed for --help
    from gradestack.comparison.lines import lines  # noqa: PLC0415
    from gradestack.output.terminal import terminal_line  # noqa: PLC0415
    from gradestack.python_compare import compare as compared  # noqa: PLC0415

    found = compared(*runs, **{**given, "figures": given["figures"] or None})
    console.say("\n".join(map(terminal_line, lines(found.data))))
    if given["output"] is not None:
        console.say(f"\nComparison: {terminal_line(given['output'])}")
