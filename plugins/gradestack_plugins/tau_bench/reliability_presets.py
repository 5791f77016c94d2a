"""Presets of ``pass_hat_k``: what tau2-bench, VitaBench and MCPMark compute from repeated runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from gradestack import preset_version, ratio_interval
from gradestack_plugins.tau_bench.trials import NO_TRIAL, no_figures

PRESETS: Final = {"tau2/pass": "a2c0247", "vitabench/pass": "14db9e3", "mcpmark/pass": "1b82b71"}
_UNNAMED: Final = "null"
"""A run without a name, as JSON text."""


def with_version(preset: str | None) -> str | None:
    """Return a preset of these as ``NAME@VERSION``."""
    return preset_version(preset, PRESETS)


def run_text(name: int | str | None) -> str:
    """Return a trial identifier as JSON text: 1 and "1" are two."""
    return json.dumps(name)


def mcpmark(tasks: Mapping[tuple[float, ...], int], runs: Mapping[str, int], confidence: float) -> dict[str, Any]:
    """Return MCPMark's figures over k runs of all tasks, rounded as there; their intervals are those of exact ones.

        pass@1 = mean over runs of successes / tasks, with its population standard deviation
        pass@k = tasks with a success / tasks, pass^k = tasks that succeed in each of the k runs / tasks

    A task that a run lacks counts as failed there.

    Args:
        tasks: Of each kind of task: records and successes, and how many there are.
        runs: Run -> its successes.
        confidence: Of the intervals.
    """
    if _UNNAMED in runs or not runs:
        return undefined("the runs are not named" if runs else NO_TRIAL)
    total, k = sum(tasks.values()), len(runs)
    rates = [round(runs[name] / total, 6) for name in sorted(runs)]
    mean = sum(rates) / k
    found: dict[str, Any] = {
        "pass_at_1": round(mean, 4),
        "pass_at_1_std": round((sum((rate - mean) ** 2 for rate in rates) / k) ** 0.5, 4),
    }
    shares: dict[str, Counter[tuple[float, ...]]] = {name: Counter() for name in _FIGURES}
    for (records, successes), times in tasks.items():
        shares["pass_at_1"][1, successes / k] += times
        shares["pass_at_k"][1, float(successes > 0)] += times
        shares["pass_hat_k"][1, float(successes == records >= k)] += times
    n = int(sum(records * times for (records, _), times in tasks.items()))
    for name, parts in shares.items():
        sure = {**ratio_interval(parts, n=n, confidence=confidence)}
        if name == "pass_at_1":
            found[f"{name}_interval"] = sure
        else:
            found[name] = {str(k): round(sum(share * times for (_, share), times in parts.items()) / total, 4)}
            found[f"{name}_interval"] = {str(k): sure}
    return found


_FIGURES: Final = ("pass_at_1", "pass_at_k", "pass_hat_k")


def undefined(reason: str) -> dict[str, Any]:
    """Return MCPMark's figures where there are none, and why."""
    return no_figures(_FIGURES, reason)
