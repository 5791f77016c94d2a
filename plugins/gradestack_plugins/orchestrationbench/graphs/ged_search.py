"""Two exact searches for the cheapest mapping of a square assignment problem.

Depth first with branch and bound is quick on everything small or dense. Sparse graphs with many symmetries defeat it:
the same rest is met again and again. Mapping the nodes in a fixed order and merging partial mappings that leave the
same rest (same nodes used, same edges open) solves those, since few edges are open at any time.
"""

from __future__ import annotations

from itertools import chain

import attrs

from gradestack_plugins.orchestrationbench.graphs.ged_problem import INFINITE, Masks, Problem, bits, reduced

_STARTS = 12
_Open = tuple[int, int, bool]
"""Mapped node, its image, and whether its outgoing (else its incoming) edges are still to be decided on both sides."""

_Layer = dict[tuple[int, tuple[_Open, ...]], int]
"""(unused right nodes, open edges) -> cheapest cost so far."""


@attrs.define
class DepthFirst:
    """Branch and bound over partial mappings, most constrained node first.

    Of several nodes that can be exchanged for one another only one is tried.
    """

    problem: Problem
    budget: int
    best: int = INFINITE
    """Cheapest complete mapping found."""
    floor: int = INFINITE
    """Lowest bound of what was left unexplored when the budget ran out."""
    expanded: int = 0

    @property
    def limit(self) -> int:
        """Bound from which on nothing better than ``best`` can follow."""
        return self.best - self.problem.step + 1

    def run(self) -> bool:
        """Search; True when the search was complete, so that ``best`` is the distance."""
        n = self.problem.n
        everything = list(range(n))
        return self._expand(everything, everything, ([0] * n, [0] * n), 0, 0)

    def _expand(self, rows: list[int], cols: list[int], images: tuple[Masks, Masks], used: int, paid: int) -> bool:
        if not rows:
            self.best = min(self.best, paid)
            return True
        if self.expanded >= self.budget:
            return False
        self.expanded += 1
        state = reduced(self.problem, rows, cols, images, (used, used), paid, self.limit)
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
        classes, nodes = (self.problem.colclass, cols) if by_row else (self.problem.rowclass, rows)
        tried: set[int] = set()
        children = []
        for number, node in enumerate(nodes):
            r, c = (at, number) if by_row else (number, at)
            if matrix[r][c] < slack and classes[node] not in tried:
                tried.add(classes[node])
                children.append((matrix[r][c], r, c))
        children.sort()
        return children

    def _descend(
        self,
        rows: list[int],
        cols: list[int],
        pair: tuple[int, int],
        images: tuple[Masks, Masks],
        used: int,
        paid: int,
    ) -> bool:
        problem = self.problem
        r, c = pair
        i, j = rows[r], cols[c]
        to, by = images
        differing = (to[i] ^ problem.out2[j] & used).bit_count() + (by[i] ^ problem.in2[j] & used).bit_count()
        paid += problem.cost[i][j] + problem.edge * differing
        left = rows[:r] + rows[r + 1 :]
        bit = 1 << j
        before, after = problem.in1[i], problem.out1[i]
        if before:
            to = to.copy()
            for k in left:
                if before >> k & 1:
                    to[k] |= bit
        if after:
            by = by.copy()
            for k in left:
                if after >> k & 1:
                    by[k] |= bit
        return self._expand(left, cols[:c] + cols[c + 1 :], (to, by), used | bit, paid)


@attrs.define
class Layered:
    """Dynamic programming over a fixed order of the left nodes, one layer of merged partial mappings per node.

    Two partial mappings that used the same right nodes and have the same open edges cost the same from there on, so
    only the cheaper is kept. Edges that one side can no longer match are paid at once, which closes them.
    """

    problem: Problem
    order: list[int]
    """All left nodes, in the order they are mapped."""
    budget: int
    best: int
    """Cheapest mapping known; only cheaper ones are looked for."""
    width: int | None = None
    """Keep this many partial mappings per layer, the cheapest: a quick look for a good mapping, seldom complete."""
    floor: int = INFINITE
    """Lowest bound of what was left unexplored when the budget ran out."""
    expanded: int = 0

    def run(self) -> bool:
        """Search; True when the search was complete, so that ``best`` is the distance."""
        complete = True
        unmapped = (1 << self.problem.n) - 1
        layer: _Layer = {(unmapped, ()): 0}
        for depth, node in enumerate(self.order):
            following: _Layer = {}
            rest = self.order[depth:]
            for (free, pending), paid in layer.items():
                if self.expanded >= self.budget:
                    # Costs only grow, so nothing in this layer or below it ends cheaper than its cheapest.
                    self.floor = min(chain(layer.values(), following.values()))
                    return False
                self.expanded += 1
                self._extend(following, rest, unmapped, free, pending, paid)
            unmapped &= ~(1 << node)
            layer = following
            if self.width is not None and len(layer) > self.width:
                complete = False
                layer = dict(sorted(layer.items(), key=lambda entry: entry[1])[: self.width])
        self.best = min([self.best, *layer.values()])
        return complete

    def _extend(
        self,
        following: _Layer,
        rest: list[int],
        unmapped: int,
        free: int,
        pending: tuple[_Open, ...],
        paid: int,
    ) -> None:
        """Add every mapping of the first node of ``rest`` that may still beat the best."""
        problem, limit = self.problem, self.best - self.problem.step + 1
        images, seen = self._images(rest, pending)
        cols = bits(free)
        state = reduced(problem, rest, cols, images, seen, paid, limit)
        if state is None:
            return
        bound, matrix = state
        i = rest[0]
        tried: set[int] = set()
        for raised, j in zip(matrix[0], cols, strict=True):
            if bound + raised >= limit or problem.colclass[j] in tried:
                continue
            tried.add(problem.colclass[j])
            differing = images[0][i] ^ problem.out2[j] & seen[0], images[1][i] ^ problem.in2[j] & seen[1]
            cost = paid + problem.cost[i][j] + problem.edge * (differing[0].bit_count() + differing[1].bit_count())
            left, right = unmapped & ~(1 << i), free & ~(1 << j)
            kept = []
            for entry in (*pending, (i, j, True), (i, j, False)):
                node, image, outgoing = entry
                here = (problem.out1 if outgoing else problem.in1)[node] & left
                there = (problem.out2 if outgoing else problem.in2)[image] & right
                if here and there:
                    kept.append(entry)
                else:
                    cost += problem.edge * (here | there).bit_count()
            key = right, tuple(kept)
            if cost < limit and cost < following.get(key, INFINITE):
                following[key] = cost

    def _images(self, rest: list[int], pending: tuple[_Open, ...]) -> tuple[tuple[Masks, Masks], tuple[int, int]]:
        to, by = [0] * self.problem.n, [0] * self.problem.n
        seen_out = seen_in = 0
        for node, image, outgoing in pending:
            bit = 1 << image
            # An edge out of a mapped node leads back from the unmapped one to a predecessor.
            if outgoing:
                seen_in |= bit
                edges, target = self.problem.out1[node], by
            else:
                seen_out |= bit
                edges, target = self.problem.in1[node], to
            for k in rest:
                if edges >> k & 1:
                    target[k] |= bit
        return (to, by), (seen_out, seen_in)


def ordered(problem: Problem) -> tuple[Problem, list[int]]:
    """Return the problem, sides exchanged if that helps, and an order of its left nodes that keeps few edges open."""
    flipped = problem.flipped()
    (width, order), (other, other_order) = _order(problem), _order(flipped)
    return (flipped, other_order) if other < width else (problem, order)


def _order(problem: Problem) -> tuple[tuple[int, int], list[int]]:
    """Return ((widest, total) frontier, order) of the left nodes: few mapped nodes with unmapped neighbours throughout.

    Greedy from every start node, of many the dozen with fewest neighbours; the best of those.
    """
    adjacent = [out | into for out, into in zip(problem.out1, problem.in1, strict=True)]

    def frontier(mapped: int) -> int:
        return sum(1 for node in bits(mapped) if adjacent[node] & ~mapped)

    best: tuple[tuple[int, int], list[int]] | None = None
    starts = sorted(range(problem.n), key=lambda k: adjacent[k].bit_count())[:_STARTS]
    for start in starts:
        mapped, order = 1 << start, [start]
        widths = [frontier(mapped)]
        while len(order) < problem.n:
            node = min(
                (k for k in range(problem.n) if not mapped >> k & 1),
                key=lambda k: (frontier(mapped | 1 << k), -(adjacent[k] & mapped).bit_count(), k),
            )
            order.append(node)
            mapped |= 1 << node
            widths.append(frontier(mapped))
        figure = max(widths), sum(widths)
        if best is None or figure < best[0]:
            best = figure, order
    return best or ((0, 0), [])
