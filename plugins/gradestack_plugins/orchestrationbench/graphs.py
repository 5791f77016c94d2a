"""Directed graphs, and the edit distance between two of them, with a bound on the work.

Insertion and deletion of a node or an edge cost 1, substitution of an edge nothing, substitution of
a node 0 in unlabelled graphs and ``Weights.substitution`` in labelled ones. Self-loops are edges
like any other. The result is exact unless the search had to stop after its budget of expanded
nodes; then it carries a lower and an upper bound.

The smaller graph is filled up with isolated dummy nodes, so that every edit path is a permutation:
mapping a node on a dummy (or a dummy on a node) is its deletion (insertion). With substitution
never dearer than deletion plus insertion some optimal path maps as many nodes as it can, so nothing
is lost. The distance of a permutation p is the sum of node costs plus one for every ordered pair
(i, k) where an edge i -> k exists on one side only.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec

Label = tuple[Hashable, Hashable]
"""Agent and status."""


class Graph(msgspec.Struct, frozen=True):
    """A directed graph without parallel edges; nodes are numbered in the order they were added.

    The order of nodes and edges is kept because networkx's approximation of self-loops depends on
    it.
    """

    nodes: int
    labels: tuple[Label, ...] | None
    """One label per node; None when every node may stand for any other at no cost."""
    edges: tuple[tuple[int, int], ...]
    """(tail, head) pairs of node numbers, in the order they were added.

    A self-loop has tail == head.
    """

    @property
    def size(self) -> int:
        """Number of nodes plus number of edges: the price of deleting the whole graph."""
        return self.nodes + len(self.edges)


def build_graph(nodes: Iterable[Any], edges: Iterable[tuple[Any, Any]], *, labelled: bool) -> Graph:
    """Build a graph; a node or an edge given twice is there once.

    Args:
        nodes: All nodes, in order.
        edges: Pairs of nodes, in order.
        labelled: Whether the nodes are (agent, status) pairs that tell them apart.
    """
    numbers = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
    pairs = dict.fromkeys((numbers[tail], numbers[head]) for tail, head in edges)
    return Graph(len(numbers), tuple(numbers) if labelled else None, tuple(pairs))


class Weights(msgspec.Struct, frozen=True):
    """Price of putting one (agent, status) node in another's place, from 0 to 2 each.

    Equal nodes cost 0, nodes that differ in both cost 1, as do insertion and deletion.
    """

    agent: float = 0.8
    status: float = 0.5

    def substitution(self, left: Label, right: Label) -> float:
        """Return the price of putting ``left`` in the place of ``right``."""
        if left[0] == right[0]:
            if left[1] == right[1]:
                return 0.0
            return self.status
        if left[1] == right[1]:
            return self.agent
        return 1.0


Matrix = Sequence[Sequence[float]]
"""A number for each pair of an unmapped node of the left graph (row) and of the right
one (column).
"""
_ROUNDING = 1e-9
"""By how much sums of prices may differ that are equal."""


def _adjacency(graph: Graph, n: int) -> list[list[int]]:
    """Return the adjacency matrix of a graph filled up with dummies to ``n`` nodes."""
    matrix = [[0] * n for _ in range(n)]
    for tail, head in graph.edges:
        matrix[tail][head] = 1
    return matrix


def _edges(matrix: Sequence[Sequence[int]], node: int, others: list[int]) -> list[tuple[int, int]]:
    """Return for each other node whether an edge leads there, and from there."""
    return [(matrix[node][other], matrix[other][node]) for other in others]


def _degrees(matrix: Sequence[Sequence[int]], nodes: list[int]) -> list[tuple[int, int]]:
    """Return out- and in-degree of each node among these nodes, loops aside."""
    degrees = []
    for node in nodes:
        loop = matrix[node][node]
        out = sum([matrix[node][other] for other in nodes])
        into = sum([matrix[other][node] for other in nodes])
        degrees.append((out - loop, into - loop))
    return degrees


class _Search:
    """Branch and bound over mappings of two graphs of ``n`` nodes each (dummies included).

    The node with the fewest choices comes first.
    """

    def __init__(self, left: Graph, right: Graph, weights: Weights, budget: float) -> None:
        """Search the cheapest mapping of nodes between two graphs, within a budget of steps."""
        n = max(left.nodes, right.nodes)
        adjacency = _adjacency(left, n)
        self.left, self.right = adjacency, _adjacency(right, n)
        self.costs = [[0.0] * n for _ in range(n)]
        for i, row in enumerate(self.costs):
            for j in range(n):
                if i >= left.nodes or j >= right.nodes:
                    row[j] = 1.0
                elif left.labels and right.labels:
                    label = left.labels[i]
                    row[j] = weights.substitution(label, right.labels[j])
                row[j] += self.left[i][i] != self.right[j][j]
        # Unlabelled, every mapping costs n differences + edges on both sides - 2 * edges kept, so
        # distances differ by 2 at least.
        self.step = _ROUNDING if left.labels else 2 - _ROUNDING
        self.budget, self.expanded = budget, 0
        self.best = math.inf
        """Cheapest complete mapping found."""
        self.floor = math.inf
        """Lowest bound of what was left unexplored when the budget ran out."""
        everything = list(range(n))
        self._expand(everything, everything, self.costs, 0.0)

    def _expand(self, rows: list[int], cols: list[int], costs: Matrix, paid: float) -> None:
        """Search all mappings that may follow a partial one.

        ``costs`` are the prices of mapping a node of ``rows`` on one of ``cols``, with those of its
        edges to mapped nodes that the other side lacks.
        """
        if not rows:
            self.best = min(self.best, paid)
            return
        raises, least = self._bounds(rows, cols, costs)
        bound = paid + least
        if self.expanded >= self.budget:
            self.floor = min(self.floor, bound)
            return
        self.expanded += 1
        slack = self.best - self.step - bound
        choices = [sum([raised <= slack for raised in line]) for line in raises]
        row = choices.index(min(choices))
        for raised, col in sorted(zip(raises[row], range(len(cols)), strict=True)):
            if bound + raised > self.best - self.step:
                break
            self._map(row, col, rows, cols, costs, paid)

    def _map(
        self, row: int, col: int, rows: list[int], cols: list[int], costs: Matrix, paid: float
    ) -> None:
        """Map one node on another, and search what follows."""
        others = rows[:row] + rows[row + 1 :]
        images = cols[:col] + cols[col + 1 :]
        left_costs = [*costs[:row], *costs[row + 1 :]]
        below = [[*line[:col], *line[col + 1 :]] for line in left_costs]
        ours = _edges(self.left, rows[row], others)
        theirs = _edges(self.right, cols[col], images)
        below = _plus_differences(below, ours, theirs, 1.0)
        cost = costs[row]
        self._expand(others, images, below, paid + cost[col])

    def _bounds(self, rows: list[int], cols: list[int], costs: Matrix) -> tuple[Matrix, float]:
        """Return by how much each pair raises a lower bound of what follows, and the bound.

        A pair of unmapped nodes costs at least its own price and half the difference of its
        in-degrees and of its out-degrees among the unmapped. Subtracting the minimum of every row,
        then of every column, bounds the cheapest assignment from below.
        """
        ours = _degrees(self.left, rows)
        theirs = _degrees(self.right, cols)
        plus_differences = _plus_differences(costs, ours, theirs, 0.5)
        raises, by_rows = _less_least(plus_differences)
        lines = list(zip(*raises, strict=True))
        columns, by_columns = _less_least(lines)
        pairs = list(zip(*columns, strict=True))
        return pairs, by_rows + by_columns


def _less_least(lines: Matrix) -> tuple[Matrix, float]:
    """Subtract the least number of each line; return what is left, and the sum of the least."""
    leasts = [min(line) for line in lines]
    pairs = zip(lines, leasts, strict=True)
    return [[value - least for value in line] for line, least in pairs], sum(leasts)


def _plus_differences(
    costs: Matrix, ours: list[tuple[int, int]], theirs: list[tuple[int, int]], price: float
) -> list[list[float]]:
    """Return costs with a price added for each by which the numbers of a row differ from those of a
    column.
    """
    raised = []
    for line, (a, b) in zip(costs, ours, strict=True):
        pairs = zip(line, theirs, strict=True)
        raised.append([cost + price * (abs(a - x) + abs(b - y)) for cost, (x, y) in pairs])
    return raised


BUDGET = 40_000
"""Default number of partial mappings expanded per pair of more than 8 nodes a side.

No pair of up to 12 nodes with no more edges than nodes was found to need as many.
"""

_ALWAYS = 8
"""Nodes a side up to which the search always runs to its end: it has no more than 8! leaves."""
_SMALL = 12
"""Nodes a side up to which the whole budget is granted.

Beyond, it shrinks as the work per expanded node grows.
"""
_LARGEST = 48
"""Nodes a side beyond which only the cheap bounds are computed."""


class Distance(msgspec.Struct, frozen=True):
    """Result of one comparison; ``lower == upper`` when exact."""

    lower: float
    upper: float
    expanded: int = 0

    @property
    def exact(self) -> bool:
        """Whether the search came to its end."""
        return self.lower == self.upper


def edit_distance(left: Graph, right: Graph, weights: Weights, budget: int = BUDGET) -> Distance:
    """Return the cheapest total cost of edits that turn ``left`` into ``right``, or
    bounds of it.
    """
    n = max(left.nodes, right.nodes)
    if left == right:
        return Distance(0.0, 0.0)
    if n > _LARGEST:
        return _coarse(left, right)
    granted = budget * _SMALL**2 // max(_SMALL, n) ** 2
    search = _Search(left, right, weights, math.inf if n <= _ALWAYS else max(4 * n, granted))
    lower = min(search.floor, search.best)
    rounded = round(lower, 9)
    return Distance(rounded, round(search.best, 9), search.expanded)


def _coarse(left: Graph, right: Graph) -> Distance:
    """Return bounds in linear time: equal labels stay, all else is deleted or inserted."""
    nodes, edges = [], []
    for graph in (left, right):
        names = graph.labels or range(graph.nodes)
        nodes.append({*names})
        edges.append({(names[tail], names[head]) for tail, head in graph.edges})
    lower = abs(left.nodes - right.nodes)
    edge_count = len(left.edges)
    lower += abs(edge_count - len(right.edges))
    first_node = nodes[0]
    first_edge = edges[0]
    upper = len(first_node ^ nodes[1]) + len(first_edge ^ edges[1])
    return Distance(float(lower), float(upper))


def networkx_distance(left: Graph, right: Graph, weights: Weights) -> float:
    """Return the edit distance by networkx, which overlooks many self-loops."""
    import networkx as nx  # noqa: PLC0415 - optional and slow to import

    sides = nx.DiGraph(), nx.DiGraph()
    for side, graph in zip(sides, (left, right), strict=True):
        labels = graph.labels or [None] * graph.nodes
        side.add_nodes_from((node, {"label": label}) for node, label in enumerate(labels))
        side.add_edges_from(graph.edges)

    def substitute(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
        return weights.substitution(ours["label"], theirs["label"])

    # insertions and deletions cost 1 there as well, other substitutions nothing
    most = left.size + right.size
    price = substitute if left.labels else None
    distance = nx.graph_edit_distance(*sides, node_subst_cost=price, upper_bound=most)
    return float(most if distance is None or math.isinf(distance) else distance)


def usual_distance(left: Graph, right: Graph, weights: Weights) -> float:
    """Return the distance of networkx where it is installed and ends within seconds, else ours.

    It does with as many mappings of nodes as two graphs of seven have.
    """
    few, many = sorted((left.nodes, right.nodes))
    is_small = few + many <= 24 and math.perm(many, few) <= math.factorial(7)
    if is_small and all(map(importlib.util.find_spec, ("networkx", "numpy", "scipy"))):
        return networkx_distance(left, right, weights)
    return edit_distance(left, right, weights).upper
