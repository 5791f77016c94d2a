"""The default metric stack of tau-bench result files."""

from __future__ import annotations

from typing import Any


def tau_bench() -> dict[str, Any]:
    """Return the suite fragment: partial scores first (the headline), then the recorded reward.

    Their default aggregators do the rest: ``partial_statistics`` on the partial scores; ``binary``, ``pass_hat_k`` and
    ``pass_at_k`` on the rewards.
    """
    return {"graders": {"partial": {"kind": "tau_partial"}, "reward": {"kind": "tau_reward"}}}
