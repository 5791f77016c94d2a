"""Quantiles of Student's t distribution with whole degrees of freedom, from its finite series."""

from __future__ import annotations

import math
from statistics import NormalDist

_LARGE = 2000
"""From here on the normal quantile differs by less than 0.1 %."""


def _within(t: float, df: int) -> float:
    """Return P(-t < T < t) for T with ``df`` degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan(t / math.sqrt(df))
    cosine = math.cos(theta)
    term = total = cosine if df % 2 else 1.0
    for step in range(3 if df % 2 else 2, df, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    if df == 1:
        total = 0.0
    return 2 / math.pi * (theta + math.sin(theta) * total) if df % 2 else math.sin(theta) * total


def t_quantile(confidence: float, df: int) -> float:
    """Return t with P(-t < T < t) = ``confidence``.

    Args:
        confidence: Two-sided, between 0 and 1.
        df: Degrees of freedom, at least 1.
    """
    if df >= _LARGE:
        return NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = 0.0, 1.0
    while _within(high, df) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, df) < confidence else (low, middle)
    return (low + high) / 2
