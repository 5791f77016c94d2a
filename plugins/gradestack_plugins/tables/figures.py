"""The tables of a run's figures: headline, figures, gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradestack import Declarations, Report
from gradestack.jsonio import as_list, as_map, as_text, compact, is_number
from gradestack_plugins.tables.frame import COLUMNS, Line, Table

OF_FIGURES = ("headline", "figures", "gates")
_INTERVAL = ("low", "high", "confidence", "n", "clusters", "method")
_GATE = ("text", "outcome", "passed", "metric_key", "metric", "op", "value", "actual")
_BESIDE = ("_interval", "_reason")
"""Endings of names of an interval, and of a reason, beside the value of a figure."""


def figure_table(report: Report, name: str) -> Table:
    """Return one table of the figures of a run."""
    return figure_tables(report)[name]


def figure_tables(report: Report) -> dict[str, Table]:
    """Return the tables of a run's figures by their names, made once for all its reporters."""
    summary, tables = report.shared.get("figure_tables", (None, {}))
    if summary is not report.summary:
        tables = _make_tables(report)
        report.shared["figure_tables"] = (report.summary, tables)
    return dict(tables)


def _make_tables(report: Report) -> dict[str, Table]:
    summary = report.summary
    declared = Declarations(report.header)
    headline_lines = _headline_lines(summary, declared)
    metrics = summary.get("metrics")
    figure_lines = _figure_lines(as_map(metrics), declared)
    gates = summary.get("gates")
    lines: dict[str, Iterator[Line]] = {
        "headline": headline_lines,
        "figures": figure_lines,
        "gates": map(_gate_line, as_list(gates)),
    }
    return {name: Table.of(COLUMNS[name], lines[name]) for name in OF_FIGURES}


def _headline_lines(summary: Mapping[str, Any], declared: Declarations) -> Iterator[Line]:
    """Yield the figures of the headline with their units and directions."""
    headline = summary.get("headline")
    figures = as_list(as_map(headline).get("figures"))
    for entry in map(as_map, figures):
        figure = entry.get("figure")
        _, unit, better = _meaning(declared.at(as_text(figure)))
        for line in _lines_of_entry(entry):
            yield (*line, unit, better)


def _lines_of_entry(entry: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the values of one figure of the headline, by model and by key."""
    label = _plain(entry.get("label"))
    figure = _plain(entry.get("figure"))
    models = as_map(entry.get("models"))
    for model, recorded in models.items() if models else [(None, entry)]:
        values = as_map(recorded)
        value, interval, reason = map(values.get, ("value", "interval", "reason"))
        if not isinstance(value, Mapping):
            yield label, figure, model, value, *_interval(interval, reason)
            continue
        for key, number in value.items():
            ends = _interval(as_map(interval).get(key))
            yield label, f"{figure}.{key}", model, number, *ends


def _figure_lines(metrics: Mapping[str, Any], declared: Declarations) -> Iterator[Line]:
    """Yield averages and the figures of aggregators with their meanings."""
    by_metric = metrics.get("by_metric")
    for grader, averages in as_map(by_metric).items():
        numbers = _numbers(as_map(averages))
        for path, *line in numbers:
            figure = declared.figure(grader, "", path)
            yield grader, None, path, *line, *_meaning(figure)
    aggregates = metrics.get("aggregates")
    for grader, aggregators in as_map(aggregates).items():
        for aggregator, figures in as_map(aggregators).items():
            for path, *line in _numbers(as_map(figures)):
                meaning = _meaning(declared.figure(grader, aggregator, path))
                yield grader, aggregator, path, *line, *meaning


def _meaning(figure: Any) -> Line:
    """Return label, unit and direction of a declared figure."""
    if figure is None:
        return (None,) * 3
    return (figure.label, figure.unit, figure.better)


def _gate_line(recorded: Any) -> Line:
    gate = as_map(recorded)
    values = map(_plain, map(gate.get, _GATE))
    interval = gate.get("interval")
    reason = gate.get("reason")
    return (*values, *_interval(interval, reason))


def _numbers(
    metrics: Mapping[str, Any], path: str = "", model: str | None = None, intervals: Any = None
) -> Iterator[Line]:
    """Yield the numbers in metrics by their dotted paths, undefined ones with their reason."""
    undefined = as_map(metrics.get("undefined"))
    intervals = as_map(intervals)
    for name, value in metrics.items():
        if name == "undefined" or (name.endswith(_BESIDE) and name.rpartition("_")[0] in metrics):
            continue
        interval = metrics.get(f"{name}_interval", intervals.get(name))
        if value is None:
            reason = metrics.get(f"{name}_reason", undefined.get(name))
            yield f"{path}{name}", model, value, *_interval(interval, reason)
        elif is_number(value):
            yield f"{path}{name}", model, value, *_interval(interval)
        elif name == "models" and not path and _are_mappings(value):
            for key, figures in as_map(value).items():
                yield from _numbers(as_map(figures), "", key)
        elif isinstance(value, Mapping):
            yield from _numbers(value, f"{path}{name}.", model, interval)


def _are_mappings(value: Any) -> bool:
    entries = as_map(value).values()
    return all(isinstance(entry, Mapping) for entry in entries)


def _interval(recorded: Any, reason: Any = None) -> Line:
    """Return ends, confidence, size and method of an interval, and a reason without one."""
    fields = as_map(recorded)
    ends = (_plain(fields.get(name)) for name in _INTERVAL)
    return (*ends, _plain(reason or fields.get("reason")))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping | list):
        return compact(value)
    return value
