"""Small graphs in layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import SimpleNamespace

from gradestack_plugins.pages.blocks import Graph, Node
from gradestack_plugins.pages.text import brief

_MOST_NODES, _MOST_LINES, _LONGEST_LINE = 30, 6, 80
_SIGNS = {"same": "", "differs": "≠ ", "missing": "✗ ", "extra": "+ "}

Nodes = Mapping[str, Node]


def draw_sides(block: Graph) -> list[SimpleNamespace] | None:
    """Return a graph in layers, or the expected one and the one that was made; None without nodes.

    Raises:
        ValueError: Two nodes of a graph have one name.
    """
    expected = _by_name(block.nodes)
    if not expected:
        return None
    if block.made is None:
        return [_draw_graph("", expected, expected, "missing")]
    made = _by_name(block.made)
    graph = _draw_graph("Expected", expected, made, "missing")
    return [
        graph,
        _draw_graph("Made", made, expected, "extra"),
    ]


def _by_name(nodes: Sequence[Node]) -> Nodes:
    named = {node.name: node for node in nodes}
    if len(named) < len(nodes):
        raise ValueError("two nodes of a graph have one name")
    return named


def _draw_graph(title: str, nodes: Nodes, other: Nodes, alone: str) -> SimpleNamespace:
    """Return nodes in layers, each one layer after the last one it depends on.

    Args:
        title: Its heading.
        nodes: The nodes by name.
        other: The graph it is compared with.
        alone: Status of a node that only this graph has.
    """
    shown = dict(islice(nodes.items(), _MOST_NODES))
    depths = _depths_of(shown)
    largest_depth = max(depths.values(), default=-1)
    layers: list[list[SimpleNamespace]] = [[] for _ in range(largest_depth + 1)]
    for name, node in shown.items():
        twin = other.get(name)
        layer = layers[depths[name]]
        layer.append(_draw_node(node, nodes, twin, alone))
    left_out = len(nodes) - len(shown)
    return SimpleNamespace(title=title, layers=layers, left_out=left_out)


def _depths_of(nodes: Nodes) -> dict[str, int]:
    """Return the layer of each node; edges that lead back do not count."""
    depths: dict[str, int] = {}

    def depth_of(name: str, above: frozenset[str] = frozenset()) -> int:
        if name not in depths:
            path = above | {name}
            before_names = nodes[name].after
            before = [
                before_name
                for before_name in before_names
                if before_name in nodes and before_name not in path
            ]
            depths[name] = max(
                (depth_of(before_name, path) + 1 for before_name in before), default=0
            )
        return depths[name]

    for name in nodes:
        depth_of(name)
    return depths


def _compare_nodes(node: Node, twin: Node) -> str:
    if [*twin.lines] == [*node.lines]:
        return "same"
    return "differs"


def _draw_node(node: Node, nodes: Nodes, twin: Node | None, alone: str) -> SimpleNamespace:
    """Return a node to draw: ``same``, ``differs``, ``missing`` (expected only) or ``extra``."""
    if twin is None:
        status = alone
    else:
        status = _compare_nodes(node, twin)
    lines = [brief(str(line), _LONGEST_LINE) for line in node.lines[:_MOST_LINES]]
    if len(node.lines) > _MOST_LINES:
        lines[-1] = f"… {len(node.lines) - _MOST_LINES + 1} more"
    known = () if twin is None else twin.after
    after = []
    for name in dict.fromkeys(node.after):
        if name in nodes:
            sign = "" if name in known else _SIGNS[alone]
            after.append(sign + brief(name, _LONGEST_LINE))
    title = _SIGNS[status] + brief(node.name, _LONGEST_LINE)
    return SimpleNamespace(name=title, status=status, after=after, lines=lines)
