"""Tables beside those of the rows: figures with their intervals, gates, tasks, and why points were lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gradestack import Report, RowIndex
from gradestack.jsonio import as_list, as_map, as_text, compact, is_number
from gradestack_plugins.reporters.reliability import by_task

Line = tuple[Any, ...]
_INTERVAL = ("low", "high", "confidence", "n", "clusters", "method")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "headline": ("label", "figure", "model", "value", *_INTERVAL, "reason"),
    "figures": ("grader", "aggregator", "figure", "model", "value", *_INTERVAL, "reason"),
    "gates": ("gate", "outcome", "passed", "metric_key", "metric", "op", "threshold", "actual", *_INTERVAL, "reason"),
    "tasks": ("id", "model", "trials", "passed", "not_passed", "ungraded", "mean_score"),
    "failures": ("grader", "code", "subject", "argument", "samples"),
}
"""Names of the columns of each table, in order."""
_BESIDE = ("_interval", "_reason")
_NO_INTERVAL = (None,) * (len(_INTERVAL) + 1)


def figure_lines(report: Report, *, tasks: bool = True) -> Iterator[tuple[str, Line]]:
    """Yield the lines of these tables, each with its table; without rows there are no tasks and failures.

    Args:
        report: The run.
        tasks: Whether those of tasks are wanted.
    """
    summary = as_map(report.summary)
    for entry in map(as_map, as_list(as_map(summary.get("headline")).get("figures"))):
        yield from (("headline", line) for line in _headline(entry))
    for grader, averages in as_map(report.metrics.get("by_metric")).items():
        yield from (("figures", (grader, None, *line)) for line in _figures(as_map(averages)))
    for grader, aggregators in as_map(report.metrics.get("aggregates")).items():
        for aggregator, metrics in as_map(aggregators).items():
            yield from (("figures", (grader, aggregator, *line)) for line in _figures(as_map(metrics)))
    for gate in map(as_map, as_list(summary.get("gates"))):
        names = ("text", "outcome", "passed", "metric_key", "metric", "op", "value", "actual")
        yield "gates", (*map(_plain, map(gate.get, names)), *_interval(gate.get("interval"), gate.get("reason")))
    if report.has_rows:
        yield from _tasks(report.index) if tasks else ()
        for kind, samples in zip(report.index.given.kinds, report.index.given.samples, strict=True):
            yield "failures", (*(part or None for part in kind), samples)


def _headline(entry: Mapping[str, Any]) -> Iterator[Line]:
    names = (_plain(entry.get("label")), _plain(entry.get("figure")))
    models = as_map(entry.get("models"))
    for model, held in models.items() if models else [(None, entry)]:
        value, interval, reason = (as_map(held).get(name) for name in ("value", "interval", "reason"))
        if isinstance(value, Mapping):
            for key, each in value.items():
                yield names[0], f"{names[1]}.{key}", model, each, *_interval(as_map(interval).get(key))
        else:
            yield *names, model, value, *_interval(interval, reason)


def _figures(metrics: Mapping[str, Any]) -> list[Line]:
    """Return the numbers in metrics by their dotted paths, and what is not defined with its reason."""
    found: list[Line] = []
    _add_figures(found, metrics, "")
    return found


def _add_figures(
    found: list[Line], metrics: Mapping[str, Any], path: str, model: str | None = None, intervals: Any = None
) -> None:
    undefined, intervals = as_map(metrics.get("undefined")), as_map(intervals)
    for name, value in metrics.items():
        if name == "undefined" or (name.endswith(_BESIDE) and name.rpartition("_")[0] in metrics):
            continue
        interval = metrics.get(f"{name}_interval", intervals.get(name))
        if value is None or is_number(value):
            reason = metrics.get(f"{name}_reason", undefined.get(name)) if value is None else None
            found.append((f"{path}{name}", model, value, *_interval(interval, reason)))
        elif name == "models" and not path and all(isinstance(each, Mapping) for each in as_map(value).values()):
            for key, each in as_map(value).items():
                _add_figures(found, as_map(each), "", key)
        elif isinstance(value, Mapping):
            _add_figures(found, value, f"{path}{name}.", model, interval)


def _interval(held: Any, reason: Any = None) -> Line:
    """Return ends, confidence, size and method of an interval, and why there is no value, or no interval."""
    if held is None and reason is None:
        return _NO_INTERVAL
    fields = as_map(held)
    return (*(_plain(fields.get(name)) for name in _INTERVAL), _plain(reason or fields.get("reason")))


def _plain(value: Any) -> Any:
    return compact(value) if isinstance(value, Mapping | list) else value


def _tasks(index: RowIndex) -> Iterator[tuple[str, Line]]:
    for (model, task), entries in by_task(index.entries).items():
        verdicts = [entry.passed for entry in entries]
        scores = [entry.score for entry in entries if entry.score is not None]
        ungraded = sum(entry.state != "graded" for entry in entries)
        mean = math.fsum(scores) / len(scores) if scores else None
        counts = (len(entries), verdicts.count(True), verdicts.count(False), ungraded)
        yield "tasks", (task, as_text(model) or None, *counts, mean)
