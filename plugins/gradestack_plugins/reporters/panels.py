"""What every run shows on pages: sentences that its metrics say in their documents' words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.pages import blocks


@blocks.panel("In the benchmark's words")
def statements(about: Report) -> Iterable[blocks.Block] | None:
    """The sentences that metrics say of their figures; None without any."""
    texts = [
        text
        for metrics in about.aggregates.values()
        for figures in metrics.values()
        for text in as_list(figures.get("statements"))
        if isinstance(text, str)
    ]
    return [blocks.Words(text) for text in dict.fromkeys(texts)] or None


@blocks.panel("As the original program computes it")
def programs(about: Report) -> Iterable[blocks.Block] | None:
    """What the original programs compute of the same files, beside our figures; None without one."""
    shown = []
    for entry in map(as_map, as_list(about.summary.get("programs"))):
        title = as_text(entry.get("title"))
        of = f", {as_text(entry['input'])}" if "input" in entry else ""
        rows = {
            as_text(figure.get("label")): [
                as_number(figure.get("value")),
                _figure_of(about, as_text(figure.get("figure"))),
                as_text(figure.get("why")),
            ]
            for figure in map(as_map, as_list(entry.get("figures")))
        }
        if rows:
            columns = ["the program", "gradestack", "why they may differ"]
            shown.append(blocks.Table(columns, rows, title=f"As {title} computes it{of}"))
    return shown or None


def _figure_of(report: Report, path: str) -> float | None:
    """Return our figure at a path ``GRADER.AGGREGATOR.FIGURE``; None where there is none."""
    grader, _, rest = path.partition(".")
    metric, _, figure = rest.partition(".")
    found: Any = as_map(report.aggregates.get(grader)).get(metric)
    if not isinstance(found, Mapping):
        return None
    if figure in found:
        return as_number(found[figure])
    for step in figure.split("."):
        found = as_map(found).get(step)
    return as_number(found)
