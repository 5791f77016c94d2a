"""Panels of the family: decisions of a run, and the plans of a sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from gradestack import Report
from gradestack.jsonio import as_map, as_number
from gradestack_plugins.pages import blocks

_MOST_GRAPHS = 20


_PARTS = {"call_rejection_accuracy": "call or decline", "fc": "function calls", "plan": "plan"}
"""Figure -> its name in plain words."""


@blocks.panel("Call or decline", place="lead")
def decisions(about: Report) -> Iterable[blocks.Block] | None:
    """Decisions where a call, or a rejection, was right; None where no metric has them."""
    metrics = blocks.find_metrics(about, "orchestrationbench", "decision_matrix")
    matrix = as_map(metrics.get("decision_matrix"))
    if matrix:
        return [*_head(metrics), _decisions(matrix)]
    return None


def _head(metrics: Mapping[str, Any]) -> Iterator[blocks.Block]:
    """Yield the sentence: the average, and the weakest of its parts."""
    average = as_number(metrics.get("average"))
    values = {name: as_number(metrics.get(name)) for name in _PARTS}
    known = {name: value for name, value in values.items() if value is not None}
    if average is None or not known:
        return
    weakest = min(known, key=lambda name: known[name])
    low = blocks.Part(f"{_PARTS[weakest]} {100 * known[weakest]:.1f}%", "bad")
    ends = blocks.figure_of("", metrics, "average", unit="share").interval
    within = "" if ends is None else f" ({100 * ends[0]:.0f} to {100 * ends[1]:.0f}%)"
    overall = blocks.Part(f"{100 * average:.1f}%", "good")
    yield blocks.Head(["Overall ", overall, f"{within}; lowest of its parts: ", low])


def _decisions(matrix: Mapping[str, Any]) -> blocks.Matrix:
    """Build the matrix of right and taken decisions; columns without a row come last."""
    rows = {name: as_map(row) for name, row in matrix.items()}
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    columns.sort(key=lambda name: name not in rows)
    totals = [f"{sum(row.values())}" for row in rows.values()]
    return blocks.Matrix(
        list(rows),
        columns,
        [[row.get(column) for column in columns] for row in rows.values()],
        corner="steps: expected ↓ decided →",
        is_confusion=True,
        totals=totals,
    )


@blocks.panel("Plans", place="sample")
def plans(about: Mapping[str, Any]) -> Iterable[blocks.Block]:
    """The workflows of a sample's items, as expected and as made."""
    return islice(_graphs(about), _MOST_GRAPHS)


def _graphs(row: Mapping[str, Any]) -> Iterator[blocks.Graph]:
    for grade in row.get("grades", {}).values():
        for item in grade.get("items", ()):
            metadata = item.get("metadata", {})
            gold = _nodes(metadata.get("gold"))
            made = _nodes(metadata.get("predicted"))
            if gold:
                title = f"Step {item['id']}"
                yield blocks.Graph(gold, made, title=title)


class _Workflow(msgspec.Struct):
    depends_on: list[str]
    steps: list[str]


def _nodes(plan: Any) -> list[blocks.Node]:
    """Return the workflows of a plan's outline as nodes, none of anything else."""
    try:
        workflows = msgspec.convert(plan, dict[str, _Workflow])
    except ValueError:  # msgspec's own, or a lone surrogate
        return []
    return [
        blocks.Node(name, workflow.depends_on, workflow.steps)
        for name, workflow in workflows.items()
    ]
