"""The versions of the program that ``profile: upstream`` can follow, and how one is made to read a record."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

import msgspec

from gradestack import Profile

Version = Literal["4.13", "4.3"]
"""``4.13`` stands for 4.10 to 4.13, which evaluate alike."""
Parser = Literal["generic", "qwen", "hermes", "llama", "mistral"]
Rules = Literal["documented", "4.13", "4.3"]
"""Whose rules hold: the document's, or those of a version of the program."""
NEWEST: Final = "4.13"
OLD: Final = "4.3"


def version_of(value: Any) -> str:
    """Return a version of the program as text: YAML reads ``4.3`` without quotes as a number."""
    version, known = str(value), get_args(Version)
    if version not in known:
        names = ", ".join(known)
        raise ValueError(f"upstream_version must be one of {names} (4.13 stands for 4.10 to 4.13), got {version!r}")
    return version


class Reading(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={"version": "upstream_version", "most_turns": "max_turns", "parser": "tool_call_parser"},
):
    """How the program reads a record and the replies to it; what differs from the usual is in a grade's metadata."""

    version: Rules = NEWEST
    multi_turn: bool = False
    most_turns: int = 0
    """Replies that are looked at when several turns are evaluated; 0: one reply is asked for."""
    parser: Parser = "generic"


USUAL: Final = Reading()
"""The newest version asking for one reply."""
DOCUMENTED: Final = Reading("documented")


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
    """
    named = as_numbers(DEFAULT_WEIGHTS if given is None else given, profile)
    if profile == "documented":
        _check(named)
    values = [named.get(name, 0.0) for name in METRICS]
    divisor = 1.0
    if normalize:
        divisor = _total(values)
        if not math.isfinite(divisor) or divisor == 0:
            raise ValueError(f"weights that sum to {divisor:g} cannot be normalized")
    elif profile == "documented" and abs((total := _total(values)) - 1) > _TOLERANCE:
        raise ValueError(
            f"weights must sum to 1, they sum to {total:.12g}; set normalize: true to divide them by their sum"
        )
    first, second, third, fourth = (value / divisor for value in values)
    return first, second, third, fourth


def as_numbers(given: Any, profile: Profile) -> dict[str, float]:
    """Return given weights as the numbers they are read as, in their order, those of unknown names included."""
    if not isinstance(given, Mapping):
        raise ValueError(f"weights must be a mapping of metrics to numbers, got {given!r}")  # noqa: TRY004  an option's value is wrong, whatever its class
    for name in given:
        if not isinstance(name, str):
            raise ValueError(f"weights are named by text, got {name!r}")  # noqa: TRY004  likewise
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
    raise ValueError(f"the weight of {name} must be a number, got {weight!r}")


def _check(named: Mapping[str, float]) -> None:
    unknown = [name for name in named if name not in METRICS]
    if unknown:
        raise ValueError(f"unknown weights {', '.join(map(repr, unknown))}; the metrics are {', '.join(METRICS)}")
    for name, weight in named.items():
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(f"the weight of {name} must be a finite number of at least 0, got {weight!r}")


def weighted(values: Weights, weights: Weights) -> float:
    """Return value x weight summed from left to right, with one rounding per step as the original does."""
    selection, parameters, execution, quality = values
    return selection * weights[0] + parameters * weights[1] + execution * weights[2] + quality * weights[3]
