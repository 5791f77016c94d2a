"""The default metric stack."""

from __future__ import annotations

from typing import Any


def stability() -> dict[str, Any]:
    """Return the stack; the grader brings its aggregators: mean and stability."""
    figures = {
        "Stability@k": "stability_at_k",
        "Consistency@k": "mean_consistency_at_k",
        "Flip rate": "mean_flip_rate",
        "Accuracy across runs": "mean_accuracy_across_runs",
        "Stable but wrong": "stable_but_wrong_rate",
    }
    return {
        "graders": {"label": {"kind": "stability_label"}},
        "outcome": "label",
        "headline": {
            "figures": {label: f"label.stability.{name}" for label, name in figures.items()},
        },
    }
