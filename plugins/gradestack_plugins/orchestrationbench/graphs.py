"""Directed graphs, and the edit distance between two of them, with a bound on the work.

Insertion and deletion of a node or an edge cost 1, substitution of an edge nothing, substitution of a node 0 in
unlabelled graphs and ``Weights.substitution`` in labelled ones. Self-loops are edges like any other. The result is
exact unless the search had to stop after its budget of expanded nodes; then it carries a lower and an upper bound.

The smaller graph is filled up with isolated dummy nodes, so that every edit path is a permutation: mapping a node on
a dummy (or a dummy on a node) is its deletion (insertion). With substitution never dearer than deletion plus
insertion some optimal path maps as many nodes as it can, so nothing is lost. The distance of a permutation p is the
sum of node costs plus one for every ordered pair (i, k) where an edge i -> k exists on one side only. Costs are
integers: weights are taken as the decimal numbers they are written as and scaled by their common denominator, then
doubled, because lower bounds charge each unmatched edge in halves to its two ends.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

Number = TypeVar("Number", int, float)
Label = tuple[Hashable, Hashable]
"""Agent and status of one node of a component graph."""


class Graph(msgspec.Struct, frozen=True):
    """A directed graph without parallel edges; nodes are numbered in the order they were added.

    The order of nodes and edges is kept because networkx's approximation of self-loops depends on it.
    """

    nodes: int
    labels: tuple[Label, ...] | None
    """One label per node; None when every node may stand for any other at no cost."""
    edges: tuple[tuple[int, int], ...]
    """(tail, head) pairs of node numbers, in the order they were added; a self-loop has tail == head."""

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
    """The agent differs, the status does not."""
    status: float = 0.5
    """The status differs, the agent does not."""

    def __post_init__(self) -> None:
        for name, weight in (("agent", self.agent), ("status", self.status)):
            if not 0 <= weight <= 2:
                expected = "expected a number from 0 to 2, the price of a deletion and an insertion"
                raise ValueError(f"{name} weight {weight!r}: {expected}")

    def scaled(self) -> tuple[int, int, int]:
        """Return (agent, status, unit) as integers in the same proportion."""
        agent, status = Fraction(str(self.agent)), Fraction(str(self.status))
        unit = math.lcm(agent.denominator, status.denominator)
        return int(agent * unit), int(status * unit), unit

    def substitution(self, left: Label, right: Label) -> float:
        """Return the price of putting ``left`` in the place of ``right``."""
        return _substituted(left, right, (self.agent, self.status, 1.0))


def _substituted(left: Label, right: Label, prices: tuple[Number, Number, Number]) -> Number:
    """Return the price of a change: nothing, or that of another agent, of another status, or of both."""
    if left[0] == right[0]:
        return prices[0] * 0 if left[1] == right[1] else prices[1]
    return prices[0] if left[1] == right[1] else prices[2]


Masks = list[int]
"""One bit set of nodes per node."""


class _Search:
    """Branch and bound over partial mappings of two graphs of ``n`` nodes each (dummies included).

    The most constrained node comes first, and of several nodes that can be exchanged for one another only one is tried.
    ``cost[i][j]`` is the doubled, scaled price of mapping node i on node j, a self-loop on one side only included;
    ``edge`` that of one edge.
    """

    def __init__(self, left: Graph, right: Graph, weights: Weights, budget: int) -> None:
        self.n = n = max(left.nodes, right.nodes)
        self.budget, self.expanded = budget, 0
        agent, status, unit = prices = weights.scaled() if left.labels is not None else (0, 0, 1)
        self.edge = 2 * unit
        self.out1, self.in1, loops1 = _masks(left, n)
        self.out2, self.in2, loops2 = _masks(right, n)
        self.cost = [
            [2 * (_price(left, right, i, j, prices) + unit * ((loops1 >> i ^ loops2 >> j) & 1)) for j in range(n)]
            for i in range(n)
        ]
        # Smallest node interchangeable with each one: same neighbours, same costs.
        self.rows = _twins(self.out1, self.in1, self.cost)
        self.columns = _twins(self.out2, self.in2, [list(column) for column in zip(*self.cost, strict=True)])
        # Distances differ by multiples of this, so a bound this close below the best cannot be met. Unlabelled, every
        # path costs n differences + edges on both sides - 2 * edges kept, so parity is fixed.
        self.step = 4 if left.labels is None else 2 * math.gcd(agent, status, unit)
        self.best = 1 << 200
        """Cheapest complete mapping found."""
        self.floor = self.best
        """Lowest bound of what was left unexplored when the budget ran out."""

    @property
    def limit(self) -> int:
        """Bound from which on nothing better than ``best`` can follow."""
        return self.best - self.step + 1

    def run(self) -> bool:
        everything = list(range(self.n))
        return self._expand(everything, everything, ([0] * self.n, [0] * self.n), 0, 0)

    def _expand(self, rows: list[int], cols: list[int], images: tuple[Masks, Masks], used: int, paid: int) -> bool:
        if not rows:
            self.best = min(self.best, paid)
            return True
        if self.expanded >= self.budget:
            return False
        self.expanded += 1
        state = self._reduced(rows, cols, images, used, paid)
        if state is None:
            return True
        bound, matrix = state
        complete = True
        for raised, r, c in self._children(rows, cols, matrix, self.limit - bound):
            if bound + raised >= self.limit:
                break
            if complete and self._descend(rows, cols, (r, c), images, used, paid):
                continue
            complete = False
            self.floor = min(self.floor, bound + raised)
        return complete

    def _reduced(
        self, rows: list[int], cols: list[int], images: tuple[Masks, Masks], used: int, paid: int
    ) -> tuple[int, list[list[int]]] | None:
        """Return (lower bound, reduced cost matrix) of a partial mapping, None when the bound reaches the limit.

        A pair (i, j) of unmapped nodes costs at least its own price, its edges to mapped nodes that the other side
        lacks, and half the difference of its in-degrees and of its out-degrees among the unmapped. Subtracting the
        minimum of every row, then of every column, bounds the cheapest assignment from below; what is left in the
        matrix is by how much a pair raises that bound.
        """
        edge, half, limit = self.edge, self.edge // 2, self.limit
        out1, in1, out2, in2 = self.out1, self.in1, self.out2, self.in2
        images_out, images_in = images
        left, right = (sum([1 << node for node in nodes]) for nodes in (rows, cols))
        columns = [
            (j, out2[j] & used, in2[j] & used, (out2[j] & right).bit_count(), (in2[j] & right).bit_count())
            for j in cols
        ]
        bound = paid
        matrix = []
        for i in rows:
            cost, to, by = self.cost[i], images_out[i], images_in[i]
            outs, ins = (out1[i] & left).bit_count(), (in1[i] & left).bit_count()
            row = [
                cost[j] + edge * ((to ^ o).bit_count() + (by ^ p).bit_count()) + half * (abs(outs - x) + abs(ins - y))
                for j, o, p, x, y in columns
            ]
            least = min(row)
            if least:
                bound += least
                if bound >= limit:
                    return None
                row = [value - least for value in row]
            matrix.append(row)
        leasts = list(map(min, zip(*matrix, strict=True)))
        if any(leasts):
            bound += sum(leasts)
            matrix = [[value - least for value, least in zip(row, leasts, strict=True)] for row in matrix]
        return None if bound >= limit else (bound, matrix)

    def _children(
        self, rows: list[int], cols: list[int], matrix: list[list[int]], slack: int
    ) -> list[tuple[int, int, int]]:
        """Return (raise of the bound, row, column) of the row's or column's choices where there are fewest."""
        fewest, by_row, at = len(rows) + 1, True, 0
        for axis, lines in ((True, matrix), (False, zip(*matrix, strict=True))):
            for number, line in enumerate(lines):
                viable = sum([value < slack for value in line])
                if viable < fewest:
                    fewest, by_row, at = viable, axis, number
                    if viable <= 1:
                        break
            if fewest <= 1:
                break
        classes, nodes = (self.columns, cols) if by_row else (self.rows, rows)
        tried: set[int] = set()
        children = []
        for number, node in enumerate(nodes):
            r, c = (at, number) if by_row else (number, at)
            if matrix[r][c] < slack and classes[node] not in tried:
                tried.add(classes[node])
                children.append((matrix[r][c], r, c))
        return sorted(children)

    def _descend(
        self,
        rows: list[int],
        cols: list[int],
        pair: tuple[int, int],
        images: tuple[Masks, Masks],
        used: int,
        paid: int,
    ) -> bool:
        r, c = pair
        i, j = rows[r], cols[c]
        to, by = images
        differing = (to[i] ^ self.out2[j] & used).bit_count() + (by[i] ^ self.in2[j] & used).bit_count()
        paid += self.cost[i][j] + self.edge * differing
        left = rows[:r] + rows[r + 1 :]
        bit = 1 << j
        to, by = _marked(to, self.in1[i], left, bit), _marked(by, self.out1[i], left, bit)
        return self._expand(left, cols[:c] + cols[c + 1 :], (to, by), used | bit, paid)


def _marked(masks: Masks, neighbours: int, nodes: list[int], bit: int) -> Masks:
    """Return masks in which those of the nodes that are neighbours have a further bit."""
    if neighbours:
        masks = masks.copy()
        for node in nodes:
            if neighbours >> node & 1:
                masks[node] |= bit
    return masks


def _price(left: Graph, right: Graph, i: int, j: int, prices: tuple[int, int, int]) -> int:
    if i >= left.nodes or j >= right.nodes:
        return prices[2]
    return 0 if left.labels is None or right.labels is None else _substituted(left.labels[i], right.labels[j], prices)


def _masks(graph: Graph, n: int) -> tuple[Masks, Masks, int]:
    out, into, loops = [0] * n, [0] * n, 0
    for tail, head in graph.edges:
        if tail == head:
            loops |= 1 << tail
        else:
            out[tail] |= 1 << head
            into[head] |= 1 << tail
    return out, into, loops


def _twins(out: Masks, into: Masks, cost: list[list[int]]) -> list[int]:
    """Return for each node the smallest node it can be exchanged with without changing anything else."""
    classes: list[int] = []
    for a in range(len(out)):
        found = a
        for b in range(a):
            if classes[b] != b or cost[a] != cost[b]:
                continue
            bit_a, bit_b = 1 << a, 1 << b
            others = ~(bit_a | bit_b)
            mutual = bool(out[a] & bit_b) == bool(out[b] & bit_a)
            if mutual and out[a] & others == out[b] & others and into[a] & others == into[b] & others:
                found = b
                break
        classes.append(found)
    return classes


BUDGET = 40_000
"""Default number of partial mappings expanded per pair of more than 8 nodes a side. No pair of up to 12 nodes with no
more edges than nodes was found to need as many."""

_ALWAYS = 8
"""Nodes a side up to which the search always runs to its end: it has no more than 8! leaves."""
_UNLIMITED = 1 << 60
_SMALL = 12
"""Nodes a side up to which the whole budget is granted; beyond, it shrinks as the work per expanded node grows."""
_LARGEST = 48
"""Nodes a side beyond which only the cheap bounds are computed."""


class Distance(msgspec.Struct, frozen=True):
    """Result of one comparison; ``lower == upper`` when exact."""

    lower: float
    upper: float
    exact: bool
    expanded: int = 0
    """Partial mappings expanded."""
    backend: str = "own"


def edit_distance(left: Graph, right: Graph, weights: Weights, budget: int = BUDGET) -> Distance:
    """Return the cheapest total cost of edits that turn ``left`` into ``right``, or bounds of it.

    No more than ``budget`` partial mappings are expanded, of graphs above 12 nodes proportionally fewer.
    """
    n = max(left.nodes, right.nodes)
    if left == right:
        return Distance(0.0, 0.0, exact=True)
    if not left.nodes or not right.nodes:
        whole = float(left.size + right.size)
        return Distance(whole, whole, exact=True)
    if n > _LARGEST:
        return _coarse(left, right, weights)
    granted = _UNLIMITED if n <= _ALWAYS else max(4 * n, budget * _SMALL * _SMALL // max(_SMALL, n) ** 2)
    search = _Search(left, right, weights, granted)
    complete = search.run()
    upper, scale = search.best, search.edge
    lower = upper if complete else min(search.floor, upper)
    return Distance(lower / scale, upper / scale, exact=lower == upper, expanded=search.expanded)


def _coarse(left: Graph, right: Graph, weights: Weights) -> Distance:
    """Return bounds in linear time: equal labels mapped on each other, the others in order."""
    labels, others = left.labels or (), right.labels or ()
    numbers = {label: j for j, label in enumerate(others)}
    images = {i: numbers[label] for i, label in enumerate(labels) if label in numbers}
    least = min(weights.agent, weights.status, 1.0) if labels else 0.0
    few = min(left.nodes, right.nodes)
    lower = abs(left.nodes - right.nodes) + (few - len(images)) * least + abs(len(left.edges) - len(right.edges))
    free = sorted({*range(right.nodes)} - {*images.values()})
    pairs = list(zip([i for i in range(left.nodes) if i not in images], free, strict=False))
    images.update(pairs)
    prices = [weights.substitution(labels[i], others[j]) for i, j in pairs] if labels else []
    edges = set(right.edges)
    kept = sum(1 for tail, head in left.edges if (images.get(tail), images.get(head)) in edges)
    upper = left.size + right.size - 2 * len(images) - 2 * kept + math.fsum(prices)
    return Distance(min(lower, upper), upper, exact=lower >= upper)


MAPPINGS = math.perm(7, 7)
"""Most node mappings a pair may have: two graphs of seven nodes, or a smaller one against a larger one."""
NODES = 24
"""Most nodes a pair may have on both sides together."""


@lru_cache(maxsize=1)
def available() -> bool:
    """Return whether networkx is installed, with the numpy and scipy its search calls."""
    return all(importlib.util.find_spec(name) is not None for name in ("networkx", "numpy", "scipy"))


def feasible(left: Graph, right: Graph) -> bool:
    """Return whether networkx finishes the pair in seconds: few enough nodes and node mappings."""
    few, many = sorted((left.nodes, right.nodes))
    return few + many <= NODES and math.perm(many, few) <= MAPPINGS


@lru_cache(maxsize=4096)  # two graders ask: without it a run of the default stack takes 1.4 times as long
def networkx_distance(left: Graph, right: Graph, weights: Weights) -> Distance:
    """Return what networkx takes for the edit distance, with the costs of ``edit_distance``.

    The search is bounded by the price of deleting one graph and inserting the other, which is also the answer when it
    finds nothing.
    """
    import networkx as nx  # noqa: PLC0415 - optional and slow to import

    def digraph(graph: Graph) -> Any:
        """Return the graph as networkx has it, nodes and edges in the same order."""
        copy = nx.DiGraph()
        for node in range(graph.nodes):
            copy.add_node(node, label=graph.labels[node] if graph.labels is not None else None)
        copy.add_edges_from(graph.edges)
        return copy

    most = left.size + right.size
    found = nx.graph_edit_distance(
        digraph(left),
        digraph(right),
        node_subst_cost=lambda a, b: 0.0 if a["label"] is None else weights.substitution(a["label"], b["label"]),
        node_del_cost=lambda _: 1.0,
        node_ins_cost=lambda _: 1.0,
        edge_subst_cost=lambda _, __: 0.0,
        edge_del_cost=lambda _: 1.0,
        edge_ins_cost=lambda _: 1.0,
        upper_bound=most,
    )
    value = float(most) if found is None or not math.isfinite(found) else float(found)
    return Distance(value, value, exact=not (left.has_loop or right.has_loop), backend="networkx")
