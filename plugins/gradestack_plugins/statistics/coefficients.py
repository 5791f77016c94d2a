"""Coefficients of agreement: Cohen's kappa, Gwet's AC1, Krippendorff's alpha."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any, Literal

Table = Mapping[tuple[str, str], int]
"""Label of one rater and of the other -> number of samples."""
Level = Literal["nominal", "ordinal", "interval"]


def percent_agreement(table: Table) -> float | None:
    """Return the share of samples with equal labels; None for none."""
    n = sum(table.values())
    equal = sum(times for (a, b), times in table.items() if a == b)
    return equal / n if n else None


def kappa(table: Table) -> float | None:
    """Return Cohen's kappa, ``(p_o - p_e) / (1 - p_e)``.

    ``p_e`` is the sum over classes of the product of both raters' shares.
    """
    n = sum(table.values())
    observed = percent_agreement(table)
    left, right = _margins(table)
    if observed is None:
        return None
    chance = math.fsum(left[label] * right[label] for label in left) / n**2
    if chance == 1:
        return None
    return (observed - chance) / (1 - chance)


def ac1(table: Table) -> float | None:
    """Return Gwet's AC1, ``(p_o - p_e) / (1 - p_e)``.

    ``p_e`` is the sum of pi (1 - pi) over q - 1, pi the mean share of each of q classes.
    """
    n = sum(table.values())
    observed = percent_agreement(table)
    left, right = _margins(table)
    keys = left.keys()
    labels = keys | right.keys()
    if observed is None or len(labels) == 1:
        return None if observed is None else 1.0
    shares = [(left[label] + right[label]) / (2 * n) for label in labels]
    products = [share * (1 - share) for share in shares]
    chance = math.fsum(products) / (len(labels) - 1)
    return (observed - chance) / (1 - chance)


def _margins(table: Table) -> tuple[Counter[str], Counter[str]]:
    left = Counter[str]()
    right = Counter[str]()
    for (a, b), times in table.items():
        left[a] += times
        right[b] += times
    return left, right


def alpha(units: Mapping[Any, int], level: Level) -> float | None:
    """Return Krippendorff's alpha, ``1 - D_o / D_e`` over pairable values.

    None for none, and for one value only.

    Args:
        units: Values that raters gave a unit, as a tuple -> number of units that have them.
        level: How far values are apart: equal or not, by mean rank, or by difference.
    """
    pairable = {values: times for values, times in units.items() if len(values) > 1}
    totals: Counter[Any] = Counter()
    for values, times in pairable.items():
        for value in values:
            totals[value] += times
    if len(totals) < 2:
        return None
    if level == "ordinal":
        scale = _mean_ranks(totals)
    else:
        scale = {value: value for value in totals}

    def disagreement(counts: Mapping[Any, int]) -> float:
        pairs = product(counts.items(), repeat=2)
        if level == "nominal":
            return math.fsum(a * b for (x, a), (y, b) in pairs if x != y)
        return math.fsum(a * b * (scale[x] - scale[y]) ** 2 for (x, a), (y, b) in pairs)

    observed = [
        times * disagreement(Counter(values)) / (len(values) - 1)
        for values, times in pairable.items()
    ]
    expected = disagreement(totals) / (totals.total() - 1)
    return 1 - math.fsum(observed) / expected


def _mean_ranks(totals: Counter[Any]) -> dict[Any, float]:
    ranks = dict[Any, float]()
    end = 0
    for value in sorted(totals):
        end += totals[value]
        ranks[value] = end - totals[value] / 2
    return ranks
