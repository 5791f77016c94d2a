"""Trials: what ``pass_hat_k`` and ``pass_at_k`` share, successes of the tasks of each model."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import count
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import Aggregator, Figure, Grade, Grades, Numbers, Outcome, valid_confidence
from gradestack_plugins.tau_bench.reward import check_tolerance, is_success

MOST_K: Final = 100
"""Highest k there is a figure for when ``max_k`` is unset; more trials than that would take long and say little."""
NO_TRIAL: Final = "no task has a trial"


@attrs.frozen
class Task:
    """What is known of one task of one model."""

    records: int
    successes: int
    trials: int
    """Distinct trials of all records of the model."""
    reward: float = 0.0
    """Sum of its scores, where a preset asks for it."""


def over_tasks(name: str, label: str, about: str) -> Figure:
    """Return the declaration of a figure for each k: the mean share of the tasks that have one."""
    return Figure(f"{name}.{{k}}", label, about=about, divisor=f"{name} tasks {{k}}", samples="records")


@attrs.frozen(kw_only=True)
class Trials(Aggregator):
    """Counts records and successes of the tasks of each model; base of the two figures.

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
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.outcome is Outcome.SKIPPED:
            return None
        return {} if grade.outcome is Outcome.MISSING else {"records": 1, "successes": int(self._succeeded(grade))}

    def _succeeded(self, grade: Grade) -> bool:
        if grade.outcome is not Outcome.GRADED or grade.score is None:
            return False
        return grade.passed if grade.passed is not None else is_success(grade.score, self.tolerance)

    @override
    def whole(self, grades: Grades) -> Numbers:
        return {"trials": grades.trials}

    @override
    def of_task(self, sums: Mapping[str, float]) -> Mapping[str, float | Fraction] | None:
        records, successes, trials = (int(sums.get(name, 0)) for name in ("records", "successes", "trials"))
        task = Task(records, successes, trials, sums.get("reward", 0.0))
        found: dict[str, float | Fraction] = {"records": task.records}
        for name, shares in self._shares(task).items():
            for k, share in enumerate(shares, 1):
                found |= {f"{name} {k}": share, f"{name} tasks {k}": 1}
        return found if len(found) > 1 else None

    @abc.abstractmethod
    def _shares(self, task: Task) -> Mapping[str, Iterable[Fraction]]:
        """Return a task's share of each figure for k = 1, 2, …, as far as it has one."""

    def _ks(self, most: int) -> range:
        return range(1, min(most, MOST_K if self.max_k is None else self.max_k) + 1)

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        models = grades.sums("records", "successes").rounded[1]
        several = len(models) > 1
        tasks: dict[str, Counter[Task]] = {}
        for model, cells in models.items():
            trials = int(self.whole(grades.of_model(model) if several else grades)["trials"])
            tasks[model] = Counter(
                {Task(int(records), int(successes), trials): times for (records, successes), times in cells.items()}
            )
        found = self._overview(sum(tasks.values(), Counter()))
        if several:
            found["models"] = {model: self._overview(each) for model, each in tasks.items()}
        return found

    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        """Return what else is known of tasks."""
        by_successes: Counter[int] = Counter()
        for task, times in tasks.items():
            by_successes[task.successes] += times
        return {
            "tasks": tasks.total(),
            "records": sum(task.records * times for task, times in tasks.items()),
            "successes": sum(task.successes * times for task, times in tasks.items()),
            "tasks_by_successes": {str(successes): by_successes[successes] for successes in sorted(by_successes)},
        }


def mean_shares(sums: Mapping[str, Any], name: str, *, of_all: bool = False) -> dict[str, Any]:
    """Return the mean share for k = 1, 2, …, over the tasks that have one.

    Args:
        sums: Sums over tasks.
        name: The figure.
        of_all: Whether k ends where a task has no share any more, rather than where none has.
    """
    found: dict[str, float | None] = {}
    for k in count(1):
        tasks = sums.get(f"{name} tasks {k}", 0)
        if not tasks or (of_all and tasks < sums[f"{name} tasks 1"]):
            break
        found[str(k)] = _float(Fraction(sums.get(f"{name} {k}", 0)) / tasks)
    return {name: found} if found else {}


def no_figures(names: Iterable[str], reason: str) -> dict[str, Any]:
    """Return figures that are undefined, and why."""
    found: dict[str, Any] = {}
    for name in names:
        found |= {name: None, f"{name}_reason": reason}
    return found


def _float(value: Fraction) -> float | None:
    """Return a fraction, rounded once; None when it is beyond any float.

    Thousands of records of one trial, which pass^k counts as successes of few trials, make such figures.
    """
    try:
        return float(value)
    except OverflowError:
        return None
