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
from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache
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
                expected = "expected a number from 0 to 2, the price of a deletion and an insertion"
                raise ValueError(f"{name} weight {weight!r}: {expected}")

    def substitution(self, left: Label, right: Label) -> float:
        """Return the price of putting ``left`` in the place of ``right``."""
        if left[0] == right[0]:
            return 0.0 if left[1] == right[1] else self.status
        return self.agent if left[1] == right[1] else 1.0


Matrix = list[list[int]]
"""A number for each pair of an unmapped node of the left graph (row) and of the right
one (column).
"""


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
        self.out1, self.in1, loops1 = _neighbours(left, n)
        self.out2, self.in2, loops2 = _neighbours(right, n)

        def price(i: int, j: int) -> int:
            if i >= left.nodes or j >= right.nodes:
                return self.edge
            return (
                scaled[weights.substitution(left.labels[i], right.labels[j])]
                if left.labels and right.labels
                else 0
            )

        self.costs = [
            [price(i, j) + self.edge * ((loops1 >> i ^ loops2 >> j) & 1) for j in range(n)]
            for i in range(n)
        ]
        self.rows = _twins(self.out1, self.in1, self.costs)
        self.columns = _twins(
            self.out2, self.in2, [list(column) for column in zip(*self.costs, strict=True)]
        )
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
        bound, raises = self._bounds(rows, cols, costs, paid)
        if bound >= self.limit:
            return True
        complete = True
        for raised, r, c in self._children(rows, cols, raises, self.limit - bound):
            if bound + raised >= self.limit:
                break
            if complete:
                below = rows[:r] + rows[r + 1 :], cols[:c] + cols[c + 1 :]
                complete = self._expand(
                    *below, self._below(rows, cols, costs, r, c), paid + costs[r][c]
                )
            if not complete:
                self.floor = min(self.floor, bound + raised)
        return complete

    def _below(self, rows: list[int], cols: list[int], costs: Matrix, r: int, c: int) -> Matrix:
        """Return the costs of what is unmapped after row ``r`` was mapped on column ``c``."""
        i, j = rows[r], cols[c]
        kept = [row[:c] + row[c + 1 :] for row in costs[:r] + costs[r + 1 :]]
        if not (self.out1[i] or self.in1[i] or self.out2[j] or self.in2[j]):
            return kept
        ours = [(self.out1[i] >> k & 1, self.in1[i] >> k & 1) for k in rows[:r] + rows[r + 1 :]]
        theirs = [(self.out2[j] >> k & 1, self.in2[j] >> k & 1) for k in cols[:c] + cols[c + 1 :]]
        return _plus_differences(kept, ours, theirs, self.edge)

    def _bounds(
        self, rows: list[int], cols: list[int], costs: Matrix, paid: int
    ) -> tuple[int, Matrix]:
        """Return a lower bound of what follows, and by how much each pair raises it.

        No pairs where it is too high.

        A pair of unmapped nodes costs at least its own price and half the difference of its
        in-degrees and of its out-degrees among the unmapped. Subtracting the minimum of every row,
        then of every column, bounds the cheapest assignment from below.
        """
        ours, theirs = _degrees(self.out1, self.in1, rows), _degrees(self.out2, self.in2, cols)
        raises = _plus_differences(costs, ours, theirs, self.edge // 2)
        leasts = list(map(min, raises))
        bound = paid + sum(leasts)
        if bound < self.limit:
            raises = [
                [value - least for value in row] for row, least in zip(raises, leasts, strict=True)
            ]
            leasts = list(map(min, zip(*raises, strict=True)))
            if any(leasts):
                bound += sum(leasts)
                raises = [
                    [value - least for value, least in zip(row, leasts, strict=True)]
                    for row in raises
                ]
        return bound, raises

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


def _neighbours(graph: Graph, n: int) -> tuple[list[int], list[int], int]:
    """Return the bit sets of successors and of predecessors of each node, and that of nodes with a
    self-loop.
    """
    out, into, loops = [0] * n, [0] * n, 0
    for tail, head in graph.edges:
        if tail == head:
            loops |= 1 << tail
        else:
            out[tail] |= 1 << head
            into[head] |= 1 << tail
    return out, into, loops


def _plus_differences(
    costs: Matrix, ours: list[tuple[int, int]], theirs: list[tuple[int, int]], price: int
) -> Matrix:
    """Return costs with a price added for each by which the numbers of a row differ from those of a
    column.
    """
    added = {(a, b): [price * (abs(a - x) + abs(b - y)) for x, y in theirs] for a, b in {*ours}}
    return [list(map(add, row, added[each])) for row, each in zip(costs, ours, strict=True)]


def _degrees(out: list[int], into: list[int], nodes: list[int]) -> list[tuple[int, int]]:
    among = sum([1 << node for node in nodes])
    return [((out[node] & among).bit_count(), (into[node] & among).bit_count()) for node in nodes]


def _twins(out: list[int], into: list[int], costs: Matrix) -> list[int]:
    """Return for each node the smallest node it can be exchanged with without changing anything
    else.
    """

    def alike(a: int, b: int) -> bool:
        others = ~(1 << a | 1 << b)
        mutual = out[a] >> b & 1 == out[b] >> a & 1
        neighbours = out[a] & others == out[b] & others and into[a] & others == into[b] & others
        return costs[a] == costs[b] and mutual and neighbours

    classes: list[int] = []
    for a in range(len(out)):
        classes.append(next((b for b in dict.fromkeys(classes) if alike(a, b)), a))
    return classes


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
    backend: str = "own"


def edit_distance(left: Graph, right: Graph, weights: Weights, budget: int = BUDGET) -> Distance:
    """Return the cheapest total cost of edits that turn ``left`` into ``right``, or
    bounds of it.
    """
    n = max(left.nodes, right.nodes)
    if left == right:
        return Distance(0.0, 0.0, exact=True)
    if not left.nodes or not right.nodes:
        whole = float(left.size + right.size)
        return Distance(whole, whole, exact=True)
    if n > _LARGEST:
        return _coarse(left, right, weights)
    granted = (
        1 << 60 if n <= _ALWAYS else max(4 * n, budget * _SMALL * _SMALL // max(_SMALL, n) ** 2)
    )
    search = _Search(left, right, weights, granted)
    complete = search.run()
    upper = search.best
    lower = upper if complete else min(search.floor, upper)
    return Distance(
        lower / search.edge, upper / search.edge, exact=lower == upper, expanded=search.expanded
    )


def _coarse(left: Graph, right: Graph, weights: Weights) -> Distance:
    """Return bounds in linear time: equal labels mapped on each other, the others in order."""
    labels, others = left.labels or (), right.labels or ()
    numbers = {label: j for j, label in enumerate(others)}
    images = {i: numbers[label] for i, label in enumerate(labels) if label in numbers}
    least = min(weights.agent, weights.status, 1.0) if labels else 0.0
    few = min(left.nodes, right.nodes)
    lower = (
        abs(left.nodes - right.nodes)
        + (few - len(images)) * least
        + abs(len(left.edges) - len(right.edges))
    )
    free = sorted({*range(right.nodes)} - {*images.values()})
    pairs = list(zip([i for i in range(left.nodes) if i not in images], free, strict=False))
    images.update(pairs)
    prices = [weights.substitution(labels[i], others[j]) for i, j in pairs] if labels else []
    edges = set(right.edges)
    kept = sum(1 for tail, head in left.edges if (images.get(tail), images.get(head)) in edges)
    upper = left.size + right.size - 2 * len(images) - 2 * kept + math.fsum(prices)
    return Distance(min(lower, upper), upper, exact=lower >= upper)


MAPPINGS = math.perm(7, 7)
"""Most node mappings a pair may have.

Two graphs of seven nodes, or a smaller one against a larger one.
"""
NODES = 24
"""Most nodes a pair may have on both sides together."""


@lru_cache(maxsize=1)
def available() -> bool:
    """Return whether networkx is installed, with the numpy and scipy its search calls."""
    return all(
        importlib.util.find_spec(name) is not None for name in ("networkx", "numpy", "scipy")
    )


def feasible(left: Graph, right: Graph) -> bool:
    """Return whether networkx finishes the pair in seconds: few enough nodes and node mappings."""
    few, many = sorted((left.nodes, right.nodes))
    return few + many <= NODES and math.perm(many, few) <= MAPPINGS


def networkx_distance(left: Graph, right: Graph, weights: Weights) -> Distance:
    """Return what networkx takes for the edit distance, with the costs of ``edit_distance``.

    The search is bounded by the price of deleting one graph and inserting the other, which is also
    the answer when it finds nothing.
    """
    import networkx as nx  # noqa: PLC0415 - optional and slow to import

    sides = nx.DiGraph(), nx.DiGraph()
    for side, graph in zip(sides, (left, right), strict=True):
        labels = graph.labels or [None] * graph.nodes
        side.add_nodes_from((node, {"label": label}) for node, label in enumerate(labels))
        side.add_edges_from(graph.edges)
    most = left.size + right.size
    found = nx.graph_edit_distance(
        *sides,
        node_subst_cost=lambda a, b: (
            0.0 if a["label"] is None else weights.substitution(a["label"], b["label"])
        ),
        node_del_cost=lambda _: 1.0,
        node_ins_cost=lambda _: 1.0,
        edge_subst_cost=lambda _, __: 0.0,
        edge_del_cost=lambda _: 1.0,
        edge_ins_cost=lambda _: 1.0,
        upper_bound=most,
    )
    value = float(most) if found is None or not math.isfinite(found) else float(found)
    return Distance(value, value, exact=not (left.has_loop or right.has_loop), backend="networkx")
