"""Graph edit distance with a bound on the work.

Insertion and deletion of a node or an edge cost 1, substitution of an edge nothing, substitution of a node 0 in
unlabelled graphs and :meth:`Weights.substitution` in labelled ones. Self-loops are edges like any other. The result is
exact unless the search had to stop after its budget of expanded nodes; then it carries a lower and an upper bound.
"""

from __future__ import annotations

import math
from functools import lru_cache

import attrs

from gradestack_plugins.orchestrationbench.graphs.ged_problem import Weights, build
from gradestack_plugins.orchestrationbench.graphs.ged_search import DepthFirst, Layered, ordered
from gradestack_plugins.orchestrationbench.graphs.graph import Graph

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
_DEPTH_FIRST = 1_500
"""Expanded nodes after which a sparse pair is handed to the layered search."""
_BEAM = 50
"""Partial mappings per layer of the quick look that gives the layered search a good bound to start from."""


@attrs.frozen
class Distance:
    """Result of one comparison; ``lower == upper`` when exact."""

    lower: float
    upper: float
    exact: bool
    expanded: int = 0
    """Partial mappings expanded."""
    backend: str = "own"


@lru_cache(maxsize=4096)
def edit_distance(left: Graph, right: Graph, weights: Weights, budget: int = BUDGET) -> Distance:
    """Return the cheapest total cost of edits that turn ``left`` into ``right``, or bounds of it.

    Args:
        left: One graph.
        right: The other, labelled if and only if ``left`` is.
        weights: Prices of node substitution in labelled graphs.
        budget: Partial mappings that may be expanded; graphs above 12 nodes get proportionally fewer.
    """
    n = max(len(left.names), len(right.names))
    if left == right:
        return Distance(0.0, 0.0, exact=True)
    if min(len(left.names), len(right.names)) == 0:
        whole = float(left.size + right.size)
        return Distance(whole, whole, exact=True)
    if n > _LARGEST:
        return _coarse(left, right, weights)
    problem = build(left, right, weights)
    scale = problem.edge
    granted = _UNLIMITED if n <= _ALWAYS else max(4 * n, budget * _SMALL * _SMALL // max(_SMALL, n) ** 2)
    sparse = len(left.edges) + len(right.edges) <= 3 * n
    first = DepthFirst(problem, min(_DEPTH_FIRST, granted // 2) if sparse else granted * 3 // 4)
    if first.run():
        return _exact(first.best / scale, first.expanded)
    floor, best, expanded = first.floor, first.best, first.expanded
    turned, order = ordered(problem)
    for width in (_BEAM, None):
        second = Layered(turned, order, granted - expanded, best, width)
        complete = second.run()
        expanded += second.expanded
        best = second.best
        if complete:
            return _exact(best / scale, expanded)
        if width is None:
            floor = max(floor, second.floor)
    return _bounded(floor, best, scale, expanded)


def _exact(value: float, expanded: int) -> Distance:
    return Distance(value, value, exact=True, expanded=expanded)


def _bounded(floor: int, best: int, scale: int, expanded: int) -> Distance:
    lower = min(floor, best)
    return Distance(lower / scale, best / scale, exact=lower == best, expanded=expanded)


def _coarse(left: Graph, right: Graph, weights: Weights) -> Distance:
    """Return bounds in linear time: equal labels mapped on each other, the others in order."""
    n1, n2 = len(left.names), len(right.names)
    few = min(n1, n2)
    numbers = {label: j for j, label in enumerate(right.labels)} if right.labels is not None else {}
    images = {i: numbers[label] for i, label in enumerate(left.labels or ()) if label in numbers}
    taken = set(images.values())
    free = (j for j in range(n2) if j not in taken)
    least = min(weights.agent, weights.status, 1.0) if left.labels is not None else 0.0
    lower = abs(n1 - n2) + (few - len(images)) * least + abs(len(left.edges) - len(right.edges))
    prices = []
    for i in range(n1):
        if i in images:
            continue
        j = next(free, None)
        if j is None:
            break
        images[i] = j
        if left.labels is not None and right.labels is not None:
            prices.append(weights.substitution(left.labels[i], right.labels[j]))
    edges = set(right.edges)
    kept = sum(1 for tail, head in left.edges if (images.get(tail), images.get(head)) in edges)
    upper = left.size + right.size - 2 * len(images) - 2 * kept + math.fsum(prices)
    return Distance(min(lower, upper), upper, exact=lower >= upper)
