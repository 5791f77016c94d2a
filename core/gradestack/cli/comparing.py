"""The command ``compare``. Only click is imported here; everything else when it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from gradestack.declared import with_unit
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
    """Return what the console prints of a comparison: the sentence, figures, what changed, the leaderboard."""
    from gradestack.comparison.compared import compared_rows  # noqa: PLC0415 - not needed for --help

    found = []
    if data["incomparable"]:
        found += ["Compared although (--force):", *(f"  {each}" for each in data["incomparable"]), ""]
    found += [data["sentence"], ""]
    if "warnings" in data:
        found += [*(f"warning: {each}" for each in data["warnings"]), ""]
    first = {"a": data["runs"][0]["name"], "b": data["runs"][1]["name"], **data}
    for pair in data.get("pairs") or [first]:
        found += [f"a: {pair['a']}, b: {pair['b']}; failed trials {FAILED[data['failed']]}:"]
        found += _rows(compared_rows(pair))
        found.append("")
    if "not_compared" in data:
        found += ["Not compared:", *(f"  {reason}" for reason in data["not_compared"].values()), ""]
    for kind, rows in data["changed"].items():
        if changed := [row for row in rows if row["verdict"] != "no evidence"]:
            found.append(f"{CHANGED[kind]}, share of trials:")
            found += [f"  {_change(row)}" for row in changed[:_MOST]]
            found.append("")
    flips = data["flips"]
    if flips["count"]:
        found.append(f"{counted(flips['fixed'], 'trial')} fixed, {flips['broken']} broken; tasks that changed most:")
        found += [f"  {each['task']}: {each['a']} -> {each['b']}" for each in flips["tasks"][:_MOST]]
        if flips["count"] > _MOST:
            found.append(f"  and {flips['count'] - _MOST} more")
        found.append("")
    if "by" in data:
        found.append(f"Difference by {data['by']['facet']}:")
        found += [
            f"  {each['group']}: {_number(each['difference'])} {_ends(each['ends'])}, {counted(each['tasks'], 'task')}"
            for each in data["by"]["groups"][:_MOST]
        ]
        found.append("")
    if "groups" in data:
        found.append(f"Leaderboard by {_name(compared_rows(first)[0])}; rank intervals, letters for ties:")
        width = max(len(each["name"]) for each in data["groups"])
        for each in data["groups"]:
            ranks = "-".join(map(str, each["ranks"]))
            found.append(f"  {each['name']:<{width}}  {each['mean']:.3f}  rank {ranks}  {each['groups']}")
        found.append("")
    return found[:-1]


CHANGED = {"reasons": "Reasons", "tools": "Tools with errors", "arguments": "Arguments with errors"}
FAILED = {"zero": "count with the worst score", "skip": "are left out"}


def _name(row: Mapping[str, Any]) -> str:
    return str(row["label"] if row["label"] == row["path"] else f"{row['label']} ({row['path']})")


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    width = max(len(_name(row)) for row in rows)
    found = []
    for each in rows:
        unit = each["unit"]
        values = f"a {_number(each['a'], unit)}  b {_number(each['b'], unit)}"
        values += f"  difference {_number(each['difference'], unit, '+')}"
        tasks = counted(each["tasks"], "task")
        if each.get("better") is not None:
            tasks += f": {each['better']} better, {each['worse']} worse, {each['same']} same"
        only = [f"{each[f'only_{side}_count']} only in {side}" for side in "ab" if each[f"only_{side}_count"]]
        text = f"  {_name(each):<{width}}  {values} {_ends(each['interval']['ends'])}  p {_number(each['p_holm'])}"
        found.append(f"{text}  {each['verdict']}  {', '.join([tasks, *only])}")
    return found


def _change(row: Mapping[str, Any]) -> str:
    values = f"{100 * row['a']:.1f}% -> {100 * row['b']:.1f}%"
    return f"{row['name']}: {values}, {row['verdict']} (p {_number(row['p_holm'])})"


def _number(value: float | None, unit: str = "", sign: str = "") -> str:
    return "n/a" if value is None else with_unit(f"{value:{sign}.3f}", unit)


def _ends(ends: list[float] | None) -> str:
    return "(no interval)" if ends is None else f"({ends[0]:.3f} to {ends[1]:.3f})"
