"""The default metric stack of tau-bench result files."""

from __future__ import annotations

from typing import Any


def tau_bench() -> dict[str, Any]:
    """Return the suite fragment: partial scores first, whose grade stands as the row's own, then the recorded reward.

    Their default aggregators do the rest: ``partial_statistics`` on the partial scores; ``binary``, ``pass_hat_k`` and
    ``pass_at_k`` on the rewards. A sample is solved when its reward says so.
    """
    return {
        "graders": {"partial": {"kind": "tau_partial"}, "reward": {"kind": "tau_reward"}},
        "outcome": "reward",
        "headline": {
            "figures": {
                "Average reward": "reward.mean",
                "pass^k": "reward.pass_hat_k",
                "pass@k": "reward.pass_at_k",
                "Partial credit": "partial.mean",
            },
        },
    }
