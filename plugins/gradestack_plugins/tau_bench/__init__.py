"""The tau-bench family.

Its result files, partial credit for tool calls, recorded rewards, pass^k.
"""

from __future__ import annotations

from typing import Any

from gradestack import Component, hookimpl

_TABLE = """
reader tau_bench .reader:TauBench tau-bench result files: a JSON list, an object per task and trial
grader tau_partial .grader:TauPartial Credit per expected call: 0.4 for the tool, 0.6 for arguments
grader tau_reward .grader:TauReward The reward the benchmark recorded, with a success tolerance
aggregator partial_statistics .aggregators:PartialStatistics Average, range, histogram, tool and
    argument accuracy
aggregator binary .aggregators:Binary Success rate (score above a threshold) and average
exporter tau_bench .exporter:TauBenchExporter <input>_partial.json and tau_statistics.txt, as its
    script does
program tau_bench .program:TauBenchProgram The partial scoring script, and pass^k as the runner
    prints it
stack tau-bench :stack Partial scores and recorded rewards of tau-bench runs, with pass^k and pass@k
"""
_TRIALS = """
aggregator pass_hat_k .reliability:PassHatK pass^k: chance that k trials of a task all succeed
aggregator pass_at_k .reliability:PassAtK pass@k: chance that one of k trials of a task succeeds
panel reliability .panels:reliability pass^k and pass@k over k
"""
gradestack_components = hookimpl(
    lambda: (
        Component.table(__name__, _TABLE)
        + Component.table("gradestack_plugins.statistics", _TRIALS)
    )
)


def stack() -> dict[str, Any]:
    """Return the suite fragment.

    Partial scores first, whose grade stands as the row's, then the recorded reward.
    """
    figures = {
        "Average reward": "reward.mean",
        "pass^k": "reward.pass_hat_k",
        "pass@k": "reward.pass_at_k",
        "Partial credit": "partial.mean",
    }
    return {
        "graders": {"partial": {"kind": "tau_partial"}, "reward": {"kind": "tau_reward"}},
        "outcome": "reward",
        "headline": {"figures": figures},
    }
