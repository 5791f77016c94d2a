"""Panels of the family: decisions of a run, and the plans of a sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from gradestack import Report
from gradestack_plugins.pages import blocks

_MOST_GRAPHS = 20


@blocks.panel("Calls and rejections")
def decisions(about: Report) -> Iterable[blocks.Block] | None:
    """Decisions where a call, or a rejection, was right; None where no metric has them."""
    for metrics in about.aggregates.values():
        matrix = metrics.get("orchestrationbench", {}).get("decision_matrix", {})
        for columns in islice(matrix.values(), 1):
            values = [list(row.values()) for row in matrix.values()]
            return [blocks.Matrix(list(matrix), list(columns), values, corner="right \\ decided")]
    return None


@blocks.panel("Plans", place="sample")
def plans(about: Mapping[str, Any]) -> Iterable[blocks.Block]:
    """The workflows of a sample's items, as expected and as made."""
    return islice(_graphs(about), _MOST_GRAPHS)


def _graphs(row: Mapping[str, Any]) -> Iterator[blocks.Graph]:
    for grade in row.get("grades", {}).values():
        for item in grade.get("items", ()):
            metadata = item.get("metadata", {})
            gold, made = _nodes(metadata.get("gold")), _nodes(metadata.get("predicted"))
            if gold:
                yield blocks.Graph(gold, made, title=f"Step {item['id']}")


class _Workflow(msgspec.Struct):
    depends_on: list[str]
    steps: list[str]


def _nodes(plan: Any) -> list[blocks.Node]:
    """Return the workflows of a plan's outline as nodes, none of anything else."""
    try:
        workflows = msgspec.convert(plan, dict[str, _Workflow])
    except ValueError:  # msgspec's own, or a lone surrogate
        return []
    return [blocks.Node(name, each.depends_on, each.steps) for name, each in workflows.items()]
