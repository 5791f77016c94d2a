"""Figures and counts of a run's table, or of some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradestack.errors import PluginError, error_text
from gradestack.grading.merging import Merged
from gradestack.grading.plan import Metric, Plan
from gradestack.metrics.computed import compute_figures, select_grades
from gradestack.metrics.counts import Count, counts_by_model
from gradestack.model import JSON


class RunFigures:
    """Computes the figures of everything that was graded, or of some rows.

    Attributes:
        merged: What all shards came to.
    """

    def __init__(self, plan: Plan, merged: Merged, *, strict: bool = False) -> None:
        self.merged = merged
        self._plan, self._strict = plan, strict

    def figures(self, rows: Sequence[int] | None = None) -> dict[str, dict[str, Any]]:
        """Compute the figures of all metrics: grader key -> metric key -> figures.

        A broken metric has its error in their place.
        """
        by_grader: dict[str, dict[str, Any]] = {stage.key: {} for stage in self._plan.graders}
        for metric in self._plan.metrics:
            by_grader[metric.of][metric.stage.key] = self._compute(metric, rows)
        return by_grader

    def _compute(self, metric: Metric, rows: Sequence[int] | None) -> dict[str, JSON]:
        """Compute a metric's figures over rows; an error breaks only this metric."""
        name, aggregator, broken = metric.name, metric.stage.component, self.merged.broken
        if name not in broken:
            try:
                grades = select_grades(aggregator, self.merged.table, metric.of, name, rows)
                return compute_figures(aggregator, grades)
            # the other metrics must not be lost with it
            except (Exception, SystemExit, GeneratorExit) as error:
                if self._strict:
                    raise PluginError(f"{metric.label}: {error_text(error)}") from error
                broken[name] = error_text(error)
        return {"error": broken[name]}

    def counts(self, rows: Sequence[int] | None = None) -> dict[str, dict[str, Count]]:
        """Count each grader's grades by model: grader key -> model -> counts."""
        plan, table = self._plan, self.merged.table
        return {
            stage.key: counts_by_model(table, stage.key, plan.rule, rows) for stage in plan.graders
        }
