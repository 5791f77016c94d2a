"""Grader ``repeats``, identical calls and loops of calls, and aggregator ``loops``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grader,
    Grades,
    Numbers,
    Reason,
    Sample,
    ratio,
    skipped,
)
from gradestack_plugins.statistics.mean import IntervalAggregator
from gradestack_plugins.trajectory.calls import (
    Count,
    identity_of,
    judged_calls,
    sub_agent_grade,
)

_MOST_NAMES: Final = 5
"""Names of tools that the reason of a loop shows."""


@attrs.frozen(kw_only=True)
class CallRepeats(Grader):
    """Share of the calls that are not identical to the call before them, in [0, 1].

    ``passed`` without a loop.

        score = (calls - repeats) / calls

    Calls are identical when tool and arguments are, whatever the order of keys. A *loop* is a block
    of up to ``period`` calls made at least ``loop`` times in a row: one call, or two in turns, and
    so on. ``counts`` has ``calls``, ``distinct``, ``repeats`` (identical to the call before),
    ``longest`` (the longest run of identical calls), and ``loops`` with ``looped``, the calls
    within one. Reasons name each loop and how often it went round. Skipped without recorded calls,
    without any, and for the run of a sub-agent.

    Attributes:
        loop: How many rounds are a loop, at least 2.
        period: The most calls of a round.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
    """

    needs = frozenset({"calls"})
    compares = frozenset[str]()
    metrics = ("loops", "mean")

    loop: int = attrs.field(default=3, validator=attrs.validators.ge(2))
    period: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    count: Count = "attempted"
    requestor: str | None = None

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = sub_agent_grade(sample) or judged_calls(sample, self.count, self.requestor)
        if isinstance(calls, Grade):
            return calls
        if not calls:
            return skipped("no_calls", "the run made no call")
        marks = [identity_of(call) or f"#{number}" for number, call in enumerate(calls)]
        repeats = sum(mark == following for mark, following in pairwise(marks))
        loops = list(self._loops(marks))
        reasons = list[Reason]()
        for start, end, period in loops:
            rounds = (end - start) // period
            shown = calls[start : start + min(period, _MOST_NAMES)]
            names = ", ".join([call.name for call in shown])
            message = f"{names}: {rounds} times in a row, from call {start}"
            name = calls[start].name
            reason = Reason(code="loop", subject=name, actual=rounds, message=message)
            reasons.append(reason)
        distinct = len(set(marks))
        largest_group_count = max(len(list(group)) for _, group in groupby(marks))
        total = sum(end - start for start, end, _ in loops)
        counts = {
            "calls": len(calls),
            "distinct": distinct,
            "repeats": repeats,
            "longest": largest_group_count,
            "loops": len(loops),
            "looped": total,
        }
        score = (len(calls) - repeats) / len(calls)
        return Grade(score=score, passed=not loops, counts=counts, reasons=tuple(reasons))

    def _loops(self, marks: Sequence[str | bytes]) -> Iterator[tuple[int, int, int]]:
        """Yield the loops: first call, one past the last, calls of a round.

        Shorter rounds first tried.
        """
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


class Loops(IntervalAggregator):
    """Runs with a loop, repeated calls, and the longest run of identical ones.

    ``loop_rate`` = runs with a loop / graded runs; ``repeat_share`` = repeats / calls over all
    runs. Intervals leave out one task at a time; None without any run.

    Attributes:
        confidence: Of the intervals, between 0 and 1.
    """

    figures = (
        Figure(
            "loop_rate", "Runs with a loop", better="lower", about="runs with a loop / graded runs"
        ),
        Figure("repeat_share", "Repeated calls", better="lower", about="repeats / calls"),
    )

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        counts = grade.counts
        loops = counts.get("loops", 0)
        looping = int(loops > 0)
        calls = counts.get("calls", 0)
        repeats = counts.get("repeats", 0)
        return {
            "runs": 1,
            "looping": looping,
            "calls": calls,
            "repeats": repeats,
        }

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        loop_rate = ratio(totals["looping"], totals["runs"])
        repeat_share = ratio(totals["repeats"], totals["calls"])
        return {
            "loop_rate": loop_rate,
            "repeat_share": repeat_share,
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        figures: dict[str, JSON] = {}
        for name, divisor in {"loop_rate": "runs", "repeat_share": "calls"}.items():
            if not grades.totals.get(divisor):
                figures[f"{name}_reason"] = "no run made a call"
        graded = [grade for grade, _ in grades.counted if grade.score is not None]
        longest = [grade.counts.get("longest", 0) for grade in graded]
        return {**figures, "longest": max(longest, default=0)}
