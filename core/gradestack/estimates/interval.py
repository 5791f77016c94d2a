"""How sure a figure is: its standard error over tasks by leaving one out at a time, and its interval.

Runs of one task depend on each other, so tasks are what is drawn. With C tasks, a figure F of all of them and F(-t) of
all but task t, the pseudo-values are ``C F - (C - 1) F(-t)`` and the standard error is their standard deviation (with
C - 1) over the square root of C. For the mean of equally many runs a task this is the cluster-robust standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
_METHODS = ("logit_t", "wilson", "t", "skewed_t")
_SEVERAL = 5
"""Tasks from which on a share next to 0 or 1 is less sure than logit t says (by simulation, benchmarks/coverage.py)."""
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
    stderr: float
    """Only where the ends of another confidence do not follow from these; the same of ``skewness`` and ``df``."""
    skewness: float
    df: int


class Estimate(msgspec.Struct, frozen=True):
    """A figure and its standard error over tasks."""

    value: float | None
    stderr: float | None
    """None for fewer than two tasks, and where it or the figure without some task is undefined or beyond any float."""
    clusters: int
    """Number of tasks."""
    skewness: float = 0.0
    """Of the pseudo-values, unbiased (G1); 0 for fewer than three tasks."""
    kurtosis: float = 0.0
    """Excess kurtosis of the pseudo-values, unbiased (G2); 0 for fewer than four tasks."""


def valid_confidence(_component: object, _field: object, confidence: float) -> None:
    """Validate an option ``confidence``, as ``attrs.field(default=0.95, validator=valid_confidence)``.

    Raises:
        ValueError: It does not lie between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")


def jackknife(figures: Callable[..., Figures], cells: Mapping[Cell, int], width: int) -> dict[str, Estimate]:
    """Return figures with their standard errors, leaving out one task at a time.

    Args:
        figures: Returns the figures of sums: called with one number for each of a cell's, over all tasks, and over all
            but one. A figure that is None without a task is undefined without it, and has no standard error.
        cells: What tasks add to the sums -> how many tasks add that; finite numbers.
        width: How many numbers a cell has.
    """
    clusters = sum(cells.values())
    times = [*cells.values()]
    totals = [total(column, times) for column in zip(*cells, strict=True)] or [0.0] * width
    whole = figures(*totals)
    if clusters < 2:
        return {name: Estimate(value, None, clusters) for name, value in whole.items()}
    left = [figures(*map(sub, totals, cell)) for cell in cells]
    return {
        name: estimate(value, [*zip([each[name] for each in left], times, strict=True)], clusters)
        for name, value in whole.items()
    }


def total(values: Sequence[float], times: Sequence[int]) -> float:
    """Return the sum of values, each so many times; that of floats is rounded once: order and grouping do not show."""
    if not any(isinstance(value, float) for value in values):
        return sum(value * more for value, more in zip(values, times, strict=True))
    return math.fsum(
        chain(values, *[repeat(value, more - 1) for value, more in zip(values, times, strict=True) if more > 1])
    )


def estimate(value: float | None, left: Sequence[tuple[float | None, int]], clusters: int) -> Estimate:
    """Return a figure with its standard error: the standard deviation of the pseudo-values over the root of the tasks.

    Args:
        value: The figure over all tasks.
        left: The figure without a task, and without how many tasks it is that.
        clusters: Number of tasks.
    """
    nothing = Estimate(value, None, clusters)
    if value is None or clusters < 2:
        return nothing
    whole, others = clusters * value, clusters - 1
    pseudo = [whole - others * without for without, _ in left if without is not None]
    if len(pseudo) < len(left):
        return nothing
    times = [number for _, number in left]
    try:
        mean = total(pseudo, times) / clusters
        spread = math.sqrt(total([(each - mean) ** 2 for each in pseudo], times) / others)
    except OverflowError:  # squares beyond the range of floats
        return nothing
    if spread <= _ROUNDING * clusters * max(1.0, abs(value)):
        return Estimate(value, 0.0, clusters)
    gaps = [(each - mean) / spread for each in pseudo]
    cubes, fourths = (total([each**power for each in gaps], times) * clusters / others for power in (3, 4))
    skewness = cubes / (clusters - 2) if clusters > 2 else 0.0
    below = (clusters - 2) * (clusters - 3)
    kurtosis = (fourths * (clusters + 1) - 3 * others**2) / below if clusters > 3 else 0.0
    return Estimate(value, spread / math.sqrt(clusters), clusters, skewness, kurtosis)


def interval(
    of: Estimate,
    n: int,
    *,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
    most: float = math.inf,
    amount: bool = False,
) -> Interval:
    """Return the interval of a figure, for ``summary.json``; or the reason why there is none.

    With q = t((1 + confidence) / 2, C - 1) and h = q se / (v (1 - v)), a share v between 0 and 1 has
    ``[expit(logit v - h), expit(logit v + h)]`` (``method`` "logit_t"); at 0 and 1, and where all tasks are alike,
    Wilson's interval with n = C and z = q ("wilson"). Within one task of 0 or 1 (C v <= 1 or C (1 - v) <= 1, C >= 5),
    where the spread of tasks says little, it is no narrower than Wilson's, and its end there no farther from 0 or 1
    than ``1 - confidence ** (1 / C)``.

    Amounts, of which a few tasks often have most, have Hall's interval ("skewed_t"), ``[v - se f(q), v - se f(-q)]``
    with ``f(x) = 3 / g (cbrt(1 + g (x - g / 6)) - 1)`` and g = S / sqrt(C). S is the skewness of the pseudo-values, at
    least 2 c min(1, c) with c = se sqrt(C) / v (a gamma distribution's is 2 c); q has 2 / (2 / (C - 1) + K / C) degrees
    of freedom, K their excess kurtosis, at least 1.5 S^2, a gamma distribution's. None where se is more than half of v.

    Other figures have ``v -+ q se`` ("t"). Where all tasks are alike, only a share has an interval.

    Args:
        of: The figure.
        n: Number of samples it is of.
        confidence: Share of such intervals that hold the true figure, between 0 and 1.
        share: Whether the figure is bound to [0, 1].
        least: What a figure that is no share cannot be below.
        most: What it cannot be above.
        amount: Whether it is an amount: no share, not below 0, without an upper bound.
    """
    value, stderr, clusters = of.value, of.stderr, of.clusters
    if value is None:
        return {"reason": "undefined"}
    if clusters < 2:
        return {"reason": "one task"}
    if stderr is None:
        return {"reason": "undefined without some task"}
    more: Interval = {}
    if not (stderr or share):
        return {"reason": "the same in every task"}
    if amount and value >= 0:
        if 2 * stderr > value:
            return {"reason": "too few tasks for amounts so uneven"}
        spread = stderr * math.sqrt(clusters) / value
        skewness = max(of.skewness, 2 * spread * min(1.0, spread))
        kurtosis = max(of.kurtosis, 1.5 * skewness**2)
        df = int(2 / (2 / (clusters - 1) + kurtosis / clusters) + _ROUNDING_OF_ENDS)
        more, least = {"stderr": stderr, "skewness": skewness, "df": max(1, df)}, max(0.0, least)
        low, high = _skewed(value, clusters, more, confidence)
        method = "skewed_t"
    else:
        low, high, method = ends(value, stderr, clusters, confidence=confidence, share=share)
        if method == "logit_t" and _near_an_end(value, clusters):
            more = {"stderr": stderr}
    low, high = max(low, min(least, value)), min(high, max(most, value))
    return {"low": low, "high": high, "confidence": confidence, "n": n, "clusters": clusters, "method": method, **more}


def ends(
    value: float, stderr: float, clusters: int, *, confidence: float = 0.95, share: bool = True
) -> tuple[float, float, str]:
    """Return both ends of ``interval`` of what is no amount, and the method; for two tasks and more."""
    q = t_quantile((1 + confidence) / 2, clusters - 1)
    if not share or not 0 <= value <= 1:
        return value - q * stderr, value + q * stderr, "t"
    if not (stderr > 0 and 0 < value < 1):
        return *_wilson(value, clusters, q), "wilson"
    centre, half = math.log(value / (1 - value)), q * stderr / (value * (1 - value))
    low, high = _expit(centre - half), _expit(centre + half)
    if _near_an_end(value, clusters):
        wide, one = _wilson(value, clusters, q), -math.expm1(math.log(confidence) / clusters)
        low, high = min(low, wide[0]), max(high, wide[1])
        low, high = (min(low, one), high) if value < 0.5 else (low, max(high, 1 - one))
    return low, high, "logit_t"


def _near_an_end(share: float, clusters: int) -> bool:
    """Return whether all that separates a share from 0 or 1 comes to one task at most; of few, q is large enough."""
    return clusters >= _SEVERAL and clusters * min(share, 1 - share) <= 1 + _ROUNDING_OF_ENDS


def _skewed(value: float, clusters: int, known: Interval, confidence: float) -> tuple[float, float]:
    """Return both ends of an amount's interval, from ``stderr``, ``skewness`` and ``df``."""
    stderr, g = known["stderr"], known["skewness"] / math.sqrt(clusters)
    q = t_quantile((1 + confidence) / 2, known["df"])
    low, high = [3 / g * (math.cbrt(1 + g * (x - g / 6)) - 1) for x in (q, -q)]
    return value - stderr * low, value - stderr * high


def again(of: Interval, value: float, confidence: float) -> Interval:
    """Return the interval of a figure of this value once more, at another confidence."""
    if "reason" in of:
        return of
    if of["method"] not in _METHODS:  # an aggregator's own
        return of if confidence == of["confidence"] else {"reason": f"known at {of['confidence']:g} only"}
    low, high, clusters = of["low"], of["high"], of["clusters"]
    q, before = t_quantile((1 + confidence) / 2, clusters - 1), t_quantile((1 + of["confidence"]) / 2, clusters - 1)
    if of["method"] == "skewed_t":
        low, high = _skewed(value, clusters, of, confidence)
        low = max(0.0, low)
    elif of["method"] == "wilson" or "stderr" in of:
        low, high, _ = ends(value, of.get("stderr", 0.0), clusters, confidence=confidence)
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
