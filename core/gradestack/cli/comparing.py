"""The command ``compare``. Only click is imported here; everything else when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from gradestack.output.words import counted


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
    from gradestack.output.terminal import terminal_line  # noqa: PLC0415
    from gradestack.python_compare import compare as compared  # noqa: PLC0415

    found = compared(*runs, **{**given, "figures": given["figures"] or None})
    console.say("\n".join(map(terminal_line, lines(found.data))))
    if given["output"] is not None:
        console.say(f"\nComparison: {terminal_line(given['output'])}")


_MOST = 10


def lines(data: Mapping[str, Any]) -> list[str]:
    """Return what the console prints of a comparison: the sentence, a table of metrics, flips, the leaderboard."""
    found = []
    if data["incomparable"]:
        found += ["Compared by force, though:", *(f"  {each}" for each in data["incomparable"]), ""]
    found += [data["sentence"], ""]
    if "warnings" in data:
        found += [*(f"warning: {each}" for each in data["warnings"]), ""]
    first = {"a": data["runs"][0]["name"], "b": data["runs"][1]["name"], **data}
    for pair in data.get("pairs") or [first]:
        found += [f"{pair['a']} (a) and {pair['b']} (b); failed trials count {_counted(data['failed'])}:"]
        found += _metrics(rows_of(pair))
        found.append("")
    if "not_compared" in data:
        found += ["Not compared:", *(f"  {reason}" for reason in data["not_compared"].values()), ""]
    flips = data["flips"]
    if flips["count"]:
        found.append(f"{counted(flips['fixed'], 'trial')} fixed, {flips['broken']} broken; tasks that changed most:")
        found += [f"  {each['task']}: {each['a']} -> {each['b']}" for each in flips["tasks"][:_MOST]]
        if flips["count"] > _MOST:
            found.append(f"  and {flips['count'] - _MOST} more")
        found.append("")
    if "by" in data:
        found.append(f"By {data['by']['facet']}, the worst first:")
        found += [
            f"  {each['group']}: {_number(each['difference'])} {_ends(each['ends'])}, {counted(each['tasks'], 'task')}"
            for each in data["by"]["groups"][:_MOST]
        ]
        found.append("")
    if "groups" in data:
        found.append(f"Leaderboard on {data['headline']} (ranks at 95 %, groups that cannot be told apart):")
        width = max(len(each["name"]) for each in data["groups"])
        for each in data["groups"]:
            first, last = each["ranks"]
            found.append(f"  {each['name']:<{width}}  {each['mean']:.3f}  rank {first}-{last}  {each['groups']}")
        found.append("")
    return found[:-1]


def rows_of(pair: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared of a pair, by name: the outcome's rate, the headline's figures, means of scores."""
    rate = {f"{pair['outcome']['label']} ({pair['outcome']['grader']})": pair["outcome"]} if "outcome" in pair else {}
    return {**rate, **pair.get("figures", {}), **pair["metrics"]}


def _counted(failed: str) -> str:
    return "as 0" if failed == "zero" else "not at all"


def _metrics(metrics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    width = max(map(len, metrics))
    found = []
    for key, each in metrics.items():
        values = f"a {_number(each['a'])}  b {_number(each['b'])}  difference {_number(each['difference'], '+')}"
        tasks = counted(each["tasks"], "task")
        if each.get("better") is not None:
            tasks += f": {each['better']} better, {each['worse']} worse, {each['same']} same"
        only = [f"{each[f'only_{side}_count']} only in {side}" for side in "ab" if each[f"only_{side}_count"]]
        text = f"  {key:<{width}}  {values} {_ends(each['interval']['ends'])}  p {_number(each['p_holm'])}"
        found.append(f"{text}  {each['verdict']}  {', '.join([tasks, *only])}")
    return found


def _number(value: float | None, sign: str = "") -> str:
    return "n/a" if value is None else f"{value:{sign}.3f}"


def _ends(ends: list[float] | None) -> str:
    return "(no interval)" if ends is None else f"({ends[0]:.3f} to {ends[1]:.3f})"
