"""Panels of every run: the documents' words, and the original programs' figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.pages import blocks


@blocks.panel("In the benchmark's words")
def statements(about: Report) -> Iterable[blocks.Block] | None:
    """The sentences of metrics about their figures; None without any."""
    aggregates = about.aggregates.values()
    metrics = [figures for of_grader in aggregates for figures in of_grader.values()]
    listed = chain.from_iterable([as_list(figures.get("statements")) for figures in metrics])
    texts = [text for text in listed if isinstance(text, str)]
    words = [blocks.Words(text) for text in dict.fromkeys(texts)]
    return words or None


@blocks.panel("As the original program computes it")
def programs(about: Report) -> Iterable[blocks.Block] | None:
    """The figures of the original programs of the same files, beside ours; None without one."""
    shown = []
    for entry in map(as_map, as_list(about.summary.get("programs"))):
        title = as_text(entry.get("title"))
        of = ""
        if "input" in entry:
            of = f", {as_text(entry['input'])}"
        rows: dict[str, list[blocks.Cell]] = {}
        figures = entry.get("figures")
        for figure in map(as_map, as_list(figures)):
            value = figure.get("value")
            path = as_text(figure.get("figure"))
            ours = _figure_of(about, path)
            label = as_text(figure.get("label"))
            why = as_text(figure.get("why"))
            rows[label] = [as_number(value), ours, why]
        if rows:
            columns = ["the program", "gradestack", "why they may differ"]
            table = blocks.Table(columns, rows, title=f"As {title} computes it{of}")
            shown.append(table)
    return shown or None


def _figure_of(report: Report, path: str) -> float | None:
    """Return our figure at a path ``GRADER.AGGREGATOR.FIGURE``; None where there is none."""
    grader, _, rest = path.partition(".")
    metric, _, figure = rest.partition(".")
    value: Any = as_map(report.aggregates.get(grader)).get(metric)
    if not isinstance(value, Mapping):
        return None
    if figure in value:
        return as_number(value[figure])
    for step in figure.split("."):
        value = as_map(value).get(step)
    return as_number(value)
