"""Intervals of means over tasks, clustered by the task's id over groups and models."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import attrs

from gradestack import Interval, ratio_interval

IN_BITS = frozenset({"mean_entropy"})
"""Means that are not bound to [0, 1]."""


@attrs.frozen
class Share:
    """What one task of one group adds to a mean."""

    task: str
    runs: int
    """Recorded runs."""
    value: float
    weight: float = 1.0
    """What it adds to the divisor."""


def mean_intervals(means: Mapping[str, Sequence[Share]], confidence: float) -> dict[str, Interval]:
    """Return the interval of each mean.

    Args:
        means: Name of the mean -> what it is the mean of.
        confidence: Of the intervals.
    """
    return {name: _interval(shares, confidence, share=name not in IN_BITS) for name, shares in means.items()}


def _interval(shares: Iterable[Share], confidence: float, *, share: bool) -> Interval:
    by_task: defaultdict[str, list[Share]] = defaultdict(list)
    for each in shares:
        by_task[each.task].append(each)
    cells: Counter[tuple[float, ...]] = Counter()
    n = 0
    for held in by_task.values():
        weight = math.fsum(each.weight for each in held)
        cells[weight, math.fsum(each.value for each in held)] += 1
        n += sum(each.runs for each in held) if weight else 0
    return ratio_interval(cells, n=n, confidence=confidence, share=share)
