"""What the family shows on pages: how stable answers are, and to which class of question."""

from __future__ import annotations

from collections.abc import Iterable

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.pages import blocks

_BY_CLASS = {
    "mean_accuracy_across_runs": "accuracy",
    "mean_consistency_at_k": "consistency",
    "stability_at_k": "always the same",
    "mean_flip_rate": "changed",
}


@blocks.panel("Stability by expected answer")
def stability(about: Report) -> Iterable[blocks.Block] | None:
    """The figures over runs by expected class; None in a run without two of them."""
    for figures in about.aggregates.values():
        metrics = as_map(figures.get("stability"))
        labels = as_list(metrics.get("labels"))
        names = [name for name in labels if metrics.get(f"n_items_gold_{name}")]
        if len(names) > 1:
            values = [
                [as_number(metrics.get(f"{key}_gold_{name}")) for key in _BY_CLASS]
                for name in names
            ]
            return [blocks.Matrix(names, list(_BY_CLASS.values()), values, corner="expected")]
    return None
