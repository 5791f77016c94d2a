"""Aggregator ``binary``, and what it shares with ``partial_statistics``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack import Aggregator, CellsState, Grade, Key, Memory, Outcome, TaskCells, valid_confidence
from gradestack.exact import count_into

SUCCESS_ABOVE = 0.9
"""A reward above this is a success in the statistics block (the benchmark itself uses a tolerance around 1)."""
_NO_GRADE = "no sample was graded"
UNDEFINED = {
    "average": _NO_GRADE,
    "success_rate": _NO_GRADE,
    "min": _NO_GRADE,
    "max": _NO_GRADE,
    "average_over_total": _NO_GRADE,
    "success_rate_over_total": _NO_GRADE,
    "tool_selection_accuracy": "no call is expected in any graded sample",
    "argument_precision": "no expected tool was called",
}


def explained(figures: dict[str, Any], why: Mapping[str, str]) -> dict[str, Any]:
    """Return figures with a ``NAME_reason`` beside every undefined one, and the same in place of its interval."""
    undefined = {name: why[name] for name in why if name in figures and figures[name] is None}
    intervals = {
        f"{name}_interval": {"reason": text} for name, text in undefined.items() if f"{name}_interval" in figures
    }
    return figures | intervals | {f"{name}_reason": text for name, text in undefined.items()}


_OUTCOMES = TaskCells("applicable", "graded", "successes", "score")
_RATES = {"success_rate": ("successes", "graded"), "success_rate_over_total": ("successes", "applicable")}
AVERAGES = {"average": ("score", "graded"), "average_over_total": ("score", "applicable")}


def beyond(score: float) -> int:
    """Return 1 for a score that is no share."""
    return 0 if 0.0 <= score <= 1.0 else 1


class BinaryState(TypedDict):
    """State of :class:`Binary`."""

    counts: dict[str, int]
    outside: int
    """Scores beyond [0, 1]."""
    cells: CellsState


def rate(numerator: int, denominator: int) -> float | None:
    """Return a fraction, None when nothing was counted."""
    return numerator / denominator if denominator else None


def share(above: Fraction, below: Fraction | int) -> float | None:
    """Return a fraction, rounded once; None when nothing was counted."""
    return float(above / below) if below else None


_GRADED, _SKIPPED = Outcome.GRADED, Outcome.SKIPPED  # looked up once: members are properties of the class


def count_outcome(counts: dict[str, int], outcome: Outcome, times: int = 1) -> None:
    """Count samples of one outcome, in place."""
    name = "graded" if outcome is _GRADED else outcome.value
    counts[name] = counts.get(name, 0) + times


def base_counts(counts: Mapping[str, int]) -> tuple[int, int, int]:
    """Return (graded, applicable, total): samples with a score, those and failed and missing ones, all samples.

    Applicable is 0 without a graded one: what nothing is known of has no average.
    """
    graded, total = counts.get(_GRADED.value, 0), sum(counts.values())
    return graded, total - counts.get(Outcome.SKIPPED.value, 0) if graded else 0, total


@attrs.frozen(kw_only=True)
class Binary(Aggregator[BinaryState]):
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
    memory: ClassVar[Memory] = "per_key"

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
    def start(self) -> BinaryState:
        return {"counts": {}, "outside": 0, "cells": _OUTCOMES.start()}

    @override
    def add(self, state: BinaryState, key: Key, grade: Grade) -> BinaryState:
        count_outcome(state["counts"], grade.outcome)
        if grade.outcome is _GRADED and grade.score is not None:
            success = int(grade.score > self.threshold)
            state["outside"] += beyond(grade.score)
            _OUTCOMES.add(state["cells"], key, [1, 1, success, float(grade.score)])
        elif grade.outcome is not _SKIPPED:
            _OUTCOMES.add(state["cells"], key, [1, 0, 0, 0])
        return state

    @override
    def merge(self, left: BinaryState, right: BinaryState) -> BinaryState:
        count_into(left["counts"], right["counts"])
        left["outside"] += right["outside"]
        _OUTCOMES.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: BinaryState) -> dict[str, Any]:
        graded, applicable, total = base_counts(state["counts"])
        cells = _OUTCOMES.together(state["cells"])
        sums = cells.totals()
        options: dict[str, Any] = {
            "confidence": self.confidence,
            "unbounded": AVERAGES if state["outside"] or not self.share else (),
        }
        figures = {
            "threshold": self.threshold,
            "successes": int(sums["successes"]),
            "n": graded,
            "total": total,
            "success_rate": share(sums["successes"], graded),
            "success_rate_over_total": share(sums["successes"], applicable),
            "average": share(sums["score"], graded),
            "average_over_total": share(sums["score"], applicable),
            **cells.ratios(_RATES | AVERAGES, **options),
            **cells.model_ratios(_RATES | AVERAGES, **options),
        }
        return explained(figures, UNDEFINED)
