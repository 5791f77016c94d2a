"""Aggregators ``policy_checks`` and ``loops``: runs that keep rules, and runs that go round and round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Figure, Grade, Grades, Numbers, ratio, valid_confidence

_RUNS, _KEPT = "runs ", "kept "


@attrs.frozen(kw_only=True)
class PolicyChecks(Aggregator):
    """Runs that keep a whole policy, and each of its checks.

    ``kept_rate`` = runs whose grade has passed / graded runs with a verdict, with an interval that leaves out one task
    at a time; None without any. ``checks`` has ``runs``, ``kept`` and ``rate`` of each item.

    Attributes:
        confidence: Of the interval, between 0 and 1.
    """

    version: ClassVar[str] = "1"
    figures: ClassVar = (
        Figure("kept_rate", "Runs that keep the policy", about="runs that passed / runs with a verdict"),
        Figure("checks.{check}.rate", "Runs that keep a check", about="runs that keep it / runs with a verdict"),
    )
    needs: ClassVar = frozenset({"items"})

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None or grade.passed is None:
            return None
        found = {"runs": 1, "kept": int(grade.passed)}
        for item in grade.items:
            for name, number in ((_RUNS, 1), (_KEPT, int(item.score == 1.0))):
                found[name + item.id] = found.get(name + item.id, 0) + number
        return found

    @override
    def estimate(self, runs: float, kept: float) -> Mapping[str, float | None]:
        return {"kept_rate": ratio(kept, runs)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        totals = grades.totals
        names = sorted(name.removeprefix(_RUNS) for name in totals if name.startswith(_RUNS))
        checks: dict[str, JSON] = {}
        for name in names:
            runs, kept = int(totals[_RUNS + name]), int(totals.get(_KEPT + name, 0))
            checks[name] = {"runs": runs, "kept": kept, "rate": kept / runs}
        return {**({} if totals.get("runs") else {"kept_rate_reason": "no run has a verdict"}), "checks": checks}


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
