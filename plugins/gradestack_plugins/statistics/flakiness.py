"""Aggregator ``flakiness``: tasks that pass sometimes, and what runs of the same task are worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Figure, Grade, Grades, Numbers, ratio, valid_confidence

Tasks = Mapping[tuple[int, int], int]
"""Runs and passes -> how many tasks have them."""


_of_runs = partial(Figure, unit="score", divisor="runs", optional=True)


@attrs.frozen(kw_only=True)
class Flakiness(Aggregator):
    """How much a task's runs differ, over pass or fail (the grader's verdict, else a score from ``threshold`` on).

    With c passes in the k runs of a task, over tasks with two runs and more:

    - a task is ``flaky`` when 0 < c < k; ``flaky_share`` with its interval; ``always`` and ``never`` the others
    - ``within_variance`` = mean of c (k - c) / (k (k - 1))
    - ``icc`` = (MSB - MSW) / (MSB + (n0 - 1) MSW), from the one-way analysis of variance of runs by task, n0 the mean
      number of runs (less their spread where they differ): how much alike runs of one task are
    - ``design_effect`` = 1 + (runs per task - 1) icc, and ``worth`` = runs / design_effect: so many independent samples

    All null with one run a task. Of several models ``models`` has these for each, and the tasks that every model always
    or never passes stand under ``saturated``: they tell models apart no more.
    """

    figures: ClassVar = (
        _of_runs(
            "flaky_share",
            "Flaky tasks",
            better="lower",
            unit="share",
            about="tasks of which some runs pass and some do not / tasks with several runs",
            undefined="one run",
        ),
        _of_runs(
            "within_variance",
            "Variance within tasks",
            better="lower",
            about="mean over tasks of c (k - c) / (k (k - 1))",
        ),
        _of_runs("icc", "Intra-class correlation", better="neither", about="(MSB - MSW) / (MSB + (n0 - 1) MSW)"),
        _of_runs("design_effect", "Design effect", better="neither", about="1 + (runs per task - 1) icc"),
        _of_runs("worth", "Independent samples", unit="count", about="runs / design effect"),
    )
    pooled: ClassVar = False

    threshold: float = 1.0
    """Score from which a run passes, where its grader has no verdict of its own."""
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the interval, between 0 and 1."""

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        passed = grade.score >= self.threshold if grade.passed is None else grade.passed
        return {"runs": 1, "passes": int(passed)}

    @override
    def of_task(self, sums: Mapping[str, float]) -> Numbers | None:
        k, c = _cell(sums)
        return {"runs": k, "several": 1, "flaky": int(0 < c < k)} if k > 1 else None

    @override
    def estimate(self, several: float, flaky: float) -> Mapping[str, float | None]:
        return {"flaky_share": ratio(flaky, several)}

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
        models = {model: tasks for model, tasks in models.items() if tasks}
        if len(models) > 1:
            return {"saturated": {**alike}, "models": {model: self._figures(tasks) for model, tasks in models.items()}}
        return {"saturated": {**alike}, **self._figures(next(iter(models.values()), {}))}

    @staticmethod
    def _figures(tasks: Tasks) -> dict[str, JSON]:
        several = {cell: times for cell, times in tasks.items() if cell[0] > 1}
        number = sum(several.values())
        runs = sum(k * times for (k, _), times in several.items())
        icc = _icc(several) if number > 1 else None
        effect = None if icc is None else 1 + (runs / number - 1) * icc
        variance = math.fsum(times * c * (k - c) / (k * (k - 1)) for (k, c), times in several.items())
        return {
            "tasks": sum(tasks.values()),
            "tasks_with_several_runs": number,
            "always": sum(times for (k, c), times in several.items() if c == k),
            "never": sum(times for (_, c), times in several.items() if not c),
            "flaky": sum(times for (k, c), times in several.items() if 0 < c < k),
            "within_variance": variance / number if number else None,
            "runs": runs,
            "icc": icc,
            "design_effect": effect,
            "worth": runs / effect if effect else None,
        }


def _cell(numbers: Mapping[str, float]) -> tuple[int, int]:
    return int(numbers["runs"]), int(numbers.get("passes", 0))


def _icc(tasks: Tasks) -> float | None:
    """Return the intra-class correlation of pass or fail by the one-way analysis of variance; None without spread."""
    number = sum(tasks.values())
    total = sum(k * times for (k, _), times in tasks.items())
    mean = sum(c * times for (_, c), times in tasks.items()) / total
    between = math.fsum(times * k * (c / k - mean) ** 2 for (k, c), times in tasks.items()) / (number - 1)
    within = math.fsum(times * c * (k - c) / k for (k, c), times in tasks.items()) / (total - number)
    size = (total - sum(k * k * times for (k, _), times in tasks.items()) / total) / (number - 1)
    spread = between + (size - 1) * within
    return (between - within) / spread if spread else None
