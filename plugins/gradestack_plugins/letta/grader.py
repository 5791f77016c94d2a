"""Grader ``recorded``: the grades a recording already holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeGuard

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
from gradestack_plugins.letta.reader import Letta
from gradestack_plugins.letta.recording import REWARD, graded_metrics, metrics_of, names_graders
from gradestack_plugins.letta.records import KEPT, error_fault, grade_fault

_SHOWN = 20
"""Metrics named in a message."""


_ABOVE_SHARES = 10
"""A score above is no share and no grade of a few points."""


@attrs.frozen(kw_only=True)
class Recorded(Grader):
    """Takes the grade found in the recording, with its rationale and metadata, so that nothing need
    be graded again.

    With ``metric`` the grade of that key counts, or a score recorded under that name. Without it
    that is decided once, before grading: the metric of the grader's own key if the recording has
    it, else the only one there is; where there are several, one must be named. Of recordings whose
    grades have no names it is ``grade``, the gate's. Metrics are those of a letta-evals summary,
    else those of the first 1,000 records of each input. A sample whose recording lacks the metric
    is skipped; where its own ``grade`` is an error, it is failed for every metric it lacks.

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
        by_name = isinstance(reader, Letta)
        first = [] if by_name else list(samples)
        if self.metric is not None:
            self._require_one_scale(self.metric, first)
            return self
        metrics = metrics_of(inputs) if by_name else recorded_scores(first)
        composed = [name for name in metrics if name != REWARD] or metrics
        if key not in metrics and len(composed) > 1:
            several = ", ".join(metrics[:_SHOWN]) + ", ..." * (len(metrics) > _SHOWN)
            raise ConfigError(
                f"the recording has no metric {key!r} but several others; name one with `metric`: "
                f"{several}"
            )
        found = key if key in metrics else next(iter(composed), None)
        if by_name and len(metrics) == 1 and not names_graders(inputs):
            return self
        if found is not None:
            self._require_one_scale(found, first)
        return attrs.evolve(self, metric=found)

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
            raise ConfigError(
                f"the recorded scores {metric!r} are of two scales: {large[0]:g} beside "
                f"{fractions[0]:g}; say which is meant, scores outside it are errors: "
                "--set graders.recorded.scale=[0,1] or [0,100]"
            )

    @override
    def grade(self, sample: Sample) -> Grade:
        recorded, grades = sample.recorded, as_map(sample.recorded.get("grades"))
        found = _gate_grade(recorded, grades)
        if self.metric is not None:
            found = grades.get(self.metric, recorded.get(self.metric))
        if isinstance(as_map(found).get("state"), str):
            return _own(as_map(found))
        error = recorded.get("error")
        is_letta = grades or "grade" in recorded or error is not None
        if sample.status is Status.FAILED and (found is None or is_letta):
            fault = sample.error or _RUN_FAILED
            return _failed(fault, found if found is not None or grades else recorded.get("grade"))
        if error is not None:
            return failed(error_fault(error))
        if found is None:
            return self._without_grade(recorded, grades)
        explained = as_map(recorded.get("explanations"))
        if explained and self.metric is not None and is_score(found):
            found = {"score": found, "rationale": explained.get(self.metric)}
        grade = self._grade(found)
        if sample.error is not None and grade.score is not None and grade.score < 1:
            reason = Reason(code="run_error", message=sample.error.message)
            grade = replace(grade, reasons=(reason,), rationale=grade.rationale or reason.message)
        return grade

    def _without_grade(self, recorded: Mapping[str, Any], grades: Mapping[str, Any]) -> Grade:
        broken = judge_fault(recorded.get("grade"))
        if broken is not None:
            return _failed(broken, recorded["grade"])
        what = "no grade" if self.metric is None else f"no grade of {self.metric!r}"
        known = f"; metrics: {', '.join(map(str, grades))}" if grades else ""
        return skipped("no_recorded_grade", f"the recording holds {what}{known}")

    def _grade(self, found: JSON) -> Grade:
        if not isinstance(found, Mapping):
            found = {"score": found}
        rationale, metadata = _words(found)
        if metadata.get("error") and (fault := judge_fault(found)) is not None:
            return _failed(fault, found)
        score = found.get("score")
        if not is_score(score):
            return _bad(f"the recorded score is no finite number: {compact(score)[:60]}")
        if self.scale is not None and not self.scale[0] <= score <= self.scale[1]:
            low, high = self.scale
            return _bad(f"a recorded score outside its scale, {low:g} to {high:g}: {score!r}")
        items = _turns(found.get("per_turn_grades"))
        return Grade(score=float(score), rationale=rationale, items=items, metadata=metadata)


_ABOUT_TURNS = ("submission", "ground_truth", "rationale")
_RUN_FAILED = Fault(category="target", code="target_error", message="the run failed")
_NO_SCORES = frozenset({"grade", "grades", *KEPT})


def recorded_scores(samples: Iterable[Sample]) -> list[str]:
    """Return the metrics of samples of any format.

    What stands under ``grades``, else every score by its name.
    """
    graded: dict[str, None] = {}
    scores: dict[str, None] = {}
    for sample in samples:
        graded |= dict.fromkeys(graded_metrics(sample.recorded))
        for name, value in sample.recorded.items():
            scored = isinstance(value, bool | int | float) or "score" in as_map(value)
            scores |= {name: None} if scored and name not in _NO_SCORES else {}
    return list(graded or scores)


def judge_fault(grade: JSON) -> Fault | None:
    """Return why a recorded grade is no judgement; None where it is one."""
    fault = grade_fault(grade)
    return fault and replace(fault, category="grading", code="recorded_error")


def _words(found: Mapping[str, Any]) -> tuple[str, dict[str, JSON]]:
    return as_text(found.get("rationale")), dict(as_map(found.get("metadata")))


def _failed(fault: Fault, found: JSON) -> Grade:
    rationale, metadata = _words(as_map(found))
    grade = replace(failed(fault), metadata=metadata)
    return (
        replace(grade, rationale=rationale) if rationale and fault.category == "grading" else grade
    )


def _gate_grade(recorded: Mapping[str, Any], grades: Mapping[str, Any]) -> JSON:
    """Return ``grade``, else the reward, else the only metric's grade."""
    for name in ("grade", "reward"):
        if recorded.get(name) is not None:
            return recorded[name]
    return next(iter(grades.values())) if len(grades) == 1 else None


def is_score(score: JSON) -> TypeGuard[float]:
    """Return whether a recorded score is a number that can be averaged; truth values are."""
    return isinstance(score, bool | int | float) and -LARGEST_SCORE <= score <= LARGEST_SCORE


def _bad(message: str) -> Grade:
    return failed(Fault(category="data", code="bad_recorded_grade", message=message))


def _own(found: Mapping[str, Any]) -> Grade:
    try:
        grade = grade_from_json({"rationale": "", "metadata": {}, "score": None, **found})
        grade_to_json(grade)
        problem = check_grade(grade)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        problem = f"the recorded grade is not understood: {compact(dict(found))[:60]}"
    if problem is not None:
        return _bad(problem)
    if grade.outcome is Outcome.MISSING:
        return skipped("no_recorded_grade", "the recording had no run of this sample")
    return grade


def _turns(raw: JSON) -> tuple[Item, ...]:
    items = []
    for number, entry in enumerate(as_list(raw), 1):
        if not isinstance(entry, Mapping):
            continue
        about = {name: entry[name] for name in _ABOUT_TURNS if name in entry}
        score = float(entry["score"]) if is_score(entry.get("score")) else None
        outcome = Outcome.FAILED if score is None else Outcome.GRADED
        items.append(Item(id=f"turn {number}", metadata=about, outcome=outcome, score=score))
    return tuple(items)
