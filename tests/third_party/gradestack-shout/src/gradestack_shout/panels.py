"""What the pages say of shouting."""

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack_plugins.pages import blocks

GRADER = "shout"


class Loudness(blocks.Panel):
    """How loud answers were, and links to the loudest; None in a run without the grader."""

    place = "overview"
    title = "How loud"

    def show(self, about: Report) -> Iterable[blocks.Block] | None:
        if GRADER not in about.states or not about.has_rows:
            return None
        grades = [
            row
            for row in about.table("grades").rows()
            if row["grader"] == GRADER and row["score"] is not None
        ]
        groups: dict[str, list[float]] = {"shouts": [], "speaks": []}
        for row in grades:
            groups["shouts" if row["passed"] else "speaks"].append(row["score"])
        loudest = sorted(grades, key=lambda row: -row["score"])[:3]
        return [
            blocks.Distribution(groups, "Share of capitals"),
            *(blocks.Link(f"{row['id']}: {row['score']:.2f}", search=row["id"]) for row in loudest),
        ]


class Letters(blocks.Panel):
    """The letters of an answer, for the template letters.html."""

    place = "sample"
    title = "Letters"
    template = "letters.html"

    def show(self, about: Mapping[str, Any]) -> Mapping[str, Any] | None:
        grade = about["grades"].get(GRADER)
        if not grade or not grade.get("counts"):
            return None
        counts = grade["counts"]
        return {
            "text": about["submission"] or "",
            "share": 100 * counts["capitals"] / counts["letters"],
            **counts,
        }
