"""Aggregator ``binary``, and what it shares with ``partial_statistics``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import Aggregator, Figure, Grade, Grades, Numbers, Outcome, ratio, valid_confidence

SUCCESS_ABOVE: Final = 0.9
"""A reward above this is a success in the statistics block (the benchmark itself uses a tolerance around 1)."""
NO_GRADE: Final = "no sample was graded"
AVERAGES: Final = (
    Figure("average", "Mean score", about="sum of scores / graded samples", divisor="graded", undefined=NO_GRADE),
    Figure(
        "average_over_total",
        "Mean score over all samples",
        about="sum of scores / graded, failed and missing samples",
        divisor="applicable",
        undefined=NO_GRADE,
    ),
)
_AVERAGES: Final = {"average": ("score", "graded"), "average_over_total": ("score", "applicable")}


def outcome_numbers(grade: Grade) -> dict[str, float] | None:
    """Return what averages are made of; failed and missing samples are applicable and nothing else."""
    if grade.outcome is Outcome.SKIPPED:
        return None
    if grade.score is None:
        return {"applicable": 1}
    return {"applicable": 1, "graded": 1, "score": float(grade.score)}


def unbounded_averages(grades: Grades, confidence: float) -> dict[str, Any]:
    """Return the intervals of averages of scores that are not bound to [0, 1]."""
    sums = grades.sums("applicable", "graded", "score")
    of: dict[str, Any] = {"of": _AVERAGES, "confidence": confidence, "unbounded": _AVERAGES}
    return {**sums.ratios(**of), **sums.model_ratios(**of)}


def undefined(names: Iterable[str], why: str) -> dict[str, Any]:
    """Return figures that are undefined, each with a ``NAME_reason``, and the same in place of its interval."""
    found: dict[str, Any] = {}
    for name in names:
        found |= {name: None, f"{name}_interval": {"reason": why}, f"{name}_reason": why}
    return found


def is_share(number: float | None) -> bool:
    """Return whether a number lies between 0 and 1, or there is none."""
    return number is None or 0.0 <= number <= 1.0


@attrs.frozen(kw_only=True)
class Binary(Aggregator):
    """Success rate and average of a grader's scores.

    A score is a success when it is **above** ``threshold``. ``success_rate`` and ``average`` divide by the graded
    samples; the ``…_over_total`` figures also by failed and missing ones, which then weigh like zeros. Skipped samples
    are outside both.

    Attributes:
        threshold: Scores above it are successes.
        confidence: Of the intervals, between 0 and 1.
        share: Whether scores are bound to [0, 1]; default: as the grader says.
    """

    version: ClassVar[str] = "3"
    figures: ClassVar = (
        Figure(
            "success_rate",
            "Successes",
            about="scores above the threshold / graded samples",
            divisor="graded",
            undefined=NO_GRADE,
        ),
        Figure(
            "success_rate_over_total",
            "Successes of all samples",
            about="scores above the threshold / graded, failed and missing samples",
            divisor="applicable",
            undefined=NO_GRADE,
        ),
        *AVERAGES,
    )

    threshold: float = SUCCESS_ABOVE
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    share: bool = True

    def __attrs_post_init__(self) -> None:
        """Check the threshold.

        Raises:
            ValueError: It is not finite.
        """
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be a finite number, got {self.threshold}")

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        found = outcome_numbers(grade)
        return found if grade.score is None else {**(found or {}), "successes": int(grade.score > self.threshold)}

    @override
    def estimate(self, applicable: float, graded: float, score: float, successes: float) -> Mapping[str, float | None]:
        return {
            "success_rate": ratio(successes, graded),
            "success_rate_over_total": ratio(successes, applicable),
            "average": ratio(score, graded),
            "average_over_total": ratio(score, applicable),
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, Any]:
        graded = grades.totals.get("graded", 0)
        share = self.share and all(is_share(grade.score) for grade, _ in grades.counted)
        return {
            "threshold": self.threshold,
            "successes": int(grades.totals.get("successes", 0)),
            "n": int(graded),
            "total": len(grades),
            **({} if share else unbounded_averages(grades, self.confidence)),
            **({} if graded else undefined([each.name for each in self.figures], NO_GRADE)),
        }
