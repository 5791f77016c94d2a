"""Aggregators ``pass_hat_k`` and ``pass_at_k``: reliability over repeated trials."""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any, Literal

import attrs
import msgspec
from attrs.validators import ge, lt, optional
from typing_extensions import override

from gradestack import Figure, Grade, Grades, Numbers, Outcome
from gradestack_plugins.statistics.mean import IntervalAggregator
from gradestack_plugins.statistics.success import is_success

MOST_K = 100
"""Highest k there is a figure for when ``max_k`` is unset.

More trials than that would take long and say little.
"""
PLANNED = "planned_trials"
"""Count of a grade that says how many trials of its task the recording's own plan names."""
_AT_LEAST_ONE = optional(ge(1))
_SUMS = ("records", "passed", "left_out", "planned", "plans")


class Task(msgspec.Struct, frozen=True):
    """A task of one model.

    Attributes:
        records: Trials on record.
        passed: Trials that passed.
        trials: What they are divided by: trials on record or planned.
        is_left_out: Whether all its samples are skipped: then it is no task.
    """

    records: int
    passed: int
    trials: int
    is_left_out: bool


def _figure(name: str, label: str, about: str, course: Literal["falls", "rises"]) -> Figure:
    """Declare a figure for each number of trials ``k``, which falls or rises with it."""
    divisor = f"{name} tasks {{k}}"
    return Figure(
        f"{name}.{{k}}",
        label,
        about=about,
        divisor=divisor,
        samples="records",
        course=course,
    )


_HAT = _figure(
    "pass_hat_k",
    "pass^k: all of k trials succeed",
    "mean over tasks of C(passed, k) / C(trials, k)",
    "falls",
)
_AT = _figure(
    "pass_at_k",
    "pass@k: one of k trials succeeds",
    "mean over tasks of 1 - C(not passed, k) / C(trials, k)",
    "rises",
)


@attrs.frozen(kw_only=True)
class Trials(IntervalAggregator):
    """Counts trials and passes of the tasks of each model; base of the two figures.

    A trial passes when its grade has ``passed`` set true, or, where a grader gives no verdict, when
    its score is within ``tolerance`` of 1. Failed grades are trials that failed. Skipped ones are
    left out as if they were not in the input. A record without a trial's name is a trial of its
    own. A task is divided by its own trials n, and k runs to the smallest n. A trial that is not
    there counts as not passed only where a plan names it: an option ``trials: 4``, the suite's
    ``num_runs``, or the recording's own (tau2-bench's ``info.num_trials``). A task without any
    trial, on record or planned, is left out and counted in ``tasks_without_trials``.

    Attributes:
        tolerance: How far from 1 a successful score may be.
        max_k: Highest k given; when unset, all that the trials allow up to 100.
        trials: Number of planned trials of each task; default: ``num_runs``.
        confidence: Of the intervals, between 0 and 1.
        num_runs: The suite's.
    """

    version = "4"

    tolerance: float = attrs.field(default=1e-6, validator=[ge(0), lt(math.inf)])
    max_k: int | None = attrs.field(default=None, validator=_AT_LEAST_ONE)
    trials: int | None = attrs.field(default=None, validator=_AT_LEAST_ONE)
    num_runs: int | None = None

    @abc.abstractmethod
    def _share(self, task: Task, k: int) -> Fraction:
        """Return a task's share of the figure."""

    @property
    def _name(self) -> str:
        return self.figures[0].name.removesuffix(".{k}")

    @property
    def _plan(self) -> int | None:
        """Planned trials of each task, where options say so."""
        return self.num_runs if self.trials is None else self.trials

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        planned = grade.counts.get(PLANNED, 0)
        is_left_out = grade.outcome is Outcome.SKIPPED
        if is_left_out and not planned and self._plan is None:
            return None
        is_graded = grade.outcome is Outcome.GRADED
        is_record = is_graded or grade.outcome is Outcome.FAILED
        is_passed = is_graded and self._is_passed(grade)
        numbers: dict[str, float] = {
            "records": is_record,
            "passed": is_passed,
            "graded": is_graded,
            "left_out": is_left_out,
            "planned": planned,
            "plans": planned > 0,
        }
        return {name: int(number) for name, number in numbers.items()}

    def _is_passed(self, grade: Grade) -> bool:
        if grade.passed is None:
            return grade.score is not None and is_success(grade.score, self.tolerance)
        return grade.passed

    @override
    def model_totals(self, grades: Grades) -> Numbers:
        """Return the number of graded trials of a model: without any, there is no figure."""
        graded = grades.totals.get("graded", 0)
        return {"graded_of_model": int(graded)}

    @override
    def task_contribution(self, sums: Mapping[str, float]) -> Mapping[str, float | Fraction] | None:
        task = self._task(*[sums[name] for name in _SUMS])
        if not sums["graded_of_model"] or not task.trials:
            return None
        numbers: dict[str, float | Fraction] = {"records": task.records}
        for k in range(1, min(task.trials, self.max_k or MOST_K) + 1):
            numbers[f"{self._name} {k}"] = self._share(task, k)
            numbers[f"{self._name} tasks {k}"] = 1
        return numbers

    def _task(
        self, records: float, passed: float, left_out: float, planned: float, plans: float
    ) -> Task:
        """Return the task that sums of its grades come to."""
        if self._plan is None:
            n_planned = planned // (plans or 1)
        else:
            n_planned = self._plan
        n_trials = max(records, n_planned - left_out)
        is_left_out = bool(left_out) and not n_trials
        return Task(int(records), int(passed), int(n_trials), is_left_out)

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        """Return the mean share for k = 1, 2, …, up to where a task has no share any more."""
        name = self._name
        means = dict[str, float]()
        k = 1
        n_tasks = totals.get(f"{self._name} tasks 1", 0)
        while n_tasks and totals.get(f"{name} tasks {k}") == n_tasks:
            total = totals[f"{name} {k}"]
            fraction = Fraction(total)
            means[str(k)] = float(fraction / n_tasks)
            k += 1
        return {name: means} if means else {}

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        sums = grades.sums(*_SUMS)
        models = {model: self._tasks(cells) for model, cells in sums[1].items()}
        figures = self._overview([task for tasks in models.values() for task in tasks])
        if figures["trials"] and not grades.totals.get("graded"):
            figures |= {self._name: None, f"{self._name}_reason": "no trial was graded"}
        if len(models) > 1:
            figures["models"] = {model: self._overview(tasks) for model, tasks in models.items()}
        more = figures["tasks_with_more_trials"]
        least = figures["trials"]
        if more:
            n_tasks = figures["tasks"] - figures["tasks_without_trials"]
            warning = f"{more} of {n_tasks} tasks have more trials; k ends at {least}"
            figures["warnings"] = [warning]
        return figures

    def _tasks(self, cells: Counter[tuple[float, ...]]) -> list[Task]:
        elements = cells.elements()
        tasks = [self._task(*cell) for cell in elements]
        return [task for task in tasks if not task.is_left_out]

    def _overview(self, tasks: Sequence[Task]) -> dict[str, Any]:
        """Count tasks, trials, records and successes; with a reason where no task has a trial."""
        trials = [task.trials for task in tasks if task.trials]
        least = min(trials, default=0)
        nothing = {self._name: None, f"{self._name}_reason": "no task has a trial"}
        records = sum(task.records for task in tasks)
        successes = sum(task.passed for task in tasks)
        by_successes = Counter(sorted(task.passed for task in tasks))
        n_by_successes = {str(passed): n for passed, n in by_successes.items()}
        without_trials = len(tasks) - len(trials)
        with_more_trials = len(trials) - trials.count(least)
        return {
            **({} if trials else nothing),
            "tasks": len(tasks),
            "tasks_without_trials": without_trials,
            "tasks_with_more_trials": with_more_trials,
            "trials": least,
            "records": records,
            "successes": successes,
            "tasks_by_successes": n_by_successes,
        }


class PassHatK(Trials):
    """pass^k: the chance that k trials of a task, drawn at random, all succeed, averaged over
    tasks.

    With c successes of a task in n trials, ``pass^k = mean over tasks of C(c, k) / C(n, k)`` for
    k = 1, 2, … to the smallest n; exact fractions, rounded once at the end. pass^1 is pass@1, the
    mean over tasks of c / n.
    """

    figures = (_HAT,)

    @override
    def _share(self, task: Task, k: int) -> Fraction:
        return Fraction(comb(task.passed, k), comb(task.trials, k))


class PassAtK(Trials):
    """pass@k: the chance that at least one of k trials of a task, drawn at random, succeeds,
    averaged over tasks.

    With c successes of a task in n trials, ``pass@k = mean over tasks of
    1 - C(n - c, k) / C(n, k)`` for k = 1, 2, … to the smallest n.
    """

    figures = (_AT,)

    @override
    def _share(self, task: Task, k: int) -> Fraction:
        fraction = Fraction(comb(task.trials - task.passed, k), comb(task.trials, k))
        return 1 - fraction
