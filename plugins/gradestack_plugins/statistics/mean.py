"""Mean score with its standard error and interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grade,
    Grades,
    Interval,
    Numbers,
    interval,
    jackknife,
    ratio_interval,
    replace,
    valid_confidence,
)


@attrs.frozen(kw_only=True)
class IntervalAggregator(Aggregator):
    """Base of aggregators whose intervals are of a confidence."""

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""


@attrs.frozen(kw_only=True)
class Mean(IntervalAggregator):
    r"""Mean score, its standard error and interval, clustered by task.

    With scores x_i over n graded samples in C clusters (a cluster is one task, whose runs depend on
    each other):

        mean   = sum(x_i) / n
        stderr = sqrt(C / (C - 1) * sum over clusters of (sum of (x_i - mean) in the cluster)^2) / n

    With one run per task this is the usual standard error, sample standard deviation / sqrt(n).
    Undefined (None) for fewer than two clusters. Sums are exact and rounded once. The interval is
    that of ``gradestack.interval``, whose standard error leaves out one task at a time; for equally
    many runs a task that is ``stderr``.

    Of several models ``models`` holds the same for each; the figures beside ``models`` are over all
    of them, clustered by task.

    Source: cluster-robust standard error of a mean with the C / (C - 1) correction.
    """

    of_scores = True
    figures = (Figure("mean", "Mean score", unit="score", about="sum of scores / graded samples"),)

    share: bool = True
    """Whether scores are bound to [0, 1]; default: as the grader says. One beyond it tells, too."""
    least: float | None = None
    """Least score there can be, where scores are no shares; no interval goes below.

    Default: as the grader says.
    """
    most: float | None = None
    """Greatest score there can be, likewise.

    Scores of at least 0 without one are amounts, whose interval is Hall's.
    """

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        return {"scores": float(grade.score)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        sums = grades.sums("", "scores", whole=True)
        (every, models), unit = sums, grades.unit("scores")
        scores = [grade.score for grade, _ in grades.counted if grade.score is not None]
        share = self.share and all(0.0 <= score <= 1.0 for score in scores)
        figures: dict[str, JSON] = {"total": len(grades), **self._figures(every, unit, share=share)}
        if len(models) > 1:
            figures["models"] = {
                model: self._figures(cells, unit, share=share) for model, cells in models.items()
            }
        return figures

    def _figures(
        self, cells: Mapping[tuple[Any, ...], int], unit: int, *, share: bool
    ) -> dict[str, JSON]:
        """Compute the mean with standard error and interval; scores are integers over ``unit``."""
        exact_mean = _exact_mean(cells, unit)
        (n, mean, stderr), clusters = exact_mean, sum(cells.values())
        rounded = Counter[tuple[float, ...]]()
        for (samples, score), times in cells.items():
            rounded[samples, score / unit] += times
        of_mean = replace(jackknife(_mean, rounded, 2)["mean"], value=mean)
        if self.least is None:
            least = -math.inf
        else:
            least = self.least
        if self.most is None:
            most = math.inf
        else:
            most = self.most
        is_amount = not self.share and least >= 0 and math.isinf(most)
        of_value = interval(
            of_mean,
            n,
            confidence=self.confidence,
            share=share,
            least=least,
            most=most,
            amount=is_amount,
        )
        figures = {"n": n, "clusters": clusters, "mean": mean, "stderr": stderr}
        return {**figures, "mean_interval": {**of_value}}


def _mean(samples: float, scores: float) -> dict[str, float | None]:
    return {"mean": scores / samples if samples else None}


def _exact_mean(
    cells: Mapping[tuple[Any, ...], int], unit: int
) -> tuple[int, float | None, float | None]:
    """Return the number of scores, their mean and its standard error, each rounded once."""
    n = total = squares = products = sizes = 0
    for (size, value), times in cells.items():
        n += times * size
        total += times * value
        squares += times * value * value
        products += times * size * value
        sizes += times * size * size
    clusters = sum(cells.values())
    mean = None
    if n:
        mean = total / (n * unit)
    if mean is None or clusters < 2:
        return n, mean, None
    # (n * unit)^2 times the sum of the formula
    spread = n * n * squares
    spread -= 2 * n * total * products
    spread += total * total * sizes
    divisor = (clusters - 1) * (n * unit) ** 2
    variance = spread * clusters / divisor
    return n, mean, math.sqrt(variance) / n


def no_intervals(reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return, for figures without a value or an interval, the reason in the interval's place."""
    return {f"{name}_interval": {"reason": why} for name, why in reasons.items()}


QUANTILES = no_intervals({"min": "quantile", "max": "quantile"})
"""Beside the least and the greatest of some numbers."""


def rate_intervals(
    tasks: Mapping[Any, int], confidence: float, n: Mapping[str, int] | None = None
) -> dict[str, Interval]:
    """Return the intervals of precision, recall and F1.

    Args:
        tasks: Hits, gold and predicted of a task -> number of tasks that have these.
        confidence: Of the intervals.
        n: Number of samples of each rate; default: its divisor.
    """
    cells = {name: Counter[tuple[float, ...]]() for name in ("precision", "recall", "f1")}
    for (hits, gold, predicted), times in tasks.items():
        cells["precision"][predicted, hits] += times
        cells["recall"][gold, hits] += times
        cells["f1"][gold + predicted, 2 * hits] += times
    samples = n or {}
    return {
        name: ratio_interval(cells[name], n=samples.get(name), confidence=confidence)
        for name in cells
    }


def unbounded_intervals(
    grades: Grades, numbers: Mapping[str, tuple[str, str]], confidence: float
) -> dict[str, Any]:
    """Return intervals of ratios of sums that are not bound to [0, 1], also by model.

    Args:
        grades: The grades.
        numbers: Figure -> divisor and dividend.
        confidence: Of the intervals.
    """
    intervals: dict[str, Any] = {}
    for name, of_figure in numbers.items():
        every, models = grades.sums(*of_figure)
        holders: list[tuple[dict[str, Any], Any]] = [(intervals, every)]
        if len(models) > 1:
            by_model = intervals.setdefault("models", {})
            holders += [(by_model.setdefault(model, {}), models[model]) for model in models]
        for holder, tasks in holders:
            of_tasks = ratio_interval(tasks, confidence=confidence, share=False)
            holder[f"{name}_interval"] = {**of_tasks}
    return intervals
