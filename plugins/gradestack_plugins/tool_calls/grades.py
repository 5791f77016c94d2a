"""The grade of a run, from its figures and what is told of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradestack import Grade, Item, Reason

MOST_REASONS = 50
"""Reasons kept of a sample; one more says how many were left out."""
SHOWN = 3


def grade_of(
    numbers: Sequence[float],
    counts: Mapping[str, int],
    items: Sequence[Item],
    reasons: Sequence[Reason],
    *,
    passed: bool,
    metadata: Mapping[str, Any],
) -> Grade:
    """Return a grade.

    Args:
        numbers: Score, precision, recall and F1; credit, and credit of calls that are not optional.
        counts: Of calls and arguments.
        items: Of calls.
        reasons: Theirs, of which the first are kept.
        passed: The verdict.
        metadata: Of the grade.
    """
    score, precision, recall, f1, credit, required = numbers
    return Grade(
        score=score,
        passed=passed,
        counts=counts,
        parts={"precision": precision, "recall": recall, "f1": f1, "credit": credit, "required_credit": required},
        items=tuple(items),
        reasons=tuple(reasons) if len(reasons) <= MOST_REASONS else _limited(reasons),
        rationale=_rationale(reasons) if reasons else "",
        metadata=metadata,
    )


def _limited(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    left_out = f"{len(reasons) - MOST_REASONS} more reasons were left out"
    return (*reasons[:MOST_REASONS], Reason(code="more_reasons", message=left_out))


def _rationale(reasons: Sequence[Reason]) -> str:
    said = []
    for each in reasons[:SHOWN]:
        text = f"{each.subject} {each.code}" if each.subject else each.code
        if each.pointer:
            text += f" {each.pointer}"
        said.append(f"{text} {each.message}" if each.message else text)
    if len(reasons) > SHOWN:
        said.append(f"{len(reasons) - SHOWN} more")
    return "; ".join(said)
