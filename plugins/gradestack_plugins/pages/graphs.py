"""Small graphs side by side: what was expected beside what was done, laid out in layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter

import attrs

from gradestack_plugins.pages.text import brief

_MOST_NODES, _MOST_LINES, _LONGEST = 30, 6, 25
_WIDTH, _GAP, _LINE, _HEAD, _BETWEEN = 176, 34, 15, 24, 12
_SIGNS = {"same": "", "differs": "≠ ", "missing": "✗ ", "extra": "+ "}


@attrs.frozen
class Node:
    """One node: its name, what it holds, its place, and how it stands to the other graph."""

    name: str
    lines: tuple[str, ...]
    x: int
    y: int
    height: int
    status: str
    """``same``, ``differs``, ``missing`` (expected only) or ``extra`` (made only)."""


@attrs.frozen
class Edge:
    """One edge, as the curve it is drawn by."""

    curve: str
    status: str


@attrs.frozen
class Graph:
    """A graph with its layout."""

    title: str
    about: str
    """The graph in words."""
    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int


@attrs.frozen
class GraphPair:
    """What was expected, and what was made of it; None where that could not be read as a graph."""

    expected: Graph
    actual: Graph | None


Nodes = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Node -> what it holds, and what it depends on."""


def pair_of(gold: Nodes, made: Nodes | None) -> GraphPair:
    """Return two graphs side by side, each node and edge with how it stands to the other one."""
    other = _graph("Made", made, gold, "extra") if made else None
    return GraphPair(_graph("Expected", gold, made or {}, "missing"), other)


def single_of(nodes: Nodes) -> GraphPair:
    """Return a graph that is compared with none."""
    return GraphPair(_graph("Graph", nodes, nodes, "missing"), None)


def _graph(title: str, nodes: Nodes, other: Nodes, alone: str) -> Graph:
    shown = {name: nodes[name] for name in list(nodes)[:_MOST_NODES]}
    layers = _ordered(_layers(shown), shown)
    places: dict[str, tuple[int, int, int]] = {}
    for column, names in enumerate(layers):
        y = 2
        for name in names:
            height = _HEAD + _LINE * min(len(shown[name][0]), _MOST_LINES) + (8 if shown[name][0] else 0)
            places[name] = (2 + column * (_WIDTH + _GAP), y, height)
            y += height + _BETWEEN
    found = tuple(_node(name, shown[name], other, places[name], alone) for name in shown)
    edges = tuple(_edges(shown, other, places, alone))
    width = 4 + len(layers) * (_WIDTH + _GAP) - _GAP
    height = 2 + max(y + tall for _, y, tall in places.values())
    return Graph(title, _about(shown, found), width, height, found, edges, len(nodes) - len(shown))


def _node(
    name: str, held: tuple[tuple[str, ...], tuple[str, ...]], other: Nodes, place: tuple[int, int, int], alone: str
) -> Node:
    status = alone if name not in other else "same" if other[name][0] == held[0] else "differs"
    lines = [brief(line, _LONGEST) for line in held[0][:_MOST_LINES]]
    if len(held[0]) > _MOST_LINES:
        lines[-1] = f"… {len(held[0]) - _MOST_LINES + 1} more"
    x, y, height = place
    return Node(_SIGNS[status] + brief(name, _LONGEST - 3), tuple(lines), x, y, height, status)


def _edges(nodes: Nodes, other: Nodes, places: Mapping[str, tuple[int, int, int]], alone: str) -> Iterator[Edge]:
    for name, (_, before) in nodes.items():
        for source in before:
            if source in places:
                (x, y, height), (to_x, to_y, to_height) = places[source], places[name]
                x, y, to_y = x + _WIDTH, y + height // 2, to_y + to_height // 2
                bend = _GAP // 2 if to_x >= x else _GAP
                curve = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
                yield Edge(curve, "same" if name in other and source in other[name][1] else alone)


def _forward(nodes: Nodes) -> dict[str, list[str]]:
    """Return what each node depends on without the edges that lead back, so that no cycle is left."""
    found: dict[str, list[str]] = {name: [] for name in nodes}
    for name, (_, before) in nodes.items():
        for source in before:
            if source in nodes and not _reaches(found, name, source):
                found[name].append(source)
    return found


def _reaches(before: Mapping[str, Sequence[str]], target: str, start: str) -> bool:
    """Return whether a node is among those that start depends on, itself included."""
    seen, waiting = {start}, [start]
    while waiting:
        name = waiting.pop()
        if name == target:
            return True
        for each in before[name]:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return False


def _layers(nodes: Nodes) -> list[list[str]]:
    """Return nodes in layers: each one layer after the last one it depends on."""
    before = _forward(nodes)
    depth: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        depth[name] = max((depth[source] + 1 for source in before[name]), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in nodes:
        layers[depth[name]].append(name)
    return layers


def _ordered(layers: list[list[str]], nodes: Nodes) -> list[list[str]]:
    """Return layers with each node at the mean height of those it depends on."""
    height: dict[str, float] = {}
    found = []
    for names in layers:
        wanted = {
            name: sum(known) / len(known)
            if (known := [height[each] for each in nodes[name][1] if each in height])
            else 0.0
            for name in names
        }
        found.append(sorted(names, key=lambda name: wanted[name]))
        height.update({name: float(place) for place, name in enumerate(found[-1])})
    return found


def _about(nodes: Nodes, shown: Sequence[Node]) -> str:
    told = []
    for node, (lines, before) in zip(shown, nodes.values(), strict=True):
        after = f" after {', '.join(before)}" if before else ""
        state = "" if node.status == "same" else f", {node.status}"
        told.append(f"{node.name.lstrip('≠✗+ ')}{after}: {', '.join(lines) or 'nothing'}{state}")
    return brief("; ".join(told), 800)
