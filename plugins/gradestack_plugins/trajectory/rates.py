"""Aggregators ``policy_checks`` and ``loops``: runs that keep rules, and runs that go round and round."""

from __future__ import annotations

from typing import ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, CellsState, Grade, Key, Memory, TaskCells, valid_confidence

_CELLS = TaskCells("runs", "kept")


class ChecksState(TypedDict):
    """State of :class:`PolicyChecks`."""

    checks: dict[str, list[int]]
    """Check -> runs it was made on, and those that kept it."""
    cells: CellsState


@attrs.frozen(kw_only=True)
class PolicyChecks(Aggregator[ChecksState]):
    """Runs that keep a whole policy, and each of its checks.

    ``kept_rate`` = runs whose grade has passed / graded runs with a verdict, with an interval that leaves out one task
    at a time; None without any. ``checks`` has ``runs``, ``kept`` and ``rate`` of each item.

    Attributes:
        confidence: Of the interval, between 0 and 1.
    """

    version: ClassVar[str] = "1"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def start(self) -> ChecksState:
        return {"checks": {}, "cells": _CELLS.start()}

    @override
    def add(self, state: ChecksState, key: Key, grade: Grade) -> ChecksState:
        if grade.score is None or grade.passed is None:
            return state
        _CELLS.add(state["cells"], key, [1, int(grade.passed)])
        for item in grade.items:
            held = state["checks"].setdefault(item.id, [0, 0])
            held[0] += 1
            held[1] += item.score == 1.0
        return state

    @override
    def merge(self, left: ChecksState, right: ChecksState) -> ChecksState:
        for name, (runs, kept) in right["checks"].items():
            held = left["checks"].setdefault(name, [0, 0])
            held[0] += runs
            held[1] += kept
        _CELLS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: ChecksState) -> dict[str, JSON]:
        found = _CELLS.finish(state["cells"], _rate, confidence=self.confidence)
        if found["kept_rate"] is None:
            found["kept_rate_reason"] = "no run has a verdict"
        checks = state["checks"]
        rates: dict[str, JSON] = {
            name: {"runs": checks[name][0], "kept": checks[name][1], "rate": checks[name][1] / checks[name][0]}
            for name in sorted(checks)
        }
        return {**found, "checks": rates}


def _rate(runs: float, kept: float) -> dict[str, float | None]:
    return {"kept_rate": kept / runs if runs else None}


_LOOPS = TaskCells("runs", "looping", "calls", "repeats")


class LoopsState(TypedDict):
    """State of :class:`Loops`."""

    longest: int
    cells: CellsState


@attrs.frozen(kw_only=True)
class Loops(Aggregator[LoopsState]):
    """Runs with a loop, repeated calls, and the longest run of identical ones.

    ``loop_rate`` = runs with a loop / graded runs; ``repeat_share`` = repeats / calls over all runs. Intervals leave
    out one task at a time; None without any run.

    Attributes:
        confidence: Of the intervals, between 0 and 1.
    """

    version: ClassVar[str] = "1"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def start(self) -> LoopsState:
        return {"longest": 0, "cells": _LOOPS.start()}

    @override
    def add(self, state: LoopsState, key: Key, grade: Grade) -> LoopsState:
        if grade.score is not None:
            counts = grade.counts
            looping = int(counts.get("loops", 0) > 0)
            _LOOPS.add(state["cells"], key, [1, looping, counts.get("calls", 0), counts.get("repeats", 0)])
            state["longest"] = max(state["longest"], counts.get("longest", 0))
        return state

    @override
    def merge(self, left: LoopsState, right: LoopsState) -> LoopsState:
        left["longest"] = max(left["longest"], right["longest"])
        _LOOPS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: LoopsState) -> dict[str, JSON]:
        found = _LOOPS.finish(state["cells"], _loop_rates, confidence=self.confidence)
        for name in ("loop_rate", "repeat_share"):
            if found[name] is None:
                found[f"{name}_reason"] = "no run made a call"
        return {**found, "longest": state["longest"]}


def _loop_rates(runs: float, looping: float, calls: float, repeats: float) -> dict[str, float | None]:
    return {"loop_rate": looping / runs if runs else None, "repeat_share": repeats / calls if calls else None}
