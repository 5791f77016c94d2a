"""The default metric stack."""

from __future__ import annotations

from typing import Any


def when2call() -> dict[str, Any]:
    """Return the stack; the grader brings its aggregators: mean, classification, hallucination, when2call_counts."""
    return {
        "graders": {"label": {"kind": "when2call"}},
        "outcome": "label",
        "headline": {
            "figures": {
                "Accuracy": "label.classification.accuracy",
                "Macro-F1": "label.classification.macro_f1",
                "Tool hallucination": "label.hallucination.tool_hallucination_rate",
                "Answer hallucination": "label.hallucination.answer_hallucination_rate",
                "Parameter hallucination": "label.hallucination.parameter_hallucination_rate",
            },
        },
    }
