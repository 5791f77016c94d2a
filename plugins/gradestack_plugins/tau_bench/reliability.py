"""Aggregators ``pass_hat_k`` and ``pass_at_k``: reliability over repeated trials of the same tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal

import attrs
from typing_extensions import override

from gradestack import Aggregator, Grade, Key, Outcome
from gradestack.exact import count_into
from gradestack_plugins.tau_bench import reliability_presets as presets
from gradestack_plugins.tau_bench.reward import is_success
from gradestack_plugins.tau_bench.trials import CELLS, MOST_K, Task, Trials, TrialsState, counted, run_text


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

    figure = "pass_hat_k"

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
    def start(self) -> TrialsState:
        state = super().start()
        return state if self.preset is None else {**state, "successes": {}, "rewards": presets.REWARDS.start()}

    @override
    def add(self, state: TrialsState, key: Key, grade: Grade) -> TrialsState:
        super().add(state, key, grade)
        if self.preset is not None and grade.outcome in {Outcome.GRADED, Outcome.FAILED}:
            runs, run = state["successes"].setdefault(key.model or "", {}), run_text(key.run)
            runs[run] = runs.get(run, 0) + self._succeeded(grade)
            presets.REWARDS.add(state["rewards"], key, [1, float(grade.score or 0.0)])
        return state

    @override
    def add_many(self, state: TrialsState, keys: Sequence[Key], grades: Sequence[Grade]) -> TrialsState:
        if self.preset is None:
            return super().add_many(state, keys, grades)
        return Aggregator.add_many(self, state, keys, grades)

    @override
    def merge(self, left: TrialsState, right: TrialsState) -> TrialsState:
        super().merge(left, right)
        if self.preset is not None:
            for model, runs in right["successes"].items():
                count_into(left["successes"].setdefault(model, {}), runs)
            presets.REWARDS.merge(left["rewards"], right["rewards"])
        return left

    @override
    def _succeeded(self, grade: Grade) -> bool:
        if self.preset is None:
            return super()._succeeded(grade)
        if self._is("tau2") or self._is("vitabench"):
            score = grade.score if grade.outcome is Outcome.GRADED else None
            return score is not None and (is_success(score, 1e-6) if self._is("tau2") else score == 1.0)
        return super()._succeeded(grade)

    @override
    def _of_model(self, state: TrialsState, model: str) -> TrialsState:
        own = super()._of_model(state, model)
        if self.preset is not None:
            own["successes"] = {model: state["successes"].get(model, {})}
            own["rewards"] = {name: cells for name, cells in state["rewards"].items() if name == model}
        return own

    @override
    def _finished(self, state: TrialsState) -> dict[str, Any]:
        found = super()._finished(state)
        if self.preset is None:
            return found
        found["preset"] = self.preset
        if self._is("vitabench"):
            at = PassAtK(tolerance=0.0, max_k=self.max_k, confidence=self.confidence)._finished(state)  # noqa: SLF001
            found |= {name: value for name, value in at.items() if name.startswith("pass_at_k")}
            found |= self._averages(state)
        if self._is("mcpmark"):
            found.pop("pass_hat_k_interval", None)
            found |= self._mcpmark(state)
        return found

    def _averages(self, state: TrialsState) -> dict[str, Any]:
        """Return VitaBench's average@k with its intervals."""
        tasks = presets.task_means(state["rewards"])
        ks = range(1, min(max((n for n, _ in tasks), default=0), self.max_k or MOST_K) + 1)
        if not ks:
            return {"average_at_k": None, "average_at_k_reason": "no task has a trial"}
        alike: Counter[tuple[float, ...]] = Counter()
        for (n, mean), times in tasks.items():
            alike[float(n), *[each for k in ks for each in ((1.0, float(mean)) if n >= k else (0.0, 0.0))]] += times
        averages = {str(k): presets.average(tasks, k) for k in ks}
        return {"average_at_k": averages, "average_at_k_interval": self._intervals(alike, ks)}

    def _mcpmark(self, state: TrialsState) -> dict[str, Any]:
        """Return the figures of one model with their intervals; several have each their own runs."""
        if len(state["cells"]) > 1:
            return presets.undefined("several models, each with runs of its own")
        runs = next(iter(state["successes"].values()), {})
        tasks = [
            (*counted(cell)[:2], times)
            for cells in CELLS.rounded(state["cells"])[1].values()
            for cell, times in cells.items()
        ]
        found = presets.mcpmark(tasks, runs)
        for name, share in presets.mcpmark_shares(len(runs)).items():
            if found[name] is not None:
                alike: Counter[tuple[float, ...]] = Counter()
                for records, successes, times in tasks:
                    alike[float(records), 1.0, share(records, successes)] += times
                estimated = self._intervals(alike, range(1, 2))["1"]
                whole = name == "pass_at_1"
                found[f"{name}_interval"] = estimated if whole else {str(len(runs)): estimated}
        return found

    def _trials(self, task: Task) -> int:
        return task.records if self._by_task() else task.trials

    def _by_task(self) -> bool:
        return self.trials == "task" or self._is("tau2") or self._is("vitabench")

    @override
    def _share(self, task: Task, k: int) -> Fraction | None:
        n = self._trials(task)
        return Fraction(math.comb(task.successes, k), math.comb(n, k)) if n else None

    @override
    def _highest(self, tasks: Iterable[Task]) -> int:
        return min((n for n in map(self._trials, tasks) if n), default=0)

    @override
    def _more(self, tasks: Counter[Task], ks: range) -> dict[str, Any]:
        return {
            "rule": "task" if self._by_task() else "file",
            "trials": self._highest(tasks),
            "tasks_without_trials": sum(times for task, times in tasks.items() if not self._trials(task)),
        }


@attrs.frozen(kw_only=True)
class PassAtK(Trials):
    """pass@k: the chance that at least one of k trials of a task, drawn at random, succeeds, averaged over tasks.

    With c successes in the n records of a task, ``pass@k = mean over tasks with n >= k of 1 - C(n - c, k) / C(n, k)``.
    Tasks with fewer than k records have no such figure; ``tasks_at_k`` says how many took part.
    """

    figure = "pass_at_k"

    @override
    def _share(self, task: Task, k: int) -> Fraction | None:
        n = task.records
        return 1 - Fraction(math.comb(n - task.successes, k), math.comb(n, k)) if n >= k else None

    @override
    def _highest(self, tasks: Iterable[Task]) -> int:
        return max((task.records for task in tasks), default=0)

    @override
    def _more(self, tasks: Counter[Task], ks: range) -> dict[str, Any]:
        return {"tasks_at_k": {str(k): sum(n for task, n in tasks.items() if task.records >= k) for k in ks}}
