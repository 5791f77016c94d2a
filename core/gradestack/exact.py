"""Sums without rounding, and numbers beside a threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence

_WHOLE = 1 << 53
"""Every whole number up to this is a float."""
Partials = list[float]
"""An exact sum: floats whose real sum is the sum of all values added."""


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
