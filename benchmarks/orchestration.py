"""How much faster is the graph edit distance of workflow plans than networkx?

    python benchmarks/orchestration.py --pairs 8 --seed 1

Both sides get the same seeded pairs of directed graphs without self-loops (with them networkx is
not exact), sizes 2 to 7: plan-like ones (acyclic, edges at most nodes, labelled with agents and
statuses) and dense ones (half of all edges, unlabelled). They run in turns, pair by pair, in one
process; the table shows CPU time. Distances are compared before a time counts. Then plan-like pairs
of twelve nodes, which networkx does not finish, are timed alone.

The exit code is 1 when a distance differs, when the total is less than 30 times faster, or when a
pair of twelve nodes takes a second or is not exact. Needs networkx and scipy
(``pip install networkx scipy``).
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import time
from collections.abc import Callable

from gradestack_plugins.orchestrationbench.graphs import (
    Graph,
    Weights,
    edit_distance,
    networkx_distance,
)

TARGET = 30
SIZES = range(2, 8)
LARGE = 12
WEIGHTS = Weights(0.8, 0.5)
LABELS = [
    (agent, status)
    for agent in ("search", "ferry", "garden", "kiln", "map")
    for status in ("pending", "completed", "failed")
]


def plan_like(n: int, rng: random.Random) -> Graph:
    """Return an acyclic graph with at most as many edges as nodes, and labels."""
    places = [(a, b) for a in range(n) for b in range(a + 1, n)]
    edges = rng.sample(places, min(len(places), rng.randint(n // 2, n)))
    return Graph(n, tuple(rng.sample(LABELS, n)), tuple(edges))


def dense(n: int, rng: random.Random) -> Graph:
    """Return an unlabelled graph with half of all possible edges."""
    places = [(a, b) for a in range(n) for b in range(n) if a != b]
    return Graph(n, None, tuple(rng.sample(places, len(places) // 2)))


def exact_distance(left: Graph, right: Graph, weights: Weights) -> float:
    """Return our distance as a number."""
    return edit_distance(left, right, weights).upper


def timed(solve: Callable[..., float], left: Graph, right: Graph) -> tuple[float, float]:
    """Return (distance, CPU seconds)."""
    started = time.process_time()
    distance = solve(left, right, WEIGHTS)
    return distance, time.process_time() - started


def compare(pairs: int, rng: random.Random) -> tuple[float, float, int]:
    """Print a row per kind and size.

    Return total seconds of both sides and the number of differing distances.
    """
    print("kind       nodes pairs  networkx ms  gradestack ms  per second   ratio")
    totals, wrong = [0.0, 0.0], 0
    for name, make in (("plan-like", plan_like), ("dense", dense)):
        for n in SIZES:
            theirs = ours = 0.0
            for _ in range(pairs):
                left, right = make(n, rng), make(n, rng)
                expected, spent = timed(networkx_distance, left, right)
                found, own = timed(exact_distance, left, right)
                wrong += abs(found - expected) > 1e-9
                theirs, ours = theirs + spent, ours + own
            totals[0] += theirs
            totals[1] += ours
            print(
                f"{name:10} {n:5} {pairs:5} {1e3 * theirs / pairs:12.3f} "
                f"{1e3 * ours / pairs:14.3f} "
                f"{pairs / ours:11.0f} {theirs / ours:7.1f}"
            )
    return totals[0], totals[1], wrong


def twelve(pairs: int, rng: random.Random) -> tuple[float, bool]:
    """Print times of plan-like pairs of twelve nodes, labelled and not.

    Return the worst and whether all were exact.
    """
    worst, exact = 0.0, True
    for name in ("component", "structural"):
        spent = []
        for _ in range(pairs):
            graphs = [plan_like(LARGE, rng) for _ in range(2)]
            if name == "structural":
                graphs = [Graph(graph.nodes, None, graph.edges) for graph in graphs]
            started = time.process_time()
            exact &= edit_distance(graphs[0], graphs[1], WEIGHTS).exact
            spent.append(time.process_time() - started)
        worst = max(worst, *spent)
        print(
            f"plan-like, {LARGE} nodes, {name}: mean {1e3 * sum(spent) / pairs:.1f} ms, worst "
            f"{1e3 * max(spent):.1f} ms"
        )
    return worst, exact


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=8, help="pairs per kind and size")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not all(map(importlib.util.find_spec, ("networkx", "scipy"))):
        print("networkx and scipy are needed: pip install networkx scipy", file=sys.stderr)
        return 2
    rng = random.Random(options.seed)
    theirs, ours, wrong = compare(options.pairs, rng)
    print(
        f"total: networkx {theirs:.2f} s, gradestack {ours:.3f} s, {theirs / ours:.0f} times "
        f"faster (target {TARGET})"
    )
    print(f"distances that differ: {wrong}")
    worst, exact = twelve(4 * options.pairs, rng)
    return int(bool(wrong) or theirs < TARGET * ours or worst >= 1 or not exact)


if __name__ == "__main__":
    sys.exit(main())
