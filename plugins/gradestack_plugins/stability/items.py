"""How alike the runs of one item are."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any


def mode(labels: Sequence[Hashable]) -> tuple[Hashable, int]:
    """Return the most frequent label and its multiplicity.

    On a tie the label seen first in the runs.
    """
    return Counter(labels).most_common(1)[0]


def entropy(labels: Sequence[Hashable]) -> float:
    """Return ``-sum of p log2 p`` over the labels present, in bits.

    The order of the runs does not matter.
    """
    n = len(labels)
    return abs(math.fsum(-(c / n) * math.log2(c / n) for c in Counter(labels).values()))


def entropy_in_order(labels: Sequence[Hashable]) -> float:
    """Return the same, summed label by label in first-seen order as the evaluation suite does."""
    n, total = len(labels), 0.0
    for count in Counter(labels).values():
        p = count / float(n)
        total -= p * math.log2(p)
    return total


def flips(labels: Sequence[Hashable]) -> int:
    """Return how often neighbouring runs differ."""
    return sum(a != b for a, b in itertools.pairwise(labels))


def item_measures(labels: Sequence[Hashable], n_labels: int) -> dict[str, Any]:
    """Return an item's own measures under the document's names.

    Args:
        labels: Labels of its runs, in order; not empty.
        n_labels: Size of the label set.

    Returns:
        ``m_i``, runs with the most frequent label; ``H_i``, entropy in bits; ``H_i^norm``, entropy
        over log2 of the size of the label set; ``FlipRate_i``, changes from run to run over
        k - 1, None for one run.
    """
    spread = entropy(labels)
    changes = flips(labels) / (len(labels) - 1) if len(labels) > 1 else None
    return {
        "m_i": mode(labels)[1],
        "H_i": spread,
        "H_i^norm": min(1.0, spread / math.log2(n_labels)),
        "FlipRate_i": changes,
    }
