"""Directed graphs, and the edit distance between two of them, with a bound on the work.

Insertion and deletion of a node or an edge cost 1, substitution of an edge nothing, substitution of
a node 0 in unlabelled graphs and ``Weights.substitution`` in labelled ones. Self-loops are edges
like any other. The result is exact unless the search had to stop after its budget of expanded
nodes; then it carries a lower and an upper bound.

The smaller graph is filled up with isolated dummy nodes, so that every edit path is a permutation:
mapping a node on a dummy (or a dummy on a node) is its deletion (insertion). With substitution
never dearer than deletion plus insertion some optimal path maps as many nodes as it can, so nothing
is lost. The distance of a permutation p is the sum of node costs plus one for every ordered pair
(i, k) where an edge i -> k exists on one side only. Costs are integers: weights are taken as the
decimal numbers they are written as and scaled by their common denominator, then doubled, because
lower bounds charge each unmatched edge in halves to its two ends.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Collection, Hashable, Sequence
from fractions import Fraction
from itertools import pairwise
from operator import add
from typing import Any

import msgspec

Label = tuple[Hashable, Hashable]


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

    @property
    def has_loop(self) -> bool:
        """True when some edge leads from a node to itself."""
        return any(tail == head for tail, head in self.edges)


class Builder:
    """Collects nodes and edges; a node or edge added twice is there once."""

    def __init__(self) -> None:
        self.index: dict[Any, int] = {}
        self._edges: dict[tuple[int, int], None] = {}

    def node(self, key: Hashable) -> int:
        """Return the number of the node ``key``, adding it when it is new."""
        return self.index.setdefault(key, len(self.index))

    def edge(self, tail: Hashable, head: Hashable) -> None:
        """Add an edge, and its end nodes when they are new."""
        self._edges[self.node(tail), self.node(head)] = None

    def chains(self, chains: Collection[Sequence[Hashable]]) -> None:
        """Add all nodes of the chains, then an edge between neighbours that differ."""
        for chain in chains:
            for node in chain:
                self.node(node)
        for chain in chains:
            for node, following in pairwise(chain):
                if node != following:
                    self.edge(node, following)

    def graph(self, *, labelled: bool) -> Graph:
        """Return the graph; labelled, its node keys are (agent, status) pairs."""
        return Graph(len(self.index), tuple(self.index) if labelled else None, tuple(self._edges))


class Weights(msgspec.Struct, frozen=True):
    """Price of putting one (agent, status) node in another's place.

    Equal nodes cost 0, nodes that differ in both cost 1, as do insertion and deletion.
    """

    agent: float = 0.8
    status: float = 0.5

    def __post_init__(self) -> None:
        for name, weight in (("agent", self.agent), ("status", self.status)):
            if not 0 <= weight <= 2:
                raise ValueError(
                    f"{name} weight {weight!r}: expected a number from 0 to 2, the price of a "
                    "deletion and an insertion"
                )

    def substitution(self, left: Label, right: Label) -> float:
        """Return the price of putting ``left`` in the place of ``right``."""
        if left[0] == right[0]:
            return 0.0 if left[1] == right[1] else self.status
        return self.agent if left[1] == right[1] else 1.0


Matrix = list[list[int]]
"""A number for each pair of an unmapped node of the left graph (row) and of the right
one (column).
"""


class _Side:
    """Edges of one of the graphs, filled up with dummies to ``n`` nodes: bit sets of nodes."""

    def __init__(self, graph: Graph, n: int) -> None:
        self.out, self.into, self.loops = [0] * n, [0] * n, [False] * n
        for tail, head in graph.edges:
            if tail == head:
                self.loops[tail] = True
            else:
                self.out[tail] |= 1 << head
                self.into[head] |= 1 << tail

    def degrees(self, nodes: list[int]) -> list[tuple[int, int]]:
        """Return out- and in-degree of each node among these nodes."""
        among = sum([1 << node for node in nodes])
        degrees = []
        for node in nodes:
            out, into = self.out[node] & among, self.into[node] & among
            degrees.append((out.bit_count(), into.bit_count()))
        return degrees

    def edges(self, node: int, others: list[int]) -> list[tuple[int, int]]:
        """Return for each other node whether an edge leads there, and from there."""
        out, into = self.out[node], self.into[node]
        return [(out >> other & 1, into >> other & 1) for other in others]

    def are_twins(self, a: int, b: int) -> bool:
        """Return whether two nodes can be exchanged without changing an edge."""
        others = ~(1 << a | 1 << b)
        if (self.out[a] ^ self.out[b]) & others or (self.into[a] ^ self.into[b]) & others:
            return False
        return self.out[a] >> b & 1 == self.out[b] >> a & 1

    def twins(self, costs: Matrix) -> list[int]:
        """Return for each node the first one it can be exchanged with, whatever it is mapped on."""
        classes: list[int] = []
        for a in range(len(costs)):
            known = (b for b in classes if costs[a] == costs[b] and self.are_twins(a, b))
            classes.append(next(known, a))
        return classes


class _Search:
    """Branch and bound over partial mappings of two graphs of ``n`` nodes each (dummies included).

    The most constrained node comes first, and of several nodes that can be exchanged for one
    another only one is tried. All prices are scaled and doubled; ``edge`` is that of one edge.
    """

    def __init__(self, left: Graph, right: Graph, weights: Weights, budget: int) -> None:
        n = max(left.nodes, right.nodes)
        prices = {0.0: Fraction(0), 1.0: Fraction(1)}
        if left.labels is not None:
            prices |= {each: Fraction(str(each)) for each in (weights.agent, weights.status)}
        unit = math.lcm(*(price.denominator for price in prices.values()))
        scaled = {each: int(2 * unit * price) for each, price in prices.items()}
        self.budget, self.expanded, self.edge = budget, 0, 2 * unit
        self.left, self.right = _Side(left, n), _Side(right, n)
        labels, others = left.labels, right.labels
        self.costs = [[self.edge] * n for _ in range(n)]
        for i, row in enumerate(self.costs):
            for j in range(n):
                if i < left.nodes and j < right.nodes:
                    row[j] = 0
                    if labels and others:
                        row[j] = scaled[weights.substitution(labels[i], others[j])]
                row[j] += self.edge * (self.left.loops[i] != self.right.loops[j])
        self.rows = self.left.twins(self.costs)
        self.columns = self.right.twins(list(map(list, zip(*self.costs, strict=True))))
        # Distances differ by multiples of this, so a bound this close below the best cannot be met.
        # Unlabelled, every path costs n differences + edges on both sides - 2 * edges kept, so
        # parity is fixed.
        self.step = 4 if left.labels is None else math.gcd(*scaled.values())
        self.best = 1 << 200
        """Cheapest complete mapping found."""
        self.floor = self.best
        """Lowest bound of what was left unexplored when the budget ran out."""

    @property
    def limit(self) -> int:
        """Bound from which on nothing better than ``best`` can follow."""
        return self.best - self.step + 1

    def run(self) -> bool:
        everything = list(range(len(self.costs)))
        return self._expand(everything, everything, self.costs, 0)

    def _expand(self, rows: list[int], cols: list[int], costs: Matrix, paid: int) -> bool:
        """Return whether all was searched that may follow a partial mapping.

        ``costs`` are the prices of mapping a node of ``rows`` on one of ``cols``, with those of its
        edges to mapped nodes that the other side lacks.
        """
        if not rows:
            self.best = min(self.best, paid)
            return True
        if self.expanded >= self.budget:
            return False
        self.expanded += 1
        raises, least = self._bounds(rows, cols, costs)
        bound, complete = paid + least, True
        if bound >= self.limit:
            return True
        for raised, r, c in self._children(rows, cols, raises, self.limit - bound):
            if bound + raised >= self.limit:
                break
            if complete:
                complete = self._expand(*self._below(rows, cols, costs, r, c), paid + costs[r][c])
            if not complete:
                self.floor = min(self.floor, bound + raised)
        return complete

    def _below(
        self, rows: list[int], cols: list[int], costs: Matrix, r: int, c: int
    ) -> tuple[list[int], list[int], Matrix]:
        """Return the unmapped nodes and their costs after row ``r`` was mapped on column ``c``."""
        others, images = rows[:r] + rows[r + 1 :], cols[:c] + cols[c + 1 :]
        kept = [row[:c] + row[c + 1 :] for row in costs[:r] + costs[r + 1 :]]
        ours, theirs = self.left.edges(rows[r], others), self.right.edges(cols[c], images)
        return others, images, _plus_differences(kept, ours, theirs, self.edge)

    def _bounds(self, rows: list[int], cols: list[int], costs: Matrix) -> tuple[Matrix, int]:
        """Return by how much each pair raises a lower bound of what follows, and the bound.

        A pair of unmapped nodes costs at least its own price and half the difference of its
        in-degrees and of its out-degrees among the unmapped. Subtracting the minimum of every row,
        then of every column, bounds the cheapest assignment from below.
        """
        ours, theirs = self.left.degrees(rows), self.right.degrees(cols)
        raises = _plus_differences(costs, ours, theirs, self.edge // 2)
        raises, by_rows = _less_least(raises)
        columns, by_columns = _less_least(list(map(list, zip(*raises, strict=True))))
        if by_columns:
            raises = list(map(list, zip(*columns, strict=True)))
        return raises, by_rows + by_columns

    def _children(
        self, rows: list[int], cols: list[int], raises: Matrix, slack: int
    ) -> list[tuple[int, int, int]]:
        """Return (raise of the bound, row, column) of the row's or column's choices where there are
        fewest.
        """
        lines = [*raises, *zip(*raises, strict=True)]
        fewest, place = len(rows) + 1, 0
        for number, line in enumerate(lines):
            viable = sum([value < slack for value in line])
            if viable < fewest:
                fewest, place = viable, number
            if fewest <= 1:
                break
        by_row, at = place < len(rows), place % len(rows)
        classes, nodes = (self.columns, cols) if by_row else (self.rows, rows)
        children, tried = [], set()
        for number, raised in enumerate(lines[place]):
            same = classes[nodes[number]]
            if raised < slack and same not in tried:
                tried.add(same)
                children.append((raised, at, number) if by_row else (raised, number, at))
        return sorted(children)


def _less_least(lines: Matrix) -> tuple[Matrix, int]:
    """Subtract the least number of each line; return what is left, and the sum of the least."""
    leasts = list(map(min, lines))
    if any(leasts):
        pairs = zip(lines, leasts, strict=True)
        lines = [[value - least for value in line] for line, least in pairs]
    return lines, sum(leasts)


def _plus_differences(
    costs: Matrix, ours: list[tuple[int, int]], theirs: list[tuple[int, int]], price: int
) -> Matrix:
    """Return costs with a price added for each by which the numbers of a row differ from those of a
    column.
    """
    added = {(a, b): [price * (abs(a - x) + abs(b - y)) for x, y in theirs] for a, b in {*ours}}
    if not any(map(any, added.values())):
        return costs
    return [list(map(add, row, added[each])) for row, each in zip(costs, ours, strict=True)]


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
    exact: bool
    expanded: int = 0


def edit_distance(left: Graph, right: Graph, weights: Weights, budget: int = BUDGET) -> Distance:
    """Return the cheapest total cost of edits that turn ``left`` into ``right``, or
    bounds of it.
    """
    n = max(left.nodes, right.nodes)
    if left == right:
        return Distance(0.0, 0.0, exact=True)
    if not left.nodes or not right.nodes:
        size = float(left.size + right.size)
        return Distance(size, size, exact=True)
    if n > _LARGEST:
        return _coarse(left, right, weights)
    granted = budget * _SMALL**2 // max(_SMALL, n) ** 2
    granted = 1 << 60 if n <= _ALWAYS else max(4 * n, granted)
    search = _Search(left, right, weights, granted)
    complete = search.run()
    upper = search.best
    lower = upper if complete else min(search.floor, upper)
    exact, edge = lower == upper, search.edge
    return Distance(lower / edge, upper / edge, exact=exact, expanded=search.expanded)


def _coarse(left: Graph, right: Graph, weights: Weights) -> Distance:
    """Return bounds in linear time: equal labels mapped on each other, the others in order."""
    labels, others = left.labels or (), right.labels or ()
    numbers = {label: j for j, label in enumerate(others)}
    images = {i: numbers[label] for i, label in enumerate(labels) if label in numbers}
    least = min(weights.agent, weights.status, 1.0) if labels else 0.0
    unequal = min(left.nodes, right.nodes) - len(images)
    inserted = abs(left.nodes - right.nodes) + abs(len(left.edges) - len(right.edges))
    lower = inserted + unequal * least
    mapped = {*images.values()}
    free = [j for j in range(right.nodes) if j not in mapped]
    pairs = list(zip([i for i in range(left.nodes) if i not in images], free, strict=False))
    images.update(pairs)
    prices = [weights.substitution(labels[i], others[j]) for i, j in pairs] if labels else []
    edges = {(images.get(tail), images.get(head)) for tail, head in left.edges}
    kept = len(images) + len(edges.intersection(right.edges))
    upper = left.size + right.size - 2 * kept + math.fsum(prices)
    return Distance(min(lower, upper), upper, exact=lower >= upper)


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
    most, price = left.size + right.size, substitute if left.labels else None
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
