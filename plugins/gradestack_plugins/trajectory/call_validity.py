"""Aggregator ``call_validity``."""

from __future__ import annotations

from typing import ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, CellsState, Grade, Key, Memory, TaskCells, valid_confidence
from gradestack.exact import count_into

_CELLS = TaskCells("runs", "valid", "checked")


class ValidityState(TypedDict):
    """State of :class:`CallValidity`."""

    counts: dict[str, int]
    tools: dict[str, dict[str, int]]
    cells: CellsState


def _checked(counts: dict[str, int]) -> int:
    return counts.get("calls", 0) - counts.get("unchecked", 0)


def _shared(counts: dict[str, int]) -> dict[str, JSON]:
    """Return counts with the share of valid calls, and how often each keyword is violated."""
    checked = _checked(counts)
    own: dict[str, JSON] = {name: number for name, number in counts.items() if ":" not in name}
    keywords = {name.partition(":")[2]: counts[name] for name in sorted(counts) if name.startswith("violation:")}
    return {**own, "violations": keywords, "valid_share": counts.get("valid", 0) / checked if checked else None}


@attrs.frozen(kw_only=True)
class CallValidity(Aggregator[ValidityState]):
    """Valid calls over all runs and by tool, and how often each keyword of a schema is violated.

    ``valid_share`` = valid / (calls - unchecked), over calls, not over runs; None where none was checked. Its interval
    leaves out one task at a time.

    Attributes:
        confidence: Of the interval, between 0 and 1.
    """

    version: ClassVar[str] = "1"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def start(self) -> ValidityState:
        return {"counts": {}, "tools": {}, "cells": _CELLS.start()}

    @override
    def add(self, state: ValidityState, key: Key, grade: Grade) -> ValidityState:
        if grade.score is not None:
            counts = dict(grade.counts)
            count_into(state["counts"], counts)
            for item in grade.items:
                count_into(state["tools"].setdefault(item.id, {}), item.counts)
            _CELLS.add(state["cells"], key, [1, counts.get("valid", 0), _checked(counts)])
        return state

    @override
    def merge(self, left: ValidityState, right: ValidityState) -> ValidityState:
        count_into(left["counts"], right["counts"])
        for name, counts in right["tools"].items():
            count_into(left["tools"].setdefault(name, {}), counts)
        _CELLS.merge(left["cells"], right["cells"])
        return left

    @override
    def finish(self, state: ValidityState) -> dict[str, JSON]:
        ratios = {"valid_share": ("valid", "checked")}
        found = _shared(state["counts"]) | _CELLS.ratios(state["cells"], ratios, confidence=self.confidence)
        if found["valid_share"] is None:
            found["valid_share_reason"] = "no call was checked"
        tools: dict[str, JSON] = {name: _shared(state["tools"][name]) for name in sorted(state["tools"])}
        return {**found, "tools": tools}
