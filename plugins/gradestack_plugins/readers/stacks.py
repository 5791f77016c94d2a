"""Default stacks of the general readers."""

from __future__ import annotations

from typing import Any


def jsonl() -> dict[str, Any]:
    """Return the stack for files in gradestack's own form: partial credit for expected calls."""
    return {
        "graders": {"partial": {"kind": "tau_partial"}},
        "outcome": "partial",
        "headline": {
            "figures": {
                "Partial credit": "partial.mean",
                "Tool selection accuracy": "partial.partial_statistics.tool_selection_accuracy",
                "Argument precision": "partial.partial_statistics.argument_precision",
            },
            "passed": "all calls right",
            "failed": "not all calls right",
        },
    }
