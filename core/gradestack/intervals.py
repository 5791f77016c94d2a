"""Intervals of figures: the jackknife over tasks, and the forms that docs/figures.md defines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from operator import mul, sub
from typing import TypedDict

import msgspec

Cell = tuple[float, ...]
"""What one task adds to the sums a figure is computed from."""
Figures = Mapping[str, float | None]
"""Figures by name; None where one is undefined."""

_ROUNDING = 1e-14
"""Spread of pseudo-values, by task and size of the figure, that rounding can explain."""
_ROUNDING_OF_ENDS = 1e-9
"""Share of half an interval that rounding can explain between its ends."""
_METHODS = ("logit_t", "wilson", "t", "skewed_t")
_SEVERAL = 5
"""Tasks from which on a share next to 0 or 1 is less sure than logit t says (by simulation,
benchmarks/coverage.py).
"""
_LARGE = 1000
"""Degrees of freedom from which on the expansion about the normal quantile is exact to 1e-11."""
_SUREST = 1 - 2**-53
"""Probability next to 1."""
_BISECTIONS = 80
_SMALLEST_EXPONENT = -745.0
# Abramowitz and Stegun 26.7.5, and its fifth term: divisor, powers of z and their factors
_EXPANSION = (
    (4, ((3, 1), (1, 1))),
    (96, ((5, 5), (3, 16), (1, 3))),
    (384, ((7, 3), (5, 19), (3, 17), (1, -15))),
    (92160, ((9, 79), (7, 776), (5, 1482), (3, -1920), (1, -945))),
    (368640, ((11, 27), (9, 339), (7, 930), (5, -1782), (3, -765), (1, 17955))),
)


class Interval(TypedDict, total=False):
    """An interval of a figure, in the form of summary.json.

    Or only ``reason``, why there is none.
    """

    low: float
    high: float
    confidence: float
    n: int
    clusters: int
    method: str
    reason: str
    stderr: float
    """Only where the ends of another confidence do not follow from these.

    The same of ``skewness`` and ``df``.
    """
    skewness: float
    df: int


class Estimate(msgspec.Struct, frozen=True):
    """A figure and its standard error over tasks."""

    value: float | None
    stderr: float | None
    """None for fewer than two tasks, and where it or the figure without some task is undefined or
    beyond any float.
    """
    clusters: int
    """Number of tasks."""
    skewness: float = 0.0
    """Of the pseudo-values, unbiased (G1); 0 for fewer than three tasks."""
    kurtosis: float = 0.0
    """Excess kurtosis of the pseudo-values, unbiased (G2); 0 for fewer than four tasks."""


def jackknife(
    figures: Callable[..., Figures], cells: Mapping[Cell, int], width: int
) -> dict[str, Estimate]:
    """Compute figures with their standard errors, leaving out one task at a time.

    Args:
        figures: Returns the figures of sums: called with one number for each of a cell's, over all
            tasks, and over all but one. A figure that is None without a task is undefined without
            it, and has no standard error.
        cells: What tasks add to the sums -> how many tasks add that; finite numbers.
        width: How many numbers a cell has.
    """
    clusters = sum(cells.values())
    times = [*cells.values()]
    totals = [total(column, times) for column in zip(*cells, strict=True)] or [0.0] * width
    values = figures(*totals)
    if clusters < 2:
        return {name: Estimate(value, None, clusters) for name, value in values.items()}
    figures_without_task = [figures(*map(sub, totals, cell)) for cell in cells]
    estimates = {}
    for name, value in values.items():
        values_without_task = [
            *zip([figures_left[name] for figures_left in figures_without_task], times, strict=True)
        ]
        estimates[name] = estimate(value, values_without_task, clusters)
    return estimates


def total(values: Sequence[float], times: Sequence[int]) -> float:
    """Add up values, each multiplied by its count.

    A sum of floats is rounded once: order and grouping do not show.
    """
    if not any(isinstance(value, float) for value in values):
        products: list[float] = list(map(mul, values, times))
        return sum(products)
    repeated = [
        repeat(value, count - 1) for value, count in zip(values, times, strict=True) if count > 1
    ]
    return math.fsum(chain(values, *repeated))


def estimate(
    value: float | None, left: Sequence[tuple[float | None, int]], clusters: int
) -> Estimate:
    """Compute the standard error of a figure.

    It is the standard deviation of the pseudo-values over the root of the number of tasks.

    Args:
        value: The figure over all tasks.
        left: The figure without a task, and without how many tasks it is that.
        clusters: Number of tasks.
    """
    values_without_task = [figure for figure, _ in left if figure is not None]
    if value is None or clusters < 2 or len(values_without_task) < len(left):
        return Estimate(value, None, clusters)
    clusters_left = clusters - 1
    pseudo = [clusters * value - clusters_left * figure for figure in values_without_task]
    times = [count for _, count in left]
    try:
        mean = total(pseudo, times) / clusters
        squares = [(number - mean) ** 2 for number in pseudo]
        spread = math.sqrt(total(squares, times) / clusters_left)
    except OverflowError:  # squares beyond the range of floats
        return Estimate(value, None, clusters)
    if spread <= _ROUNDING * clusters * max(1.0, abs(value)):
        return Estimate(value, 0.0, clusters)
    gaps = [(number - mean) / spread for number in pseudo]
    skewness, kurtosis = _shape(gaps, times, clusters)
    return Estimate(value, spread / math.sqrt(clusters), clusters, skewness, kurtosis)


def _shape(gaps: Sequence[float], times: Sequence[int], clusters: int) -> tuple[float, float]:
    """Compute skewness and excess kurtosis of standardised pseudo-values."""
    others = clusters - 1
    cubes = total([gap**3 for gap in gaps], times) * clusters / others
    fourths = total([gap**4 for gap in gaps], times) * clusters / others
    skewness = kurtosis = 0.0
    if clusters > 2:
        skewness = cubes / (clusters - 2)
    if clusters > 3:
        divisor = (clusters - 2) * (clusters - 3)
        kurtosis = (fourths * (clusters + 1) - 3 * others**2) / divisor
    return skewness, kurtosis


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
    """Compute the interval of a figure, for ``summary.json``; or the reason why there is none.

    The forms and formulas are in docs/figures.md: "logit_t" and "wilson" of shares, "skewed_t"
    (Hall's) of amounts, else "t".

    Args:
        of: The figure.
        n: Number of samples it is of.
        confidence: Share of such intervals that hold the true figure, between 0 and 1.
        share: Whether the figure is bound to [0, 1].
        least: What a figure that is no share cannot be below.
        most: What it cannot be above.
        amount: Whether it is an amount: no share, not below 0, without an upper bound.
    """
    value = of.value
    stderr = of.stderr
    clusters = of.clusters
    if value is None:
        return {"reason": "undefined"}
    if clusters < 2:
        return {"reason": "one task"}
    if stderr is None:
        return {"reason": "undefined without some task"}
    if not (stderr or share):
        return {"reason": "the same in every task"}
    shape: Interval = {}
    if amount and value >= 0:
        if 2 * stderr > value:
            return {"reason": "too few tasks for amounts so uneven"}
        shape = _shape_of_amount(of, value, stderr)
        low, high = _skewed_ends(value, clusters, shape, confidence)
        least, method = max(0.0, least), "skewed_t"
    else:
        low, high, method = ends(value, stderr, clusters, confidence=confidence, share=share)
        if method == "logit_t" and _near_an_end(value, clusters):
            shape = {"stderr": stderr}
    return {
        "low": max(low, min(least, value)),
        "high": min(high, max(most, value)),
        "confidence": confidence,
        "n": n,
        "clusters": clusters,
        "method": method,
        **shape,
    }


def _shape_of_amount(of: Estimate, value: float, stderr: float) -> Interval:
    """Compute what the ends of an amount's interval follow from, at any confidence."""
    spread = stderr * math.sqrt(of.clusters) / value
    skewness = max(of.skewness, 2 * spread * min(1.0, spread))
    kurtosis = max(of.kurtosis, 1.5 * skewness**2)
    variance = 2 / (of.clusters - 1) + kurtosis / of.clusters
    df = int(2 / variance + _ROUNDING_OF_ENDS)
    return {"stderr": stderr, "skewness": skewness, "df": max(1, df)}


def ends(
    value: float, stderr: float, clusters: int, *, confidence: float = 0.95, share: bool = True
) -> tuple[float, float, str]:
    """Compute (low, high, name of the method) of the interval of a share or a score.

    There must be two tasks at least.
    """
    q = _two_sided_quantile(confidence, clusters - 1)
    if not share or not 0 <= value <= 1:
        return value - q * stderr, value + q * stderr, "t"
    if not (stderr > 0 and 0 < value < 1):
        return *_wilson(value, clusters, q), "wilson"
    low, high = _logit_ends(_logit(value), q * stderr / (value * (1 - value)))
    if _near_an_end(value, clusters):
        low_wilson, high_wilson = _wilson(value, clusters, q)
        low = min(low, low_wilson)
        high = max(high, high_wilson)
        one_task = -math.expm1(math.log(confidence) / clusters)
        if value < 0.5:
            low = min(low, one_task)
        else:
            high = max(high, 1 - one_task)
    return low, high, "logit_t"


def _near_an_end(share: float, clusters: int) -> bool:
    """Check whether all that separates a share from 0 or 1 comes to one task at most.

    Of few tasks, the quantile is large enough.
    """
    distance = clusters * min(share, 1 - share)
    return clusters >= _SEVERAL and distance <= 1 + _ROUNDING_OF_ENDS


def _skewed_ends(
    value: float, clusters: int, shape: Interval, confidence: float
) -> tuple[float, float]:
    """Compute both ends of an amount's interval, from ``stderr``, ``skewness`` and ``df``."""
    stderr = shape["stderr"]
    g = shape["skewness"] / math.sqrt(clusters)
    q = _two_sided_quantile(confidence, shape["df"])
    below, above = [3 / g * (math.cbrt(1 + g * (x - g / 6)) - 1) for x in (q, -q)]
    return value - stderr * below, value - stderr * above


def change_confidence(of: Interval, value: float, confidence: float) -> Interval:
    """Compute a figure's interval at another confidence, from its interval and value."""
    if "reason" in of:
        return of
    if of["method"] not in _METHODS:  # an aggregator's own
        if confidence == of["confidence"]:
            return of
        return {"reason": f"known at {of['confidence']:g} only"}
    low, high = _ends_at(of, value, confidence)
    return {**of, "low": low, "high": high, "confidence": confidence}


def _ends_at(of: Interval, value: float, confidence: float) -> tuple[float, float]:
    """Compute both ends of an interval at another confidence."""
    low = of["low"]
    high = of["high"]
    clusters = of["clusters"]
    method = of["method"]
    if method == "skewed_t":
        low, high = _skewed_ends(value, clusters, of, confidence)
        return max(0.0, low), high
    if method == "wilson" or "stderr" in of:
        stderr = of.get("stderr", 0.0)
        low, high, _ = ends(value, stderr, clusters, confidence=confidence)
        return low, high
    q = _two_sided_quantile(confidence, clusters - 1)
    before = _two_sided_quantile(of["confidence"], clusters - 1)
    if method == "t" and high - value > (1 + _ROUNDING_OF_ENDS) * (value - low):  # cut at a bound
        half = (high - value) * (q / before)
        return max(value - half, low), value + half
    if method == "t":
        centre = (low + high) / 2
        half = (high - low) / 2
        half *= q / before
        return centre - half, centre + half
    if low > 0 and high < 1:  # how far an end lies beyond 0 or 1 is not known: it stays
        left = _logit(low)
        right = _logit(high)
        return _logit_ends((left + right) / 2, (right - left) / 2 * q / before)
    return low, high


def replace_ends(of: Interval, value: float, low: float, high: float) -> Interval:
    """Replace the ends of the interval of a figure of this value.

    Its ends at another confidence still follow from the standard error, not from these.
    """
    before = of["low"], of["high"]
    if (low, high) == before:
        return of
    changed: Interval = {**of, "low": low, "high": high}
    if of["method"] == "logit_t" and "stderr" not in of and before[0] > 0 and before[1] < 1:
        left, right = map(_logit, before)
        q = _two_sided_quantile(of["confidence"], of["clusters"] - 1)
        changed["stderr"] = (right - left) / 2 / q * value * (1 - value)
    return changed


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _logit_ends(centre: float, half: float) -> tuple[float, float]:
    return _expit(centre - half), _expit(centre + half)


def _expit(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    odds = math.exp(max(x, _SMALLEST_EXPONENT))
    return odds / (1 + odds)


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Compute both ends of Wilson's score interval of a share."""
    weight = z * z / n
    centre = (share + weight / 2) / (1 + weight)
    variance = share * (1 - share) / n + weight / (4 * n)
    half = z / (1 + weight) * math.sqrt(variance)
    low = 0.0 if share == 0 else max(0.0, centre - half)
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return low, high


def _two_sided_quantile(confidence: float, df: int) -> float:
    return t_quantile((1 + confidence) / 2, df)


@lru_cache(maxsize=256)
def t_quantile(probability: float, df: int) -> float:
    """Compute the quantile of Student's t distribution: t with P(T < t) = ``probability``.

    Args:
        probability: Between 0 and 1, both excluded.
        df: Degrees of freedom, at least 1.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    if df >= _LARGE:
        return _expanded_quantile(probability, df)
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > 1 - probability:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        upper_tail = _upper_tail(middle, df)
        if upper_tail > 1 - probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _expanded_quantile(probability: float, df: int) -> float:
    """Approximate a quantile of Student's t by an expansion around the normal quantile."""
    from statistics import NormalDist  # noqa: PLC0415 - few runs have so many tasks

    z = NormalDist().inv_cdf(min(probability, _SUREST))
    terms = []
    for order, (divisor, powers) in enumerate(_EXPANSION, 1):
        term = math.fsum(factor * z**power for power, factor in powers) / divisor
        terms.append(term / df**order)
    return z + math.fsum(terms)


def _upper_tail(t: float, df: int) -> float:
    """Compute P(T > t) for t >= 0, from the finite series of Abramowitz and Stegun 26.7.3 and
    26.7.4.
    """
    theta = math.atan2(t, math.sqrt(df))
    cosine = math.cos(theta)
    is_odd = df % 2
    term = series = cosine if is_odd else 1.0
    for step in range(3 if is_odd else 2, df, 2):
        term *= cosine * cosine * (step - 1) / step
        series += term
    if not is_odd:
        return (1 - math.sin(theta) * series) / 2
    within = theta + math.sin(theta) * series if df > 1 else theta
    return (1 - 2 / math.pi * within) / 2


def ratio_interval(
    tasks: Mapping[Cell, int],
    *,
    n: int | None = None,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
    most: float = math.inf,
) -> Interval:
    """Compute the interval of a ratio of sums over tasks, for ``summary.json``.

    ``tasks`` are divisor and dividend of a task -> how many tasks have them. The figure is the sum
    of the dividends over that of the divisors. A task that adds nothing to the divisor has no part
    in it. ``n`` is the number of samples, by default the divisor; the rest is as for ``interval``.
    """
    parts = {cell: times for cell, times in tasks.items() if cell[0]}
    divisor = sum(int(cell[0]) * times for cell, times in parts.items())
    estimates = jackknife(lambda below, above: {"ratio": ratio(above, below)}, parts, 2)
    return interval(
        estimates["ratio"],
        divisor if n is None else n,
        confidence=confidence,
        share=share,
        least=least,
        most=most,
    )


def ratio(above: float, below: float) -> float | None:
    """Return ``above / below``; None where ``below`` is 0."""
    if below:
        return above / below
    return None
