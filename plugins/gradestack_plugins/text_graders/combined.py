"""The grader ``combined``: a weighted mean of the scores of other graders of the suite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import attrs
from typing_extensions import override

from gradestack import Fault, Grade, Grader, Item, Outcome, Reason, Sample, failed, skipped


def _weights(_: object, __: object, of: Mapping[str, float]) -> None:
    if not of:
        raise ValueError("names no grader: of: {calls: 2, success: 1}")
    for key, weight in of.items():
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"the weight of {key!r} is not above 0: {weight:g}")


@attrs.frozen(kw_only=True)
class Combined(Grader):
    """Weighted mean of other graders' scores: sum(weight x score) / sum(weight), between 0 and 1.

    ``of`` names graders of the suite by key, each with its weight: ``{calls: 2, success: 1}``.
    Their scores are shares of which more is better. Where one of them is missing or failed, so is
    the mean. Where one is skipped, the mean is skipped, with the part it lacks; under ``skipped:
    leave_out`` it is the mean of the other parts. The sample passes where the mean is at least
    ``pass_at``. An item for each part has its score and its reasons.
    """

    metrics = ("mean",)
    label = "Combined score"

    of: Mapping[str, float] = attrs.field(validator=_weights)
    skipped: Literal["skip", "leave_out"] = "skip"
    pass_at: float = attrs.field(
        default=1.0, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )

    @property
    @override
    def combines(self) -> tuple[str, ...]:
        return tuple(self.of)

    @override
    def grade(self, sample: Sample) -> Grade:
        message = "it combines grades of a suite's other graders, and there are none"
        return skipped("no_parts", message)

    @override
    def combine(self, grades: Mapping[str, Grade]) -> Grade:
        items = list[Item]()
        reasons = list[Reason]()
        for key, grade in grades.items():
            if grade.score is None and self.skipped == "leave_out" and _is_skipped(grade):
                continue
            problem = _part_problem(key, grade)
            if problem is not None:
                return problem
            score = grade.score
            weight = self.of[key]
            parts = {"weight": weight}
            items.append(Item(id=key, score=score, reasons=grade.reasons, parts=parts))
            if score is not None and score < 1:
                about = Reason(code="part_below_1", subject=key, expected=1.0, actual=score)
                reasons.append(about)
        if not items:
            return skipped("parts_skipped", f"none of {', '.join(self.of)} has a grade")
        scores = {item.id: item.score for item in items}
        weighted = [self.of[key] * score for key, score in scores.items() if score is not None]
        weights = [self.of[key] for key in scores]
        mean = min(1.0, math.fsum(weighted) / math.fsum(weights))
        return Grade(
            score=mean,
            passed=mean >= self.pass_at,
            parts=scores,
            items=tuple(items),
            reasons=tuple(reasons),
        )


def _is_skipped(grade: Grade) -> bool:
    return grade.outcome not in {Outcome.MISSING, Outcome.FAILED}


def _part_problem(key: str, grade: Grade) -> Grade | None:
    """Return the grade of a combination of which one part has no share; None of one that has."""
    score = grade.score
    if grade.outcome is Outcome.MISSING:
        return grade
    if grade.outcome is Outcome.FAILED:
        fault = grade.fault
        why = (fault.message or fault.code) if fault else "it failed"
        message = f"{key}: {why}"
        return failed(Fault(category="grading", code="part_failed", message=message))
    if score is None:
        if grade.reasons:
            first = grade.reasons[0]
        else:
            first = Reason(code="")
        why = first.message or first.code
        return skipped("part_skipped", f"{key} has no grade{': ' * bool(why)}{why}")
    if not 0 <= score <= 1:
        why = f"its score {score:g} is no share; a combination is of scores between 0 and 1"
        return failed(Fault(category="grading", code="part_no_share", message=f"{key}: {why}"))
    return None
