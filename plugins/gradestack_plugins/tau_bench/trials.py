"""Trials: what ``pass_hat_k`` and ``pass_at_k`` share, grades grouped by model and task."""

from __future__ import annotations

import abc
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NotRequired, TypedDict

import attrs
from typing_extensions import override

from gradestack import (
    Aggregator,
    CellsState,
    Grade,
    Key,
    Memory,
    Outcome,
    TaskCells,
    interval,
    jackknife,
    valid_confidence,
)
from gradestack_plugins.tau_bench.reward import check_tolerance, is_success

MOST_K = 100
"""Highest k given when ``max_k`` is unset; more trials than that would take long and say little."""

CELLS = TaskCells("records", "successes", "unnamed")
"""Of a task: records, successes, records without a trial identifier."""


_NO_TRIAL: list[float] = [0, 0, 0]
_TRIAL: dict[tuple[bool, bool], list[float]] = {
    (success, unnamed): [1, int(success), int(unnamed)] for success in (False, True) for unnamed in (False, True)
}
"""Whether it succeeded, whether it has no identifier -> the cell of one record; thousands are kept."""
_GRADED, _SKIPPED, _MISSING = Outcome.GRADED, Outcome.SKIPPED, Outcome.MISSING  # members are properties of the class


class TrialsState(TypedDict):
    """JSON state: trials by model, and what became of each task."""

    runs: dict[str, dict[str, int]]
    """Model -> distinct trial identifiers, as JSON text (a set; the values mean nothing)."""
    cells: CellsState
    successes: NotRequired[dict[str, dict[str, int]]]
    """With a preset: model -> trial -> its successes."""
    rewards: NotRequired[CellsState]
    """With a preset: scores by task."""


@attrs.frozen
class Task:
    """What is known of one task of one model."""

    records: int
    successes: int
    trials: int
    """Distinct trials of the whole input (of this model)."""


@attrs.frozen(kw_only=True)
class Trials(Aggregator[TrialsState]):
    """Groups grades by model and task and counts trials and successes; base of the two figures.

    A record is a success when its grade has ``passed`` set true, or, where a grader gives no verdict, when its score is
    within ``tolerance`` of 1. Failed grades are trials that failed. Skipped ones are left out as if they were not in
    the input. A missing one (a task of the dataset without a record) is a task without trials.

    Records without a trial identifier count as trials of their own: the first such record of a task is its trial 1, the
    second its trial 2, and so on.

    Attributes:
        tolerance: How far from 1 a successful score may be.
        max_k: Highest k given; when unset, all that the trials allow up to 100.
        confidence: Of the intervals, between 0 and 1.
    """

    version: ClassVar[str] = "2"
    figure: ClassVar[str]
    """Name of the figure."""
    memory: ClassVar[Memory] = "per_key"

    tolerance: float = 1e-6
    max_k: int | None = None
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    def __attrs_post_init__(self) -> None:
        """Check the options.

        Raises:
            ValueError: A negative tolerance or a ``max_k`` below 1.
        """
        check_tolerance(self.tolerance)
        if self.max_k is not None and self.max_k < 1:
            raise ValueError(f"max_k must be at least 1, got {self.max_k}")

    @override
    def start(self) -> TrialsState:
        return {"runs": {}, "cells": CELLS.start()}

    @override
    def add(self, state: TrialsState, key: Key, grade: Grade) -> TrialsState:
        return Trials.add_many(self, state, (key,), (grade,))

    @override
    def add_many(self, state: TrialsState, keys: Sequence[Key], grades: Sequence[Grade]) -> TrialsState:
        told = [pair for pair in zip(keys, grades, strict=True) if pair[1].outcome is not _SKIPPED]
        cells = [
            _NO_TRIAL if grade.outcome is _MISSING else _TRIAL[self._succeeded(grade), key.run is None]
            for key, grade in told
        ]
        CELLS.add_many(state["cells"], [key for key, _ in told], cells)
        for model, run in dict.fromkeys([(key.model, key.run) for key, grade in told if grade.outcome is not _MISSING]):
            if run is not None:
                state["runs"].setdefault(model or "", {})[run_text(run)] = 1
        return state

    def _succeeded(self, grade: Grade) -> bool:
        if grade.outcome is not _GRADED or grade.score is None:
            return False
        return grade.passed if grade.passed is not None else is_success(grade.score, self.tolerance)

    @override
    def merge(self, left: TrialsState, right: TrialsState) -> TrialsState:
        for model, runs in right["runs"].items():
            left["runs"].setdefault(model, {}).update(runs)
        CELLS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: TrialsState) -> dict[str, Any]:
        state = {**state, "cells": CELLS.settled(state["cells"])}
        found = self._finished(state)
        if len(state["cells"]) > 1:
            found["models"] = {model: self._finished(self._of_model(state, model)) for model in state["cells"]}
        return found

    def _of_model(self, state: TrialsState, model: str) -> TrialsState:
        return {"runs": {model: state["runs"].get(model, {})}, "cells": {model: state["cells"][model]}}

    def _finished(self, state: TrialsState) -> dict[str, Any]:
        """Return the figures over all models of a state, clustered by task."""
        tasks: Counter[Task] = Counter()
        trials = {}
        for model, cells in CELLS.rounded(state["cells"])[1].items():
            most = trials[model] = max([len(state["runs"].get(model, ())), *(counted(cell)[2] for cell in cells)])
            for cell, times in cells.items():
                records, successes, _ = counted(cell)
                tasks[Task(records, successes, most)] += times
        ks = range(1, min(self._highest(tasks), MOST_K if self.max_k is None else self.max_k) + 1)
        found: dict[str, Any] = {self.figure: {str(k): self._mean(tasks, k) for k in ks}}
        if ks:
            alike, _ = CELLS.mapped(state["cells"], lambda model, cell: self._shares(cell, trials[model], ks))
            found[f"{self.figure}_interval"] = self._intervals(alike, ks)
        else:
            found = {self.figure: None, f"{self.figure}_reason": "no task has a trial"}
        return {**found, **self._more(tasks, ks), **_overview(tasks)}

    def _mean(self, tasks: Counter[Task], k: int) -> float | None:
        """Return the mean share over the tasks that have one, rounded once; None when it is beyond any float."""
        total, number = Fraction(0), 0
        for task, times in tasks.items():
            share = self._share(task, k)
            if share is not None:
                total, number = total + share * times, number + times
        return _float(total / number)

    def _shares(self, cell: tuple[float, ...], trials: int, ks: range) -> tuple[float, ...]:
        """Return of one task its records, and for each k whether it has a share, and which."""
        records, successes, _ = counted(cell)
        found = [float(records)]
        for k in ks:
            share = self._share(Task(records, successes, trials), k)
            value = None if share is None else _float(share)
            found += (0.0, 0.0) if value is None else (1.0, value)
        return tuple(found)

    def _intervals(self, cells: Counter[tuple[float, ...]], ks: range) -> dict[str, Any]:
        found = {}
        for place, k in enumerate(ks):
            alike: Counter[tuple[float, ...]] = Counter()
            for cell, times in cells.items():
                tasks, value = cell[1 + 2 * place : 3 + 2 * place]
                if tasks:
                    alike[cell[0], tasks, value] += times
            n = sum(int(records) * times for (records, *_), times in alike.items())
            estimate = jackknife(_mean_share, alike, 3)["mean"]
            found[str(k)] = interval(estimate, n, confidence=self.confidence)
        return found

    @abc.abstractmethod
    def _share(self, task: Task, k: int) -> Fraction | None:
        """Return a task's share of the figure; None where it has none."""

    @abc.abstractmethod
    def _highest(self, tasks: Iterable[Task]) -> int:
        """Return the highest k there is a figure for; 0 without any."""

    @abc.abstractmethod
    def _more(self, tasks: Counter[Task], ks: range) -> dict[str, Any]:
        """Return what else is known of the tasks."""


@lru_cache(maxsize=1024, typed=True)
def run_text(name: int | str | None) -> str:
    """Return a trial identifier as JSON text: 1 and "1" are two."""
    return json.dumps(name)


def counted(cell: tuple[float, ...]) -> tuple[int, int, int]:
    """Return of a task its records, its successes, and its records without a trial identifier."""
    records, successes, unnamed = map(int, cell)
    return records, successes, unnamed


def _mean_share(_records: float, tasks: float, shares: float) -> dict[str, float | None]:
    return {"mean": shares / tasks if tasks else None}


def _float(value: Fraction) -> float | None:
    """Return a fraction, rounded; None when it is beyond any float.

    Thousands of records of one trial, which pass^k counts as successes of few trials, make such figures.
    """
    try:
        return float(value)
    except OverflowError:
        return None


def _overview(tasks: Counter[Task]) -> dict[str, Any]:
    by_successes: Counter[int] = Counter()
    for task, times in tasks.items():
        by_successes[task.successes] += times
    return {
        "tasks": tasks.total(),
        "records": sum(task.records * times for task, times in tasks.items()),
        "successes": sum(task.successes * times for task, times in tasks.items()),
        "tasks_by_successes": {str(successes): by_successes[successes] for successes in sorted(by_successes)},
    }
