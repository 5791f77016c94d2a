"""Aggregator ``flakiness``: tasks that pass sometimes, and what runs of the same task are worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    CellsState,
    Grade,
    Key,
    TaskCells,
    ratio_interval,
    valid_confidence,
)

_CELLS = TaskCells("runs", "passes", "models", "always", "never")


@attrs.frozen(kw_only=True)
class Flakiness(Aggregator[CellsState]):
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

    memory = "per_key"

    threshold: float = 1.0
    """Score from which a run passes, where its grader has no verdict of its own."""
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the interval, between 0 and 1."""

    @override
    def start(self) -> CellsState:
        return _CELLS.start()

    @override
    def add(self, state: CellsState, key: Key, grade: Grade) -> CellsState:
        if grade.score is None:
            return state
        passed = grade.score >= self.threshold if grade.passed is None else grade.passed
        return _CELLS.add(state, key, [1, int(passed), 0, 0, 0])

    @override
    def merge(self, left: CellsState, right: CellsState) -> CellsState:
        return _CELLS.merge(left, right)

    @override
    def finish(self, state: CellsState) -> Mapping[str, JSON]:
        every, models = _CELLS.mapped(state, _judged)
        judged: dict[str, Counter[tuple[int, int]]] = {model: Counter() for model in models}
        for model, cells in models.items():
            for cell, times in cells.items():
                judged[model][int(cell[0]), int(cell[1])] += times
        alike: dict[str, JSON] = {"always": 0, "never": 0, "of": sum(every.values())}
        for cell, times in every.items():
            for at, name in ((3, "always"), (4, "never")):
                if int(cell[at]) == int(cell[2]):
                    alike[name] += times
        found = {**self._figures(next(iter(judged.values())) if len(judged) == 1 else Counter()), "saturated": alike}
        if len(judged) > 1:
            return {"saturated": alike, "models": {model: self._figures(tasks) for model, tasks in judged.items()}}
        return found

    def _figures(self, tasks: Counter[tuple[int, int]]) -> dict[str, JSON]:
        several = {cell: times for cell, times in tasks.items() if cell[0] > 1}
        number = sum(several.values())
        flaky = sum(times for (k, c), times in several.items() if 0 < c < k)
        cells: Counter[tuple[float, ...]] = Counter()
        for (k, c), times in several.items():
            cells[1, int(0 < c < k)] += times
        runs = sum(k * times for (k, _), times in several.items())
        icc = _icc(several) if number > 1 else None
        effect = None if icc is None else 1 + (runs / number - 1) * icc
        variance = math.fsum(times * c * (k - c) / (k * (k - 1)) for (k, c), times in several.items())
        sure: JSON = {**ratio_interval(cells, n=runs, confidence=self.confidence)} if number else {"reason": "one run"}
        return {
            "tasks": sum(tasks.values()),
            "tasks_with_several_runs": number,
            "always": sum(times for (k, c), times in several.items() if c == k),
            "never": sum(times for (_, c), times in several.items() if not c),
            "flaky": flaky,
            "flaky_share": flaky / number if number else None,
            "flaky_share_interval": sure,
            "within_variance": variance / number if number else None,
            "runs": runs,
            "icc": icc,
            "design_effect": effect,
            "worth": runs / effect if effect else None,
        }


def _judged(_model: str, cell: tuple[float, ...]) -> tuple[float, ...]:
    """Return the cell of a model's task with whether all its runs pass, and whether none does."""
    runs, passes = int(cell[0]), int(cell[1])
    return (runs, passes, 1, int(passes == runs), int(not passes))


def _icc(tasks: Mapping[tuple[int, int], int]) -> float | None:
    """Return the intra-class correlation of pass or fail by the one-way analysis of variance; None without spread."""
    number = sum(tasks.values())
    total = sum(k * times for (k, _), times in tasks.items())
    mean = sum(c * times for (_, c), times in tasks.items()) / total
    between = math.fsum(times * k * (c / k - mean) ** 2 for (k, c), times in tasks.items()) / (number - 1)
    within = math.fsum(times * c * (k - c) / k for (k, c), times in tasks.items()) / (total - number)
    size = (total - sum(k * k * times for (k, _), times in tasks.items()) / total) / (number - 1)
    spread = between + (size - 1) * within
    return (between - within) / spread if spread else None
