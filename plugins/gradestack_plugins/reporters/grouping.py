"""Bringing together what metrics spread over several keys: a value and its error, a figure per label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradestack.jsonio import as_map, is_number
from gradestack_plugins.reporters.estimates import ERRORS, INTERVALS, amount, figure, interval
from gradestack_plugins.reporters.text import title


def with_errors(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics in which values and their errors, kept apart as ``{"stderr": {key: error}}``, are estimates.

    So are a figure, or an object of figures, and what stands beside it as ``KEY_interval``. Objects of errors whose
    keys are not all figures of the same object are left alone.
    """
    found = _with_intervals({str(key): value for key, value in metrics.items()})
    for name in (*ERRORS, *INTERVALS):
        errors = as_map(metrics.get(name))
        if not errors or not all(key in metrics and _figure(metrics[key]) for key in errors):
            continue
        del found[name]
        for key, error in errors.items():
            held = found[key] if isinstance(found[key], dict) else {"value": found[key]}
            found[key] = {**held, name: error}
    return found


def _with_intervals(metrics: dict[str, Any]) -> dict[str, Any]:
    found = dict(metrics)
    for key, value in metrics.items():
        owner, interval = key.removesuffix("_interval"), as_map(value)
        if owner == key or owner not in metrics:
            continue
        if _figure(metrics[owner]):
            error = {"stderr": found.pop("stderr")} if is_number(found.get("stderr")) else {}
            found[owner] = {"value": metrics[owner], **error, "interval": interval}
        elif (figures := as_map(metrics[owner])) and interval.keys() <= figures.keys():
            found[owner] = {
                name: {"value": each, "interval": as_map(interval.get(name))} if _figure(each) else each
                for name, each in figures.items()
            }
        else:
            continue
        del found[key]
    return found


def _figure(value: Any) -> bool:
    return value is None or is_number(value)


def by_label(metrics: Mapping[str, Any], labels: Sequence[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return metrics without the figures that are given per label, and those as rows: heading → label → value.

    ``mean_entropy_gold_direct`` and ``mean_entropy_gold_tool_call`` become the row *Mean entropy*. A row has at least
    two labels.
    """
    rows: dict[str, dict[str, str]] = {}
    for key in metrics:
        label = next((label for label in sorted(labels, key=len, reverse=True) if key.endswith(f"_{label}")), None)
        if label is not None:
            rows.setdefault(key.removesuffix(f"_{label}"), {})[label] = key
    rows = {stem: keys for stem, keys in rows.items() if len(keys) > 1}
    taken = {key for keys in rows.values() for key in keys.values()}
    rest = {key: value for key, value in metrics.items() if key not in taken}
    table = {
        title(stem.removesuffix("_gold")): {label: metrics[key] for label, key in keys.items()}
        for stem, keys in rows.items()
    }
    return rest, table


def uncertainty(aggregates: Mapping[str, Any], average: float | None) -> tuple[float | None, float | None, str, str]:
    """Return interval, ``± standard error`` and the interval's text of the aggregate that estimates this average."""
    if average is None:
        return None, None, "", ""
    for name in sorted(aggregates):
        fields = with_errors(as_map(aggregates[name]))
        for value in (fields, *(fields[key] for key in sorted(fields))):
            estimate, found = amount(value) if isinstance(value, Mapping) else None, figure("", value)
            if estimate is not None and abs(estimate - average) <= 1e-9 and found and (found.spread or found.interval):
                return (*interval(as_map(value)), found.spread, found.interval)
    return None, None, "", ""
