"""What the family shows on pages: accuracy by category and model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_map, as_number
from gradestack_plugins.pages import blocks


@blocks.panel("Accuracy by category and model")
def categories(about: Report) -> Iterable[blocks.Block] | None:
    """Categories and the leaderboard's groups against models, with intervals; None without them."""
    for held in about.aggregates.values():
        metrics = as_map(held.get("categories"))
        if "accuracy" not in metrics or "groups" not in metrics:
            continue
        each_model = as_map(metrics.get("models")) or {"accuracy": metrics}
        models = {name or "(no name)": as_map(own) for name, own in each_model.items()}
        matrices = [_matrix(models, "accuracy", "category"), _matrix(models, "groups", "group")]
        return [*matrices, blocks.Section("With intervals", list(_intervals(models)))]
    return None


def _matrix(models: Mapping[str, Mapping[str, Any]], part: str, corner: str) -> blocks.Matrix:
    """Return the values of all models under the names that any of them has."""
    names = _names(models, part)
    values = [
        [as_number(as_map(metrics.get(part)).get(name)) for metrics in models.values()]
        for name in names
    ]
    return blocks.Matrix(names, list(models), values, corner=corner)


def _intervals(models: Mapping[str, Mapping[str, Any]]) -> Iterator[blocks.Block]:
    """Yield the accuracy of each model in a category, with its interval."""
    for name in _names(models, "accuracy"):
        figures = []
        for model, metrics in models.items():
            value = as_map(metrics.get("accuracy")).get(name)
            interval = as_map(metrics.get("accuracy_interval")).get(name)
            held = {"value": value, "value_interval": interval}
            figures.append(blocks.figure_of(model, held, "value"))
        yield blocks.Interval(figures, name)


def _names(models: Mapping[str, Mapping[str, Any]], part: str) -> list[str]:
    parts = [as_map(metrics.get(part)) for metrics in models.values()]
    return list(dict.fromkeys(name for held in parts for name in held))
