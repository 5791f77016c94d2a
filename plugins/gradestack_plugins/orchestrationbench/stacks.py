"""The default stack of the family."""

from __future__ import annotations

from typing import Any


def orchestrationbench() -> dict[str, Any]:
    """Return the graders of the family; the first gives the score of a trial, the others show single steps.

    The headline has the four key metrics. A trial neither passes nor fails: there is no outcome.
    """
    keys = {
        "Average": "average",
        "Call Rejection Classification Accuracy": "call_rejection_accuracy",
        "FC": "fc",
        "Plan": "plan",
    }
    return {
        "graders": {
            "orchestrationbench": {"kind": "orchestrationbench"},
            "decision": {"kind": "orchestration_decision"},
            "call": {"kind": "orchestration_call"},
            "plan": {"kind": "orchestration_plan"},
        },
        "outcome": "none",
        "headline": {
            "figures": {label: f"orchestrationbench.orchestrationbench.{name}" for label, name in keys.items()}
        },
    }
