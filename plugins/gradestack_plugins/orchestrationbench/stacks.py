"""The default stack of the family."""

from __future__ import annotations

from typing import Any


def orchestrationbench() -> dict[str, Any]:
    """Return the graders of the family; the first gives the headline score, the others show single steps."""
    return {
        "graders": {
            "orchestrationbench": {"kind": "orchestrationbench"},
            "decision": {"kind": "orchestration_decision"},
            "call": {"kind": "orchestration_call"},
            "plan": {"kind": "orchestration_plan"},
        }
    }
