"""The checks of a policy: each yields the reasons why it is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import attrs

from gradestack import Message, Reason, ToolCall
from gradestack_plugins.readers.chat import text_of
from gradestack_plugins.trajectory.calls import identity_of
from gradestack_plugins.trajectory.patterns import CallPattern, Pattern, fits, in_order, whole


@attrs.frozen(kw_only=True)
class Range:
    """How often: ``min`` and ``max``, both included."""

    min: int | None = None
    max: int | None = None

    def __attrs_post_init__(self) -> None:
        """Check that the two agree.

        Raises:
            ValueError: Neither is given, one is negative, or they leave no number.
        """
        if self.min is None and self.max is None:
            raise ValueError("give min, max, or both")
        if (self.min or 0) < 0 or (self.max or 0) < 0:
            raise ValueError("min and max are at least 0")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")


@attrs.frozen(kw_only=True)
class Repeats:
    """How often an identical call may be made: ``in_a_row`` and ``in_all``; at least once."""

    in_a_row: int | None = None
    in_all: int | None = None

    def __attrs_post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: Neither is given, one is below 1, or more are allowed in a row than in all.
        """
        if self.in_a_row is None and self.in_all is None:
            raise ValueError("give in_a_row, in_all, or both")
        if min(each for each in (self.in_a_row, self.in_all) if each is not None) < 1:
            raise ValueError("in_a_row and in_all are at least 1: one call is no repeat")
        if self.in_a_row is not None and self.in_all is not None and self.in_a_row > self.in_all:
            raise ValueError(f"in_a_row {self.in_a_row} is above in_all {self.in_all}")


def not_allowed(allowed: Sequence[CallPattern], calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the calls that fit none of the patterns."""
    for call in calls:
        if not any(fits(pattern, call) for pattern in allowed):
            yield Reason(code="not_allowed", subject=call.name, message="no allowed pattern fits the call")


def denied(pattern: CallPattern, calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the calls that fit a pattern that none may fit."""
    for call in calls:
        if fits(pattern, call):
            yield Reason(code="denied", subject=call.name, message=f"calls of {pattern} are denied")


def not_called(pattern: CallPattern, calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield a reason where no call fits a pattern that one must fit."""
    if not any(fits(pattern, call) for call in calls):
        yield Reason(code="tool_not_called", subject=pattern.tool, message=f"no call of {pattern}")


def too_few(least: int, calls: Sequence[ToolCall], of: str) -> Iterator[Reason]:
    """Yield a reason where there are fewer calls."""
    if len(calls) < least:
        yield Reason(code="too_few_calls", subject=of, expected=least, actual=len(calls))


def too_many(most: int, calls: Sequence[ToolCall], of: str) -> Iterator[Reason]:
    """Yield a reason where there are more calls."""
    if len(calls) > most:
        yield Reason(code="too_many_calls", subject=of, expected=most, actual=len(calls))


def out_of_order(sequence: Sequence[Pattern], calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the first pattern of a sequence that no call fits behind those before it."""
    patterns = whole(sequence)
    met = len(list(in_order(patterns, calls)))
    if met < len(patterns):
        missed = patterns[met].tool
        yield Reason(
            code="order_missing", subject=missed, message=f"no call of {missed} behind {met} call(s) before it"
        )


def forbidden_order(sequence: Sequence[Pattern], calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield a reason where calls fit a sequence, whatever stands between them."""
    patterns = whole(sequence)
    found = list(in_order(patterns, calls))
    if len(found) == len(patterns):
        names = ", ".join(call.name for call in found)
        yield Reason(code="forbidden_order", subject=found[-1].name, message=f"called in this order: {names}")


def repeated_in_a_row(most: int, calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the runs of identical calls that are longer."""
    for identity, group in groupby(calls, key=identity_of):
        run = list(group)
        if identity is not None and len(run) > most:
            yield Reason(code="repeated_call", subject=run[0].name, expected=most, actual=len(run), message="in a row")


def repeated_in_all(most: int, calls: Sequence[ToolCall]) -> Iterator[Reason]:
    """Yield the calls that are made more often, wherever they stand."""
    known = [(identity, call.name) for call in calls if (identity := identity_of(call)) is not None]
    for (_, name), number in Counter(known).items():
        if number > most:
            yield Reason(code="repeated_call", subject=name, expected=most, actual=number, message="in all")


def after_final(turns: Iterable[Iterable[Message]]) -> Iterator[Reason]:
    """Yield the calls made after the agent has given an answer without calls, before anybody else spoke."""
    final = False
    for message in (message for turn in turns for message in turn):
        if message.role == "assistant":
            if message.tool_calls and final:
                for call in message.tool_calls:
                    yield Reason(code="call_after_final", subject=call.name, message="the run had been answered before")
            final = final or (not message.tool_calls and bool(text_of(message.content).strip()))
        elif message.role not in {"tool", "function"}:
            final = False
