"""Grader ``recorded``: the grades a recording already holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, TypeGuard

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    LARGEST_SCORE,
    ConfigError,
    Fault,
    Grade,
    Grader,
    Inputs,
    Item,
    Outcome,
    Reader,
    Reason,
    Sample,
    Status,
    check_grade,
    failed,
    grade_from_json,
    grade_to_json,
    replace,
    skipped,
)
from gradestack.jsonio import as_list, as_map, as_number, as_text, compact

_SHOWN: Final = 20
"""Number of metrics that a message names."""
_ABOVE_SHARES: Final = 10
"""A larger score is no share and no grade of a few points."""
_ABOUT_TURNS: Final = ("submission", "ground_truth", "rationale")
_RUN_FAILED: Final = Fault(category="target", code="target_error", message="the run failed")
_RECORDED_ERROR: Final = "recorded_error"
AMOUNTS: Final = (
    *("cost", "prompt_tokens", "completion_tokens", "total_time", "target_time", "extraction_time"),
    *("per_grader_time", "timing", "timing_metrics"),
)
"""Names of recorded costs and times, which are no scores."""
_NO_SCORES: Final = frozenset({"grade", "grades", *AMOUNTS})
_BREAKDOWNS: Final = {
    "Error: ": ("target", "target_error"),
    "Error during grading: ": ("grading", _RECORDED_ERROR),
}
"""Beginning of a rationale -> category and code of the fault of a run, or of a judge."""


@attrs.frozen(kw_only=True)
class Recorded(Grader):
    """Takes the grade found in the recording, with its rationale and metadata, so that nothing need
    be graded again.

    With ``metric`` the grade of that key counts, or a score recorded under that name. Without it
    the first 1,000 records of each input decide, once, before grading. The metric of the grader's
    own key is taken if the recording has it, else the only one there is. Where there are several,
    one must be named. Of recordings whose grades have no names it is ``grade``, the gate's. A
    sample whose recording lacks the metric is skipped; where its own ``grade`` is an error, it is
    failed for every metric it lacks.

    A run that ended in an error is graded by the verdict or score on its own record (reason
    ``run_error``); without one, and in a letta-evals recording, it is failed. So is the grade of a
    model judge that broke down (0.0 with ``metadata.error``), a grade beside an ``error`` record,
    and a score that is no finite number.

    Grades that gradestack wrote come back whole, with state, counts, parts, items and reasons,
    those of failed runs too.

    Attributes:
        metric: Key of a grader of the recorded suite; default the grader's own key, else the only
            one.
        scale: Least and largest score there is; a score outside is a failed grade. It is asked for
            where scores of a recording are of two scales: shares between 0 and 1 beside numbers
            above 10.
    """

    version: ClassVar[str] = "3"
    needs: ClassVar[frozenset[str]] = frozenset({"recorded"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    metrics: ClassVar[tuple[str, ...]] = ("mean",)

    metric: str | None = None
    scale: tuple[float, float] | None = None

    @property
    @override
    def score_range(self) -> tuple[float, float] | None:
        return self.scale

    def for_recording(
        self, key: str, reader: Reader, inputs: Inputs, samples: Iterable[Sample]
    ) -> Recorded:
        """Return the grader with the metric decided."""
        first = list(samples)
        metric = self.metric or self._metric_of(key, first)
        if metric is not None:
            self._require_one_scale(metric, first)
        return attrs.evolve(self, metric=metric)

    def _metric_of(self, key: str, samples: Iterable[Sample]) -> str | None:
        """Return the metric that a grader of a key takes; None where grades have no names.

        Raises:
            ConfigError: There are several, and none has the name of the key.
        """
        graded, scored = recorded_metrics(samples)
        metrics = graded or scored
        if key in (*graded, *scored):
            return key
        if len(metrics) > 1:
            shown = ", ".join(metrics[:_SHOWN]) + ", ..." * (len(metrics) > _SHOWN)
            what = f"the recording has no metric {key!r} but several others"
            raise ConfigError(f"{what}; name one with `metric`: {shown}")
        return metrics[0] if metrics else None

    def _require_one_scale(self, metric: str, samples: Iterable[Sample]) -> None:
        """Refuse scores of two scales, whose average means nothing, where no scale is stated.

        Raises:
            ConfigError: Some are fractions between 0 and 1, others are above 10.
        """
        scores = [as_number(sample.recorded.get(metric)) for sample in samples]
        numbers = [score for score in scores if score is not None]
        fractions = [number for number in numbers if 0 < number < 1]
        large = [number for number in numbers if number > _ABOVE_SHARES]
        if self.scale is None and fractions and large:
            scales = f"{large[0]:g} beside {fractions[0]:g}"
            raise ConfigError(
                f"the recorded scores {metric!r} are of two scales: {scales}; say which is meant, "
                "scores outside it are errors: --set graders.recorded.scale=[0,1] or [0,100]"
            )

    @override
    def grade(self, sample: Sample) -> Grade:
        recorded = sample.recorded
        grades = as_map(sample.recorded.get("grades"))
        stored = _gate_grade(recorded, grades)
        if self.metric is not None:
            stored = grades.get(self.metric, recorded.get(self.metric))
        state = as_map(stored).get("state")
        if isinstance(state, str):
            return _own_grade(as_map(stored))
        error = recorded.get("error")
        is_letta = grades or "grade" in recorded or error is not None
        if sample.status is Status.FAILED and (stored is None or is_letta):
            fault = sample.error or _RUN_FAILED
            return _failed(fault, stored or recorded.get("grade"))
        if error is not None:
            return failed(error_fault(error))
        if stored is None:
            return self._without_grade(recorded, grades)
        explanation = self._with_explanation(stored, recorded)
        grade = self._grade(explanation)
        if sample.error is None or grade.score is None or grade.score >= 1:
            return grade
        reason = Reason(code="run_error", message=sample.error.message)
        rationale = grade.rationale or reason.message
        return replace(grade, reasons=(reason,), rationale=rationale)

    def _with_explanation(self, stored: JSON, recorded: Mapping[str, Any]) -> JSON:
        """Return a score with the explanation that is recorded under its metric."""
        explanations = as_map(recorded.get("explanations"))
        if not explanations or self.metric is None or not is_score(stored):
            return stored
        rationale = explanations.get(self.metric)
        return {"score": stored, "rationale": rationale}

    def _without_grade(self, recorded: Mapping[str, Any], grades: Mapping[str, Any]) -> Grade:
        fault = judge_fault(recorded.get("grade"))
        if fault is not None:
            return _failed(fault, recorded["grade"])
        if self.metric is None:
            grade = "no grade"
        else:
            grade = f"no grade of {self.metric!r}"
        known = ""
        if grades:
            known = f"; metrics: {', '.join(map(str, grades))}"
        return skipped("no_recorded_grade", f"the recording holds {grade}{known}")

    def _grade(self, stored: JSON) -> Grade:
        """Convert a stored verdict, a score or an object with one, into a grade."""
        if not isinstance(stored, Mapping):
            stored = {"score": stored}
        metadata = dict(as_map(stored.get("metadata")))
        error = metadata.get("error")
        fault = judge_fault(stored) if error else None
        if fault is not None:
            return _failed(fault, stored)
        score = stored.get("score")
        if not is_score(score):
            return _bad(f"the recorded score is no finite number: {compact(score)[:60]}")
        low, high = self.scale or (score, score)
        if not low <= score <= high:
            message = f"a recorded score outside its scale, {low:g} to {high:g}: {score!r}"
            return _bad(message)
        rationale = stored.get("rationale")
        per_turn_grades = stored.get("per_turn_grades")
        turns = _turns(per_turn_grades)
        return Grade(
            score=float(score),
            rationale=as_text(rationale),
            items=turns,
            metadata=metadata,
        )


def recorded_metrics(samples: Iterable[Sample]) -> tuple[list[str], list[str]]:
    """Return the names under which samples have recorded grades, and those of other scores."""
    graded: dict[str, None] = {}
    scored: dict[str, None] = {}
    for sample in samples:
        grades = as_map(sample.recorded.get("grades"))
        graded |= {name: None for name in grades if grades[name] is not None}
        for name, value in sample.recorded.items():
            has_score = isinstance(value, bool | int | float) or "score" in as_map(value)
            if has_score and name not in _NO_SCORES:
                scored[name] = None
    return list(graded), list(scored)


def error_fault(error: JSON) -> Fault:
    """Return the fault of a recorded error: a text, or an object with a message."""
    if not isinstance(error, Mapping):
        return Fault(category="target", code=_RECORDED_ERROR, message=shown_text(error))
    names = ("category", "exception_type", "message")
    category, kind, message = [as_text(error.get(name)) for name in names]
    return Fault(category=category or "target", code=_RECORDED_ERROR, message=message, type=kind)


def grade_fault(grade: JSON) -> Fault | None:
    """Return why a recorded grade is no judgement, by its rationale and metadata.

    None where nothing says so.
    """
    stored = as_map(grade)
    rationale = as_text(stored.get("rationale"))
    metadata = as_map(stored.get("metadata"))
    category, code, message = "grading", _RECORDED_ERROR, ""
    for beginning in _BREAKDOWNS:
        if rationale.startswith(beginning):
            category, code = _BREAKDOWNS[beginning]
            message = rationale.removeprefix(beginning)
    error = ""
    if metadata.get("error"):
        error = shown_text(metadata["error"])
    if error not in message:
        if message:
            message = f"{message} ({error})"
        else:
            message = error
    kind = as_text(metadata.get("error_type"))
    if message:
        return Fault(category=category, code=code, message=message, type=kind)
    return None


def judge_fault(grade: JSON) -> Fault | None:
    """Return why a recorded grade is no judgement, as a fault of whoever graded."""
    fault = grade_fault(grade)
    return fault and replace(fault, category="grading", code=_RECORDED_ERROR)


def _failed(fault: Fault, grade: JSON) -> Grade:
    """Return a failed grade with the metadata, and a judge's rationale, of a recorded one."""
    stored = as_map(grade)
    rationale = ""
    if fault.category == "grading":
        rationale = as_text(stored.get("rationale"))
    grade_failed = replace(failed(fault), metadata=dict(as_map(stored.get("metadata"))))
    return replace(grade_failed, rationale=rationale or grade_failed.rationale)


def shown_text(value: JSON) -> str:
    """Return text as it is and any other value as JSON."""
    return value if isinstance(value, str) else compact(value)


def _gate_grade(recorded: Mapping[str, Any], grades: Mapping[str, Any]) -> JSON:
    """Return ``grade``, else the reward, else the only metric's grade."""
    for name in ("grade", "reward"):
        if recorded.get(name) is not None:
            return recorded[name]
    if len(grades) == 1:
        return next(iter(grades.values()))
    return None


def is_score(score: JSON) -> TypeGuard[float]:
    """Return whether a recorded score is a number that can be averaged; truth values are."""
    return isinstance(score, bool | int | float) and -LARGEST_SCORE <= score <= LARGEST_SCORE


def _bad(message: str) -> Grade:
    return failed(Fault(category="data", code="bad_recorded_grade", message=message))


def _own_grade(stored: Mapping[str, Any]) -> Grade:
    """Return a grade that gradestack wrote."""
    try:
        grade = grade_from_json({"rationale": "", "metadata": {}, "score": None, **stored})
        grade_to_json(grade)
        problem = check_grade(grade)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        message = f"the recorded grade is not understood: {compact(dict(stored))[:60]}"
        return _bad(message)
    if problem is not None:
        return _bad(problem)
    if grade.outcome is Outcome.MISSING:
        return skipped("no_recorded_grade", "the recording had no run of this sample")
    return grade


def _turns(raw: JSON) -> tuple[Item, ...]:
    """Return the grades of turns as items."""
    items = []
    for number, entry in enumerate(as_list(raw), 1):
        if not isinstance(entry, Mapping):
            continue
        metadata = {name: entry[name] for name in _ABOUT_TURNS if name in entry}
        score = entry.get("score")
        is_graded = is_score(score)
        outcome = Outcome.GRADED if is_graded else Outcome.FAILED
        items.append(
            Item(
                id=f"turn {number}",
                metadata=metadata,
                outcome=outcome,
                score=float(score) if is_score(score) else None,
            )
        )
    return tuple(items)
