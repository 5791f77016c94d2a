"""Grader ``repeats``, calls made again and again, and aggregator ``loops``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grade,
    Grader,
    Grades,
    Numbers,
    Reason,
    Sample,
    ToolCall,
    ratio,
    skipped,
    valid_confidence,
)
from gradestack_plugins.trajectory.calls import Count, identity_of, judged

_NAMES: Final = 5


@attrs.frozen(kw_only=True)
class CallRepeats(Grader):
    """Share of the calls that are not identical to the call before them, in [0, 1]; ``passed`` without a loop.

        score = (calls - repeats) / calls

    Calls are identical when tool and arguments are, whatever the order of keys. A *loop* is a block of up to ``period``
    calls made at least ``loop`` times in a row: one call, or two in turns, and so on. ``counts`` has ``calls``,
    ``distinct``, ``repeats`` (identical to the call before), ``longest`` (the longest run of identical calls), and
    ``loops`` with ``looped``, the calls within one; reasons name each loop and how often it went round. Skipped without
    recorded calls, and without any. Both profiles are the same.

    Attributes:
        loop: How many rounds are a loop, at least 2.
        period: The most calls of a round.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls"})
    aggregators: ClassVar[tuple[str, ...]] = ("loops", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    loop: int = 3
    period: int = 4
    count: Count = "attempted"
    requestor: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.loop < 2 or self.period < 1:
            raise ValueError("loop is at least 2 rounds and period at least 1 call")

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = judged(sample, self.count, self.requestor)
        if isinstance(calls, Grade):
            return calls
        if not calls:
            return skipped("no_calls", "the run made no call")
        marks = [mark if (mark := identity_of(call)) is not None else f"#{n}" for n, call in enumerate(calls)]
        repeats = sum(left == right for left, right in pairwise(marks))
        loops = list(self._loops(marks))
        counts = {
            "calls": len(calls),
            "distinct": len(set(marks)),
            "repeats": repeats,
            "longest": max(len(list(group)) for _, group in groupby(marks)),
            "loops": len(loops),
            "looped": sum(end - start for start, end, _ in loops),
        }
        reasons = tuple(_reason(calls, start, end, period) for start, end, period in loops)
        return Grade(score=(len(calls) - repeats) / len(calls), passed=not loops, counts=counts, reasons=reasons)

    def _loops(self, marks: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Yield the loops: first call, one past the last, calls of a round; shorter rounds first tried."""
        start = 0
        while start < len(marks):
            for period in range(1, self.period + 1):
                end = start + period
                while end < len(marks) and marks[end] == marks[end - period]:
                    end += 1
                if end - start >= self.loop * period:
                    yield start, end, period
                    start = end
                    break
            else:
                start += 1


def _reason(calls: Sequence[ToolCall], start: int, end: int, period: int) -> Reason:
    names = [call.name for call in calls[start : start + min(period, _NAMES)]]
    message = f"{', '.join(names)}: {(end - start) // period} times in a row, from call {start}"
    return Reason(code="loop", subject=calls[start].name, actual=(end - start) // period, message=message)


@attrs.frozen(kw_only=True)
class Loops(Aggregator):
    """Runs with a loop, repeated calls, and the longest run of identical ones.

    ``loop_rate`` = runs with a loop / graded runs; ``repeat_share`` = repeats / calls over all runs. Intervals leave
    out one task at a time; None without any run.

    Attributes:
        confidence: Of the intervals, between 0 and 1.
    """

    version: ClassVar[str] = "1"
    figures: ClassVar = (
        Figure("loop_rate", "Runs with a loop", better="lower", about="runs with a loop / graded runs"),
        Figure("repeat_share", "Repeated calls", better="lower", about="repeats / calls"),
    )

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        counts = grade.counts
        looping = int(counts.get("loops", 0) > 0)
        return {"runs": 1, "looping": looping, "calls": counts.get("calls", 0), "repeats": counts.get("repeats", 0)}

    @override
    def estimate(self, runs: float, looping: float, calls: float, repeats: float) -> Mapping[str, float | None]:
        return {"loop_rate": ratio(looping, runs), "repeat_share": ratio(repeats, calls)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        below = {"loop_rate": "runs", "repeat_share": "calls"}
        lacking = [name for name, divisor in below.items() if not grades.totals.get(divisor)]
        reasons: dict[str, JSON] = {f"{name}_reason": "no run made a call" for name in lacking}
        longest = [grade.counts.get("longest", 0) for grade, _ in grades.counted if grade.score is not None]
        return {**reasons, "longest": max(longest, default=0)}
