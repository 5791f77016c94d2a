"""What the pages say of shouting."""

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report, blocks

GRADER = "shout"


def loudness(report: Report) -> Iterable[blocks.Block] | None:
    """Return how loud answers were, and links to the loudest; None in a run without the grader."""
    if GRADER not in report.states or not report.has_rows:
        return None
    grades = [row for row in report.table("grades").rows() if row["grader"] == GRADER and row["score"] is not None]
    groups: dict[str, list[float]] = {"shouts": [], "speaks": []}
    for row in grades:
        groups["shouts" if row["passed"] else "speaks"].append(row["score"])
    loudest = sorted(grades, key=lambda row: -row["score"])[:3]
    return [
        blocks.Distribution(groups, "Share of capitals"),
        *(blocks.Link(f"{row['id']}: {row['score']:.2f}", search=row["id"]) for row in loudest),
    ]


def letters(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the letters of an answer, for the template letters.html."""
    grade = row["grades"].get(GRADER)
    if not grade or not grade.get("counts"):
        return None
    counts = grade["counts"]
    return {"text": row["submission"] or "", "share": 100 * counts["capitals"] / counts["letters"], **counts}
