"""One call of a grader: what it raises, or returns against its contract, becomes a failed grade."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import inf
from numbers import Real
from operator import attrgetter
from typing import Any

from gradestack.errors import DataError, PluginError, TimedOut
from gradestack.grading.plan import Stage
from gradestack.model import Fault, Grade, Outcome, Sample, Status, check_grade, failed, replace
from gradestack.output.terminal import traceback_text
from gradestack.plugin_errors import stable_text
from gradestack.table import packed_verdicts, verdicts_of

_NUMBERS = frozenset({bool, int, float})
TRACEBACKS: dict[str, str] = {}
"""Grader key -> traceback of the first error it raised on the shard at hand."""


_forked: list[bool] = []  # not empty in a process that was forked since it began to grade
if hasattr(os, "register_at_fork"):  # not on every system
    os.register_at_fork(after_in_child=lambda: _forked.append(True))
begin_grading = _forked.clear
"""Take this process for the one that grades, whoever forked it."""


def guarded_grades(
    method: Callable[[Sample], Grade | float],
    stage: Stage,
    samples: Sequence[Sample],
    into: list[Grade],
    *,
    strict: bool,
) -> None:
    """Add what a grader's method says about each sample, still unchecked; a failed grade that names it where it raises.

    A grader may fork. A child that comes back here is none of ours and ends: it would grade the rest a second time.
    """
    add, forked = into.append, _forked
    for sample in samples:
        try:
            grade = method(sample)
            if forked:
                os._exit(0)
            if type(grade) is Grade and type(grade.outcome) is Outcome:
                add(grade)
                continue
            grade = as_grade(grade)
            kind = type(grade).__name__
            flaw = check_grade(grade) if isinstance(grade, Grade) else f"returned {kind}, not a Grade or a number"
        except BaseException as error:
            if forked:
                os._exit(0)
            if isinstance(error, KeyboardInterrupt | TimedOut | DataError):  # DataError: its options end the run
                raise
            into.append(raised_grade(stage, sample, error, strict=strict))
            continue
        into.append(grade if flaw is None else _unsound(stage, sample, flaw, strict=strict))


def check_grades(
    stage: Stage,
    samples: Sequence[Sample],
    grades: list[Grade],
    parts: Sequence[str] = (),
    sound: set[bytes] | None = None,
    *,
    strict: bool,
) -> list[bytes]:
    """Put failed grades in place of those that break the contract, and return the verdicts, which also hold ``parts``.

    ``sound`` are verdicts that were looked at before: grades of equal verdicts are equally sound.
    """
    sound = set() if sound is None else sound
    try:
        verdicts, odd = verdicts_of(grades, parts), False
    except (TypeError, ValueError, OverflowError, RecursionError):  # numbers of other classes, a lone surrogate, sets
        verdicts, odd = [b""] * len(grades), True
    if sound.issuperset(verdicts):
        return verdicts
    changed, bounds = odd, stage.component.bounds if stage.foreign else (-inf, inf)
    for at, verdict in enumerate(verdicts):
        if verdict in sound:
            continue
        flaw = check_grade(grades[at]) or _beyond(grades[at], *bounds)
        if flaw is not None:
            grades[at], changed = _unsound(stage, samples[at], flaw, strict=strict), True
        elif odd:
            grades[at] = _with_plain_numbers(grades[at])
        else:
            sound.add(verdict)
    return packed_verdicts(grades, parts) if changed else verdicts


def as_grade(returned: Any) -> Any:
    """Return the grade that a number, True or False stands for; anything else as it is."""
    if isinstance(returned, bool):
        return Grade(score=float(returned), passed=returned)
    return Grade(score=float(returned)) if isinstance(returned, Real) else returned  # numpy's, too


def _beyond(grade: Grade, low: float, high: float) -> str | None:
    """Return what is wrong with a sound grade's score that is not within its grader's bounds."""
    if grade.score is None or low <= grade.score <= high:
        return None
    return f"a score outside its bounds, {low:g} to {high:g}: {grade.score!r} (a class says its own: bounds = (0, 10))"


def _with_plain_numbers(grade: Grade) -> Grade:

    def plain(number: Any) -> Any:
        if number is None or type(number) in _NUMBERS:
            return number
        return float(number) if isinstance(number, float) else int(number)

    parts = {key: plain(part) for key, part in grade.parts.items()}
    counts = {key: plain(count) for key, count in grade.counts.items()}
    return replace(grade, score=plain(grade.score), parts=parts, counts=counts)


def guarded_grade(stage: Stage, sample: Sample, *, strict: bool) -> Grade:
    """Return one grade, made likewise and checked."""
    found: list[Grade] = []
    guarded_grades(stage.component.grade, stage, [sample], found, strict=strict)
    check_grades(stage, [sample], found, strict=strict)
    return found[0]


_same = attrgetter("outcome", "score", "passed", "label", "gold", "counts", "parts")


def explained_grade(stage: Stage, sample: Sample, grade: Grade, *, strict: bool) -> Grade:
    """Return a grade with items and reasons; as it is, and says so, where its grader raises or gives another grade."""
    try:
        try:
            explained = stage.component.explain(sample, grade)
        finally:
            if _forked:
                os._exit(0)
        if type(explained) is Grade and _same(explained) == _same(grade):
            return explained
        what = "another grade" if isinstance(explained, Grade) else f"{type(explained).__name__}, not a Grade"
        error: BaseException = TypeError(f"explain() returned {what}")
    except (KeyboardInterrupt, TimedOut):
        raise
    except BaseException as raised:  # noqa: BLE001 - as in grading
        error = raised
    if strict:
        msg = f"grader {stage.key!r} ({stage.signature}) did not explain its grade of {sample.source or sample.id}"
        raise PluginError(msg, f"{type(error).__name__}: {error}") from error
    return unexplained(grade, error)


def unexplained(grade: Grade, error: BaseException) -> Grade:
    """Return a grade that says why it has no items and reasons."""
    return replace(grade, rationale=f"could not be explained: {type(error).__name__}: {stable_text(error)}")


def raised_grade(stage: Stage, sample: Sample, error: BaseException, *, strict: bool) -> Grade:
    """Return the failed grade of a sample at which a grader raised, or was stopped for its time."""
    if strict:
        msg = f"grader {stage.key!r} ({stage.signature}) raised on {sample.source or sample.id}"
        raise PluginError(msg, f"{type(error).__name__}: {error}") from error
    if stage.key not in TRACEBACKS and not isinstance(error, MemoryError):
        below = error.__traceback__ and error.__traceback__.tb_next  # without the guard
        TRACEBACKS[stage.key] = traceback_text(error, below)
    text = "nested too deeply" if isinstance(error, RecursionError) else stable_text(error)
    if isinstance(error, MemoryError) and not text:
        text = "not enough memory"
    code, kind = "timed_out" if isinstance(error, TimedOut) else "raised", type(error).__name__
    return failed(Fault(category="grading", code=code, message=text, type=kind, component=stage.signature))


def _unsound(stage: Stage, sample: Sample, problem: str, *, strict: bool) -> Grade:
    if strict:
        msg = f"grader {stage.key!r} ({stage.signature}) broke its contract on {sample.source or sample.id}"
        raise PluginError(msg, problem)
    return failed(
        Fault(category="grading", code="bad_grade", message=problem, type="ContractError", component=stage.signature)
    )


def unhandled(sample: Sample) -> Grade:
    """Return the grade of a sample its grader is not asked about: a run that failed, or is missing."""
    if sample.status is Status.MISSING:
        fault = Fault(category="data", code="missing", message="no run of this dataset row")
        return Grade(outcome=Outcome.MISSING, fault=fault, rationale=fault.message)
    return failed(sample.error or Fault(category="target", code="target_error", message="the recorded run failed"))
