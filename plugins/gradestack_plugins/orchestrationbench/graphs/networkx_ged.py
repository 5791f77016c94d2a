"""The original's own distance: networkx, when it is installed (extra ``gradestack[networkx]``).

networkx misses the true distance of graphs with self-loops (it comes out too low, depending on node order); for the
same figures as the original program there is no way but to ask it. Its search has no limit, so pairs with too many
possible mappings are never handed to it.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any

from gradestack_plugins.orchestrationbench.graphs.ged import Distance
from gradestack_plugins.orchestrationbench.graphs.ged_problem import Weights
from gradestack_plugins.orchestrationbench.graphs.graph import Graph

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
    few, many = sorted((len(left.names), len(right.names)))
    return few + many <= NODES and math.perm(many, few) <= MAPPINGS


@lru_cache(maxsize=4096)
def networkx_distance(left: Graph, right: Graph, weights: Weights) -> Distance:
    """Return what networkx takes for the edit distance, with the costs of :func:`edit_distance`.

    The search is bounded by the price of deleting one graph and inserting the other, which is also the answer when it
    finds nothing.
    """
    import networkx as nx  # noqa: PLC0415 - optional and slow to import

    def substitution(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
        if left.labels is None:
            return 0.0
        return weights.substitution((a["agent"], a["status"]), (b["agent"], b["status"]))

    most = left.size + right.size
    found = nx.graph_edit_distance(
        _digraph(left),
        _digraph(right),
        node_subst_cost=substitution,
        node_del_cost=_one,
        node_ins_cost=_one,
        edge_subst_cost=_nothing,
        edge_del_cost=_one,
        edge_ins_cost=_one,
        upper_bound=most,
    )
    value = float(most) if found is None or not math.isfinite(found) else float(found)
    return Distance(value, value, exact=not (left.has_loop or right.has_loop), backend="networkx")


def _one(_: Mapping[Hashable, Any]) -> float:
    return 1.0


def _nothing(_: Mapping[Hashable, Any], __: Mapping[Hashable, Any]) -> float:
    return 0.0


def _digraph(graph: Graph) -> Any:
    """Return the graph as networkx has it, nodes and edges in the same order."""
    import networkx as nx  # noqa: PLC0415 - optional and slow to import

    copy = nx.DiGraph()
    for node in range(len(graph.names)):
        label = graph.labels[node] if graph.labels is not None else (None, None)
        copy.add_node(node, agent=label[0], status=label[1])
    copy.add_edges_from(graph.edges)
    return copy
