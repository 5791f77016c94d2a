"""Aggregators ``tool_outcomes`` and ``usage_totals``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    CellsState,
    CountsState,
    Grade,
    Key,
    Memory,
    TaskCells,
    TaskCounts,
    TaskNumbers,
    counts_interval,
    ratio_interval,
    valid_confidence,
)
from gradestack.exact import Partials, add_exact, count_into, exact_mean, exact_value, merge_exact

_CELLS = TaskCounts()
_RUNS = TaskCells("runs", "sum")


class OutcomesState(TypedDict):
    """State of :class:`ToolOutcomes`."""

    runs: int
    counts: dict[str, int]
    tools: dict[str, dict[str, int]]
    cells: CountsState


@lru_cache(maxsize=4096)
def _named(outcome: str, tool: str) -> str:
    """Return the name of a task's number of calls; of every tool for ""."""
    return f"{outcome} {tool}"


@attrs.frozen(kw_only=True)
class ToolOutcomes(Aggregator[OutcomesState]):
    """Calls by outcome, over all runs and by tool.

    Every count of the graded runs' grades is added up, and for each tool those of its items. ``success_rate`` = ok /
    (ok + error), over calls, not over runs; None where no call was executed. Its interval leaves out one task at a
    time.
    """

    version: ClassVar[str] = "2"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def start(self) -> OutcomesState:
        return {"runs": 0, "counts": {}, "tools": {}, "cells": _CELLS.start()}

    @override
    def add(self, state: OutcomesState, key: Key, grade: Grade) -> OutcomesState:
        if grade.score is None:
            return state
        state["runs"] += 1
        count_into(state["counts"], grade.counts)
        executed = {_named(name, ""): grade.counts.get(name, 0) for name in ("ok", "error")}
        for item in grade.items:
            count_into(state["tools"].setdefault(item.id, {}), item.counts)
            count_into(executed, {_named(name, item.id): item.counts.get(name, 0) for name in ("ok", "error")})
        _CELLS.add(state["cells"], key, {name: number for name, number in executed.items() if number})
        return state

    @override
    def merge(self, left: OutcomesState, right: OutcomesState) -> OutcomesState:
        left["runs"] += right["runs"]
        count_into(left["counts"], right["counts"])
        for name, counts in right["tools"].items():
            count_into(left["tools"].setdefault(name, {}), counts)
        _CELLS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: OutcomesState) -> dict[str, JSON]:
        tasks, _ = _CELLS.tasks(state["cells"])
        tools: dict[str, JSON] = {
            name: self._with_rate(state["tools"][name], tasks, name) for name in sorted(state["tools"])
        }
        found = self._with_rate(state["counts"], tasks, "")
        if found["success_rate"] is None:
            found["success_rate_reason"] = "no call was executed"
        return {"runs": state["runs"], **found, "tools": tools}

    def _with_rate(self, counts: dict[str, int], tasks: Mapping[TaskNumbers, int], tool: str) -> dict[str, JSON]:
        executed = counts.get("ok", 0) + counts.get("error", 0)
        ok, error = _named("ok", tool), _named("error", tool)
        sure: JSON = {"reason": "no call was executed"}
        if executed:
            sure = {**counts_interval(tasks, ok, (ok, error), confidence=self.confidence)}
        rate = counts.get("ok", 0) / executed if executed else None
        return {**counts, "executed": executed, "success_rate": rate, "success_rate_interval": sure}


class SeriesState(TypedDict):
    """Of one figure."""

    n: int
    sum: Partials
    min: float
    max: float
    cells: CellsState


class TotalsState(TypedDict):
    """State of :class:`UsageTotals`."""

    runs: int
    figures: dict[str, SeriesState]


@attrs.frozen(kw_only=True)
class UsageTotals(Aggregator[TotalsState]):
    """Of every part of a grade: ``total``, ``mean`` over the ``n`` runs that record it, ``min`` and ``max``.

    The interval of the mean, which is no share, is the mean -+ t se, clustered by task; not below 0 for what cannot be.
    """

    version: ClassVar[str] = "2"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def start(self) -> TotalsState:
        return {"runs": 0, "figures": {}}

    @override
    def add(self, state: TotalsState, key: Key, grade: Grade) -> TotalsState:
        if grade.score is None:
            return state
        state["runs"] += 1
        figures = state["figures"]
        for name, value in grade.parts.items():
            if value is None:
                continue
            number = float(value)
            held = figures.get(name)
            if held is None:
                held = figures[name] = {"n": 0, "sum": [], "min": number, "max": number, "cells": _RUNS.start()}
            held["n"] += 1
            add_exact(held["sum"], number)
            held["min"], held["max"] = min(held["min"], number), max(held["max"], number)
            _RUNS.add(held["cells"], key, [1, number])
        return state

    @override
    def merge(self, left: TotalsState, right: TotalsState) -> TotalsState:
        left["runs"] += right["runs"]
        for name, more in right["figures"].items():
            held = left["figures"].get(name)
            if held is None:
                cells = _RUNS.merge(_RUNS.start(), more["cells"])
                left["figures"][name] = {**more, "sum": list(more["sum"]), "cells": cells}
                continue
            held["n"] += more["n"]
            merge_exact(held["sum"], more["sum"])
            held["min"], held["max"] = min(held["min"], more["min"]), max(held["max"], more["max"])
            _RUNS.merge(held["cells"], more["cells"])
        return left

    @override
    def finish(self, state: TotalsState) -> dict[str, JSON]:
        found: dict[str, JSON] = {"runs": state["runs"]}
        for name in sorted(state["figures"]):
            held = state["figures"][name]
            least = 0.0 if held["min"] >= 0 else -math.inf
            tasks, _ = _RUNS.rounded(held["cells"])  # of one figure at a time: those of all would not fit
            sure = ratio_interval(tasks, confidence=self.confidence, share=False, least=least)
            found[name] = {
                "total": exact_value(held["sum"]),
                "mean": exact_mean(held["sum"], held["n"]),
                "mean_interval": {**sure},
                "min": held["min"],
                "min_interval": {"reason": "quantile"},
                "max": held["max"],
                "max_interval": {"reason": "quantile"},
                "n": held["n"],
            }
        return found
