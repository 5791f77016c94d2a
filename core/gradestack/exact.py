"""Counts by name, sums that are finite, and numbers beside a threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping

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
