"""The tables of a run's figures: headline, figures, gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradestack import Declarations, Report
from gradestack.jsonio import as_list, as_map, as_text, compact, is_number
from gradestack_plugins.tables.frame import COLUMNS, Line, Table

OF_FIGURES = ("headline", "figures", "gates")
_MEANT = ("label", "unit", "better")
_ENDS = ("low", "high", "confidence", "n", "clusters", "method")
_NO_INTERVAL = (None,) * (len(_ENDS) + 1)
_BESIDE = ("_interval", "_reason")


def figure_table(report: Report, name: str) -> Table:
    """Return one table of the figures of a run."""
    return figure_tables(report)[name]


def figure_tables(report: Report) -> dict[str, Table]:
    """Return the tables of a run's figures by their names."""
    lines: dict[str, list[Line]] = {name: [] for name in OF_FIGURES}
    for name, line in _figure_lines(report.summary, report.header):
        lines[name].append(line)
    return {name: Table.of(COLUMNS[name], found) for name, found in lines.items()}


def _figure_lines(
    summary: Mapping[str, Any], header: Mapping[str, Any]
) -> Iterator[tuple[str, Line]]:
    declared, metrics = Declarations(header), as_map(summary.get("metrics"))

    def meant(meaning: Any) -> Line:
        return (
            (None,) * len(_MEANT)
            if meaning is None
            else (meaning.label, meaning.unit, meaning.better)
        )

    for entry in map(as_map, as_list(as_map(summary.get("headline")).get("figures"))):
        unit_and_direction = meant(declared.at(as_text(entry.get("figure"))))[1:]
        yield from (("headline", (*line, *unit_and_direction)) for line in _headline(entry))
    for grader, averages in as_map(metrics.get("by_metric")).items():
        for path, *line in _figures(as_map(averages)):
            yield "figures", (grader, None, path, *line, *meant(declared.figure(grader, "", path)))
    for grader, aggregators in as_map(metrics.get("aggregates")).items():
        for aggregator, found in as_map(aggregators).items():
            for path, *line in _figures(as_map(found)):
                yield (
                    "figures",
                    (
                        grader,
                        aggregator,
                        path,
                        *line,
                        *meant(declared.figure(grader, aggregator, path)),
                    ),
                )
    for gate in map(as_map, as_list(summary.get("gates"))):
        names = ("text", "outcome", "passed", "metric_key", "metric", "op", "value", "actual")
        yield (
            "gates",
            (
                *map(_plain, map(gate.get, names)),
                *_interval(gate.get("interval"), gate.get("reason")),
            ),
        )


def _headline(entry: Mapping[str, Any]) -> Iterator[Line]:
    names = (_plain(entry.get("label")), _plain(entry.get("figure")))
    models = as_map(entry.get("models"))
    for model, held in models.items() if models else [(None, entry)]:
        value, interval, reason = (
            as_map(held).get(name) for name in ("value", "interval", "reason")
        )
        if isinstance(value, Mapping):
            for key, each in value.items():
                yield (
                    names[0],
                    f"{names[1]}.{key}",
                    model,
                    each,
                    *_interval(as_map(interval).get(key)),
                )
        else:
            yield *names, model, value, *_interval(interval, reason)


def _figures(
    metrics: Mapping[str, Any], path: str = "", model: str | None = None, intervals: Any = None
) -> Iterator[Line]:
    """Yield the numbers in metrics by their dotted paths, and what is not defined with
    its reason.
    """
    undefined, intervals = as_map(metrics.get("undefined")), as_map(intervals)
    for name, value in metrics.items():
        if name == "undefined" or (name.endswith(_BESIDE) and name.rpartition("_")[0] in metrics):
            continue
        interval = metrics.get(f"{name}_interval", intervals.get(name))
        if value is None or is_number(value):
            reason = metrics.get(f"{name}_reason", undefined.get(name)) if value is None else None
            yield f"{path}{name}", model, value, *_interval(interval, reason)
        elif (
            name == "models"
            and not path
            and all(isinstance(each, Mapping) for each in as_map(value).values())
        ):
            for key, each in as_map(value).items():
                yield from _figures(as_map(each), "", key)
        elif isinstance(value, Mapping):
            yield from _figures(value, f"{path}{name}.", model, interval)


def _interval(held: Any, reason: Any = None) -> Line:
    """Return ends, confidence, size and method of an interval, and why there is no value, or no
    interval.
    """
    if held is None and reason is None:
        return _NO_INTERVAL
    fields = as_map(held)
    return (*(_plain(fields.get(name)) for name in _ENDS), _plain(reason or fields.get("reason")))


def _plain(value: Any) -> Any:
    return compact(value) if isinstance(value, Mapping | list) else value
