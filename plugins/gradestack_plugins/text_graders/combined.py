"""The grader ``combined``: a weighted mean of what other graders of the suite say of a sample."""

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
    Their scores are shares of which more is better. Where one of them has no grade there is no
    mean: it is missing or failed if that is, and skipped, with the part it lacks, if that is; under
    ``skipped: leave_out`` the mean is that of the other parts. The sample passes where the mean is
    at least ``pass_at``. An item for each part has its score and its reasons.
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
        return skipped(
            "no_parts", "it combines grades of a suite's other graders, and there are none"
        )

    @override
    def combine(self, grades: Mapping[str, Grade]) -> Grade:
        items, reasons = list[Item](), list[Reason]()
        for key, grade in grades.items():
            found = grade.score
            if grade.outcome is Outcome.MISSING:
                return grade
            if grade.outcome is Outcome.FAILED:
                said = grade.fault.message or grade.fault.code if grade.fault else "it failed"
                return failed(
                    Fault(category="grading", code="part_failed", message=f"{key}: {said}")
                )
            if found is None:
                if self.skipped == "leave_out":
                    continue
                said = grade.reasons[0].message or grade.reasons[0].code if grade.reasons else ""
                return skipped("part_skipped", f"{key} has no grade{': ' * bool(said)}{said}")
            if not 0 <= found <= 1:
                why = (
                    f"{key}: its score {found:g} is no share; a combination is of scores "
                    "between 0 and 1"
                )
                return failed(Fault(category="grading", code="part_no_share", message=why))
            items.append(
                Item(id=key, score=found, reasons=grade.reasons, parts={"weight": self.of[key]})
            )
            if found < 1:
                reasons.append(Reason(code="part_below_1", subject=key, expected=1.0, actual=found))
        if not items:
            return skipped("parts_skipped", f"none of {', '.join(self.of)} has a grade")
        parts = {item.id: item.score for item in items}
        mean = math.fsum(self.of[key] * score for key, score in parts.items() if score is not None)
        mean = min(1.0, mean / math.fsum(self.of[key] for key in parts))
        return Grade(
            score=mean,
            passed=mean >= self.pass_at,
            parts=parts,
            items=tuple(items),
            reasons=tuple(reasons),
        )
