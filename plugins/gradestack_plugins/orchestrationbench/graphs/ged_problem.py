"""Graph edit distance written as a square assignment problem over integers.

The smaller graph is filled up with isolated dummy nodes, so that every edit path is a permutation: mapping a node on
a dummy (or a dummy on a node) is its deletion (insertion). With substitution never dearer than deletion plus
insertion some optimal path maps as many nodes as it can, so nothing is lost. The distance of a permutation p is the
sum of node costs plus one for every ordered pair (i, k) where an edge i -> k exists on one side only.

All costs are integers: weights are taken as the decimal numbers they are written as and scaled by their common
denominator, then doubled, because lower bounds charge each unmatched edge in halves to its two ends.
"""

from __future__ import annotations

import math
from fractions import Fraction

import attrs

from gradestack_plugins.orchestrationbench.graphs.graph import Graph, Label

INFINITE = 1 << 200
"""Above every distance."""

Masks = list[int]
"""One bit set of nodes per node."""


@attrs.frozen
class Weights:
    """Price of putting one (agent, status) node in another's place.

    Equal nodes cost 0, nodes that differ in both cost 1, as do insertion and deletion.
    """

    agent: float = 0.8
    """The agent differs, the status does not."""
    status: float = 0.5
    """The status differs, the agent does not."""

    def __attrs_post_init__(self) -> None:
        for name, weight in (("agent", self.agent), ("status", self.status)):
            if not 0 <= weight <= 2:
                msg = (
                    f"{name} weight {weight!r}: expected a number from 0 to 2, the price of a deletion and an insertion"
                )
                raise ValueError(msg)

    def scaled(self) -> tuple[int, int, int]:
        """Return (agent, status, unit) as integers in the same proportion."""
        agent, status = Fraction(str(self.agent)), Fraction(str(self.status))
        unit = math.lcm(agent.denominator, status.denominator)
        return int(agent * unit), int(status * unit), unit

    def substitution(self, left: Label, right: Label) -> float:
        """Return the price of putting ``left`` in the place of ``right``."""
        if left[0] == right[0]:
            return 0.0 if left[1] == right[1] else self.status
        return self.agent if left[1] == right[1] else 1.0


@attrs.frozen
class Problem:
    """Two graphs of ``n`` nodes each (dummies included) and the cost of every pair of nodes."""

    n: int
    cost: list[list[int]]
    """cost[i][j]: doubled, scaled price of mapping node i on node j, a self-loop on one side only included."""
    out1: Masks
    in1: Masks
    out2: Masks
    in2: Masks
    edge: int
    """Doubled, scaled price of one edge."""
    step: int
    """Distances of this problem differ by multiples of this, so a bound this close below the best cannot be met."""
    rowclass: list[int]
    """Smallest node interchangeable with this one (same neighbours, same costs), left graph."""
    colclass: list[int]
    """The same for the right graph."""

    def flipped(self) -> Problem:
        """Return the problem with its sides exchanged."""
        return attrs.evolve(
            self,
            cost=[list(column) for column in zip(*self.cost, strict=True)],
            out1=self.out2,
            in1=self.in2,
            out2=self.out1,
            in2=self.in1,
            rowclass=self.colclass,
            colclass=self.rowclass,
        )


def build(left: Graph, right: Graph, weights: Weights) -> Problem:
    """Return the assignment problem of two graphs; ``labels`` are None on both sides or on neither."""
    n = max(len(left.names), len(right.names))
    agent, status, unit = weights.scaled() if left.labels is not None else (0, 0, 1)
    out1, in1, loops1 = _masks(left, n)
    out2, in2, loops2 = _masks(right, n)
    cost = [
        [
            2 * (_price(left, right, i, j, (agent, status, unit)) + unit * ((loops1 >> i ^ loops2 >> j) & 1))
            for j in range(n)
        ]
        for i in range(n)
    ]
    columns = [list(column) for column in zip(*cost, strict=True)]
    return Problem(
        n=n,
        cost=cost,
        out1=out1,
        in1=in1,
        out2=out2,
        in2=in2,
        edge=2 * unit,
        # Unlabelled: every path costs n differences + edges on both sides - 2 * edges kept, so parity is fixed.
        step=4 if left.labels is None else 2 * math.gcd(agent, status, unit),
        rowclass=_twins(out1, in1, cost),
        colclass=_twins(out2, in2, columns),
    )


def _price(left: Graph, right: Graph, i: int, j: int, scaled: tuple[int, int, int]) -> int:
    """Return the scaled price of node ``i`` in place of node ``j``; a number past the last node is a dummy."""
    agent, status, unit = scaled
    if i >= len(left.names) or j >= len(right.names):
        return unit
    if left.labels is None or right.labels is None:
        return 0
    a, b = left.labels[i], right.labels[j]
    if a[0] == b[0]:
        return 0 if a[1] == b[1] else status
    return agent if a[1] == b[1] else unit


def _masks(graph: Graph, n: int) -> tuple[Masks, Masks, int]:
    """Return successors, predecessors and the set of nodes with a self-loop."""
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


def bits(mask: int) -> list[int]:
    """Return the numbers in a bit set, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def reduced(
    problem: Problem,
    rows: list[int],
    cols: list[int],
    images: tuple[Masks, Masks],
    seen: tuple[int, int],
    paid: int,
    limit: int,
) -> tuple[int, list[list[int]]] | None:
    """Return (lower bound, reduced cost matrix) of a partial mapping, None when the bound reaches ``limit``.

    A pair (i, j) of unmapped nodes costs at least its own price, its edges to mapped nodes that the other side lacks,
    and half the difference of its in-degrees and of its out-degrees among the unmapped. Subtracting the minimum of
    every row, then of every column, bounds the cheapest assignment from below; what is left in the matrix is by how
    much a pair raises that bound.

    Args:
        problem: The two graphs.
        rows: Unmapped nodes of the left graph.
        cols: As many unmapped nodes of the right graph.
        images: Per left node, the images of its mapped successors and of its mapped predecessors.
        seen: Images that count for successors and for predecessors.
        paid: Cost so far.
        limit: Bound from which on the mapping is of no interest.
    """
    edge, half = problem.edge, problem.edge // 2
    out1, in1, out2, in2 = problem.out1, problem.in1, problem.out2, problem.in2
    images_out, images_in = images
    seen_out, seen_in = seen
    left = right = 0
    for i, j in zip(rows, cols, strict=True):
        left |= 1 << i
        right |= 1 << j
    columns = [
        (j, out2[j] & seen_out, in2[j] & seen_in, (out2[j] & right).bit_count(), (in2[j] & right).bit_count())
        for j in cols
    ]
    bound = paid
    matrix = []
    for i in rows:
        cost, to, by = problem.cost[i], images_out[i], images_in[i]
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
