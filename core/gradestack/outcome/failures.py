"""The first failure of every grader, why and where; and runs of which nothing can be trusted: every grade failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gradestack.grading.counts import Count
from gradestack.grading.merging import Merged
from gradestack.jsonio.values import as_map, as_text, loads
from gradestack.model import Outcome, Source
from gradestack.rows.read import Row
from gradestack.suites.spec import Suite

_LONGEST, _LONGEST_FIRST = 300, 400
"""Characters kept of a reason, and of the one that a run fails with."""
_MARK = b'"failed"'
"""What the line of a sample with a failed grade holds."""


def first_failures(lines: Iterable[bytes], states: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, Any]]:
    """Return grader key -> number of its failed grades, and reason and place of the first."""
    failed = {key: counts[Outcome.FAILED] for key, counts in states.items() if counts.get(Outcome.FAILED)}
    found: dict[str, dict[str, Any]] = {key: {"count": count} for key, count in failed.items()}
    wanted = set(failed)
    for line in lines if wanted else ():
        if _MARK not in line:
            continue
        row = loads(line)
        for key in sorted(wanted):
            grade = row["grades"][key]
            if grade["state"] == Outcome.FAILED:
                found[key]["first"] = {"reason": _reason(grade), "at": _place(row)}
                wanted.discard(key)
        if not wanted:
            break
    return found


def _reason(grade: Mapping[str, Any]) -> str:
    """Return what a failed grade's fault says, on one line."""
    fault = as_map(grade.get("fault"))
    message = as_text(fault.get("message")) or as_text(fault.get("code"))
    kind = as_text(fault.get("type"))
    text = " ".join((f"{kind}: {message}" if kind and not message.startswith(kind) else message).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _place(row: Mapping[str, Any]) -> str:
    """Return where a sample was read, ``file:line`` where its format has lines; its id where nobody knows."""
    source = row["source"]
    return f"sample {row['sample']['id']}" if source is None else str(Source(**source))


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
    first = first if len(first) <= _LONGEST_FIRST else f"{first[:_LONGEST_FIRST]}…"
    number = "the only grade" if failed == 1 else f"all {failed} grades"
    return f"{number} failed, so nothing was graded{f'; the first: {first}' if first else ''}"


def _first_in_rows(rows: Iterator[Row]) -> str:
    for row in rows:
        for key, grade in row["grades"].items():
            if grade["state"] == Outcome.FAILED:
                return f"{_file_and_line(row)}, grader {key}: {_sentence(grade)}"
    return ""


def _file_and_line(row: Row) -> str:
    source: Mapping[str, Any] = row.get("source") or {}
    line = source.get("line")
    if not source.get("file"):
        return f"sample {row['sample']['id']}"
    return f"{source['file']}:{line}" if line is not None else f"{source['file']}, sample {row['sample']['id']}"


def _sentence(grade: Mapping[str, Any]) -> str:
    fault: Mapping[str, Any] = grade.get("fault") or {}
    kind, message = fault.get("type"), fault.get("message") or grade.get("rationale") or fault.get("code")
    return f"{kind}: {message}" if kind else str(message)


def _first_raised(merged: Merged) -> str:
    """Return what the first grader raised: without rows the only reason that is known."""
    for key, text in merged.tracebacks.items():
        return f"grader {key}: {text.strip().splitlines()[-1]}"
    return ""
