"""What text graders have in common: the submission, the reference, and grades with a reason."""

from __future__ import annotations

from collections.abc import Callable

from gradestack import ABSENT, JSON, Fault, Grade, Reason, Sample, failed, skipped

NEEDS = frozenset({"text", "expected"})
_SHOWN = 200


def reference(sample: Sample) -> str | tuple[str, ...] | None:
    """Return the reference text of a sample, else its expected label; None when it has neither."""
    expected = sample.expected
    return expected.text if expected.text is not None else expected.label


def shortened(text: str) -> str:
    """Return a text for a reason, cut after 200 characters."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def right(rationale: str) -> Grade:
    """Return full credit."""
    return Grade(score=1.0, rationale=rationale)


def wrong(code: str, rationale: str, *, expected: JSON = ABSENT, actual: JSON = ABSENT, pointer: str = "") -> Grade:
    """Return no credit, and why."""
    reason = Reason(code=code, pointer=pointer, expected=expected, actual=actual, message=rationale)
    return Grade(score=0.0, reasons=(reason,), rationale=rationale)


def broken_reference(code: str, message: str) -> Grade:
    """Return a failed grade: the reference, not the submission, cannot be used."""
    return failed(Fault(category="data", code=code, message=message))


def no_submission() -> Grade:
    """Return the grade of a sample that has no text to grade."""
    return skipped("no_submission", "no answer text was recorded")


def no_reference(*, is_wrong: bool = False) -> Grade:
    """Return the grade of a sample without reference: skipped, or 0.0."""
    message = "the sample has no ground truth"
    return wrong("no_ground_truth", message) if is_wrong else skipped("no_ground_truth", message)


def empty_reference() -> Grade:
    """Return the grade of a sample whose reference is empty: 0.0."""
    return wrong("empty_ground_truth", "the ground truth is empty")


def against(sample: Sample, compare: Callable[[str, str], Grade], *, missing_is_wrong: bool = False) -> Grade:
    """Return ``compare(submission, reference)``, or the grade of a sample that lacks one of them.

    An empty reference is wrong (0.0). A missing one is skipped, or wrong as well with ``missing_is_wrong``.
    """
    if sample.text is None:
        return no_submission()
    truth = reference(sample)
    if truth is None:
        return no_reference(is_wrong=missing_is_wrong)
    if isinstance(truth, tuple):
        return skipped("reference_per_turn", "the reference is a list of texts, one per turn; this grader takes one")
    return compare(sample.text, truth) if truth else empty_reference()
