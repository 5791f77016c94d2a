"""Grader ``bfcl_valid``: the verdict BFCL recorded."""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from gradestack import Grade, Grader, Reason, Sample, Status, native_of, skipped
from gradestack.jsonio import as_map, as_text, compact
from gradestack_plugins.bfcl.records import BfclRun

_SHOWN = 500
"""Characters of a failure's text that a reason keeps."""


class BfclValid(Grader):
    """Score 1 where BFCL's own checker found an entry valid, 0 where its score file lists it as a
    failure.

    ``score = valid``; ``passed`` is the same. A failure's reason has BFCL's error type as its code
    and its first words as message. A run that ended in an error scores 0 (``run_error``) where no
    score file lists it: the benchmark divides by all its entries. Samples without a recorded
    verdict are skipped: no score file, or one of other entries.
    """

    version: ClassVar[str] = "2"

    needs: ClassVar[frozenset[str]] = frozenset({"recorded"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    metrics: ClassVar[tuple[str, ...]] = ("mean",)
    verdict_labels: ClassVar[tuple[str, str]] = ("correct", "not correct")
    native: ClassVar[type[BfclRun]] = BfclRun

    @override
    def grade(self, sample: Sample) -> Grade:
        valid = sample.recorded.get("valid")
        if not isinstance(valid, bool):
            if sample.error is not None:
                error = Reason(code="run_error", message=sample.error.message)
                return Grade(score=0.0, passed=False, reasons=(error,), rationale=error.message)
            return skipped("no_verdict", "no BFCL score file has a verdict on the entry")
        if valid:
            return Grade(score=1.0, passed=True)
        run = native_of(sample, BfclRun)
        reason = _reason(run.failure if run else None)
        return Grade(score=0.0, passed=False, reasons=(reason,), rationale=reason.message)


def _reason(failure: Any) -> Reason:
    """Return BFCL's error type as a code, and the beginning of its text."""
    about = as_map(failure)
    error = about.get("error")
    code = about.get("error_type")
    if isinstance(error, dict):
        code = code or error.get("error_type")
        error = error.get("error_message", error)
    lines = error if isinstance(error, list) else [error]
    texts = [line if isinstance(line, str) else compact(line) for line in lines if line is not None]
    message = "; ".join(texts)[:_SHOWN]
    return Reason(code=as_text(code) or "invalid", message=message or "listed as a failure")
