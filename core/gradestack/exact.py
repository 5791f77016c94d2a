"""Numbers that merge exactly, so that results do not depend on how the input was split.

A state is a plain list or mapping of JSON values: it survives ``json.loads(json.dumps(state))`` unchanged, because
Python writes floats so that they read back equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from fractions import Fraction
from typing import TypedDict, cast

_WHOLE = 1 << 53
"""Every whole number up to this is a float."""
Partials = list[float]
"""State of an exact sum: non-overlapping floats whose real sum is the sum of all values added."""


def add_exact(partials: Partials, value: float, start: int = 0) -> None:
    """Add ``value`` to an exact sum, in place (Shewchuk's grow-expansion).

    Args:
        partials: State, ``[]`` at the start.
        value: A finite number.
        start: Where the sum begins in ``partials``, for a state that keeps something else before it.

    Raises:
        ValueError: The value is not finite; such values have no exact sum.
        OverflowError: The sum is not; the state is spoilt.
    """
    x = float(value)
    if len(partials) == start + 1:  # the usual case, written out: the sum so far is one float, and stays one
        y = partials[start]
        high = x + y
        if high - x == y and high - y == x:
            partials[start] = high
            return
    if not math.isfinite(x):
        msg = f"only finite numbers can be summed exactly, got {value!r}"
        raise ValueError(msg)
    used = start
    for held in partials[start:]:
        y = held
        if abs(x) < abs(y):
            x, y = y, x
        high = x + y
        low = y - (high - x)
        if low:
            partials[used] = low
            used += 1
        x = high
    if not math.isfinite(x):
        msg = "the sum is beyond the range of floats"
        raise OverflowError(msg)
    partials[used:] = [x]


def add_times(partials: Partials, value: float, times: int) -> None:
    """Add ``value`` to an exact sum ``times`` times, in place.

    Raises:
        ValueError: The value is not finite.
        OverflowError: The sum is beyond the range of floats.
    """
    value = float(value)
    if times == 1 or not _SAFE_LOW < abs(value) < _SAFE_HIGH or times > _SAFE_TIMES:
        _add_fraction(partials, value, times)
        return
    high, low = _product(value, float(times))
    add_exact(partials, high)
    if low:
        add_exact(partials, low)


def _add_fraction(partials: Partials, value: float, times: int) -> None:
    if times == 1 or not math.isfinite(value):
        add_exact(partials, value)
        return
    product = Fraction(value) * times
    while product:  # two floats hold it: 53 bits and those of the count
        part = float(product)
        add_exact(partials, part)
        product -= Fraction(part)


def merge_exact(left: Partials, right: Iterable[float]) -> Partials:
    """Add all of ``right`` to ``left`` in place and return ``left``."""
    for value in right:
        add_exact(left, value)
    return left


def exact_parts(values: Sequence[float]) -> Partials:
    """Return the exact sum of values: of whole numbers as one, else as floats, each the sum of what is left, rounded.

    The same for any order, and at least one number. Whole numbers beyond 2**53, which floats may not hold, become
    floats, so that what is returned can be summed with floats once more.

    Args:
        values: Finite floats, and whole numbers that floats hold.

    Raises:
        ValueError: A value is not finite.
        OverflowError: The sum is beyond the range of floats.
    """
    if isinstance(total := sum(values), int):
        return [total] if -_WHOLE <= total <= _WHOLE else _whole_parts(total)
    first = math.fsum(values)
    rest = [*values, -first]
    if not math.isfinite(first):
        raise ValueError("only finite numbers can be summed exactly")
    parts = [first]
    while part := math.fsum(rest):
        parts.append(part)
        rest.append(-part)
    return parts


def _whole_parts(number: int) -> Partials:
    parts = []
    while number:
        parts.append(float(number))
        number -= int(parts[-1])
    return parts


def exact_value(partials: Iterable[float]) -> float:
    """Return the correctly rounded sum."""
    return math.fsum(partials)


def exact_ratio(partials: Iterable[float], count: int) -> Fraction | None:
    """Return sum / count as it is, not rounded, for what goes on calculating with it; None when ``count`` is 0."""
    return sum(map(Fraction, partials), Fraction(0)) / count if count else None


def exact_mean(partials: Iterable[float], count: int) -> float | None:
    """Return sum / count correctly rounded once, or None when ``count`` is 0."""
    found = exact_ratio(partials, count)
    return None if found is None else float(found)


_MOST_DECIMALS = 17


def visible(number: float, threshold: float, decimals: int = 2) -> str:
    """Return a number with as many decimals as show on which side of a threshold it is.

    Args:
        number: A finite number.
        threshold: What it is compared with.
        decimals: The fewest there are; a whole number that needs none has none.

    Returns:
        ``0.8999`` beside 0.9 and ``0.80`` beside 0.75: rounded, it compares to the threshold as it does itself.
    """
    for places in range(0 if isinstance(number, int) else decimals, _MOST_DECIMALS):
        text = f"{number:.{places}f}"
        if _side(float(text), threshold) == _side(number, threshold):
            return text
    return repr(number)


def _side(number: float, threshold: float) -> int:
    return (number > threshold) - (number < threshold)


def adds_up(numbers: Mapping[str, float | None]) -> bool:
    """Return whether numbers have a finite sum, and so are finite themselves; False also where one is none."""
    try:
        return math.isfinite(sum(numbers.values()))  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False


def count_into(counts: MutableMapping[str, int], more: Mapping[str, int]) -> None:
    """Add integer counts key by key, in place."""
    for name, number in more.items():
        counts[name] = counts.get(name, 0) + number


def count_each(counts: MutableMapping[str, int], names: Iterable[str]) -> None:
    """Add 1 for each name, in place."""
    Counter.update(cast("Counter[str]", counts), names)  # of any dictionary; a loop takes three times as long


_SAFE_LOW, _SAFE_HIGH, _SAFE_TIMES = 1e-200, 1e200, _WHOLE
"""Between these a product and its rounding error are floats."""
_SPLIT = 134217729.0  # 2**27 + 1 halves a float's 53 bits


def _square(x: float) -> tuple[float, float]:
    """Return x * x as a float and its rounding error (Dekker's product)."""
    square = x * x
    shifted = _SPLIT * x
    high = shifted - (shifted - x)
    low = x - high
    error = ((high * high - square) + 2.0 * high * low) + low * low
    return square, error if math.isfinite(error) else 0.0


def _product(x: float, y: float) -> tuple[float, float]:
    """Return x * y as a float and its rounding error (Dekker's product); exact far from both ends of the range."""
    product = x * y
    shifted = _SPLIT * x
    x_high = shifted - (shifted - x)
    x_low = x - x_high
    shifted = _SPLIT * y
    y_high = shifted - (shifted - y)
    y_low = y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


class MomentsState(TypedDict):
    """JSON state of :class:`Moments`."""

    n: int
    sum: Partials
    squares: Partials


class Moments:
    """Count, exact sum and exact sum of squares of a series; a thin view on a JSON state.

    Squares are summed exactly too, so mean and deviation depend on the values only, and equal values deviate by 0.
    """

    __slots__ = ("state",)

    def __init__(self, state: MomentsState | None = None) -> None:
        self.state: MomentsState = {"n": 0, "sum": [], "squares": []} if state is None else state

    def add(self, value: float) -> None:
        """Add one finite value."""
        add_exact(self.state["sum"], value)
        for part in _square(float(value)):
            add_exact(self.state["squares"], part)
        self.state["n"] += 1

    def merge(self, other: Moments) -> None:
        """Add another series, in place."""
        merge_exact(self.state["sum"], other.state["sum"])
        merge_exact(self.state["squares"], other.state["squares"])
        self.state["n"] += other.state["n"]

    @property
    def n(self) -> int:
        """Number of values."""
        return self.state["n"]

    @property
    def total(self) -> float:
        """Correctly rounded sum."""
        return exact_value(self.state["sum"])

    @property
    def mean(self) -> float | None:
        """Sum / n; None for an empty series."""
        return exact_mean(self.state["sum"], self.n)

    @property
    def std(self) -> float | None:
        """Sample standard deviation (divisor n - 1); None below two values."""
        n = self.n
        if n < 2:
            return None
        total = sum(map(Fraction, self.state["sum"]), Fraction(0))
        squares = sum(map(Fraction, self.state["squares"]), Fraction(0))
        return math.sqrt(max(0.0, float((squares - total * total / n) / (n - 1))))
