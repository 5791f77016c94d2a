"""What a published rule says of a sample, and how it says that it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from gradestack import Sample
from gradestack_plugins.tool_calls.calls import Call


@attrs.frozen
class Verdict:
    """A score, and what stands beside it."""

    score: float
    passed: bool | None = None
    """None where the rule has no verdict of its own."""
    parts: Mapping[str, float] = attrs.field(factory=dict)
    metadata: Mapping[str, Any] = attrs.field(factory=dict)


class Raised(Exception):
    """The original program raises on this sample.

    Args:
        code: Why, for counting.
        message: Why, for people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class NotTold(Exception):
    """The original program cannot be told what is expected here, or asks a model.

    Args:
        code: ``not_expressible`` or ``needs_judge``.
        message: Why, for people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


Rule = Callable[[Sequence[Call], Sequence[Call]], Verdict]
"""Of the calls expected and the calls made."""
SampleRule = Callable[[Sequence[Call], Sequence[Call], Sample], Verdict]
"""The same of a rule that looks at more of the sample: its turns, its tools, rules of its expected calls."""


def boolean(found: bool) -> Verdict:
    """Return the verdict of a rule that says yes or no."""
    return Verdict(1.0 if found else 0.0, found)


def refuse_nothing(expected: Sequence[Call]) -> None:
    """Raise where nothing is expected.

    Raises:
        Raised: There is no expected call.
    """
    if not expected:
        raise Raised("nothing_expected", "no call is expected, and the original program raises on that")


def refuse_undecodable(*sides: Sequence[Call]) -> None:
    """Raise where the arguments of a call are no object.

    Raises:
        Raised: One of them are.
    """
    for side in sides:
        for call in side:
            if call.raw is not None:
                told = f"the arguments of {call.name} are no JSON object, and the original program raises on that"
                raise Raised("undecodable_arguments", told)


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean, 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
