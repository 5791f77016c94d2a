"""What the family shows on pages: decisions of a run, and the plans of a sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_text, compact
from gradestack_plugins.pages import blocks

_MOST_GRAPHS = 20


@blocks.panel("Calls and rejections")
def decisions(about: Report) -> Iterable[blocks.Block] | None:
    """What was decided where a call, or a rejection, was right; None where no metric says."""
    for held in about.aggregates.values():
        matrix = as_map(as_map(held.get("orchestration_decisions")).get("decision_matrix"))
        if matrix:
            columns = list(
                dict.fromkeys(
                    [*matrix, *(str(name) for row in matrix.values() for name in as_map(row))]
                )
            )
            values = [[as_map(row).get(name) for name in columns] for row in matrix.values()]
            return [blocks.Matrix(list(matrix), columns, values, corner="right \\ decided")]
    return None


@blocks.panel("Plans", place="sample")
def plans(about: Mapping[str, Any]) -> Iterator[blocks.Block]:
    """The workflows of a sample's items, as expected and as made."""
    found = 0
    for _, grade in sorted(as_map(about.get("grades")).items()):
        for item in map(as_map, as_list(as_map(grade).get("items"))):
            metadata = as_map(item.get("metadata"))
            gold, made = _nodes(metadata.get("gold")), _nodes(metadata.get("predicted"))
            if gold and found < _MOST_GRAPHS:
                found += 1
                yield blocks.Graph(gold, made or (), title=f"Step {as_text(item.get('id'))}")


def _nodes(value: Any) -> list[blocks.Node] | None:
    """Return an object of nodes, each with a list of names it depends on and further lists.

    None for anything else.
    """
    held = as_map(value)
    if not held or not all(
        isinstance(as_map(node).get("depends_on"), list) for node in held.values()
    ):
        return None
    return [
        blocks.Node(str(name), tuple(map(str, node["depends_on"])), tuple(_lines(node)))
        for name, node in held.items()
    ]


def _lines(node: Mapping[str, Any]) -> Iterator[str]:
    for key, value in node.items():
        if key != "depends_on" and isinstance(value, list):
            yield from (each if isinstance(each, str) else compact(each) for each in value)
