"""One call of a grader: what it raises, or returns against its contract, becomes a failed grade."""

from __future__ import annotations

import traceback

from gradestack.errors import PluginError
from gradestack.grading.plan import GraderSlot
from gradestack.model import Fault, Grade, Outcome, Sample, Status, check_grade, failed
from gradestack.plugin_errors import stable_text

TRACEBACKS: dict[str, str] = {}
"""Grader key -> traceback of the first error it raised on the shard at hand."""


def _guarded(slot: GraderSlot, sample: Sample, *, strict: bool) -> Grade:
    try:
        grade = slot.grader.grade(sample)
        problem = check_grade(grade) if isinstance(grade, Grade) else _no_grade(grade)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a raising grader never loses the run
        return _raised(slot, sample, error, strict=strict)
    return grade if problem is None else _unsound(slot, sample, problem, strict=strict)


def _no_grade(returned: object) -> str:
    return f"returned {type(returned).__name__}, not a Grade"


def _raised(slot: GraderSlot, sample: Sample, error: BaseException, *, strict: bool) -> Grade:
    if strict:
        msg = f"grader {slot.key!r} ({slot.signature}) raised on {sample.source or sample.id}"
        raise PluginError(msg, f"{type(error).__name__}: {error}") from error
    if slot.key not in TRACEBACKS and not isinstance(error, MemoryError):
        below = error.__traceback__ and error.__traceback__.tb_next  # without the guard
        TRACEBACKS[slot.key] = "".join(traceback.format_exception(type(error), error, below))
    said = "nested too deeply" if isinstance(error, RecursionError) else stable_text(error)
    if isinstance(error, MemoryError) and not said:
        said = "not enough memory"
    return failed(
        Fault(category="grading", code="raised", message=said, type=type(error).__name__, component=slot.signature)
    )


def _unsound(slot: GraderSlot, sample: Sample, problem: str, *, strict: bool) -> Grade:
    if strict:
        msg = f"grader {slot.key!r} ({slot.signature}) broke its contract on {sample.source or sample.id}"
        raise PluginError(msg, problem)
    return failed(
        Fault(category="grading", code="bad_grade", message=problem, type="ContractError", component=slot.signature)
    )


def _unhandled(sample: Sample) -> Grade:
    if sample.status is Status.MISSING:
        fault = Fault(category="data", code="missing", message="the recording has no run of this dataset row")
        return Grade(outcome=Outcome.MISSING, fault=fault, rationale=fault.message)
    return failed(sample.error or Fault(category="target", code="target_error", message="the recorded run failed"))
