"""Aggregators ``tool_outcomes`` and ``usage_totals``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, CellsState, Grade, Key, Memory, TaskCells
from gradestack.exact import Partials, add_exact, count_into, exact_mean, exact_value, merge_exact

_CELLS = TaskCells("runs", "ok", "executed")


class OutcomesState(TypedDict):
    """State of :class:`ToolOutcomes`."""

    runs: int
    counts: dict[str, int]
    tools: dict[str, dict[str, int]]
    cells: CellsState


def _executed(counts: Mapping[str, int]) -> int:
    return counts.get("ok", 0) + counts.get("error", 0)


def _with_rate(counts: dict[str, int]) -> dict[str, JSON]:
    executed = _executed(counts)
    return {**counts, "executed": executed, "success_rate": counts.get("ok", 0) / executed if executed else None}


@attrs.frozen(kw_only=True)
class ToolOutcomes(Aggregator[OutcomesState]):
    """Calls by outcome, over all runs and by tool.

    Every count of the graded runs' grades is added up, and for each tool those of its items. ``success_rate`` = ok /
    (ok + error), over calls, not over runs; None where no call was executed. Its interval leaves out one task at
    a time.

    Attributes:
        confidence: Of the interval, between 0 and 1.
    """

    version: ClassVar[str] = "2"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = 0.95

    @override
    def start(self) -> OutcomesState:
        return {"runs": 0, "counts": {}, "tools": {}, "cells": _CELLS.start()}

    @override
    def add(self, state: OutcomesState, key: Key, grade: Grade) -> OutcomesState:
        if grade.score is not None:
            state["runs"] += 1
            count_into(state["counts"], grade.counts)
            for item in grade.items:
                count_into(state["tools"].setdefault(item.id, {}), item.counts)
            _CELLS.add(state["cells"], key, [1, grade.counts.get("ok", 0), _executed(grade.counts)])
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
        tools: dict[str, JSON] = {name: _with_rate(state["tools"][name]) for name in sorted(state["tools"])}
        ratios = {"success_rate": ("ok", "executed")}
        found = _with_rate(state["counts"]) | _CELLS.ratios(state["cells"], ratios, confidence=self.confidence)
        if found["success_rate"] is None:
            found["success_rate_reason"] = "no call was executed"
        return {"runs": state["runs"], **found, "tools": tools}


class SeriesState(TypedDict):
    """Of one figure."""

    n: int
    sum: Partials
    min: float
    max: float


class TotalsState(TypedDict):
    """State of :class:`UsageTotals`."""

    runs: int
    figures: dict[str, SeriesState]


@attrs.frozen(kw_only=True)
class UsageTotals(Aggregator[TotalsState]):
    """Of every part of a grade: ``total``, ``mean`` over the ``n`` runs that record it, ``min`` and ``max``."""

    version: ClassVar[str] = "1"
    memory: ClassVar[Memory] = "constant"

    @override
    def start(self) -> TotalsState:
        return {"runs": 0, "figures": {}}

    @override
    def add(self, state: TotalsState, key: Key, grade: Grade) -> TotalsState:
        if grade.score is None:
            return state
        state["runs"] += 1
        for name, value in grade.parts.items():
            if value is None:
                continue
            number = float(value)
            held = state["figures"].get(name)
            if held is None:
                held = state["figures"][name] = {"n": 0, "sum": [], "min": number, "max": number}
            held["n"] += 1
            add_exact(held["sum"], number)
            held["min"], held["max"] = min(held["min"], number), max(held["max"], number)
        return state

    @override
    def merge(self, left: TotalsState, right: TotalsState) -> TotalsState:
        left["runs"] += right["runs"]
        for name, more in right["figures"].items():
            held = left["figures"].get(name)
            if held is None:
                left["figures"][name] = {**more, "sum": list(more["sum"])}
                continue
            held["n"] += more["n"]
            merge_exact(held["sum"], more["sum"])
            held["min"], held["max"] = min(held["min"], more["min"]), max(held["max"], more["max"])
        return left

    @override
    def finish(self, state: TotalsState) -> dict[str, JSON]:
        found: dict[str, JSON] = {"runs": state["runs"]}
        for name in sorted(state["figures"]):
            held = state["figures"][name]
            found[name] = {
                "total": exact_value(held["sum"]),
                "mean": exact_mean(held["sum"], held["n"]),
                "min": held["min"],
                "max": held["max"],
                "n": held["n"],
            }
        return found
