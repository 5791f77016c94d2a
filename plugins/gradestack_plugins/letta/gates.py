"""letta-evals' figures of graded results, and its gate on them, as version 0.6.1 computes them."""

from __future__ import annotations

import operator
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
_OPERATORS: dict[Operator, Callable[[float, float], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
}
_SIGNS: dict[Operator, str] = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "=="}


def average(values: Sequence[float], number: int) -> float:
    """Return the sum, each addition rounded, over a number; 0.0 over nothing."""
    total = 0.0
    for value in values:  # no sum(), which later Pythons compensate
        total += value
    return total / number if number else 0.0


def percentage(part: int, total: int) -> float:
    """Return a share as a percentage; 0.0 of nothing."""
    return (part / total) * 100.0 if total else 0.0


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A gate of letta-evals. One with any other key is gradestack's."""

    op: Operator
    value: float
    metric: Literal["avg_score", "accuracy"] = "avg_score"
    metric_key: str | None = None
    """Default: the first grader."""
    pass_op: Operator | None = None
    pass_value: float | None = None
    over: Any = None
    """Without effect, as ``on_no_data``: letta-evals has neither."""
    on_no_data: Any = None

    def passes_sample(self, score: float) -> bool:
        """Return whether one score passes: of an accuracy without a value of its own, at 1."""
        limit = self.pass_value
        if limit is None and self.metric == "accuracy":
            return score >= 1.0
        if limit is None:
            limit = self.value
        compare = _OPERATORS[self.pass_op or self.op]
        return compare(score, limit)

    def value_of(self, results: Sequence[Result], key: str) -> float:
        """Return the figure that the gate compares."""
        figures = metric_figures(results, key, self)
        name = "pass_rate" if self.metric == "accuracy" else "avg_score_attempted"
        value: float = figures[name]
        return value

    def passes(self, results: Sequence[Result], key: str) -> bool:
        """Return the verdict."""
        compare = _OPERATORS[self.op]
        return compare(self.value_of(results, key), self.value)

    def lines(self, results: Sequence[Result], key: str) -> list[str]:
        """Return the rule with its verdict, ``Gate (quality >= 0.75): PASSED``, and its figure."""
        verdict = "PASSED" if self.passes(results, key) else "FAILED"
        rule = f"{_SIGNS[self.op]} {self.value:g}"
        figure = self.value_of(results, key)
        if self.metric == "accuracy":
            rule = f"accuracy {rule}%"
            actual = f"{figure:.1f}%"
        else:
            actual = f"{figure:.2f}"
        return [f"Gate ({key} {rule}): {verdict}", f"  actual: {actual}"]


def metric_figures(results: Sequence[Result], key: str, gate: Gate | None) -> dict[str, Any]:
    """Return the figures of one metric.

    Samples pass by the gate's rule, whichever metric it names; without a gate, at 1.
    """
    graded = [result for result in results if key in result.scores]
    scores = [result.scores[key] for result in graded]
    scores_attempted = [result.scores[key] for result in graded if result.attempted]
    attempted = sum(result.attempted for result in results)
    rule = gate or Gate(op="gte", value=1.0)
    passed = sum(map(rule.passes_sample, scores_attempted))
    avg_score_attempted = average(scores, len(scores))
    avg_score_total = average(scores, len(results))
    pass_rate = percentage(passed, attempted)
    failed_attempts = attempted - passed
    return {
        "avg_score_attempted": avg_score_attempted,
        "avg_score_total": avg_score_total,
        "pass_rate": pass_rate,
        "passed_attempts": passed,
        "failed_attempts": failed_attempts,
    }
