"""What the family shows on pages: which classes are taken for which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_map
from gradestack_plugins.pages import blocks


@blocks.panel("Confusion matrix")
def classes(about: Report) -> Iterable[blocks.Block] | None:
    """The confusion matrix of a classification and the F1 of each class.

    None in a run without one.
    """
    for held in about.aggregates.values():
        metrics = as_map(held.get("classification"))
        matrix, by_class = (
            as_map(metrics.get("confusion_matrix")),
            as_map(metrics.get("per_class")),
        )
        if matrix:
            names = [str(name) for name in metrics.get("labels") or matrix if name in matrix]
            columns = list(
                dict.fromkeys(
                    [*names, *(str(name) for row in matrix.values() for name in as_map(row))]
                )
            )
            values = [[as_map(matrix[name]).get(column) for column in columns] for name in names]
            figures = [
                blocks.figure_of(
                    name, as_map(by_class.get(name)), "f1", _support(as_map(by_class.get(name)))
                )
                for name in names
            ]
            confusion = blocks.Matrix(
                names,
                columns,
                values,
                "Samples",
                "expected \\ predicted",
                'label:"{row} → {column}"',
            )
            return [confusion, blocks.Interval(figures, "F1 of each class")]
    return None


def _support(figures: Mapping[str, Any]) -> str:
    support = figures.get("support")
    return f"{support} sample{'' if support == 1 else 's'}" if isinstance(support, int) else ""
