"""Aggregators ``pass_hat_k`` and ``pass_at_k``: reliability over repeated trials of the same tasks."""

from __future__ import annotations

import abc
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import partial
from itertools import count
from math import comb
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    Aggregator,
    Figure,
    Grade,
    Grades,
    Numbers,
    Outcome,
    preset_version,
    ratio_interval,
    valid_confidence,
)
from gradestack_plugins.tau_bench.grader import check_tolerance, is_success

MOST_K: Final = 100
"""Highest k there is a figure for when ``max_k`` is unset; more trials than that would take long and say little."""
PRESETS: Final = {"tau2/pass": "a2c0247", "vitabench/pass": "14db9e3", "mcpmark/pass": "1b82b71"}
_NO_TRIAL: Final = "no task has a trial"


def _trials(grades: Grades) -> int:
    """Return the number of trials: names of runs; samples without one are numbered within their task.

    Skipped and missing samples are none.
    """
    table = grades.table
    none = {Outcome.SKIPPED, Outcome.MISSING}
    counts = [grade.outcome not in none for grade in table.grades(grades.key)]
    verdicts, runs, tasks = table.verdicts[grades.key].codes, table.keys["run"], table.tasks()[1]
    rows = grades.rows if all(counts) else [row for row in grades.rows if counts[verdicts[row]]]
    names = set(map(runs.codes.__getitem__, rows))
    unnamed = {code for code in names if runs.values[code] is None}
    of_task = Counter([tasks[row] for row in rows if runs.codes[row] in unnamed]) if unnamed else {}
    return max(len(names - unnamed), *of_task.values(), 0)


class Task(msgspec.Struct, frozen=True):
    """A task of one model."""

    records: int
    successes: int
    trials: int
    """Distinct trials of all records of the model."""
    reward: float = 0.0
    """Sum of its scores, where a preset asks for it."""


def _figure(name: str, label: str, about: str) -> Figure:
    return Figure(f"{name}.{{k}}", label, about=about, divisor=f"{name} tasks {{k}}", samples="records")


_of_runs = partial(Figure, divisor="records", optional=True)
_HAT = _figure("pass_hat_k", "pass^k: all of k trials succeed", "mean over tasks of C(successes, k) / C(trials, k)")
_AT = _figure("pass_at_k", "pass@k: one of k trials succeeds", "mean over tasks of 1 - C(failures, k) / C(trials, k)")


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

    reads_labels: ClassVar[bool] = False
    version: ClassVar[str] = "2"

    tolerance: float = 1e-6
    max_k: int | None = None
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    def __attrs_post_init__(self) -> None:
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
        return {"trials": _trials(grades)}

    @override
    def of_task(self, sums: Mapping[str, float]) -> Mapping[str, float | Fraction] | None:
        records, successes, trials = (int(sums.get(name, 0)) for name in ("records", "successes", "trials"))
        figures: dict[str, float | Fraction] = {"records": records}
        for name, shares in self._shares(Task(records, successes, trials, sums.get("reward", 0.0))).items():
            for k, share in enumerate(shares, 1):
                figures |= {f"{name} {k}": share, f"{name} tasks {k}": 1}
        return figures if len(figures) > 1 else None

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
            trials = _trials(grades.of_model(model) if several else grades)
            tasks[model] = Counter(
                {Task(int(records), int(successes), trials): times for (records, successes), times in cells.items()}
            )
        figures = self._overview(sum(tasks.values(), Counter()))
        if several:
            figures["models"] = {model: self._overview(each) for model, each in tasks.items()}
        return figures

    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        by_successes: Counter[int] = Counter()
        for task, times in tasks.items():
            by_successes[task.successes] += times
        return {
            "tasks": tasks.total(),
            "records": sum(task.records * times for task, times in tasks.items()),
            "successes": sum(task.successes * times for task, times in tasks.items()),
            "tasks_by_successes": {str(successes): by_successes[successes] for successes in sorted(by_successes)},
        }


def _with_version(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


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

    Presets are what other benchmarks compute. ``tau2/pass``: by task, a success is a score within 1e-6 of 1.
    ``vitabench/pass``: by task, a success is a score of exactly 1; also ``pass_at_k`` and ``average_at_k``, the mean
    score, over the tasks with at least k records. ``mcpmark/pass``: for k = the number of runs, ``pass_hat_k`` the
    share of tasks that succeed in all and ``pass_at_k`` in any; ``pass_at_1`` the mean share of tasks that succeed in a
    run, with ``pass_at_1_std``; a task that a run lacks failed there.

    Attributes:
        trials: What n is.
        preset: What another benchmark computes.
    """

    figures: ClassVar = (
        _HAT,
        _AT,
        _figure("average_at_k", "average@k: mean score", "mean score of a task, over the tasks with k records"),
        _of_runs("pass_at_1", "pass@1: a trial succeeds", about="mean over runs of successes / tasks"),
        _of_runs("pass_at_1_std", "Standard deviation of pass@1 over runs", better="lower", unit="score"),
    )

    trials: Literal["file", "task"] | None = None
    preset: str | None = attrs.field(default=None, converter=_with_version)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.preset is None:
            return
        contradicting = {"trials": self.trials is not None, "tolerance": self.tolerance != 1e-6}
        contradicting["max_k"] = self._is("mcpmark") and self.max_k is not None
        if names := [name for name, contradicts in contradicting.items() if contradicts]:
            raise ValueError(f"the preset {self.preset} leaves no choice for {', '.join(names)}; leave out either")

    def _is(self, *names: str) -> bool:
        return self.preset is not None and self.preset.partition("/")[0] in names

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        numbers = super().numbers(grade)
        return {**numbers, "reward": float(grade.score or 0.0)} if numbers and self._is("vitabench") else numbers

    @override
    def _succeeded(self, grade: Grade) -> bool:
        if not self._is("tau2", "vitabench"):
            return super()._succeeded(grade)
        if grade.outcome is not Outcome.GRADED or grade.score is None:
            return False
        return is_success(grade.score, 1e-6 if self._is("tau2") else 0.0)

    def _n(self, task: Task) -> int:
        return task.records if self._by_task() else task.trials

    def _by_task(self) -> bool:
        return self.trials == "task" or self._is("tau2", "vitabench")

    @override
    def _shares(self, task: Task) -> Mapping[str, Iterable[Fraction]]:
        if self._is("mcpmark"):
            return {}
        n, c, records = self._n(task), task.successes, task.records
        shares: dict[str, Iterable[Fraction]] = {"pass_hat_k": [Fraction(comb(c, k), comb(n, k)) for k in self._ks(n)]}
        if self._is("vitabench"):
            shares["pass_at_k"] = [_one_of(task, k) for k in self._ks(records)]
            shares["average_at_k"] = [Fraction(task.reward) / records for _ in self._ks(records)]
        return shares

    @override
    def estimate(self, **sums: float) -> Mapping[str, Any]:
        hat = _mean_shares(sums, "pass_hat_k", of_all=True)
        return {**hat, **_mean_shares(sums, "pass_at_k"), **_mean_shares(sums, "average_at_k")}

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        figures = super().compute(grades)
        if not self._is("mcpmark"):
            return figures
        if "models" not in figures:
            return figures | self._mcpmark(grades)
        for model in figures["models"]:
            figures["models"][model] |= self._mcpmark(grades.of_model(model))
        return figures | _no_figures(_MCPMARK, "several models, each with runs of its own")

    def _mcpmark(self, grades: Grades) -> dict[str, Any]:
        """Return MCPMark's figures of one model's k runs of all tasks, rounded as there; their intervals are not.

            pass@1 = mean over runs of successes / tasks, with its population standard deviation
            pass@k = tasks with a success / tasks, pass^k = tasks that succeed in each of the k runs / tasks

        A task that a run lacks counts as failed there.
        """
        runs: Counter[str] = Counter()
        for key, grade in grades:
            if grade.outcome in {Outcome.GRADED, Outcome.FAILED}:
                runs[json.dumps(key.run)] += self._succeeded(grade)
        if "null" in runs or not runs:
            return _no_figures(_MCPMARK, "the runs are not named" if runs else _NO_TRIAL)
        tasks = grades.sums("records", "successes").rounded[0]
        total, k = sum(tasks.values()), len(runs)
        rates = [round(runs[name] / total, 6) for name in sorted(runs)]
        mean = sum(rates) / k
        figures: dict[str, Any] = {
            "pass_at_1": round(mean, 4),
            "pass_at_1_std": round((sum((rate - mean) ** 2 for rate in rates) / k) ** 0.5, 4),
        }
        shares: dict[str, Counter[tuple[float, ...]]] = {name: Counter() for name in _MCPMARK}
        for (records, successes), times in tasks.items():
            shares["pass_at_1"][1, successes / k] += times
            shares["pass_at_k"][1, float(successes > 0)] += times
            shares["pass_hat_k"][1, float(successes == records >= k)] += times
        n = int(sum(records * times for (records, _), times in tasks.items()))
        for name, parts in shares.items():
            interval = {**ratio_interval(parts, n=n, confidence=self.confidence)}
            if name != "pass_at_1":
                share = round(sum(share * times for (_, share), times in parts.items()) / total, 4)
                figures[name], interval = {str(k): share}, {str(k): interval}
            figures[f"{name}_interval"] = interval
        return figures

    @override
    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        ns = [n for n in map(self._n, tasks) if n]
        names = ("pass_hat_k", "pass_at_k", "average_at_k") if self._is("vitabench") else ("pass_hat_k",)
        return {
            **({} if ns else _no_figures(names, _NO_TRIAL)),
            **({} if self.preset is None else {"preset": self.preset}),
            "rule": "task" if self._by_task() else "file",
            "trials": min(ns, default=0),
            "tasks_without_trials": sum(times for task, times in tasks.items() if not self._n(task)),
            **super()._overview(tasks),
        }


_MCPMARK: Final = ("pass_at_1", "pass_at_k", "pass_hat_k")


@attrs.frozen(kw_only=True)
class PassAtK(Trials):
    """pass@k: the chance that at least one of k trials of a task, drawn at random, succeeds, averaged over tasks.

    With c successes in the n records of a task, ``pass@k = mean over tasks with n >= k of 1 - C(n - c, k) / C(n, k)``.
    Tasks with fewer than k records have no such figure; ``tasks_at_k`` says how many took part.
    """

    figures: ClassVar = (_AT,)

    @override
    def _shares(self, task: Task) -> Mapping[str, Iterable[Fraction]]:
        return {"pass_at_k": [_one_of(task, k) for k in self._ks(task.records)]}

    @override
    def estimate(self, **sums: float) -> Mapping[str, Any]:
        return _mean_shares(sums, "pass_at_k")

    @override
    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        ks = self._ks(max((task.records for task in tasks), default=0))
        at_k = {str(k): sum(times for task, times in tasks.items() if task.records >= k) for k in ks}
        nothing = {} if ks else _no_figures(["pass_at_k"], _NO_TRIAL)
        return {**nothing, "tasks_at_k": at_k, **super()._overview(tasks)}


def _one_of(task: Task, k: int) -> Fraction:
    """Return the chance that one of k records of a task, drawn at random, is a success."""
    return 1 - Fraction(comb(task.records - task.successes, k), comb(task.records, k))


def _mean_shares(sums: Mapping[str, Any], name: str, *, of_all: bool = False) -> dict[str, Any]:
    """Return the mean share for k = 1, 2, …, over the tasks that have one.

    With ``of_all``, k ends where a task has no share any more, rather than where none has. Thousands of records of one
    trial, which pass^k counts as successes of few trials, make means beyond any float: None.
    """
    means: dict[str, float | None] = {}
    for k in count(1):
        tasks = sums.get(f"{name} tasks {k}", 0)
        if not tasks or (of_all and tasks < sums[f"{name} tasks 1"]):
            break
        try:
            means[str(k)] = float(Fraction(sums.get(f"{name} {k}", 0)) / tasks)
        except OverflowError:
            means[str(k)] = None
    return {name: means} if means else {}


def _no_figures(names: Iterable[str], reason: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in names:
        figures |= {name: None, f"{name}_reason": reason}
    return figures
