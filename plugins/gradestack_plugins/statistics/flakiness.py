"""Aggregator ``flakiness``: tasks that pass sometimes, and what runs of the same task are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Figure, Grade, Grades, Numbers, ratio
from gradestack_plugins.statistics.mean import IntervalAggregator

Tasks = Mapping[tuple[int, int], int]
"""Runs and passes -> how many tasks have them."""


_of_runs = partial(Figure, divisor="runs", undefined="one run", optional=True, pooled=False)
_FLAKY = "tasks of which some runs pass and some do not / tasks with several runs"
_VARIANCE = "mean over tasks of c (k - c) / (k (k - 1))"
_ICC = "(MSB - MSW) / (MSB + (n0 - 1) MSW)"


@attrs.frozen(kw_only=True)
class Flakiness(IntervalAggregator):
    """How much a task's runs differ, over pass or fail (the grader's verdict, else a score from
    ``threshold`` on).

    With c passes in the k runs of a task, over tasks with two runs and more:

    - a task is ``flaky`` when 0 < c < k; ``flaky_share`` with its interval; ``always`` and
      ``never`` the others
    - ``within_variance`` = mean of c (k - c) / (k (k - 1))
    - ``icc`` = (MSB - MSW) / (MSB + (n0 - 1) MSW), from the one-way analysis of variance of runs by
      task, n0 the mean number of runs (less their spread where they differ): how much alike runs of
      one task are
    - ``design_effect`` = 1 + (runs per task - 1) icc, and ``worth`` = runs / design_effect: so many
      independent samples

    All null with one run a task. All but ``worth``, which grows with the number of tasks, have
    intervals. Of several models ``models`` has these for each, and the tasks that every model
    always or never passes stand under ``saturated``: they tell models apart no more.
    """

    figures: ClassVar = (
        _of_runs("flaky_share", "Flaky tasks", "lower", "share", _FLAKY),
        _of_runs(
            "within_variance",
            "Variance within tasks",
            "lower",
            "score",
            _VARIANCE,
            least=0.0,
            most=0.5,
        ),
        _of_runs("icc", "Intra-class correlation", "neither", "score", _ICC, least=-1.0, most=1.0),
        _of_runs(
            "design_effect",
            "Design effect",
            "neither",
            "score",
            "1 + (runs per task - 1) icc",
            least=0.0,
        ),
        _of_runs("worth", "Independent samples", "higher", "count", "runs / design effect"),
    )

    threshold: float = 1.0
    """Score from which a run passes, where its grader has no verdict of its own."""

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        passed = grade.score >= self.threshold if grade.passed is None else grade.passed
        return {"runs": 1, "passes": int(passed)}

    @override
    def task_contribution(self, sums: Mapping[str, float]) -> Numbers | None:
        k, c = _cell(sums)
        if k < 2:
            return None
        within = c * (k - c) / k
        found = {"runs": k, "several": 1, "flaky": int(0 < c < k), "squared": k * k, "passes": c}
        return {**found, "between": c * c / k, "within": within, "variance": within / (k - 1)}

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        runs = totals["runs"]
        several = totals["several"]
        flaky = totals["flaky"]
        squared = totals["squared"]
        passes = totals["passes"]
        between = totals["between"]
        within = totals["within"]
        variance = totals["variance"]
        icc = None
        if several > 1:
            mean_between = (between - passes**2 / runs) / (several - 1)
            mean_within = within / (runs - several)
            spread = mean_between + ((runs - squared / runs) / (several - 1) - 1) * mean_within
            icc = (mean_between - mean_within) / spread if spread else None
        effect = None if icc is None else 1 + (runs / several - 1) * icc
        return {
            "flaky_share": ratio(flaky, several),
            "within_variance": ratio(variance, several),
            "icc": icc,
            "design_effect": effect,
            "worth": runs / effect if effect else None,
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        models: dict[str, Counter[tuple[int, int]]] = {model: Counter() for model in grades.models}
        alike: dict[str, int] = {"always": 0, "never": 0, "of": 0}
        for parts, times in grades.tasks_by_model().items():
            cells = {model: _cell(dict(numbers)) for model, numbers in parts}
            for model, cell in cells.items():
                models[model][cell] += times
            alike["of"] += times
            alike["always"] += times * all(k == c for k, c in cells.values())
            alike["never"] += times * all(c == 0 for _, c in cells.values())
        figures = {model: self._figures(tasks) for model, tasks in models.items() if tasks}
        if len(figures) > 1:
            return {"saturated": {**alike}, "models": {**figures}}
        return {"saturated": {**alike}, **next(iter(figures.values()), self._figures({}))}

    @staticmethod
    def _figures(tasks: Tasks) -> dict[str, JSON]:
        several = {cell: times for cell, times in tasks.items() if cell[0] > 1}
        return {
            "tasks": sum(tasks.values()),
            "tasks_with_several_runs": sum(several.values()),
            "always": sum(times for (k, c), times in several.items() if c == k),
            "never": sum(times for (_, c), times in several.items() if not c),
            "flaky": sum(times for (k, c), times in several.items() if 0 < c < k),
            "runs": sum(k * times for (k, _), times in several.items()),
            "worth_interval": {"reason": "it grows with the tasks" if several else "one run"},
        }


def _cell(numbers: Mapping[str, float]) -> tuple[int, int]:
    return int(numbers["runs"]), int(numbers.get("passes", 0))
