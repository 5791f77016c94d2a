"""Directed graphs as the edit distance sees them."""

from __future__ import annotations

from collections.abc import Hashable

import attrs

Label = tuple[Hashable, Hashable]
"""Agent and status of one node of a component graph."""


@attrs.frozen
class Graph:
    """A directed graph without parallel edges; nodes are numbered in the order they were added.

    The order of nodes and edges is kept because networkx's approximation of self-loops depends on it.
    """

    names: tuple[str, ...]
    """One name per node, for people."""
    labels: tuple[Label, ...] | None
    """One label per node; None when every node may stand for any other at no cost."""
    edges: tuple[tuple[int, int], ...]
    """(tail, head) pairs of node numbers, in the order they were added; a self-loop has tail == head."""

    @property
    def size(self) -> int:
        """Number of nodes plus number of edges: the price of deleting the whole graph."""
        return len(self.names) + len(self.edges)

    @property
    def has_loop(self) -> bool:
        """True when some edge leads from a node to itself."""
        return any(tail == head for tail, head in self.edges)


class Builder:
    """Collects nodes and edges; a node or edge added twice is there once."""

    def __init__(self) -> None:
        self._index: dict[Hashable, int] = {}
        self._edges: dict[tuple[int, int], None] = {}

    def node(self, key: Hashable) -> int:
        """Return the number of the node ``key``, adding it when it is new."""
        return self._index.setdefault(key, len(self._index))

    def edge(self, tail: Hashable, head: Hashable) -> None:
        """Add an edge, and its end nodes when they are new."""
        self._edges[self.node(tail), self.node(head)] = None

    def named(self) -> Graph:
        """Return the graph with unlabelled nodes (keys are names)."""
        return Graph(tuple(str(key) for key in self._index), None, tuple(self._edges))

    def labelled(self) -> Graph:
        """Return the graph whose node keys, (agent, status) pairs, are the labels."""
        labels: list[Label] = []
        for key in self._index:
            assert isinstance(key, tuple)  # noqa: S101 - component graphs are built from pairs only
            labels.append((key[0], key[1]))
        return Graph(tuple(f"{agent}|{status}" for agent, status in labels), tuple(labels), tuple(self._edges))
