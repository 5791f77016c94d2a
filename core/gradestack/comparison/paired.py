"""The paired test: how far two runs of the same tasks are apart, and how sure that is."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import msgspec

from gradestack.estimates import t_quantile

ROUNDING = 1e-9
"""Share of the largest task difference up to which another is none, or as large."""
SAME_DIFFERENCE = "the same difference in every task"
SAME_VALUES = "same in every task"
_TOO_LARGE = "the values are too large to be subtracted"
_NO_SPREAD = "no task differs otherwise than the others"
_MOST_SIGNS = 20  # differences whose signs are all tried
_MOST_COUNTED = 1000  # changed tasks up to which a binomial tail is counted out
_HALVINGS = 100  # of the share of changed tasks that went up
_POINTS, _FEW_POINTS = 4000, 200
"""Steps of the integral over the spread's distribution; even.

The few do where its density falls to 0 on both sides.
"""
_SMOOTH = 12  # degrees of freedom from which on it does
_MOST_TASKS = 10_000_000


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How far B is from A in one figure, with its test; None where something is undefined."""

    difference: float | None
    stderr: float | None = None
    p: float | None = None
    """Two-sided: of the mid-p McNemar test where all tasks differ by c, 0 or −c, else of the
    paired t test.
    """
    p_exact: float | None = None
    """Share of sign patterns whose sum is as far from 0 as the observed one.

    Up to 20 differences that are not 0. It decides nothing.
    """
    reason: str = ""
    """Why there is no interval."""
    tasks: int = 0
    size: float = 0.0
    """Largest difference of a task, without its sign."""
    signs: tuple[int, int] | None = None
    """Number of tasks that differ by ``size``, and by −``size``, where no other size occurs."""
    bounded: bool = True
    confidence: float = 0.95

    @property
    def ends(self) -> list[float] | None:
        """Both ends of the interval at the confidence."""
        return self.interval(1 - self.confidence)

    @property
    def low(self) -> float | None:
        """Lower end of the interval at the confidence."""
        ends = self.ends
        return None if ends is None else ends[0]

    @property
    def high(self) -> float | None:
        """Upper end of the interval at the confidence."""
        ends = self.ends
        return None if ends is None else ends[1]

    def interval(self, level: float) -> list[float] | None:
        """Return both ends of D ± t(1 − level/2, T − 1) · stderr, which leave out 0 where p < level.

        Where the test finds nothing and they leave out 0, the end next to 0 becomes 0. Where the
        mid-p test finds something and they hold 0, that end is the one of the mid-p interval of
        the share of changed tasks that went up.
        """
        if self.difference is None or self.p is None or not self.stderr:
            return None
        half = _quantile(1 - level / 2, self.tasks - 1) * self.stderr
        low, high = self.difference - half, self.difference + half
        if self.p >= level:
            low, high = min(low, 0.0), max(high, 0.0)
        elif self.difference > 0 >= low:
            low = self._end_next_to_zero(level)
        elif self.difference < 0 <= high:
            high = -self._end_next_to_zero(level)
        limit = 1.0 if self.bounded else sys.float_info.max
        return [max(-limit, low), min(limit, high)]

    def _end_next_to_zero(self, level: float) -> float:
        least = math.ulp(0.0)
        if self.signs is None:  # p and the ends of t differ by rounding
            return least
        changed = sum(self.signs)
        share = _least_share(max(self.signs), changed, level)
        end = self.size * changed / self.tasks * (2 * share - 1)
        return max(least, end)


_quantile = lru_cache(maxsize=256)(t_quantile)


def difference(
    values: Sequence[float],
    *,
    confidence: float = 0.95,
    bounded: bool = True,
    value: float | None = None,
) -> Difference:
    """Test how far task differences are from 0.

    Args:
        values: Difference of each task.
        confidence: Of the interval.
        bounded: Whether no difference is beyond −1 and 1.
        value: Difference of the figures, where that is not the mean of ``values``.
    """
    tasks = len(values)
    if not tasks:
        return Difference(difference=value, reason="no task in common")
    if not all(map(math.isfinite, values)):
        return Difference(difference=None, tasks=tasks, reason=_TOO_LARGE)
    size = max(map(abs, values))
    mean = mean_of(values)
    shown = mean if value is None else value
    plain = Difference(
        difference=shown, tasks=tasks, size=size, bounded=bounded, confidence=confidence
    )
    if not size and not shown:
        return _with(plain, stderr=0.0, p=1.0, p_exact=1.0, reason=SAME_VALUES)
    if tasks < 2:
        return _with(plain, reason="one task")
    if not size:
        return _with(plain, stderr=0.0, reason=_NO_SPREAD)
    scaled = [item / size for item in values]
    signs = _count_signs(scaled) if abs(shown - mean) <= ROUNDING * size else None
    if signs is not None:
        up, down = signs
        exact = mcnemar(up, down) if up + down <= _MOST_SIGNS else None
        plain = _with(plain, signs=signs, p=mid_p(up, down), p_exact=exact)
        if tasks in signs:
            return _with(plain, stderr=0.0, reason=SAME_DIFFERENCE)
    centre = mean / size
    squares = [(item - centre) ** 2 for item in scaled]
    stderr = math.sqrt(math.fsum(squares) / (tasks - 1) / tasks)
    plain = _with(plain, stderr=size * stderr)
    if signs is not None:
        return plain
    if stderr <= ROUNDING:
        return _with(plain, stderr=0.0, reason=_NO_SPREAD)
    p = t_test(shown / size / stderr, tasks - 1)
    return _with(plain, p=p, p_exact=sign_flips(scaled))


def bounds_of_no_change(tasks: int, confidence: float) -> list[float] | None:
    """Return how far shares may be apart that no task has otherwise: Wilson's interval of a 0.

    None for one task. A comparison shows no interval then; the margin of a gate needs one.
    """
    if tasks < 2:
        return None
    square = _quantile((1 + confidence) / 2, tasks - 1) ** 2
    return [-square / (tasks + square), square / (tasks + square)]


def _with(known: Difference, **fields: Any) -> Difference:
    return msgspec.structs.replace(known, **fields)


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of some numbers, also of those whose sum is beyond any float."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


def scale_to_largest(values: Sequence[float]) -> list[float]:
    """Return numbers divided by the largest size among them; an empty list where all are 0."""
    size = max(map(abs, values), default=0.0)
    return [value / size for value in values] if size and math.isfinite(size) else []


def are_one_test(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two vectors, divided by their largest entries, are equal or opposite."""
    if len(one) != len(other) or not one:
        return False
    largest = max(range(len(one)), key=lambda place: abs(one[place]))
    sign = 1 if (one[largest] > 0) == (other[largest] > 0) else -1
    return all(abs(a - sign * b) <= ROUNDING for a, b in zip(one, other, strict=True))


def _count_signs(scaled: Sequence[float]) -> tuple[int, int] | None:
    """Count the differences above and below 0, where no two differ in size; else None."""
    up = down = 0
    for item in scaled:
        if item >= 1 - ROUNDING:
            up += 1
        elif item <= ROUNDING - 1:
            down += 1
        elif abs(item) > ROUNDING:
            return None
    return up, down


def up_and_down(values: Sequence[float]) -> tuple[int, int]:
    """Return how many values are above 0, and how many below."""
    return sum(each > 0 for each in values), sum(each < 0 for each in values)


def mid_p(up: int, down: int) -> float:
    """Return p of McNemar's mid-p test, min(1, 2 · P(X > x) + P(X = x)).

    X ~ Bin(up + down, 1/2), x the larger of the two numbers of tasks; 1 where no task changed.
    Source: Fagerland, Lydersen, Laake, BMC Medical Research Methodology 13:91 (2013).
    """
    changed, most = up + down, max(up, down)
    if not changed:
        return 1.0
    p = min(1.0, _tail(most, changed) + _tail(most + 1, changed))
    return max(p, math.ulp(0.0))


def mcnemar(fixed: int, broken: int) -> float | None:
    """Return the two-sided exact p of McNemar's test, for one run a task.

    None where nothing flipped. It decides nothing.
    """
    flips = fixed + broken
    return min(1.0, 2 * _tail(max(fixed, broken), flips)) if flips else None


def _tail(least: int, count: int, share: float = 0.5) -> float:
    """Return P(X >= least), X ~ Bin(count, share)."""
    if least > count:
        return 0.0
    if least <= 0:
        return 1.0
    if share == 0.5 and count <= _MOST_COUNTED:
        ways = sum(math.comb(count, successes) for successes in range(least, count + 1))
        tail: float = ways / 2**count
        return tail
    return _incomplete_beta(least, count - least + 1, share, 1 - share)


def _least_share(most: int, changed: int, level: float) -> float:
    """Return the share at which P(X > most) + P(X = most)/2 is half the level, by bisection."""
    low, high = 0.5, most / changed
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = _tail(most, changed, middle) + _tail(most + 1, changed, middle)
        if beyond < level:
            low = middle
        else:
            high = middle
    return low


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
    observed = abs(math.fsum(values)) - ROUNDING
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


def power(effect: float, tasks: int, level: float = 0.05) -> float:
    """Return the power of the two-sided paired t test."""
    critical, shift = _quantile(1 - level / 2, tasks - 1), effect * math.sqrt(tasks)
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


def detectable(spread: float, tasks: int, wanted: float = 0.8, level: float = 0.05) -> float | None:
    """Return the smallest difference that a paired t test at a level finds with power ``wanted``.

    None for one task.
    """
    return None if tasks < 2 else _effect(tasks, wanted, level) * spread


@lru_cache(maxsize=256)  # the same for every figure of as many tasks
def _effect(tasks: int, wanted: float, level: float) -> float:
    low, high = 0.0, 1.0
    while power(high, tasks, level) < wanted:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if power(middle, tasks, level) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def tasks_needed(
    spread: float, effect: float, wanted: float = 0.8, level: float = 0.05
) -> int | None:
    """Return the number of tasks with which a difference is found with power ``wanted``.

    None for none or very many.
    """
    if not spread or not effect:
        return None
    size = abs(effect) / spread
    normal = NormalDist()
    sure, found = normal.inv_cdf(1 - level / 2), normal.inv_cdf(wanted)
    guess = ((sure + found) / size) ** 2 + sure**2 / 2  # off by few (Guenther, 1981)
    if guess > 2 * _MOST_TASKS:
        return None
    tasks = max(2, math.ceil(guess))
    while power(size, tasks, level) < wanted:
        tasks += 1
    while tasks > 2 and power(size, tasks - 1, level) >= wanted:
        tasks -= 1
    return tasks if tasks <= _MOST_TASKS else None


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
