"""Gates: a rule over the metrics that decides pass or fail, and the per-sample rule that goes with it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Literal

import attrs

from gradestack.api import Profile
from gradestack.model import JSON

Op = Literal["gt", "gte", "lt", "lte", "eq"]
OPERATORS: dict[Op, tuple[str, Callable[[float, float], bool]]] = {
    "gt": (">", operator.gt),
    "gte": (">=", operator.ge),
    "lt": ("<", operator.lt),
    "lte": ("<=", operator.le),
    "eq": ("==", operator.eq),
}


@attrs.frozen(kw_only=True)
class GateSpec:
    """A flat gate, as letta-evals suites write it.

    Compared value: ``avg_score`` is the mean of the grader's scores over graded samples (a fraction); ``accuracy`` is
    the percentage of graded samples that pass, 0 to 100.
    """

    op: Op
    value: float
    metric_key: str | None = None
    """Grader key; default the first grader."""
    metric: Literal["avg_score", "accuracy"] = "avg_score"
    pass_op: Op | None = None
    """Per-sample rule; default: the gate's own ``op``."""
    pass_value: float | None = None
    """Per-sample rule; default: the gate's own ``value``."""
    on_no_data: Literal["fail", "pass"] = "fail"
    """What an empty series decides in the documented profile; upstream compares 0.0."""
    per: str | None = None
    """``model``, or the name of a facet: the gate must hold in every group."""

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes.

        For ``accuracy`` without ``pass_value``: score >= 1.0, whatever ``pass_op`` says. Otherwise ``pass_op or op``
        against ``pass_value or value``.
        """
        if self.metric == "accuracy" and self.pass_value is None:
            return score >= 1.0
        threshold = self.value if self.pass_value is None else self.pass_value
        return OPERATORS[self.pass_op or self.op][1](score, threshold)

    def text(self, key: str) -> str:
        """Return the rule as people read it: ``quality >= 0.75``."""
        name = f"{key} accuracy" if self.metric == "accuracy" else key
        return f"{name} {OPERATORS[self.op][0]} {self.value:g}{'%' if self.metric == 'accuracy' else ''}"


def evaluate(gate: GateSpec, key: str, figures: dict[str, JSON], profile: Profile) -> dict[str, JSON]:
    """Return the gate's verdict over one grader's figures.

    Args:
        gate: The rule.
        key: Key of the grader it is about.
        figures: ``{"avg_score": float | None, "pass_rate": percent | None}`` of that grader, None without data.
        profile: ``upstream`` compares 0.0 where there is no data; ``documented`` calls that ``no_data``.

    Returns:
        ``{"metric_key", "metric", "op", "value", "text", "actual", "passed", "outcome"}``, outcome one of ``passed``,
        ``failed``, ``no_data``.
    """
    actual = figures["avg_score"] if gate.metric == "avg_score" else figures["pass_rate"]
    if actual is None and profile == "upstream":
        actual = 0.0
    if actual is None:
        passed, outcome = gate.on_no_data == "pass", "no_data"
    else:
        passed = OPERATORS[gate.op][1](actual, gate.value)
        outcome = "passed" if passed else "failed"
    rule = {"metric_key": key, "metric": gate.metric, "op": gate.op, "value": gate.value, "text": gate.text(key)}
    return {**rule, "actual": actual, "passed": passed, "outcome": outcome}
