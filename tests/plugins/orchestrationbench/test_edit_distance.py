"""Graph edit distance.

Exact against brute force, bounded in work, and what networkx makes of it.
"""

# ruff: noqa: S311 - test data

import importlib.util
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack_plugins.orchestrationbench import graphs
from gradestack_plugins.orchestrationbench.graphs import (
    Graph,
    Weights,
    edit_distance,
    networkx_distance,
    usual_distance,
)
from tests.conftest import examples
from tests.plugins.orchestrationbench.orchestration_oracle import (
    brute_distance,
    component_price,
)

WEIGHTS = Weights(0.8, 0.5)
INSTALLED = all(map(importlib.util.find_spec, ("networkx", "scipy")))
NETWORKX = pytest.mark.skipif(not INSTALLED, reason="networkx and scipy are not installed")


def brute(left, right, weights):
    """Return the least cost over all mappings of nodes, by the slow calculation of the family."""
    between_labels = component_price(weights.agent, weights.status)

    def price(i, j):
        if left.labels is None:
            return 0
        label = left.labels[i]
        return between_labels(label, right.labels[j])

    sides = []
    for graph in (left, right):
        edges = set(graph.edges)
        sides.append((range(graph.nodes), edges))
    return float(brute_distance(*sides, price))


PRICES = [(0.8, 0.5), (0.8, 0.2), (1.0, 0.0), (2.0, 1.5), (0.3, 0.3)]


@st.composite
def graph_pairs(draw, *, loops, most=4):
    labelled = draw(st.booleans())
    names = [(agent, status) for agent in "abc" for status in "xy"]
    pair = []
    for _ in range(2):
        n = draw(st.integers(0, most))
        places = []
        for a in range(n):
            for b in range(n):
                if loops or a != b:
                    places.append((a, b))
        if places:
            edges = draw(st.lists(st.sampled_from(places), unique=True, max_size=9))
        else:
            edges = []
        labels = None
        if labelled:
            orders = st.permutations(names)
            labels = tuple(draw(orders)[:n])
        graph = Graph(n, labels, tuple(edges))
        pair.append(graph)
    return pair


@settings(max_examples=examples(250), deadline=None)
@given(graph_pairs(loops=False) | graph_pairs(loops=True), st.sampled_from(PRICES))
def test_distance_equals_brute_force(pair, weights):
    """On small digraphs it is the least cost over all mappings.

    A self-loop is an edge like any other.
    """
    distance = edit_distance(*pair, Weights(*weights))
    assert distance.exact
    assert distance.lower == distance.upper == brute(*pair, Weights(*weights))


def numbered(n, edges, labels=None):
    return Graph(n, labels, tuple(edges))


def cycles(*lengths):
    edges, start = [], 0
    for length in lengths:
        edges += [(start + i, start + (i + 1) % length) for i in range(length)]
        start += length
    return numbered(start, edges)


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        (numbered(0, []), numbered(0, []), 0),
        (numbered(0, []), numbered(3, [(0, 1)]), 4),
        (numbered(1, [(0, 0)]), numbered(1, []), 1),
        (numbered(2, [(0, 1)]), numbered(2, [(1, 0)]), 0),
        (numbered(3, [(0, 1), (1, 2)]), numbered(3, [(0, 1), (0, 2)]), 2),
        (cycles(12), cycles(6, 6), 4),
        (cycles(4, 4, 4), cycles(12), 6),
        (cycles(6, 6), cycles(4, 4, 4), 8),
    ],
)
def test_distances_known_by_hand(left, right, distance):
    """Joining cycles of the same number of nodes breaks and adds one edge per cycle boundary."""
    computed = edit_distance(left, right, WEIGHTS)
    assert computed.exact
    assert computed.upper == distance


def _random(n, edges, rng, *, acyclic=False):
    places = []
    for a in range(n):
        for b in range(n):
            if a < b if acyclic else a != b:
                places.append((a, b))
    return numbered(n, rng.sample(places, min(edges, len(places))))


@pytest.mark.parametrize("edges", [8, 20, 32, 44])
def test_eight_nodes_a_side_are_always_exact(edges):
    """Pairs of eight nodes are solved at any density, whatever the budget."""
    rng = random.Random(edges)
    for _ in range(4):
        assert edit_distance(
            _random(8, edges, rng), _random(8, edges - 3, rng), WEIGHTS, budget=1
        ).exact


@pytest.mark.slow
def test_symmetric_pairs_of_twelve_nodes_are_exact():
    """Families that defeat plain branch and bound are solved.

    Cycles, alternating rings, bipartite graphs, trees.
    """
    edges = []
    for node in range(12):
        following = (node + 1) % 12
        edges.append((node, following) if node % 2 else (following, node))
    ring = numbered(12, edges)
    straight_edges = [(i, 6 + i) for i in range(6)]
    crossed_edges = []
    for i in range(6):
        crossed_edges.append((i, 6 + i // 3 * 3 + (i + 1) % 3))
    bipartite = numbered(12, straight_edges + crossed_edges)
    matching = numbered(12, [(2 * i, 2 * i + 1) for i in range(6)])
    tree = numbered(12, [((i - 1) // 2, i) for i in range(1, 12)])
    for left, right in itertools.combinations(
        [cycles(12), cycles(5, 7), ring, bipartite, matching, tree], 2
    ):
        assert edit_distance(left, right, WEIGHTS).exact


@pytest.mark.parametrize(("n", "edges"), [(14, 60), (20, 30), (30, 200), (48, 70)])
def test_beyond_the_budget_there_are_bounds(n, edges):
    """A pair too hard for the budget comes back with a lower and an upper bound, the same every
    time.
    """
    rng = random.Random(n)
    left = _random(n, edges, rng)
    right = _random(n, edges, rng)
    distance = edit_distance(left, right, WEIGHTS, 500)
    assert not distance.exact
    assert 0 <= distance.lower < distance.upper <= left.size + right.size
    assert distance.expanded <= 500
    assert edit_distance(left, right, WEIGHTS, 500) == distance


def test_bounds_enclose_the_distance():
    """The distance of a full search lies within the bounds of a search with a small budget."""
    rng = random.Random(3)
    for _ in range(6):
        left = _random(10, 14, rng)
        right = _random(10, 12, rng)
        rough = edit_distance(left, right, WEIGHTS, 20)
        exact = edit_distance(left, right, WEIGHTS)
        assert exact.exact
        assert rough.lower <= exact.upper <= rough.upper


def test_very_large_graphs_are_bounded_at_once():
    """Graphs of thousands of nodes get linear-time bounds; equal ones are recognised as equal."""
    edges = []
    for i in range(2999):
        edges.append((i, i + 1))
    chain = numbered(3000, edges)
    star = numbered(3000, [(0, i) for i in range(1, 3000)])
    distance = edit_distance(chain, star, WEIGHTS)
    assert distance.exact is False
    assert distance.expanded == 0
    assert distance.lower == 0.0
    assert distance.upper == 2 * 2998
    right = numbered(3000, chain.edges)
    assert edit_distance(chain, right, WEIGHTS).upper == 0.0
    shorter = edit_distance(chain, numbered(2000, chain.edges[:1999]), WEIGHTS)
    assert shorter.lower == 2000.0
    assert shorter.upper == 2000.0
    assert shorter.exact is True


def test_coarse_bounds_use_equal_labels():
    """Nodes of large graphs with equal labels are mapped on each other, the rest is replaced."""
    labels = tuple((f"a{i}", "x") for i in range(70))
    other = (*labels[1:], ("new", "x"))
    distance = edit_distance(numbered(70, [(1, 2)], labels), numbered(70, [(0, 1)], other), WEIGHTS)
    assert distance.lower == 0.0
    assert distance.upper == 2.0


@NETWORKX
def test_networkx_agrees_without_loops():
    rng = random.Random(8)
    for _ in range(120):
        left, right = (_random(rng.randint(0, 4), rng.randint(0, 7), rng) for _ in range(2))
        exact = edit_distance(left, right, WEIGHTS).upper
        assert networkx_distance(left, right, WEIGHTS) == exact


@NETWORKX
@pytest.mark.parametrize(
    ("few", "many", "is_handed"), [(7, 7, True), (8, 8, False), (3, 12, True), (1, 40, False)]
)
def test_pairs_networkx_would_hang_on_are_not_handed_to_it(monkeypatch, few, many, is_handed):
    """Seven nodes a side are the limit; a small graph against a larger one still is handed over."""
    monkeypatch.setattr(graphs, "networkx_distance", lambda *_: -1.0)
    distance = usual_distance(numbered(few, []), numbered(many, []), WEIGHTS)
    if is_handed:
        expected = -1.0
    else:
        expected = many - few
    assert distance == expected
