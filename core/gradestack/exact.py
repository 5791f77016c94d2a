"""Numbers that merge exactly, so that results do not depend on how the input was split.

A state is a plain list or mapping of JSON values: it survives ``json.loads(json.dumps(state))`` unchanged, because
Python writes floats so that they read back equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, MutableMapping
from fractions import Fraction
from typing import TypedDict

Partials = list[float]
"""State of an exact sum: non-overlapping floats whose real sum is the sum of all values added."""


def add_exact(partials: Partials, value: float) -> None:
    """Add ``value`` to an exact sum, in place (Shewchuk's grow-expansion).

    Args:
        partials: State, ``[]`` at the start.
        value: A finite number.

    Raises:
        ValueError: The value is not finite; such values have no exact sum.
        OverflowError: The sum is not; the state is spoilt.
    """
    x = float(value)
    if not math.isfinite(x):
        msg = f"only finite numbers can be summed exactly, got {value!r}"
        raise ValueError(msg)
    used = 0
    for held in partials:
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


def merge_exact(left: Partials, right: Iterable[float]) -> Partials:
    """Add all of ``right`` to ``left`` in place and return ``left``."""
    for value in right:
        add_exact(left, value)
    return left


def exact_value(partials: Iterable[float]) -> float:
    """Return the correctly rounded sum."""
    return math.fsum(partials)


def exact_mean(partials: Iterable[float], count: int) -> float | None:
    """Return sum / count correctly rounded once, or None when ``count`` is 0."""
    if not count:
        return None
    return float(sum(map(Fraction, partials), Fraction(0)) / count)


def count_into(counts: MutableMapping[str, int], more: Mapping[str, int]) -> None:
    """Add integer counts key by key, in place."""
    for name, number in more.items():
        counts[name] = counts.get(name, 0) + number


class MomentsState(TypedDict):
    """JSON state of :class:`Moments`."""

    n: int
    sum: Partials
    squares: Partials


class Moments:
    """Count, exact sum and exact sum of squares of a series; a thin view on a JSON state.

    The square of each value is rounded once, the same way everywhere, so mean and variance depend on the values only.
    """

    __slots__ = ("state",)

    def __init__(self, state: MomentsState | None = None) -> None:
        self.state: MomentsState = {"n": 0, "sum": [], "squares": []} if state is None else state

    def add(self, value: float) -> None:
        """Add one finite value."""
        add_exact(self.state["sum"], value)
        add_exact(self.state["squares"], float(value) * float(value))
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
        """Sample standard deviation (divisor n - 1); 0.0 for n = 1, None for an empty series."""
        n = self.n
        if n < 2:
            return 0.0 if n else None
        total = sum(map(Fraction, self.state["sum"]), Fraction(0))
        squares = sum(map(Fraction, self.state["squares"]), Fraction(0))
        return math.sqrt(max(0.0, float((squares - total * total / n) / (n - 1))))
