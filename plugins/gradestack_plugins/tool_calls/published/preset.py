"""Published rules: name and version, the options one stands for, and its verdict on calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from gradestack import Sample
from gradestack_plugins.tool_calls.diff import Expected, Made

Call = TypeVar("Call", Expected, Made)
Settings = Mapping[str, Any]


class Verdict(msgspec.Struct, frozen=True):
    """A score, the verdict, and the figures beside them."""

    score: float
    passed: bool | None = None
    """None where the rule has no verdict of its own."""
    parts: Mapping[str, float] = msgspec.field(default_factory=dict)
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Raised(Exception):
    """The original program raises on this sample: a code for counting, and why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NotExpressible(Exception):
    """The original program cannot be told what is expected here, or asks a model
    (``needs_judge``).
    """

    def __init__(self, message: str, code: str = "not_expressible") -> None:
        super().__init__(message)
        self.code = code


RAISES = "the original program raises on that"
Rule = Callable[[Sequence[Expected], Sequence[Made], Sample], Verdict]


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """One published rule."""

    name: str
    version: str
    rule: Rule | None = None
    """None for our own, and for those that ask a model."""
    settings: Settings = msgspec.field(default_factory=dict)
    """The options it stands for; any other value of them, and any other option, contradicts it."""
    takes_rules: bool = False
    """Whether it can be told of arguments that are not simply compared."""
    pairs: bool = True
    """Whether it compares calls pair by pair, so that many of them take long."""
    raises: str = ""
    """On what its program raises: ``nothing`` expected, or ``undecodable`` arguments."""

    @property
    def full_name(self) -> str:
        """``NAME@VERSION``, which outputs record."""
        return f"{self.name}@{self.version}"


def yes_or_no(passed: bool) -> Verdict:
    """Return the verdict of a rule that says yes or no."""
    return Verdict(float(passed), passed)


def refuse_nothing(expected: Sequence[Expected]) -> None:
    """Raise where no call is expected."""
    if not expected:
        raise Raised("nothing_expected", f"no call is expected, and {RAISES}")


def refuse_undecodable(calls: Iterable[Expected | Made]) -> None:
    """Raise where the arguments of a call are no object."""
    for call in calls:
        if call.raw is not None:
            message = f"the arguments of {call.name} are no JSON object, and {RAISES}"
            raise Raised("undecodable_arguments", message)


def precision_recall_f1(hits: int, wanted: int, done: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of numbers of calls; 0 over nothing."""
    precision = hits / done if done else 0.0
    recall = hits / wanted if wanted else 0.0
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


MOST_TURNS = 10_000
"""Turns that are laid out; a call may claim any number."""


def by_turn(calls: Sequence[Call]) -> list[list[Call]]:
    """Group calls by turn: one list for each turn from 0 to the last that has a call.

    Calls without a turn are in turn 0.

    Raises:
        Raised: A turn is negative, or not below ``MOST_TURNS``.
    """
    turn_numbers = [call.turn or 0 for call in calls]
    last_turn = max(turn_numbers, default=0)
    if last_turn >= MOST_TURNS or min(turn_numbers, default=0) < 0:
        raise Raised("odd_turns", f"turns must lie between 0 and {MOST_TURNS - 1}")
    turns: list[list[Call]] = [[] for _ in range(last_turn + 1)]
    for turn, call in zip(turn_numbers, calls, strict=True):
        turns[turn].append(call)
    return turns
