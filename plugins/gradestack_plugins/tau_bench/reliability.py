"""Aggregators ``pass_hat_k`` and ``pass_at_k``: reliability over repeated trials of the same tasks."""

from __future__ import annotations

import abc
import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypedDict, TypeVar

import attrs
from typing_extensions import override

from gradestack import Aggregator, Grade, Key, Memory, Outcome
from gradestack_plugins.statistics.tasks import OPEN, Tasks, merge_tasks, no_tasks, put_away, values_of
from gradestack_plugins.tau_bench.reward import check_tolerance, is_success

MOST_K = 100
"""Highest k given when ``max_k`` is unset; more trials than that would take long and say little."""

FoundT = TypeVar("FoundT")
Tally = list[int]
"""Of one task: records, successes, records without a trial identifier."""


class ModelState(TypedDict):
    """Tasks and trials of one model."""

    runs: dict[str, int]
    """Distinct trial identifiers, as JSON text (a set; the values mean nothing)."""
    tasks: Tasks[Tally]


TrialsState = dict[str, ModelState]
"""Model name as JSON text -> its tasks and trials."""


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
    """

    version: ClassVar[str] = "1"
    memory: ClassVar[Memory] = "per_key"

    tolerance: float = 1e-6
    max_k: int | None = None

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
        return {}

    @override
    def add(self, state: TrialsState, key: Key, grade: Grade) -> TrialsState:
        if grade.outcome is Outcome.SKIPPED:
            return state
        model = state.get(_text(key.model))
        if model is None:
            model = state[_text(key.model)] = _new_model()
        tally = [0, 0, 0]
        if grade.outcome is not Outcome.MISSING:
            tally = [1, int(self._succeeded(grade)), int(key.run is None)]
            if key.run is not None:
                model["runs"][_text(key.run)] = 1
        tallies = model["tasks"]["open"]
        held = tallies.get(key.id)
        tallies[key.id] = tally if held is None else _joined(held, tally)
        if held is None and len(tallies) > OPEN:
            put_away(model["tasks"], _joined)
        return state

    def _succeeded(self, grade: Grade) -> bool:
        if grade.outcome is not Outcome.GRADED or grade.score is None:
            return False
        return grade.passed if grade.passed is not None else is_success(grade.score, self.tolerance)

    @override
    def merge(self, left: TrialsState, right: TrialsState) -> TrialsState:
        for name, other in right.items():
            model = left.setdefault(name, _new_model())
            model["runs"].update(other["runs"])
            merge_tasks(model["tasks"], other["tasks"], _joined)
        return left

    @abc.abstractmethod
    @override
    def finish(self, state: TrialsState) -> dict[str, Any]:
        """Return the figures."""

    def _ks(self, highest: int) -> range:
        return range(1, min(highest, MOST_K if self.max_k is None else self.max_k) + 1)


@lru_cache(maxsize=1024, typed=True)
def _text(name: int | str | None) -> str:
    return json.dumps(name)


def _new_model() -> ModelState:
    return {"runs": {}, "tasks": no_tasks()}


def _joined(left: Tally, right: Tally) -> Tally:
    return [a + b for a, b in zip(left, right, strict=True)]


def tasks_of(state: TrialsState) -> Counter[Task]:
    """Return how many tasks are alike, over all models."""
    found: Counter[Task] = Counter()
    for model in state.values():
        tallies = Counter(map(tuple, values_of(model["tasks"], _joined)))
        trials = max([len(model["runs"]), *(unnamed for _, _, unnamed in tallies)])
        for (records, successes, _), times in tallies.items():
            found[Task(records, successes, trials)] += times
    return found


def _mean(tasks: Counter[tuple[int, int]], figure: Callable[[int, int], Fraction]) -> float | None:
    """Return the mean of ``figure(n, c)`` over counted (n, c) pairs, rounded once; None when it is beyond any float."""
    total = sum((figure(n, c) * times for (n, c), times in tasks.items()), Fraction(0))
    try:
        return float(total / tasks.total())
    except OverflowError:  # thousands of records of one trial, which pass^k counts as successes of few trials
        return None


def _counted(tasks: Counter[Task], what: Callable[[Task], FoundT]) -> Counter[FoundT]:
    found: Counter[FoundT] = Counter()
    for task, times in tasks.items():
        found[what(task)] += times
    return found


def _by_k(name: str, figures: dict[str, float | None]) -> dict[str, Any]:
    """Return the figures under their name, or null and why."""
    return {name: figures} if figures else {name: None, f"{name}_reason": "no task has a trial"}


def _overview(tasks: Counter[Task]) -> dict[str, Any]:
    by_successes = _counted(tasks, lambda task: task.successes)
    return {
        "tasks": tasks.total(),
        "records": sum(task.records * times for task, times in tasks.items()),
        "successes": sum(task.successes * times for task, times in tasks.items()),
        "tasks_by_successes": {str(successes): by_successes[successes] for successes in sorted(by_successes)},
    }


@attrs.frozen(kw_only=True)
class PassHatK(Trials):
    """pass^k: the chance that k trials of a task, drawn at random, all succeed, averaged over tasks.

    With c successes of a task in n trials, ``pass^k = mean over tasks of C(c, k) / C(n, k)`` for k = 1, 2, …; exact
    fractions, rounded once at the end.

    - ``trials: file`` (tau-bench, the default): n is the number of distinct trial identifiers in the input (of the same
      model: each file is one where several are read), k runs to n. A task that lacks a trial counts as failing it; a
      task recorded more often than n times can raise the figure above 1, as in the original.
    - ``trials: task`` (tau2-bench): n is the number of records of that task, k runs to the smallest n. Tasks without
      any record are left out and counted in ``tasks_without_trials``.

    Attributes:
        trials: What n is.
    """

    trials: Literal["file", "task"] | None = None

    @override
    def finish(self, state: TrialsState) -> dict[str, Any]:
        tasks = tasks_of(state)
        rule = self.trials or "file"
        pairs = _counted(tasks, lambda task: (task.trials if rule == "file" else task.records, task.successes))
        used = Counter({pair: times for pair, times in pairs.items() if pair[0] > 0})
        trials = min((n for n, _ in used), default=0)
        return {
            **_by_k("pass_hat_k", {str(k): _mean(used, _all_succeed(k)) for k in self._ks(trials)}),
            "rule": rule,
            "trials": trials,
            "tasks_without_trials": pairs.total() - used.total(),
            **_overview(tasks),
        }


def _all_succeed(k: int) -> Callable[[int, int], Fraction]:
    return lambda n, c: Fraction(math.comb(c, k), math.comb(n, k))


@attrs.frozen(kw_only=True)
class PassAtK(Trials):
    """pass@k: the chance that at least one of k trials of a task, drawn at random, succeeds, averaged over tasks.

    With c successes in the n records of a task, ``pass@k = mean over tasks with n >= k of 1 - C(n - c, k) / C(n, k)``.
    Tasks with fewer than k records have no such figure; ``tasks_at_k`` says how many took part.
    """

    @override
    def finish(self, state: TrialsState) -> dict[str, Any]:
        tasks = tasks_of(state)
        pairs = _counted(tasks, lambda task: (task.records, task.successes))
        ks = self._ks(max((task.records for task in tasks), default=0))
        used = {k: Counter({pair: times for pair, times in pairs.items() if pair[0] >= k}) for k in ks}
        return {
            **_by_k("pass_at_k", {str(k): _mean(used[k], _one_succeeds(k)) for k in ks}),
            "tasks_at_k": {str(k): used[k].total() for k in ks},
            **_overview(tasks),
        }


def _one_succeeds(k: int) -> Callable[[int, int], Fraction]:
    return lambda n, c: 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
