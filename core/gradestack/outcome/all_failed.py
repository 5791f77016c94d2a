"""Runs of which nothing can be trusted because every grade failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradestack.grading.counts import Count
from gradestack.grading.merging import Merged
from gradestack.model import Outcome
from gradestack.rows.read import Row
from gradestack.suites.spec import Suite

_LONGEST = 400
"""Characters of the first reason."""


def all_failed(
    suite: Suite, counts: Mapping[str, Count], merged: Merged, rows: Callable[[], Iterator[Row]]
) -> str | None:
    """Return in one sentence that every grade failed, with the first reason; None where that is not so.

    Skipped grades do not count: the grader does not apply. Nor do missing samples, of which there is nothing to grade.
    ``upstream`` has no such rule, and a suite may do without it.
    """
    if suite.profile == "upstream" or suite.allow_all_failed or merged.interrupted:
        return None
    failed = sum(each.states[Outcome.FAILED] for each in counts.values())
    if not failed or any(each.graded for each in counts.values()):
        return None
    first = " ".join((_first_in_rows(rows()) if suite.rows != "none" else _first_raised(merged)).split())
    first = first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…"
    number = "the only grade" if failed == 1 else f"all {failed} grades"
    return f"{number} failed, so nothing was graded{f'; the first: {first}' if first else ''}"


def _first_in_rows(rows: Iterator[Row]) -> str:
    for row in rows:
        for key, grade in row["grades"].items():
            if grade["state"] == Outcome.FAILED:
                return f"{_place(row)}, grader {key}: {_reason(grade)}"
    return ""


def _place(row: Row) -> str:
    source: Mapping[str, Any] = row.get("source") or {}
    line = source.get("line")
    if not source.get("file"):
        return f"sample {row['sample']['id']}"
    return f"{source['file']}:{line}" if line is not None else f"{source['file']}, sample {row['sample']['id']}"


def _reason(grade: Mapping[str, Any]) -> str:
    fault: Mapping[str, Any] = grade.get("fault") or {}
    kind, message = fault.get("type"), fault.get("message") or grade.get("rationale") or fault.get("code")
    return f"{kind}: {message}" if kind else str(message)


def _first_raised(merged: Merged) -> str:
    """Return what the first grader raised: without rows the only reason that is known."""
    for key, text in merged.tracebacks.items():
        return f"grader {key}: {text.strip().splitlines()[-1]}"
    return ""
