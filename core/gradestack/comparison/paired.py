"""Differences between two runs of the same tasks.

Paired t, exact sign flips, and what could have been seen.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from statistics import NormalDist
from typing import Any

import msgspec

from gradestack.estimates import t_quantile

_REACHED = 1e-9  # a sum this close to the observed one counts as reaching it
_MOST_SIGNS = 20  # differences whose signs are all tried
_POINTS, _FEW_POINTS = 4000, 600
"""Steps of the integral over the spread's distribution; even.

The few do where its density falls to 0 on both sides.
"""
_SMOOTH = 30  # degrees of freedom from which on it does
_MOST_TASKS = 10_000_000


class Difference(msgspec.Struct, frozen=True):
    """How B differs from A on one metric; None where something is undefined."""

    difference: float | None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None  # two-sided, of the paired t test
    p_exact: float | None = None
    """Share of sign patterns whose sum is as far from 0 as the observed one.

    Up to 20 differences that are not 0.
    """
    reason: str = ""

    @property
    def ends(self) -> list[float] | None:
        """Both ends of the interval."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def difference(
    values: Sequence[float],
    *,
    confidence: float = 0.95,
    bounded: bool = True,
    value: float | None = None,
) -> Difference:
    """Return how far task differences are from 0."""
    count = len(values)
    mean = math.fsum(values) / count if count else None
    shown = mean if value is None else value
    if mean is None or shown is None or count < 2:
        return Difference(shown, reason="one task" if count else "no task in common")
    exact, q = sign_flips(values), t_quantile((1 + confidence) / 2, count - 1)
    if not any(values):
        half = q * q / (count + q * q)
        return Difference(0.0, 0.0, -half, half, 1.0, 1.0)
    if all(
        math.isclose(each, values[0], rel_tol=1e-12 if value is None else _REACHED)
        for each in values
    ):
        return Difference(shown, 0.0, p_exact=exact, reason="every task differs by the same")
    stderr = math.sqrt(math.fsum((each - mean) ** 2 for each in values) / (count - 1) / count)
    low, high = shown - q * stderr, shown + q * stderr
    if bounded:
        low, high = max(-1.0, low), min(1.0, high)
    return Difference(shown, stderr, low, high, t_test(shown / stderr, count - 1), exact)


def up_and_down(values: Sequence[float]) -> tuple[int, int]:
    """Return how many values are above 0, and how many below."""
    return sum(each > 0 for each in values), sum(each < 0 for each in values)


def t_test(t: float, df: int) -> float:
    """Return P(|T| >= |t|) for Student's t with ``df`` degrees of freedom; never 0."""
    whole = df + t * t
    return max(_incomplete_beta(df / 2, 0.5, df / whole, t * t / whole), math.ulp(0.0))


def sign_flips(values: Sequence[float]) -> float | None:
    """Return the share of sign patterns of the values that are not 0 whose sum is as far from 0.

    None for many.
    """
    sizes = [abs(each) for each in values if each]
    if len(sizes) > _MOST_SIGNS:
        return None
    observed = abs(math.fsum(values)) - _REACHED
    if observed <= 0:
        return 1.0
    one, other = _sums(sizes[::2]), _sums(sizes[1::2])
    reached = sum(len(other) - bisect_left(other, observed - each) for each in one)
    return 2 * reached / len(one) / len(other)  # every pattern has its mirror image


def _sums(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [each + signed for each in sums for signed in (size, -size)]
    return sorted(sums)


def mcnemar(fixed: int, broken: int) -> float | None:
    """Return the two-sided exact p of McNemar's test, for one run a task.

    None where nothing flipped.
    """
    flips = fixed + broken
    if not flips:
        return None
    tail, ways = 0, 1
    for k in range(min(fixed, broken) + 1):
        tail += ways
        ways = ways * (flips - k) // (k + 1)
    p: float = 2 * tail / 2**flips
    return min(1.0, p)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for being several (Holm's step-down).

    None stays and does not count.
    """
    order = sorted((p, at) for at, p in enumerate(ps) if p is not None)
    found: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, at) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p))
        found[at] = highest
    return found


def all_rows(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of a comparison."""
    rate = [pair["outcome"]] if "outcome" in pair else []
    return [*rate, *pair.get("figures", {}).values(), *pair["metrics"].values()]


def compared_rows(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a comparison, or of one of its ``pairs``.

    The outcome's rate, the headline's figures, means.

    A mean score that is the same as that rate is left out.
    """
    rate = pair.get("outcome") or {}
    twin = pair["metrics"].get(rate.get("grader"))
    return [row for row in all_rows(pair) if row is not twin or numbers(row) != numbers(rate)]


def numbers(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what is equal in rows of equal figures."""
    return tuple(row[name] for name in ("a", "b", "difference", "stderr", "p", "p_exact"))


def power(effect: float, tasks: int, level: float = 0.05) -> float:
    """Return the power of the two-sided paired t test."""
    critical, shift = t_quantile(1 - level / 2, tasks - 1), effect * math.sqrt(tasks)
    step, points = _spreads(tasks - 1)
    total = 0.0
    for spread, weight, density in points:
        beyond = _normal(shift - critical * spread) + _normal(-shift - critical * spread)
        total += weight * beyond * density
    return total * step / 3


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


@lru_cache(maxsize=4)
def _spreads(df: int) -> tuple[float, list[tuple[float, int, float]]]:
    """Return the step of the integral over the sample's spread, and its points.

    Spread, weight and density.
    """
    low, high = max(0.0, 1 - 9 / math.sqrt(df)), 1 + 9 / math.sqrt(df)  # but for 1e-15 of all cases
    count, half = _POINTS if df < _SMOOTH else _FEW_POINTS, df / 2
    step = (high - low) / count
    constant = math.log(2) + half * math.log(half) - math.lgamma(half)
    points = []
    for at in range(count + 1):
        spread = low + at * step
        density = math.sqrt(2 / math.pi) if df == 1 else 0.0
        if spread:
            density = math.exp(constant + (df - 1) * math.log(spread) - df / 2 * spread * spread)
        points.append((spread, 1 if at in (0, count) else 4 if at % 2 else 2, density))
    return step, points


def detectable(spread: float, tasks: int, wanted: float = 0.8) -> float | None:
    """Return the smallest difference that a paired t test at 5 % finds with power ``wanted``.

    None for one task.
    """
    return None if tasks < 2 else _effect(tasks, wanted) * spread


@lru_cache(maxsize=64)  # the same for every figure of as many tasks
def _effect(tasks: int, wanted: float) -> float:
    low, high = 0.0, 1.0
    while power(high, tasks) < wanted:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle, tasks) < wanted else (low, middle)
    return (low + high) / 2


def tasks_needed(spread: float, effect: float, wanted: float = 0.8) -> int | None:
    """Return the number of tasks with which a difference is found with power ``wanted``.

    None for none or very many.
    """
    if not spread or not effect:
        return None
    size = abs(effect) / spread
    guess = (
        (NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(wanted)) / size
    ) ** 2  # of the normal distribution
    if guess > 2 * _MOST_TASKS:
        return None
    near = max(2, math.floor(0.9 * guess))
    low = near if power(size, near) < wanted else 2
    found = bisect_left(range(2 * near + 20), wanted, low, key=partial(power, size))
    return found if found <= _MOST_TASKS else None


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function at x = 1 - rest, by its continued fraction
    (modified Lentz).
    """
    if not x or not rest:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, rest, x)
    log = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    )
    front = math.exp(log)
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, 10_000):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + factor * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + factor / c
            c = c if abs(c) > tiny else tiny
            change = c * d
            total *= change
        if abs(change - 1) < 1e-15:
            break
    return front * total / a
