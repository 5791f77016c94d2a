"""The family's default metric stack."""

from __future__ import annotations

from typing import Any


def deepfabric() -> dict[str, Any]:
    """Return the suite fragment: one grader under the key ``tools``, with its default aggregators.

    Its verdict is that the right tool was called with usable arguments; the headline has the family's four figures and
    the overall score.
    """
    figures = ("tool_selection_accuracy", "parameter_accuracy", "execution_success_rate", "response_quality")
    return {
        "graders": {"tools": {"kind": "deepfabric"}},
        "outcome": "tools",
        "headline": {
            "figures": {
                **{name.replace("_", " ").capitalize(): f"tools.deepfabric.{name}" for name in figures},
                "Overall score": "tools.deepfabric.overall_score",
            },
        },
    }
