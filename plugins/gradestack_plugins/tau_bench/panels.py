"""What the family shows on pages: how reliability falls with the number of trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.pages import blocks


@blocks.panel("Reliability over trials", place="figures")
def reliability(about: Report) -> Iterable[blocks.Block] | None:
    """Pass^k and pass@k over k by the outcome grader, and how often tasks succeed.

    None without trials.
    """
    grader = as_text(as_map(about.summary.get("outcome")).get("grader"))
    held = as_map(about.aggregates.get(grader))
    hat, at = as_map(held.get("pass_hat_k")), as_map(held.get("pass_at_k"))
    models = {**as_map(hat.get("models")), **as_map(at.get("models"))}
    if not models:
        return _curves(hat, at) or None
    parts: dict[str, list[blocks.Block]] = {}
    for model in models:
        of_model = [as_map(as_map(metrics.get("models")).get(model)) for metrics in (hat, at)]
        parts[model] = _curves(*of_model)
    return [blocks.Section(model or "(no name)", part) for model, part in parts.items() if part]


def _curves(hat: Mapping[str, Any], at: Mapping[str, Any]) -> list[blocks.Block]:
    points = {
        "pass^k: all of k trials succeed": _points(hat, "pass_hat_k"),
        "pass@k: one of k trials does": _points(at, "pass_at_k"),
    }
    curves: list[blocks.Block] = [
        blocks.Series(each, title) for title, each in points.items() if len(each) > 1
    ]
    counts = {str(times): count for times, count in as_map(hat.get("tasks_by_successes")).items()}
    if curves and counts:
        curves.append(blocks.Counts(counts, "Tasks by number of successes"))
    return curves


def _points(metrics: Mapping[str, Any], key: str) -> dict[int, blocks.Figure]:
    values, intervals = as_map(metrics.get(key)), as_map(metrics.get(f"{key}_interval"))
    return {
        int(k): blocks.figure_of(k, {"value": value, "value_interval": intervals.get(k)}, "value")
        for k, value in values.items()
        if k.isdecimal()
    }
