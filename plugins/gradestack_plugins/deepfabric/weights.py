"""Weights of the four metrics, and the order in which they are summed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gradestack import Profile

METRICS: Final = ("tool_selection", "parameter_accuracy", "execution_success", "response_quality")
"""The metrics in the order of the sum."""
DEFAULT_WEIGHTS: Final = {
    "tool_selection": 0.40,
    "parameter_accuracy": 0.35,
    "execution_success": 0.25,
    "response_quality": 0.00,
}
_TOLERANCE: Final = 1e-9

Weights = tuple[float, float, float, float]


def resolve(given: Any, profile: Profile, *, normalize: bool = False) -> Weights:
    """Return the weights in the order of the sum.

    Given weights replace the defaults as a whole: a metric that is not named weighs 0.

    Args:
        given: Weight by metric; None means the defaults.
        profile: ``documented`` refuses unknown names, negative or non-finite weights and sums other than 1 (within
            1e-9). ``upstream`` ignores unknown names, takes any number (and text or a bool that reads as one), and
            never looks at the sum.
        normalize: Divide the weights by their sum.

    Raises:
        ValueError: The weights break a rule; the message names it.
    """
    named = as_numbers(DEFAULT_WEIGHTS if given is None else given, profile)
    if profile == "documented":
        _check(named)
    values = [named.get(name, 0.0) for name in METRICS]
    divisor = 1.0
    if normalize:
        divisor = _total(values)
        if not math.isfinite(divisor) or divisor == 0:
            msg = f"weights that sum to {divisor:g} cannot be normalized"
            raise ValueError(msg)
    elif profile == "documented" and abs((total := _total(values)) - 1) > _TOLERANCE:
        msg = f"weights must sum to 1, they sum to {total:.12g}; set normalize: true to divide them by their sum"
        raise ValueError(msg)
    first, second, third, fourth = (value / divisor for value in values)
    return first, second, third, fourth


def as_numbers(given: Any, profile: Profile) -> dict[str, float]:
    """Return given weights as the numbers they are read as, in their order, those of unknown names included.

    Raises:
        ValueError: They are no mapping, a name is no text, or a weight no number.
    """
    if not isinstance(given, Mapping):
        msg = f"weights must be a mapping of metrics to numbers, got {given!r}"
        raise ValueError(msg)  # noqa: TRY004  an option's value is wrong, whatever its class
    for name in given:
        if not isinstance(name, str):
            msg = f"weights are named by text, got {name!r}"
            raise ValueError(msg)  # noqa: TRY004  likewise
    return {name: _number(name, weight, profile) for name, weight in given.items()}


def _total(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # beyond the largest float, or infinities of both signs
        return sum(values)


def _number(name: str, weight: Any, profile: Profile) -> float:
    plain = isinstance(weight, int | float) and not isinstance(weight, bool)
    coerced = isinstance(weight, bool) or (isinstance(weight, str) and weight.isascii())
    if plain or (profile == "upstream" and coerced):
        with contextlib.suppress(ValueError, OverflowError):
            return float(weight)
    msg = f"the weight of {name} must be a number, got {weight!r}"
    raise ValueError(msg)


def _check(named: Mapping[str, float]) -> None:
    unknown = [name for name in named if name not in METRICS]
    if unknown:
        msg = f"unknown weights {', '.join(map(repr, unknown))}; the metrics are {', '.join(METRICS)}"
        raise ValueError(msg)
    for name, weight in named.items():
        if not math.isfinite(weight) or weight < 0:
            msg = f"the weight of {name} must be a finite number of at least 0, got {weight!r}"
            raise ValueError(msg)


def weighted(values: Weights, weights: Weights) -> float:
    """Return value x weight summed from left to right, with one rounding per step as the original does."""
    selection, parameters, execution, quality = values
    return selection * weights[0] + parameters * weights[1] + execution * weights[2] + quality * weights[3]
