"""The paired test: how far two runs of the same tasks are apart, and how sure that is."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from math import ceil, comb, exp, fsum, isfinite, lgamma, log, pi, sqrt, ulp
from operator import add, sub
from statistics import NormalDist

import msgspec

from gradestack.intervals import t_quantile
from gradestack.model import replace

ROUNDING = 1e-9
"""Share of the largest task difference up to which another is none, or as large."""
_DECIMALS = 9
SAME_DIFFERENCE = "the same difference in every task"
SAME_VALUES = "same in every task"
_TOO_LARGE = "the values are too large to be subtracted"
_NO_SPREAD = "no task differs otherwise than the others"
_MOST_SIGNS = 20  # differences whose signs are all tried
_MOST_COUNTED = 1000  # changed tasks up to which a binomial tail is counted out
_HALVINGS = 100  # of the range a number is searched in
_POWER = 0.8  # share of comparisons in which a difference is to be found
_MOST_TASKS = 10_000_000
_MOST_CRITICAL = 100.0  # t from which on no difference is looked for that would exceed it
_MOST_STEPS = 100_000  # of a continued fraction; it needs about the root of its largest number
_STEP_ROUNDING = 3e-16  # factor beside 1 from which on another step changes nothing
_LARGEST_EFFECT = 30.0  # standard deviations beyond which a larger difference is no surer


class Difference(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The difference between A and B in one figure, with its test; None where it is undefined.

    Attributes:
        difference: How far.
        tasks: Number of tasks.
        stderr: Standard error of the difference.
        p: Two-sided, of the mid-p McNemar test where all tasks differ by c, 0 or −c, else of the
            paired t test.
        p_exact: Share of sign patterns whose sum is as far from 0 as the observed one, of up to
            20 differences that are not 0. It decides nothing.
        reason: Why there is no interval.
        size: Largest difference of a task, without its sign.
        vector: Differences of the tasks, and of the figures, divided by ``size``.
        signs: Number of tasks that differ by ``size``, and by −``size``, where no other size
            occurs.
        limit: The largest difference there can be.
    """

    difference: float | None
    tasks: int = 0
    stderr: float | None = None
    p: float | None = None
    p_exact: float | None = None
    reason: str = ""
    size: float = 0.0
    vector: Sequence[float] = ()
    signs: tuple[int, int] | None = None
    limit: float = 1.0

    def interval(self, level: float, p: float | None) -> list[float] | None:
        """Return the confidence interval of the difference, made to agree with the test.

        The interval is D ± t(1 − level/2, T − 1) · stderr. Where it disagrees with p, one end
        moves: to 0 if p ≥ level and the interval leaves out 0; to the mid-p interval of the share
        of changed tasks that went up if p < level and the interval holds 0.
        """
        gap = self.difference
        if gap is None or p is None or not self.stderr:
            return None
        probability = 1 - level / 2
        quantile = t_quantile(probability, self.tasks - 1)
        half = quantile * self.stderr
        low = gap - half
        high = gap + half
        if p >= level:
            low = min(low, 0.0)
            high = max(high, 0.0)
        elif low <= 0 < gap:
            low = self._end_next_to_zero(level)
        elif gap < 0 <= high:
            high = -self._end_next_to_zero(level)
        low = max(-self.limit, low)
        high = min(self.limit, high)
        return [low, high]

    def _end_next_to_zero(self, level: float) -> float:
        """Return the interval's distance from 0, for a test with p < level."""
        least = ulp(0.0)
        if self.signs is None:  # p and the ends of t differ by rounding
            return least
        changed = sum(self.signs)
        most = max(self.signs)

        def is_too_low(share: float) -> bool:
            at_least = _tail(most, changed, share)
            above = _tail(most + 1, changed, share)
            return at_least + above < level

        high = most / changed
        share = _search(0.5, high, is_too_low)
        rise = 2 * share - 1
        end = self.size * changed / self.tasks * rise
        return max(least, end)


def difference(
    values: Sequence[float],
    *,
    value: float | None = None,
    limit: float = 1.0,
    unchanged: int = 0,
) -> Difference:
    """Test how far task differences are from 0.

    Args:
        values: Difference of each task.
        value: Difference of the figures, where that is not the mean of ``values``.
        limit: The largest difference there can be.
        unchanged: Number of further tasks, whose differences are 0.
    """
    tasks = len(values) + unchanged
    if not tasks:
        return Difference(difference=value, reason="no task in common")
    if not all(map(isfinite, values)):
        return Difference(difference=None, tasks=tasks, reason=_TOO_LARGE)
    mean = mean_of(values, unchanged)
    shown = mean if value is None else value
    untested = Difference(difference=shown, tasks=tasks, stderr=0.0, limit=limit)
    size = max(map(abs, values), default=0.0)
    if not size and not shown:
        return replace(untested, p=1.0, p_exact=1.0, reason=SAME_VALUES)
    scaled = [item / size for item in values] if size else []
    if size:
        untested = replace(untested, size=size, vector=[*scaled, shown / size])
    if tasks < 2:
        return replace(untested, stderr=None, reason="one task")
    if not size:
        return replace(untested, reason=_NO_SPREAD)
    stderr = _standard_error(scaled, mean / size, unchanged)
    is_mean = abs(shown - mean) <= ROUNDING * size
    signs = _count_signs(scaled) if is_mean else None
    if signs is not None:
        p = mid_p(*signs)
    elif stderr > ROUNDING:
        p = t_test(shown / size / stderr, tasks - 1)
    else:
        return replace(untested, reason=_NO_SPREAD)
    tested = replace(untested, p=p, p_exact=sign_flips(scaled), signs=signs)
    if signs is not None and tasks in signs:
        return replace(tested, reason=SAME_DIFFERENCE)
    return replace(tested, stderr=size * stderr)


def _standard_error(values: Sequence[float], mean: float, unchanged: int) -> float:
    """Return the standard error of the mean of values and of as many zeros as are unchanged."""
    number = len(values) + unchanged
    squares = [(value - mean) ** 2 for value in values]
    variance = fsum(chain(squares, repeat(mean**2, unchanged))) / (number - 1)
    return sqrt(variance / number)


def bounds_of_no_change(tasks: int, confidence: float) -> list[float] | None:
    """Return the interval of a difference of shares that are the same in every task.

    It is Wilson's interval of a 0.

    None for one task. A comparison shows no interval then; the margin of a gate needs one.
    """
    if tasks < 2:
        return None
    probability = (1 + confidence) / 2
    quantile = t_quantile(probability, tasks - 1)
    square = quantile**2
    end = square / (tasks + square)
    return [-end, end]


def mean_of(values: Sequence[float], zeros: int = 0) -> float:
    """Return the mean of numbers and zeros, also of numbers whose sum is beyond any float."""
    number = len(values) + zeros
    try:
        return fsum(values) / number
    except OverflowError:
        return fsum(value / number for value in values)


def are_one_test(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two vectors, divided by their largest entries, are equal or opposite."""
    for combine in (sub, add):
        gaps = map(combine, one, other)
        if max(map(abs, gaps), default=1.0) <= ROUNDING:
            return True
    return False


def _count_signs(scaled: Sequence[float]) -> tuple[int, int] | None:
    """Count the differences above and below 0, where no two differ in size; else None."""
    counts = Counter[float]()
    for item, times in Counter(scaled).items():
        counts[round(item, _DECIMALS)] += times
    is_one_size = counts.keys() <= {-1, 0, 1}
    return (counts[1], counts[-1]) if is_one_size else None


def mid_p(up: int, down: int) -> float:
    """Return p of McNemar's mid-p test, min(1, 2 · P(X > x) + P(X = x)).

    X ~ Bin(up + down, 1/2), x the larger of the two numbers of tasks; 1 where no task changed.
    Source: Fagerland, Lydersen, Laake, BMC Medical Research Methodology 13:91 (2013).
    """
    changed = up + down
    most = max(up, down)
    if not changed:
        return 1.0
    at_least = _tail(most, changed)
    above = _tail(most + 1, changed)
    p = min(1.0, at_least + above)
    return max(p, ulp(0.0))


def _tail(least: int, count: int, share: float = 0.5) -> float:
    """Return P(X >= least), X ~ Bin(count, share), of at least one."""
    if least > count:
        return 0.0
    if share == 0.5 and count <= _MOST_COUNTED:
        numbers = range(least, count + 1)
        ways = sum(comb(count, successes) for successes in numbers)
        tail: float = ways / 2**count
        return tail
    rest = 1 - share
    return _incomplete_beta(least, count - least + 1, share, rest)


def _search(low: float, high: float, is_too_low: Callable[[float], bool]) -> float:
    """Return the number between two from which on something is no longer too low."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_too_low(middle):
            low = middle
        else:
            high = middle
    return low


def t_test(t: float, df: int) -> float:
    """Return P(|T| >= |t|) for Student's t with ``df`` degrees of freedom; never 0."""
    square = t * t
    total = df + square
    rest = square / total
    p = _incomplete_beta(df / 2, 0.5, df / total, rest)
    return max(p, ulp(0.0))


def sign_flips(values: Sequence[float]) -> float | None:
    """Return the share of sign patterns of the values that are not 0 whose sum is as far from 0.

    None for many.
    """
    sizes = [abs(value) for value in values if value]
    if len(sizes) > _MOST_SIGNS:
        return None
    size = abs(fsum(values))
    observed = size - ROUNDING
    one = _sums(sizes[::2])
    other = _sums(sizes[1::2])
    below = sum(bisect_left(other, observed - part) for part in one)
    reached = len(one) * len(other) - below
    share = 2 * reached / len(one) / len(other)  # every pattern has its mirror image
    return min(1.0, share)


def _sums(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [part + signed for part in sums for signed in (size, -size)]
    return sorted(sums)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for being several (Holm's step-down)."""
    adjusted = [*p_values]
    left, highest = len(adjusted), 0.0
    for index in sorted(range(left), key=p_values.__getitem__):
        p = min(1.0, left * p_values[index])
        highest = max(highest, p)
        adjusted[index] = highest
        left -= 1
    return adjusted


def power(effect: float, tasks: int, level: float = 0.05) -> float:
    """Return the power of the two-sided paired t test.

    The square of a noncentral t divided by it and ``df`` has a beta distribution, mixed over a
    Poisson variable. Source: Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions 2.

    Args:
        effect: True mean of the task differences in their standard deviations, not 0.
        tasks: Number of tasks, at least 2.
        level: α of the test.
    """
    df = tasks - 1
    probability = 1 - level / 2
    quantile = t_quantile(probability, df)
    square = quantile**2
    beyond = square / (df + square)
    log_below = df / 2 * log(df / (df + square))
    gammas = lgamma(tasks / 2) - lgamma(df / 2)
    tail = level
    step = 2 * exp(gammas + log_below) * sqrt(beyond / pi)
    mean = effect * effect * tasks / 2
    terms = ceil(mean + 10 * sqrt(mean)) + 30
    share = 0.0
    for number in range(terms):
        log_weight = number * log(mean) - mean - lgamma(number + 1)
        share += exp(log_weight) * tail
        tail += step
        step *= beyond * (number + tasks / 2) / (number + 1.5)
    return share


def detectable(spread: float, tasks: int, level: float = 0.05) -> float | None:
    """Return the smallest difference that a paired t test finds four times in five.

    None where so few tasks show none.
    """
    effect = _detectable_effect(tasks, level)
    return effect * spread if effect and spread else None


@lru_cache(maxsize=256)  # the same for every figure of as many tasks
def _detectable_effect(tasks: int, level: float) -> float | None:
    """Search the least effect that the t test finds with the desired power; None for few tasks."""
    if tasks < 2:
        return None
    probability = 1 - level / 2
    critical = t_quantile(probability, tasks - 1)
    if critical > _MOST_CRITICAL:
        return None
    noncentrality = critical + t_quantile(_POWER, tasks - 1)
    about = noncentrality / sqrt(tasks)
    high = 2 * about
    return _search(0.0, high, lambda effect: power(effect, tasks, level) < _POWER)


def tasks_needed(spread: float, effect: float, level: float = 0.05) -> int | None:
    """Return the number of tasks with which a difference is found four times in five.

    None for none or very many.
    """
    if not spread or not effect:
        return None
    size = min(_LARGEST_EFFECT, abs(effect) / spread)
    normal = NormalDist()
    critical = normal.inv_cdf(1 - level / 2)
    root = (critical + normal.inv_cdf(_POWER)) / size
    about = root**2 + critical**2 / 2  # Guenther, 1981
    if about > _MOST_TASKS:
        return None
    numbers = range(2, ceil(2 * about) + 9)
    index = bisect_left(numbers, _POWER, key=lambda tasks: power(size, tasks, level))
    return numbers[index]


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function at x = 1 - rest, by a continued fraction.

    Source: Lentz's method, as in Thompson and Barnett, Journal of Computational Physics 64 (1986).
    """
    if not x or not rest:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, rest, x)
    beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    front = exp(a * log(x) + b * log(rest) - beta) / a
    above = 1.0
    below = 1 / (1 - (a + b) * x / (a + 1))
    fraction = below
    for number in range(1, _MOST_STEPS):
        twice = a + 2 * number
        even = number * (b - number) * x / (twice - 1) / twice
        odd = -(a + number) * (a + b + number) * x / twice / (twice + 1)
        for part in (even, odd):
            above = 1 + part / above
            below = 1 / (1 + part * below)
            change = above * below
            fraction *= change
        if abs(change - 1) < _STEP_ROUNDING:
            break
    return front * fraction
