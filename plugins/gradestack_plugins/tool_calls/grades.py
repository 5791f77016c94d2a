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
    metadata: Mapping[str, Any],
    said: Sequence[str] | None = None,
    *,
    passed: bool,
) -> Grade:
    """Return a grade.

    Args:
        numbers: Score, precision, recall, F1, credit, and credit of calls that are not optional.
        counts: Of calls and arguments.
        items: Of calls.
        reasons: Theirs, of which the first are kept.
        metadata: Of the grade.
        said: What the rationale says of each reason; None where that is to be made of them.
        passed: The verdict.
    """
    if said is None:
        said = list(map(_said, reasons[:SHOWN]))
    score, precision, recall, f1, credit, required = numbers
    return Grade(
        score=score,
        passed=passed,
        counts=counts,
        parts={"precision": precision, "recall": recall, "f1": f1, "credit": credit, "required_credit": required},
        items=tuple(items),
        reasons=tuple(reasons) if len(reasons) <= MOST_REASONS else _limited(reasons),
        rationale=_rationale(said, len(reasons)) if reasons else "",
        metadata=metadata,
    )


def _limited(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    left_out = f"{len(reasons) - MOST_REASONS} more reasons were left out"
    return (*reasons[:MOST_REASONS], Reason(code="more_reasons", message=left_out))


def _said(reason: Reason) -> str:
    text = f"{reason.subject} {reason.code}" if reason.subject else reason.code
    if reason.pointer:
        text += f" {reason.pointer}"
    return f"{text} {reason.message}" if reason.message else text


def _rationale(said: Sequence[str], reasons: int) -> str:
    if reasons == 1:
        return said[0]
    return "; ".join(said) if reasons <= SHOWN else f"{'; '.join(said[:SHOWN])}; {reasons - SHOWN} more"
