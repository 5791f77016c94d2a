"""letta-evals' figures of graded results, and its gates on them.

Figures and the flat gate are those of version 0.6.1; the gates ``simple``, ``weighted_average`` and
``logical`` are those of 0.7.0.
"""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One graded result."""

    record: Mapping[str, Any]
    """As it stands in ``results.jsonl``."""
    scores: Mapping[str, float]
    """Metric -> score, of those it has a grade for."""
    attempted: bool
    """Whether the target ran without error."""
    run: int | str | None
    """None: the sample was recorded in no run, and is one of every run."""


Operator = Literal["gt", "gte", "lt", "lte", "eq"]
Comparison = Callable[[float, float], bool]
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "=="}
_COMPARISONS: dict[Operator, Comparison] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
}


def average(values: Sequence[float], number: int) -> float:
    """Return the sum, each addition rounded, over a number; 0.0 over nothing."""
    total = 0.0
    for value in values:  # no sum(), which later Pythons compensate
        total += value
    return total / number if number else 0.0


def percentage(part: int, whole: int) -> float:
    """Return a share as a percentage; 0.0 of nothing."""
    return (part / whole) * 100.0 if whole else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile by linear interpolation, in numpy's order of operations."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    weight = position % 1
    low, high = ordered[int(position)], ordered[-int(-position // 1)]
    if weight >= 0.5:
        return high - (high - low) * (1 - weight)
    return low + (high - low) * weight


Aggregation = Literal[
    "avg_score", "accuracy", "pass_rate", "min", "max", "median", "p50", "p95", "p99"
]
_PERCENTAGES = ("accuracy", "pass_rate")
_PERCENTILES = {"p95": 0.95, "p99": 0.99}
_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "median": statistics.median,
    "p50": statistics.median,
}


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A gate of letta-evals. One with any other key is gradestack's."""

    kind: Literal["simple", "weighted_average", "logical"] | None = None
    metric_key: str | None = None
    """Default: the first grader."""
    metric: Literal["avg_score", "accuracy"] = "avg_score"
    """What a flat gate compares: of ``accuracy``, the share of attempted results that pass."""
    aggregation: Aggregation = "avg_score"
    """What the other forms compare."""
    op: Operator = "gte"
    value: float = 0.0
    pass_op: Operator | None = None
    pass_value: float | None = None
    pass_threshold: float = 1.0
    weights: dict[str, float] = {}
    operator: Literal["and", "or"] = "and"
    conditions: tuple[Gate, ...] = ()
    over: Any = None
    """Without effect, as ``on_no_data``: letta-evals has neither."""
    on_no_data: Any = None

    def passes_sample(self, score: float) -> bool:
        """Return whether one score passes."""
        has_points = self.metric == "accuracy" and self.pass_value is None
        if has_points or self.kind or self.weights or self.conditions:
            return score >= self.pass_threshold
        limit = self.value if self.pass_value is None else self.pass_value
        return _COMPARISONS[self.pass_op or self.op](score, limit)

    def passes(self, results: Sequence[Result], first: str) -> bool:
        """Return the verdict."""
        if not self.conditions:
            return _COMPARISONS[self.op](self.value_of(results, first), self.value)
        verdicts = [condition.passes(results, first) for condition in self.conditions]
        return all(verdicts) if self.operator == "and" else any(verdicts)

    def value_of(self, results: Sequence[Result], first: str) -> float:
        """Return what the gate compares."""
        weights = self.weights or {self.metric_key or first: 1.0}
        total = average([*weights.values()], 1)
        return average(
            [weight / total * self._aggregate(results, key) for key, weight in weights.items()], 1
        )

    def _aggregate(self, results: Sequence[Result], key: str) -> float:
        if self.metric == "accuracy":
            return float(metric_figures(results, key, self)["pass_rate"])
        scores = scores_of(results, key)
        if self.aggregation in _PERCENTAGES:
            return percentage(sum(score >= self.pass_threshold for score in scores), len(scores))
        if not scores or self.aggregation == "avg_score":
            return average(scores, len(scores))
        if self.aggregation in _PERCENTILES:
            return percentile(scores, _PERCENTILES[self.aggregation])
        return _AGGREGATES[self.aggregation](scores)

    def lines(self, results: Sequence[Result], first: str) -> list[str]:
        """Return the rule with its verdict, ``Gate (quality >= 0.75): PASSED``, and its figure."""
        verdict = "PASSED" if self.passes(results, first) else "FAILED"
        if self.conditions:
            return [f"Gate ({self.operator} of {len(self.conditions)} conditions): {verdict}"]
        compared = self.aggregation if self.metric == "avg_score" else self.metric
        unit = "%" if compared in _PERCENTAGES else ""
        name = self.kind if self.weights else self.metric_key or first
        shown = name if compared == "avg_score" else f"{name} {compared}"
        rule = f"{shown} {_SIGNS[self.op]} {self.value:g}{unit}"
        figure = self.value_of(results, first)
        return [f"Gate ({rule}): {verdict}", f"  actual: {figure:.{1 if unit else 2}f}{unit}"]


def scores_of(results: Sequence[Result], key: str) -> list[float]:
    """Return the scores of a metric, of results attempted or not."""
    return [result.scores[key] for result in results if key in result.scores]


def metric_figures(results: Sequence[Result], key: str, gate: Gate) -> dict[str, Any]:
    """Return the figures of one metric; samples pass by the gate's rule, whichever it names."""
    scores = scores_of(results, key)
    attempted = [result for result in results if result.attempted]
    passed = sum(map(gate.passes_sample, scores_of(attempted, key)))
    rate = percentage(passed, len(attempted))
    figures: dict[str, Any] = {"avg_score_attempted": average(scores, len(scores))}
    figures["avg_score_total"] = average(scores, len(results))
    failed = len(attempted) - passed
    return {**figures, "pass_rate": rate, "passed_attempts": passed, "failed_attempts": failed}
