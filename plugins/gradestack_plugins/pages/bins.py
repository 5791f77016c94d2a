"""Values counted in bins."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

Bin = tuple[str, float, tuple[int, ...]]
"""Label, lower edge, and the count of each group."""


def label_bins(edges: Sequence[float], groups: Sequence[Sequence[int]]) -> list[Bin]:
    """Return bins with labels as people write them, ``[0.2, 0.4)``.

    Args:
        edges: Lower edges of the bins, growing; the last bin holds what is exactly the last edge.
        groups: Counts of each group: below, in each bin, above. Nothing outside has no bin.
    """
    first = f"{edges[0]:g}"
    last = f"{edges[-1]:g}"
    inner = []
    for low, high in pairwise(edges):
        inner.append(f"[{low:g},\u00a0{high:g})")
    labels = [f"< {first}", *inner, last, f"> {last}"]
    last_edge = edges[-1]
    lows = (edges[0], *edges, last_edge)
    counts = zip(*groups, strict=True)
    bins = list(zip(labels, lows, counts, strict=True))
    last_bin = bins[-1]
    outer = (bins[0], last_bin)
    return [labelled for labelled in bins if labelled not in outer or any(labelled[2])]


def bin_values(groups: Mapping[str, Sequence[float]], edges: Sequence[float]) -> list[Bin]:
    """Return the bins of some groups of values; none without a group.

    Raises:
        ValueError: The edges do not grow, or there are fewer than two.
    """
    if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
        raise ValueError("edges of a distribution must grow, and there must be two at least")
    if not groups:
        return []
    counts = [_count_values(values, edges) for values in groups.values()]
    return label_bins(edges, counts)


def _count_values(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Count the values below the first edge, in each bin, and above the last edge."""
    counts = [0] * (len(edges) + 2)
    for value in filter(math.isfinite, values):
        if value >= edges[-1]:
            last_edge = edges[-1]
            position = len(edges) + (value > last_edge)
        else:
            position = bisect_right(edges, value)
        counts[position] += 1
    return counts
