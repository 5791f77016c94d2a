"""Agreement of raters: Cohen's kappa, Gwet's AC1, Krippendorff's alpha."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

Table = Mapping[tuple[str, str], int]
"""Label of one rater and of the other -> number of samples."""
Level = Literal["nominal", "ordinal", "interval"]


def percent_agreement(table: Table) -> float | None:
    """Return the share of samples with equal labels; None for none."""
    n = sum(table.values())
    return sum(times for (a, b), times in table.items() if a == b) / n if n else None


def kappa(table: Table) -> float | None:
    """Return Cohen's kappa, ``(p_o - p_e) / (1 - p_e)`` with ``p_e`` = sum over classes of both raters' shares.

    None for no sample, and where both raters know one class only, the same.
    """
    n, observed = sum(table.values()), percent_agreement(table)
    if observed is None:
        return None
    left, right = _margins(table)
    chance = math.fsum(left[label] * right[label] for label in left) / n**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def ac1(table: Table) -> float | None:
    """Return Gwet's AC1, whose ``p_e`` is the sum of pi (1 - pi) over q - 1, pi the mean share of each of q classes.

    1 where there is one class only; None for no sample.
    """
    n, observed = sum(table.values()), percent_agreement(table)
    if observed is None:
        return None
    left, right = _margins(table)
    labels = left.keys() | right.keys()
    if len(labels) == 1:
        return 1.0
    shares = [(left[label] + right[label]) / (2 * n) for label in sorted(labels)]
    chance = math.fsum(share * (1 - share) for share in shares) / (len(labels) - 1)
    return (observed - chance) / (1 - chance)


def _margins(table: Table) -> tuple[Counter[str], Counter[str]]:
    left: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for (a, b), times in table.items():
        left[a] += times
        right[b] += times
    return left, right


def alpha(units: Mapping[Any, int], level: Level) -> float | None:
    """Return Krippendorff's alpha, ``1 - D_o / D_e`` over pairable values; None for none, and for one value only.

    Any number of raters, values may be missing. ``units`` counts the tuples of values given to a unit (a single value
    is not pairable); ``level`` says what of two values counts as distance.
    """
    pairable = {values: times for values, times in units.items() if len(values) > 1}
    totals: Counter[str | float] = Counter()
    for values, times in pairable.items():
        for value in values:
            totals[value] += times
    if len(totals) < 2:
        return None
    distance = _distance(sorted(totals), totals, level)
    observed = []
    for values, times in pairable.items():
        held = list(Counter(values).items())
        apart = math.fsum(a * b * distance(x, y) for x, a in held for y, b in held)
        observed.append(times * apart / (len(values) - 1))
    every = list(totals.items())
    n = sum(totals.values())
    expected = math.fsum(a * b * distance(x, y) for x, a in every for y, b in every) / (n - 1)
    return 1 - math.fsum(observed) / expected


def _distance(
    values: Sequence[str | float], totals: Mapping[str | float, int], level: Level
) -> Callable[[str | float, str | float], float]:
    if level == "nominal":
        return lambda x, y: float(x != y)
    if level == "interval":
        return lambda x, y: (float(x) - float(y)) ** 2
    place = {value: at for at, value in enumerate(values)}
    before = [0]
    for value in values:
        before.append(before[-1] + totals[value])

    def ranks(x: str | float, y: str | float) -> float:
        low, high = sorted((place[x], place[y]))
        between = before[high + 1] - before[low]
        return (between - (totals[values[low]] + totals[values[high]]) / 2) ** 2 if low != high else 0.0

    return ranks
