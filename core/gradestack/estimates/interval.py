"""How sure a figure is: its standard error over tasks by leaving one out at a time, and its interval.

Runs of one task depend on each other, so tasks are what is drawn. With C tasks, a figure F of all of them and F(-t) of
all but task t, the pseudo-values are ``C F - (C - 1) F(-t)`` and the standard error is their standard deviation (with
C - 1) over the square root of C. For the mean of equally many runs a task this is the cluster-robust standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from operator import sub
from statistics import NormalDist
from typing import TypedDict

import msgspec

Cell = tuple[float, ...]
"""What one task adds to the sums a figure is computed from."""
Figures = Mapping[str, float | None]
"""Figures by name; None where one is undefined."""

_ROUNDING = 1e-14
"""Spread of pseudo-values, by task and size of the figure, up to which tasks that are alike may seem to differ."""
_ROUNDING_OF_ENDS = 1e-9
"""Share of half an interval by which its ends may seem to differ."""
_LARGE = 1000
"""Degrees of freedom from which on the expansion about the normal quantile is exact to 1e-11."""
_SUREST = 1 - 2**-53
"""Probability next to 1."""
_EXPANSION = (  # Abramowitz and Stegun 26.7.5, and its fifth term: divisor, powers of z and their factors
    (4, ((3, 1), (1, 1))),
    (96, ((5, 5), (3, 16), (1, 3))),
    (384, ((7, 3), (5, 19), (3, 17), (1, -15))),
    (92160, ((9, 79), (7, 776), (5, 1482), (3, -1920), (1, -945))),
    (368640, ((11, 27), (9, 339), (7, 930), (5, -1782), (3, -765), (1, 17955))),
)


class Interval(TypedDict, total=False):
    """An interval as it stands beside its figure in summary.json; or only ``reason``, why there is none."""

    low: float
    high: float
    confidence: float
    n: int
    clusters: int
    method: str
    reason: str


class Estimate(msgspec.Struct, frozen=True):
    """A figure and its standard error over tasks."""

    value: float | None
    stderr: float | None
    """None for fewer than two tasks, and where it or the figure without some task is undefined or beyond any float."""
    clusters: int
    """Number of tasks."""


def valid_confidence(_component: object, _field: object, confidence: float) -> None:
    """Validate an option ``confidence``, as ``attrs.field(default=0.95, validator=valid_confidence)``.

    Raises:
        ValueError: It does not lie between 0 and 1.
    """
    if not 0 < confidence < 1:
        msg = f"confidence must be between 0 and 1, got {confidence}"
        raise ValueError(msg)


def jackknife(figures: Callable[..., Figures], cells: Mapping[Cell, int], width: int) -> dict[str, Estimate]:
    """Return figures with their standard errors, leaving out one task at a time.

    Args:
        figures: Returns the figures of sums: called with one number for each of a cell's, over all tasks, and over all
            but one. A figure that is None without a task is undefined without it, and has no standard error.
        cells: What tasks add to the sums -> how many tasks add that; finite numbers.
        width: How many numbers a cell has.
    """
    clusters = sum(cells.values())
    again = _again(cells.values())
    totals = [_total(column, again) for column in zip(*cells, strict=True)] or [0.0] * width
    whole = figures(*totals)
    if clusters < 2:
        return {name: Estimate(value, None, clusters) for name, value in whole.items()}
    left = [figures(*map(sub, totals, cell)) for cell in cells]
    return {name: _estimate(value, [each[name] for each in left], again, clusters) for name, value in whole.items()}


_Again = Sequence[tuple[int, int]]
"""Which of several values are there more than once, and how often more."""


def _again(times: Iterable[int]) -> _Again:
    return [(place, number - 1) for place, number in enumerate(times) if number > 1]


def _total(values: Sequence[float], again: _Again) -> float:
    """Return the sum of values; rounded once, so that order and grouping do not show."""
    return math.fsum(chain(values, *[repeat(values[place], number) for place, number in again]))


def estimate(value: float | None, left: Sequence[tuple[float | None, int]], clusters: int) -> Estimate:
    """Return a figure with its standard error: the standard deviation of the pseudo-values over the root of the tasks.

    Args:
        value: The figure over all tasks.
        left: The figure without a task, and without how many tasks it is that.
        clusters: Number of tasks.
    """
    return _estimate(value, [without for without, _ in left], _again(times for _, times in left), clusters)


def _estimate(value: float | None, left: Sequence[float | None], again: _Again, clusters: int) -> Estimate:
    return Estimate(value, None if value is None or clusters < 2 else _stderr(value, left, again, clusters), clusters)


def _stderr(value: float, left: Sequence[float | None], again: _Again, clusters: int) -> float | None:
    whole, others = clusters * value, clusters - 1
    pseudo = [whole - others * without for without in left if without is not None]
    if len(pseudo) < len(left):
        return None
    try:
        mean = _total(pseudo, again) / clusters
        spread = math.sqrt(_total([(each - mean) ** 2 for each in pseudo], again) / others)
    except OverflowError:  # squares beyond the range of floats
        return None
    if spread <= _ROUNDING * clusters * max(1.0, abs(value)):
        return 0.0
    return spread / math.sqrt(clusters)


def interval(
    of: Estimate, n: int, *, confidence: float = 0.95, share: bool = True, least: float = -math.inf
) -> Interval:
    """Return the interval of a figure, for ``summary.json``; or the reason why there is none.

    With q = t((1 + confidence) / 2, C - 1) and h = q se / (v (1 - v)), a share v between 0 and 1 has
    ``[expit(logit v - h), expit(logit v + h)]`` (``method`` "logit_t"); at 0 and 1, and where all tasks are alike,
    Wilson's interval with n = C and z = q ("wilson"). Other figures have ``v -+ q se`` ("t").

    Args:
        of: The figure.
        n: Number of samples it is of.
        confidence: Share of such intervals that hold the true figure, between 0 and 1.
        share: Whether the figure is bound to [0, 1].
        least: What a figure that is no share cannot be below.
    """
    value, stderr, clusters = of.value, of.stderr, of.clusters
    if value is None:
        return {"reason": "undefined"}
    if clusters < 2:
        return {"reason": "one task"}
    if stderr is None:
        return {"reason": "undefined without some task"}
    low, high, method = ends(value, stderr, clusters, confidence=confidence, share=share)
    low = max(low, min(least, value))
    return {"low": low, "high": high, "confidence": confidence, "n": n, "clusters": clusters, "method": method}


def ends(
    value: float, stderr: float, clusters: int, *, confidence: float = 0.95, share: bool = True
) -> tuple[float, float, str]:
    """Return both ends of :func:`interval` and the method; for two tasks and more."""
    q = t_quantile((1 + confidence) / 2, clusters - 1)
    if not share or not 0 <= value <= 1:
        return value - q * stderr, value + q * stderr, "t"
    if stderr > 0 and 0 < value < 1:
        centre, half = math.log(value / (1 - value)), q * stderr / (value * (1 - value))
        return _expit(centre - half), _expit(centre + half), "logit_t"
    return *_wilson(value, clusters, q), "wilson"


def again(of: Interval, value: float, confidence: float) -> Interval:
    """Return the interval of a figure once more, at another confidence.

    Args:
        of: The interval; one without ends stays as it is.
        value: The figure.
        confidence: The one wanted.
    """
    if "reason" in of:
        return of
    low, high, clusters = of["low"], of["high"], of["clusters"]
    q, before = t_quantile((1 + confidence) / 2, clusters - 1), t_quantile((1 + of["confidence"]) / 2, clusters - 1)
    if of["method"] == "wilson":
        low, high = _wilson(value, clusters, q)
    elif of["method"] == "t":
        cut = high - value > (1 + _ROUNDING_OF_ENDS) * (value - low)
        centre, half = (value, high - value) if cut else ((low + high) / 2, (high - low) / 2)
        half *= q / before
        low, high = max(centre - half, low if cut else -math.inf), centre + half
    elif low > 0 and high < 1:  # an end that is 0 or 1 stays: how far beyond it would be is not known
        left, right = math.log(low / (1 - low)), math.log(high / (1 - high))
        centre, half = (left + right) / 2, (right - left) / 2 * q / before
        low, high = _expit(centre - half), _expit(centre + half)
    return {**of, "low": low, "high": high, "confidence": confidence}


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else (small := math.exp(max(x, -745.0))) / (1 + small)


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    weight = z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    return 0.0 if share == 0 else max(0.0, centre - half), 1.0 if share == 1 else min(1.0, centre + half)


@lru_cache(maxsize=256)
def t_quantile(probability: float, df: int) -> float:
    """Return the quantile of Student's t distribution: t with P(T < t) = ``probability``.

    Args:
        probability: Between 0 and 1, both excluded.
        df: Degrees of freedom, at least 1.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    if df >= _LARGE:
        z = NormalDist().inv_cdf(min(probability, _SUREST))
        terms = [math.fsum(factor * z**power for power, factor in powers) / over for over, powers in _EXPANSION]
        return z + math.fsum(term / df**order for order, term in enumerate(terms, 1))
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > 1 - probability:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _upper_tail(middle, df) > 1 - probability else (low, middle)
    return (low + high) / 2


def _upper_tail(t: float, df: int) -> float:
    """Return P(T > t) for t >= 0, from the finite series (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan2(t, math.sqrt(df))
    cosine = math.cos(theta)
    term = total = cosine if df % 2 else 1.0
    for step in range(3 if df % 2 else 2, df, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    if df % 2 == 0:
        return (1 - math.sin(theta) * total) / 2
    within = theta + math.sin(theta) * total if df > 1 else theta
    return (1 - 2 / math.pi * within) / 2
