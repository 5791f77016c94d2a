"""Panel of the family: the results in the words of its document."""

from __future__ import annotations

from collections.abc import Iterable

from gradestack import Report
from gradestack.jsonio import as_count, as_map, as_number, as_text
from gradestack_plugins.pages import blocks


@blocks.panel("As letta's guide prints it", place="first")
def results(about: Report) -> Iterable[blocks.Block] | None:
    """Samples, average score and passed ones; None in another run."""
    summary = about.summary
    headline = summary.get("headline")
    if not as_map(headline).get("letta"):
        return None
    outcome = as_map(summary.get("outcome"))
    metrics = as_map(summary.get("metrics"))
    key = as_text(outcome.get("grader"))
    by_metric = metrics.get("by_metric")
    averages = as_map(as_map(by_metric).get(key))
    states = as_map(as_map(metrics.get("states")).get(key))
    total, attempted = (as_number(averages.get(f"avg_score_{of}")) for of in ("total", "attempted"))
    passed = as_count(outcome.get("passed"))
    of = as_count(states.get("graded"))
    rows: dict[str, list[blocks.Cell]] = {
        "Total samples": [as_count(metrics.get("total"))],
        "Attempted": [of],
    }
    if total is not None and attempted is not None:
        rows["Avg score"] = [f"{total:.2f} (attempted: {attempted:.2f})"]
    if of:
        rows["Passed"] = [f"{passed} ({100 * passed / of:.1f}%)"]
    words = blocks.Words("In letta's words a sample is a run.")
    return [blocks.Table([""], rows), words]
