"""Stability of the runs of one item."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise


def item_measures(labels: Sequence[Hashable], n_labels: int) -> dict[str, float | None]:
    """Return an item's own measures under the document's names.

    Args:
        labels: Labels of its runs, in order; not empty.
        n_labels: Size of the label set.

    Returns:
        ``H_i``, entropy in bits; ``H_i^norm``, entropy over log2 of the size of the label set, None
        for one label; ``FlipRate_i``, changes from run to run over k - 1, None for one run.
    """
    n = len(labels)
    counts = Counter(labels).values()
    shares = [count / n for count in counts]
    entropy = abs(math.fsum(-share * math.log2(share) for share in shares))
    flips = sum(before != label for before, label in pairwise(labels))
    normalized = None
    if n_labels > 1:
        normalized = min(1.0, entropy / math.log2(n_labels))
    flip_rate = None
    if n > 1:
        flip_rate = flips / (n - 1)
    return {"H_i": entropy, "H_i^norm": normalized, "FlipRate_i": flip_rate}
