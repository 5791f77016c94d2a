"""All figures of one metric, as they stand in summary.json, held to what it declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradestack.aggregator import Aggregator, Figure, Ratio, declared_at
from gradestack.grades import Grades
from gradestack.interpreter import ticking
from gradestack.intervals import Interval, replace_ends
from gradestack.metrics.over_tasks import (
    Path,
    check_mapping,
    figures_over_tasks,
    interval_path,
)
from gradestack.model import JSON
from gradestack.table import Table

SECONDS = 60.0
"""How long a metric may take for its figures."""
_ROUNDING = 1e-9
"""By how much a figure may lie beyond its bounds: what adding up in floats can cost."""


def select_grades(
    aggregator: Aggregator, table: Table, key: str, name: str, rows: Sequence[int] | None = None
) -> Grades:
    """Return one grader's grades with what they add to the sums of the metric of this name."""
    numbers = table.contributions(name) if aggregator.has_sums else None
    return Grades(table, key, rows, numbers)


def compute_figures(aggregator: Aggregator, grades: Grades) -> dict[str, JSON]:
    """Compute everything a metric makes of grades, as it stands in summary.json.

    Raises:
        Exception: The metric raised, takes too long, or gave what it did not declare.
    """
    figures: dict[str, Any] = {}
    has_ratio = any(isinstance(figure, Ratio) for figure in aggregator.figures)
    with ticking(SECONDS, _raise_timeout):
        if has_ratio or type(aggregator).figures_of is not Aggregator.figures_of:
            figures = figures_over_tasks(aggregator, grades)
        _merge_maps(figures, check_mapping("compute()", aggregator.compute(grades)))
    json.dumps(figures, sort_keys=True, allow_nan=False)
    for figure in aggregator.figures:
        if "{" not in figure.name:
            is_optional = figure.optional or (not figure.pooled and "models" in figures)
            _check_declared(figure, figures, is_optional=is_optional)
    models = figures.get("models")
    of_models = models.values() if isinstance(models, Mapping) else ()
    for of_model in (figures, *of_models):
        if isinstance(of_model, dict):
            _hold_to_bounds(aggregator, of_model)
            _make_ends_monotone(aggregator.figures, of_model)
    return figures


def _raise_timeout(*_: object) -> None:
    raise TimeoutError(f"took longer than {SECONDS:g} s")


def _merge_maps(figures: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Put figures in place of others of the same path; a reason replaces all below it."""
    for name, value in more.items():
        earlier = figures.get(name)
        is_map = isinstance(earlier, dict) and isinstance(value, Mapping)
        if is_map and value.keys() != {"reason"}:
            _merge_maps(figures[name], value)
        else:
            figures[name] = value


def _check_declared(figure: Figure, figures: Any, *, is_optional: bool) -> None:
    """Refuse a declared figure that is missing, or no number."""
    value = figures
    for part in figure.name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            if is_optional:
                return
            raise ValueError(f"it declares the figure {figure.name!r}, and does not give it")
        value = value[part]
    if value is not None and not _is_number(value):
        shown = f"{value!r:.200}"
        raise ValueError(f"the figure {figure.name} is {shown}, not a finite number or None")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _hold_to_bounds(aggregator: Aggregator, figures: dict[str, Any]) -> None:
    """Refuse figures beyond their bounds, a share of 3, and cut their intervals to the bounds."""
    for path, value in [*iterate_numbers(figures)]:
        name = ".".join(path)
        figure = declared_at(aggregator.figures, name)
        if figure is None:
            continue
        low, high = figure.bounds
        is_within = value is None or low - _ROUNDING <= value <= high + _ROUNDING
        if not is_within and not aggregator.of_scores:
            bounds = f"{low:g} to {high:g}"
            raise ValueError(f"the figure {name} is {value:g}, beyond its bounds {bounds}")
        interval = _interval_at(figures, figure, path, value)
        if interval is None or value is None or not low <= value <= high:
            continue
        if interval.get("method") != "t" or figure.unit != "share":
            interval["low"] = max(interval["low"], low)
            interval["high"] = min(interval["high"], high)


def _interval_at(
    figures: dict[str, Any], figure: Figure, path: Path, value: float | None
) -> dict[str, Any] | None:
    """Return the interval of a figure; without one, note the reason there and return None."""
    *above, last = interval_path(figure, path)
    holder: Any = figures
    for name in above:
        holder = holder.setdefault(name, {}) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or "reason" in holder:  # of a whole map of figures
        return None
    reason = figure.undefined if value is None else "no interval is computed"
    interval = holder.setdefault(last, {"reason": reason})
    return interval if isinstance(interval, dict) and "low" in interval else None


def iterate_numbers(
    figures: Mapping[str, Any], above: Path = ()
) -> Iterator[tuple[Path, float | None]]:
    """Yield the path and value of every figure that is a number or undefined, over all models."""
    for name, value in figures.items():
        if name.endswith("_interval") or (name == "models" and not above):
            continue
        path = (*above, name)
        if isinstance(value, Mapping):
            yield from iterate_numbers(value, path)
        elif value is None or _is_number(value):
            yield path, value


def _make_ends_monotone(figures: Sequence[Figure], computed: Mapping[str, Any]) -> None:
    """Move ends of intervals in ``computed`` so that none turns back as k grows.

    A figure such as ``pass_hat.{k}`` can only fall with k, and ``pass_at.{k}`` only rise. The
    interval of each k is computed alone, so that its ends may turn back: such an end is set to
    that of the k before.
    """
    for figure in figures:
        name = figure.name.removesuffix(".{k}")
        values, intervals = computed.get(name), computed.get(f"{name}_interval")
        if figure.course is None or not isinstance(values, dict) or not isinstance(intervals, dict):
            continue
        no_further_back = min if figure.course == "falls" else max
        before: Interval | None = None
        for k in sorted(values, key=int):
            interval: Interval = intervals.get(k, {})
            if "low" not in interval:
                continue
            if before is not None:
                low = no_further_back(interval["low"], before["low"])
                high = no_further_back(interval["high"], before["high"])
                interval = intervals[k] = replace_ends(interval, values[k], low, high)
            before = interval
