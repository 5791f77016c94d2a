"""Panels of shouting, on the overview and beside each sample."""

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack_plugins.pages import blocks

GRADER = "shout"


@blocks.panel("How loud")
def loudness(about: Report) -> Iterable[blocks.Block] | None:
    """Show how loud answers were, with links to the loudest.

    None in a run without the grader.
    """
    if GRADER not in about.states or not about.has_rows:
        return None
    table = about.table("grades")
    rows = table.rows()
    grades = [row for row in rows if row["grader"] == GRADER and row["score"] is not None]
    groups: dict[str, list[float]] = {"shouts": [], "speaks": []}
    for row in grades:
        passed = row["passed"]
        groups["shouts" if passed else "speaks"].append(row["score"])
    loudest = sorted(grades, key=lambda row: -row["score"])[:3]
    distribution = blocks.Distribution(groups, "Share of capitals")
    return [
        distribution,
        *(blocks.Link(f"{row['id']}: {row['score']:.2f}", search=row["id"]) for row in loudest),
    ]


@blocks.panel("Letters", place="sample")
def letters(about: Mapping[str, Any]) -> Iterable[blocks.Block] | None:
    """Show the share of capitals among the letters of an answer."""
    grade = about["grades"].get(GRADER)
    if not grade or not grade.get("counts"):
        return None
    counts = grade["counts"]
    capitals = counts["capitals"]
    share = blocks.Figure("capitals", capitals / counts["letters"])
    interval = blocks.Interval([share])
    return [interval, blocks.Words(f"of {counts['letters']} letters of an answer")]
