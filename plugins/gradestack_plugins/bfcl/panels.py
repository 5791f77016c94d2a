"""Panels of the family on pages: accuracy by category and model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gradestack
from gradestack import GradestackError, Report
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.pages import blocks

_MOST_COMPARED = 10_000
"""Runs up to which categories are compared."""


@blocks.panel("Accuracy by category", place="lead", replaces=["categories"])
def categories(about: Report) -> Iterable[blocks.Block] | None:
    """Categories and the leaderboard's groups against models, with intervals; None without them."""
    metrics = blocks.find_metrics(about, "categories", "groups")
    if not metrics:
        return None
    by_model = as_map(metrics.get("models")) or {"accuracy": metrics}
    models = {name or "(no name)": as_map(figures) for name, figures in by_model.items()}
    differences: list[blocks.Figure] = []
    if len(models) == 2:
        differences = _differences(about, _names(models, "accuracy"))
    shares = _matrix(models, "accuracy", "category", differences)
    groups = _matrix(models, "groups", "group")
    means: list[blocks.Figure] = []
    for name, figures in models.items():
        figure = blocks.figure_of(name, figures, "unweighted", unit="share")
        means.append(figure)
    mean = blocks.Matrix(["mean of the categories"], list(models), [means], unit="share")
    return [shares, blocks.Section("Groups and mean", [groups, mean], folded=True)]


def _matrix(
    models: Mapping[str, Mapping[str, Any]],
    part: str,
    corner: str,
    differences: list[blocks.Figure] | None = None,
) -> blocks.Matrix:
    """Return the shares of all models under the names that any of them has."""
    names = _names(models, part)
    rows: list[list[blocks.Figure]] = []
    for name in names:
        figures = [_figure(model, metrics, part, name) for model, metrics in models.items()]
        rows.append(figures)
    return blocks.Matrix(
        names,
        list(models),
        rows,
        corner=corner,
        unit="share",
        search='facet:"category={row}" model:"{column}" passed:no' if part == "accuracy" else "",
        differences=differences or (),
    )


def _figure(model: str, metrics: Mapping[str, Any], part: str, name: str) -> blocks.Figure:
    interval = as_map(metrics.get(f"{part}_interval")).get(name)
    share = {"value": as_map(metrics.get(part)).get(name), "value_interval": interval}
    return blocks.figure_of(model, share, "value", unit="share")


def _names(models: Mapping[str, Mapping[str, Any]], part: str) -> list[str]:
    shares_by_model = [as_map(metrics.get(part)) for metrics in models.values()]
    return list(dict.fromkeys(name for shares in shares_by_model for name in shares))


def _differences(about: Report, names: Iterable[str]) -> list[blocks.Figure]:
    """Return the second model's difference from the first by category, empty if unknown."""
    metrics = as_map(about.summary.get("metrics"))
    total = as_count(metrics.get("total"))
    if not about.has_rows or total > _MOST_COMPARED:
        return []
    try:
        data = gradestack.compare(about, by="category", registry=about.registry).data
    except GradestackError:  # such as models that share no task
        return []
    groups = {}
    for group in map(as_map, as_list(as_map(data.get("by")).get("groups"))):
        ends = as_list(group.get("ends"))
        interval = None
        if len(ends) == 2:
            interval = (float(ends[0]), float(ends[1]))
        value = as_number(group.get("difference"))
        groups[as_text(group.get("group"))] = blocks.Figure(
            "difference", value, interval, unit="points"
        )
    return [groups.get(name, blocks.Figure("difference", None, unit="points")) for name in names]
