"""The default metric stack of tau2-bench results."""

from __future__ import annotations

from typing import Any


def tau2() -> dict[str, Any]:
    """Return the suite fragment: the recorded reward, pass^k whose divisor is a task's own trials, and pass@k.

    A simulation is solved when its reward says so.
    """
    return {
        "graders": {"reward": {"kind": "tau2_reward"}},
        "metrics": {"pass_hat_k": {"trials": "task"}, "pass_at_k": {"of": "reward"}},
        "outcome": "reward",
        "headline": {
            "figures": {
                "Average reward": "reward.mean",
                "pass^k": "reward.pass_hat_k",
                "pass@k": "reward.pass_at_k",
            },
        },
    }
