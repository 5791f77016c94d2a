"""What the family shows on pages: how stable answers are, and to which class of question."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import override

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.pages import blocks

_FIGURES = {
    "mean_accuracy_across_runs": "Accuracy",
    "mean_consistency_at_k": "Consistency",
    "stability_at_k": "The same answer in every run",
    "stable_and_correct_rate": "… and the right one",
    "stable_but_wrong_rate": "… and a wrong one",
    "mean_flip_rate": "Answer changed from run to run",
}
_BY_CLASS = {
    "mean_accuracy_across_runs": "accuracy",
    "mean_consistency_at_k": "consistency",
    "stability_at_k": "always the same",
    "mean_flip_rate": "changed",
}


class Stability(blocks.Panel):
    """The figures over runs with their intervals, and by expected class; None in a run without them."""

    place = "overview"
    title = "Stability over runs"

    @override
    def show(self, about: Report) -> Iterable[blocks.Block] | None:
        for held in about.aggregates.values():
            metrics = as_map(held.get("stability"))
            if as_number(metrics.get("mean_consistency_at_k")) is not None:
                figures = [blocks.figure_of(label, metrics, key) for key, label in _FIGURES.items() if key in metrics]
                shown: list[blocks.Block] = [blocks.Interval(figures, "Over all questions")]
                names = [
                    name for name in map(str, as_list(metrics.get("labels"))) if metrics.get(f"n_items_gold_{name}")
                ]
                values = [[as_number(metrics.get(f"{key}_gold_{name}")) for key in _BY_CLASS] for name in names]
                if len(names) > 1:
                    columns = list(_BY_CLASS.values())
                    shown.append(blocks.Matrix(names, columns, values, "By expected answer", "expected"))
                return shown
        return None
