"""The tau2-bench family: its results in one file or in a directory, and the rewards it recorded."""

from __future__ import annotations

from typing import Any

from gradestack import Component, hookimpl

_TABLE = """
reader tau2 .reader:Tau2 tau2-bench results: one file, or a directory of results.json and
    simulations/
grader tau2_reward .grader:Tau2Reward The reward tau2-bench recorded, with its parts and checks
stack tau2 :stack Recorded rewards of tau2-bench runs, with pass^k over the trials of each task
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))


def stack() -> dict[str, Any]:
    """Return the suite fragment.

    The recorded reward, pass^k and pass@k whose divisor is a task's own or planned trials.

    A simulation is solved when its reward says so.
    """
    return {
        "graders": {"reward": {"kind": "tau2_reward"}},
        "metrics": {"pass_at_k": {"of": "reward"}},
        "outcome": "reward",
        "headline": {
            "figures": {
                "Average reward": "reward.mean",
                "pass^k": "reward.pass_hat_k",
                "pass@k": "reward.pass_at_k",
            },
        },
    }
