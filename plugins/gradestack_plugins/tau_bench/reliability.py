"""Aggregators ``pass_hat_k`` and ``pass_at_k``: reliability over repeated trials of the same tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import comb
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import Figure, Grade, Grades, Numbers, Outcome
from gradestack_plugins.tau_bench import reliability_presets as presets
from gradestack_plugins.tau_bench.reward import is_success
from gradestack_plugins.tau_bench.trials import NO_TRIAL, Task, Trials, mean_shares, no_figures, over_tasks

_HAT = over_tasks("pass_hat_k", "pass^k: all of k trials succeed", "mean over tasks of C(successes, k) / C(trials, k)")
_AT = over_tasks(
    "pass_at_k", "pass@k: one of k trials succeeds", "mean over tasks of 1 - C(failures, k) / C(trials, k)"
)


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
        over_tasks("average_at_k", "average@k: mean score", "mean score of a task, over the tasks with k records"),
        Figure(
            "pass_at_1",
            "pass@1: a trial succeeds",
            about="mean over runs of successes / tasks",
            divisor="records",
            optional=True,
        ),
        Figure(
            "pass_at_1_std",
            "Standard deviation of pass@1 over runs",
            better="lower",
            unit="score",
            divisor="records",
            optional=True,
        ),
    )

    trials: Literal["file", "task"] | None = None
    preset: str | None = attrs.field(default=None, converter=presets.with_version)

    def __attrs_post_init__(self) -> None:
        """Check the options.

        Raises:
            ValueError: One is out of range, or contradicts the preset.
        """
        super().__attrs_post_init__()
        if self.preset is None:
            return
        given = {"trials": self.trials is not None, "tolerance": self.tolerance != 1e-6}
        given["max_k"] = self._is("mcpmark") and self.max_k is not None
        if names := [name for name, contradicts in given.items() if contradicts]:
            raise ValueError(f"the preset {self.preset} leaves no choice for {', '.join(names)}; leave out either")

    def _is(self, name: str) -> bool:
        return self.preset is not None and self.preset.startswith(f"{name}/")

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        found = super().numbers(grade)
        return {**found, "reward": float(grade.score or 0.0)} if found and self._is("vitabench") else found

    @override
    def _succeeded(self, grade: Grade) -> bool:
        if self._is("tau2") or self._is("vitabench"):
            score = grade.score if grade.outcome is Outcome.GRADED else None
            return score is not None and (is_success(score, 1e-6) if self._is("tau2") else score == 1.0)
        return super()._succeeded(grade)

    def _n(self, task: Task) -> int:
        return task.records if self._by_task() else task.trials

    def _by_task(self) -> bool:
        return self.trials == "task" or self._is("tau2") or self._is("vitabench")

    @override
    def _shares(self, task: Task) -> Mapping[str, Iterable[Fraction]]:
        if self._is("mcpmark"):
            return {}
        n, c, records = self._n(task), task.successes, task.records
        found: dict[str, Iterable[Fraction]] = {"pass_hat_k": [Fraction(comb(c, k), comb(n, k)) for k in self._ks(n)]}
        if self._is("vitabench"):
            found["pass_at_k"] = [_one_of(task, k) for k in self._ks(records)]
            found["average_at_k"] = [Fraction(task.reward) / records for _ in self._ks(records)]
        return found

    @override
    def estimate(self, **sums: float) -> Mapping[str, Any]:
        hat = mean_shares(sums, "pass_hat_k", of_all=True)
        return {**hat, **mean_shares(sums, "pass_at_k"), **mean_shares(sums, "average_at_k")}

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        found = super().compute(grades)
        if self._is("mcpmark"):
            several = found.get("models", {})
            for model in several:
                several[model] |= self._mcpmark(grades.of_model(model))
            found |= (
                presets.undefined("several models, each with runs of its own") if several else self._mcpmark(grades)
            )
        return found

    def _mcpmark(self, grades: Grades) -> dict[str, Any]:
        """Return the figures of one model."""
        runs: Counter[str] = Counter()
        for key, grade in grades:
            if grade.outcome in {Outcome.GRADED, Outcome.FAILED}:
                runs[presets.run_text(key.run)] += self._succeeded(grade)
        return presets.mcpmark(grades.sums("records", "successes").rounded[0], runs, self.confidence)

    @override
    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        ns = [n for n in map(self._n, tasks) if n]
        names = ("pass_hat_k", "pass_at_k", "average_at_k") if self._is("vitabench") else ("pass_hat_k",)
        return {
            **({} if ns else no_figures(names, NO_TRIAL)),
            **({} if self.preset is None else {"preset": self.preset}),
            "rule": "task" if self._by_task() else "file",
            "trials": min(ns, default=0),
            "tasks_without_trials": sum(times for task, times in tasks.items() if not self._n(task)),
            **super()._overview(tasks),
        }


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
        return mean_shares(sums, "pass_at_k")

    @override
    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        ks = self._ks(max((task.records for task in tasks), default=0))
        at_k = {str(k): sum(times for task, times in tasks.items() if task.records >= k) for k in ks}
        nothing = {} if ks else no_figures(["pass_at_k"], NO_TRIAL)
        return {**nothing, "tasks_at_k": at_k, **super()._overview(tasks)}


def _one_of(task: Task, k: int) -> Fraction:
    """Return the chance that one of k records of a task, drawn at random, is a success."""
    return 1 - Fraction(comb(task.records - task.successes, k), comb(task.records, k))
