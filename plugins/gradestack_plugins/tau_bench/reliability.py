"""Aggregators ``pass_hat_k`` and ``pass_at_k``: reliability over repeated trials."""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import count, islice
from math import comb
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import Figure, Grade, Grades, Numbers, Outcome, Profile
from gradestack_plugins.statistics.mean import IntervalAggregator
from gradestack_plugins.tau_bench.grader import is_success

MOST_K: Final = 100
"""Highest k there is a figure for when ``max_k`` is unset.

More trials than that would take long and say little.
"""
PLANNED: Final = "planned_trials"
"""Count of a grade that says how many trials of its task the recording's own plan names."""
_NO_TRIAL: Final = "no task has a trial"
_NOTHING_GRADED: Final = "no trial was graded"
_LISTED: Final = 4


class Task(msgspec.Struct, frozen=True):
    """A task of one model.

    Attributes:
        records: Trials on record.
        passed: Trials that passed.
        trials: What they are divided by: trials on record or planned.
    """

    records: int
    passed: int
    trials: int


def _figure(name: str, label: str, about: str, course: Literal["falls", "rises"]) -> Figure:
    return Figure(
        f"{name}.{{k}}",
        label,
        about=about,
        divisor=f"{name} tasks {{k}}",
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
        confidence: Of the intervals, between 0 and 1.
        profile: ``upstream`` uses no plan that the recording states.
        num_runs: The suite's.
    """

    version: ClassVar[str] = "3"

    tolerance: float = attrs.field(
        default=1e-6, validator=[attrs.validators.ge(0), attrs.validators.lt(math.inf)]
    )
    max_k: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(1))
    )
    of_scores: ClassVar[bool] = True  # by the rule of its program pass^k may be above 1

    profile: Profile = "documented"
    num_runs: int | None = None

    @property
    def _plan(self) -> int | None:
        """Planned trials of each task, where options say so."""
        trials = getattr(self, "trials", None)
        return trials if isinstance(trials, int) else self.num_runs

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        numbers: dict[str, float] = {}
        planned = grade.counts.get(PLANNED, 0)
        if planned and self.profile != "upstream":
            numbers = {"planned": planned, "plans": 1}
        if grade.outcome is Outcome.SKIPPED:
            is_planned = bool(numbers) or self._plan is not None
            return {"left_out": 1, **numbers} if is_planned else None
        if grade.outcome is Outcome.MISSING:
            return numbers
        is_graded = grade.outcome is Outcome.GRADED
        counts = {"records": 1, "passed": int(self._is_passed(grade)), "graded": int(is_graded)}
        return {**counts, **numbers}

    @override
    def model_totals(self, grades: Grades) -> Numbers:
        """Return how many trials of a model were graded: without any, there is no figure."""
        tasks, _ = grades.sums("graded")
        return {"graded_of_model": sum(graded * times for (graded,), times in tasks.items())}

    def _has_figures(self, sums: Mapping[str, float]) -> bool:
        return self.profile == "upstream" or bool(sums["graded_of_model"])

    def _is_passed(self, grade: Grade) -> bool:
        if grade.outcome is not Outcome.GRADED or grade.score is None:
            return False
        return grade.passed if grade.passed is not None else is_success(grade.score, self.tolerance)

    def _task(self, sums: Mapping[str, float]) -> Task:
        """Return the task that sums of its grades come to."""
        records, passed = int(sums.get("records", 0)), int(sums.get("passed", 0))
        planned = self._plan
        if planned is None:
            plans = sums.get("plans", 0)
            planned = int(sums["planned"] // plans) if plans else 0
        not_left_out = planned - int(sums.get("left_out", 0))
        trials = int(sums.get("names", max(records, not_left_out)))
        return Task(records, passed, trials)

    @override
    def task_contribution(self, sums: Mapping[str, float]) -> Mapping[str, float | Fraction] | None:
        if not self._has_figures(sums):
            return None
        task = self._task(sums)
        figures: dict[str, float | Fraction] = {"records": task.records}
        name = self._name
        for k, share in enumerate(self._shares(task), 1):
            figures |= {f"{name} {k}": share, f"{name} tasks {k}": 1}
        return figures if len(figures) > 1 else None

    @property
    def _name(self) -> str:
        return self.figures[0].name.partition(".")[0]

    @abc.abstractmethod
    def _shares(self, task: Task) -> Iterable[Fraction]:
        """Return a task's share of the figure for k = 1, 2 and so on."""

    def _ks(self, most: int) -> range:
        return range(1, min(most, MOST_K if self.max_k is None else self.max_k) + 1)

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        return _mean_shares(totals, self._name)

    def _tasks(self, grades: Grades) -> Counter[Task]:
        """Return how many tasks of one model are which."""
        names = ("records", "passed", "left_out", "planned", "plans")
        tasks: Counter[Task] = Counter()
        known = self.model_totals(grades)
        for numbers, times in grades.sums(*names)[0].items():
            sums = {**known, **dict(zip(names, numbers, strict=True))}
            task = self._task(sums)
            if task.trials or not sums["left_out"]:
                tasks[task] += times
        return tasks

    def _models(self, grades: Grades) -> dict[str, Grades]:
        """Return the grades of each model that has any which count."""
        models = [*grades.sums("records")[1]]
        if len(models) < 2:
            return dict.fromkeys(models, grades)
        return {model: grades.of_model(model) for model in models}

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        models = self._models(grades)
        tasks = {model: self._tasks(each) for model, each in models.items()}
        figures = self._overview(sum(tasks.values(), Counter()))
        if not self._has_figures(self.model_totals(grades)):
            figures = {self._name: None, f"{self._name}_reason": _NOTHING_GRADED, **figures}
        if len(models) > 1:
            figures["models"] = {model: self._overview(each) for model, each in tasks.items()}
        if warning := _unevenness(figures):
            figures["warnings"] = [warning]
        return figures

    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        by_passes: Counter[int] = Counter()
        for task, times in tasks.items():
            by_passes[task.passed] += times
        least = min((task.trials for task in tasks if task.trials), default=0)
        nothing = {self._name: None, f"{self._name}_reason": _NO_TRIAL}
        return {
            **({} if least else nothing),
            "tasks": tasks.total(),
            "tasks_without_trials": sum(n for task, n in tasks.items() if not task.trials),
            "tasks_with_more_trials": sum(n for task, n in tasks.items() if task.trials > least),
            "trials": least,
            "records": sum(task.records * times for task, times in tasks.items()),
            "successes": sum(task.passed * times for task, times in tasks.items()),
            "tasks_by_successes": {
                str(successes): by_passes[successes] for successes in sorted(by_passes)
            },
        }


def _unevenness(figures: Mapping[str, Any]) -> str:
    """Return that tasks have unequal numbers of trials; nothing where they have not."""
    more, least = figures["tasks_with_more_trials"], figures["trials"]
    tasks = figures["tasks"] - figures["tasks_without_trials"]
    return f"{more} of {tasks} tasks have more trials; k ends at {least}" if more else ""


def _mean_shares(sums: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the mean share for k = 1, 2, …, up to where a task has no share any more.

    Thousands of records of one trial, which tau-bench's program counts as successes of few trials,
    make means beyond any float: None.
    """
    means: dict[str, float | None] = {}
    for k in count(1):
        tasks = sums.get(f"{name} tasks {k}", 0)
        if not tasks or tasks < sums[f"{name} tasks 1"]:
            break
        try:
            means[str(k)] = float(Fraction(sums.get(f"{name} {k}", 0)) / tasks)
        except OverflowError:
            means[str(k)] = None
    return {name: means} if means else {}


def _valid_trials(_component: object, _field: object, trials: str | int | None) -> None:
    if isinstance(trials, bool) or (isinstance(trials, int) and trials < 1):
        raise ValueError(f"trials must be at least 1, got {trials}")


@attrs.frozen(kw_only=True)
class PassHatK(Trials):
    """pass^k: the chance that k trials of a task, drawn at random, all succeed, averaged over
    tasks.

    With c successes of a task in n trials, ``pass^k = mean over tasks of C(c, k) / C(n, k)`` for
    k = 1, 2, … to the smallest n; exact fractions, rounded once at the end. pass^1 is pass@1, the
    mean over tasks of c / n.

    tau-bench's own program (``trials: file``, which the profile ``upstream`` implies) has another
    n: the number of distinct trial names of the model. There a task that lacks a trial fails it,
    and a trial recorded twice counts twice, so that the figure may be above 1. Where that differs
    from the formula the figures have no interval, and a warning names both.

    Attributes:
        trials: What n is: ``task``, ``file``, or the number of planned trials of each task.
    """

    figures: ClassVar = (_HAT,)

    trials: Literal["file", "task"] | int | None = attrs.field(
        default=None, validator=_valid_trials
    )

    @property
    def _is_by_file(self) -> bool:
        by_default = self.trials is None and self._plan is None and self.profile == "upstream"
        return self.trials == "file" or by_default

    @override
    def model_totals(self, grades: Grades) -> Numbers:
        known = dict(super().model_totals(grades))
        return {**known, "names": self._recorded(grades).names} if self._is_by_file else known

    @override
    def _shares(self, task: Task) -> Iterable[Fraction]:
        c, n = task.passed, task.trials
        return [Fraction(comb(c, k), comb(n, k)) for k in self._ks(n)]

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        figures = super().compute(grades)
        models = self._models(grades)
        for model, graded in models.items():
            self._name_both(figures, graded, model if len(models) > 1 else None)
        return figures

    @override
    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        return {**super()._overview(tasks), "rule": "file" if self._is_by_file else "task"}

    def _name_both(self, figures: dict[str, Any], grades: Grades, model: str | None) -> None:
        """Say both figures of a model where tau-bench's own program has others."""
        overview = figures if model is None else figures["models"][model]
        if not self._is_by_file and not overview["tasks_with_more_trials"]:
            return
        recorded = self._recorded(grades)
        by_program = recorded.program_figures(self._ks)
        by_task = recorded.task_figures(self._ks)
        if by_program == by_task or not (self._is_by_file or recorded.has_complete_task()):
            return
        named = "" if model is None else f"{model or '(no name)'}: "
        text = (
            f"{named}tau-bench's own program divides by the {recorded.names} trial names "
            f"of the file: pass^k {_listed(by_program)}; by each task's own trials "
            f"{_listed(by_task)}"
        )
        figures["warnings"] = [*figures.get("warnings", ()), text]
        if self._is_by_file:
            reason = {"reason": "counted as tau-bench's own program does"}
            intervals = {f"{self._name}_interval": dict.fromkeys(by_program, reason)}
            figures |= intervals
            overview |= intervals

    def _recorded(self, grades: Grades) -> RecordedTrials:
        """Return the trials of one model as its file has them, copies too."""
        tasks: dict[str, list[tuple[Hashable, bool]]] = {}
        for key, grade in grades:
            if grade.outcome in {Outcome.SKIPPED, Outcome.MISSING}:
                continue
            trials = tasks.setdefault(key.id if key.cluster is None else key.cluster, [])
            trials.append((key.run, self._is_passed(grade)))
        return RecordedTrials([*tasks.values()])


class RecordedTrials:
    """The trials of one model: name and verdict of each record, by task.

    Attributes:
        names: Number of distinct names. Records without one are numbered within their task.
    """

    def __init__(self, tasks: Sequence[Sequence[tuple[Hashable, bool]]]) -> None:
        self._tasks = [
            [((n,) if name is None else name, passed) for n, (name, passed) in enumerate(trials)]
            for trials in tasks
        ]
        self.names = len({name for trials in self._tasks for name, _ in trials})

    def has_complete_task(self) -> bool:
        """Return whether some task has a trial of every name: tasks share their trials' names."""
        return any(len(dict(trials)) == self.names for trials in self._tasks)

    def program_figures(self, ks: Callable[[int], range]) -> dict[str, float]:
        """Return pass^k as tau-bench's own program has it."""
        passes = [sum(passed for _, passed in trials) for trials in self._tasks]
        return _mean_hat([(c, self.names) for c in passes], ks(self.names))

    def task_figures(self, ks: Callable[[int], range]) -> dict[str, float]:
        """Return pass^k by each task's own trials, of those of one name the last."""
        tasks = [[*dict(trials).values()] for trials in self._tasks]
        least = min(map(len, tasks), default=0)
        return _mean_hat([(sum(each), len(each)) for each in tasks], ks(least))


def _mean_hat(tasks: Sequence[tuple[int, int]], ks: range) -> dict[str, float]:
    means: dict[str, float] = {}
    for k in ks:
        shares = [Fraction(comb(c, k), comb(n, k)) for c, n in tasks]
        with suppress(OverflowError):
            means[str(k)] = float(sum(shares, Fraction(0)) / len(shares))
    return means


def _listed(figures: Mapping[str, float]) -> str:
    shown = [f"{k}: {value:.3f}" for k, value in islice(figures.items(), _LISTED)]
    return ", ".join(shown) + (", …" if len(figures) > _LISTED else "")


@attrs.frozen(kw_only=True)
class PassAtK(Trials):
    """pass@k: the chance that at least one of k trials of a task, drawn at random, succeeds,
    averaged over tasks.

    With c successes of a task in n trials, ``pass@k = mean over tasks of 1 - C(n - c, k) / C(n, k)``
    for k = 1, 2, … to the smallest n.

    Attributes:
        trials: What n is: ``task``, or the number of planned trials of each task.
    """

    figures: ClassVar = (_AT,)

    trials: Literal["task"] | int | None = attrs.field(default=None, validator=_valid_trials)

    @override
    def _shares(self, task: Task) -> Iterable[Fraction]:
        c, n = task.passed, task.trials
        return [1 - Fraction(comb(n - c, k), comb(n, k)) for k in self._ks(n)]
