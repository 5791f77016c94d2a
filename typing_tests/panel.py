"""A panel: blocks from the row of a sample, and rows of a report."""

from gradestack import GradeRow, Report, Row
from gradestack_plugins.pages import blocks


@blocks.panel("Length", place="sample")
def length(about: Row) -> list[blocks.Block]:
    """How many calls the agent made, and what the main grader says."""
    calls = about["predicted"]["calls"]
    score = about["grade"]["score"] if about["state"] == "graded" else None
    about["predcited"]  # type: ignore[typeddict-item]  # pyright: ignore[reportGeneralTypeIssues]
    return [
        blocks.Figures(
            [blocks.Figure("calls made", len(calls or ())), blocks.Figure("score", score)]
        )
    ]


def failed(report: Report, key: str) -> list[tuple[str, GradeRow]]:
    """Return ids and grades of what a grader failed at."""
    return [
        (str(row["sample"]["id"]), row["grades"][key])
        for row in report.rows()
        if "fault" in row["grades"][key]
    ]


blocks.Figure(label=1, value=0.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
