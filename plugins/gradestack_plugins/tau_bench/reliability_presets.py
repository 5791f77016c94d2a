"""Presets of ``pass_hat_k``: what tau2-bench, VitaBench and MCPMark compute from repeated runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from gradestack import CellsState, TaskCells, preset_version

PRESETS: Final = {"tau2/pass": "a2c0247", "vitabench/pass": "14db9e3", "mcpmark/pass": "1b82b71"}
REWARDS: Final = TaskCells("records", "reward")
"""Of a task: records, and the sum of their scores."""
_UNNAMED: Final = "null"
"""A run without a name, as JSON text."""


def with_version(preset: str | None) -> str | None:
    """Return a preset of these as ``NAME@VERSION``."""
    return preset_version(preset, PRESETS)


def task_means(rewards: CellsState) -> Counter[tuple[int, Fraction]]:
    """Return of each task of each model its records and their mean score, counted.

    Args:
        rewards: Cells of :data:`REWARDS`.
    """
    tasks: Counter[tuple[int, Fraction]] = Counter()
    for cells in REWARDS.counted(rewards)[1].values():
        for (records, reward), times in cells.items():
            total = sum(map(Fraction, reward), Fraction(0)) if isinstance(reward, tuple) else Fraction(reward)
            number = int(records) if not isinstance(records, tuple) else 0
            tasks[number, total / number] += times
    return tasks


def average(tasks: Counter[tuple[int, Fraction]], k: int) -> float:
    """Return VitaBench's average@k: the mean over tasks with at least k records of their mean score."""
    able = {task: times for task, times in tasks.items() if task[0] >= k}
    return float(sum((mean * times for (_, mean), times in able.items()), Fraction(0)) / sum(able.values()))


def mcpmark(tasks: Iterable[tuple[int, int, int]], runs: Mapping[str, int]) -> dict[str, Any]:
    """Return MCPMark's figures over k runs of all tasks, rounded as there.

        pass@1 = mean over runs of successes / tasks, with its population standard deviation
        pass@k = tasks with a success / tasks, pass^k = tasks that succeed in each of the k runs / tasks

    A task that a run lacks counts as failed there.

    Args:
        tasks: Of each kind of task: records, successes, how many there are.
        runs: Run -> its successes.
    """
    if _UNNAMED in runs or not runs:
        return undefined("the runs are not named" if runs else "no task has a trial")
    every, k = list(tasks), len(runs)
    total = sum(times for *_, times in every)
    rates = [round(runs[name] / total, 6) for name in sorted(runs)]
    mean = sum(rates) / k
    some = sum(times for _, successes, times in every if successes)
    each = sum(times for records, successes, times in every if successes == records >= k)
    return {
        "pass_at_1": round(mean, 4),
        "pass_at_1_std": round((sum((rate - mean) ** 2 for rate in rates) / k) ** 0.5, 4),
        "pass_at_k": {str(k): round(some / total, 4)},
        "pass_hat_k": {str(k): round(each / total, 4)},
    }


def mcpmark_shares(k: int) -> dict[str, Callable[[int, int], float]]:
    """Return what a task brings to each of MCPMark's figures, by its records and successes."""
    return {
        "pass_at_1": lambda _, successes: successes / k,
        "pass_at_k": lambda _, successes: float(successes > 0),
        "pass_hat_k": lambda records, successes: float(successes == records >= k),
    }


def undefined(reason: str) -> dict[str, Any]:
    """Return MCPMark's figures where there are none, and why."""
    found: dict[str, Any] = {}
    for name in mcpmark_shares(1):
        found |= {name: None, f"{name}_reason": reason}
    return found
