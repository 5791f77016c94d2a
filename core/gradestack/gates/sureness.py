"""How sure the figure is that a gate compares: its interval, clustered by task, of the whole formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs
from typing_extensions import override

from gradestack.api import Aggregator
from gradestack.gates.paths import beside
from gradestack.gates.rules import (
    PERCENT,
    AggregateGate,
    AnyGate,
    FigureGate,
    Threshold,
    WeightedGate,
    leaves,
    over_total,
)
from gradestack.intervals.interval import Cell, Interval, again, interval, jackknife
from gradestack.intervals.task_cells import CellsState, TaskCells
from gradestack.intervals.tasks import mappings, task_of
from gradestack.model import JSON, Grade, Key, Outcome

_CELLS = TaskCells("counted", "sum", "outside")
_WIDTH = len(_CELLS.names)
CELLS = "(cells of gate "
"""What the keys of the metrics below begin with: none that a suite would give its own."""


@attrs.frozen(kw_only=True)
class GateCells(Aggregator[CellsState]):
    """What each task adds to the figure of one grader that a gate compares, by the gate's groups."""

    memory = "per_key"

    gate: AggregateGate
    per: str | None

    @override
    def start(self) -> CellsState:
        return _CELLS.start()

    @override
    def add(self, state: CellsState, key: Key, grade: Grade) -> CellsState:
        gate, score = self.gate, grade.score
        percent = gate.aggregation in PERCENT
        if score is not None:
            value = int(gate.sample_passes(score)) if percent else float(score)
            cell: list[float] = [1, value, int(not 0 <= value <= 1)]
        elif over_total(gate) and grade.outcome in (Outcome.FAILED, Outcome.MISSING):
            cell = [1, int(gate.op in ("lt", "lte")), 0]
        else:
            return state
        found = key.model if self.per == "model" else key.facets.get(self.per) if self.per else ""
        _CELLS.add_to(state, "none" if found is None else str(found), task_of(key), cell)
        return state

    @override
    def merge(self, left: CellsState, right: CellsState) -> CellsState:
        return _CELLS.merge(left, right)

    @override
    def finish(self, state: CellsState) -> Mapping[str, JSON]:
        return {"cells": _CELLS.settled(state)}


def counted_gates(gates: Sequence[AnyGate]) -> Iterable[tuple[str, str, GateCells]]:
    """Yield grader key, metric key and aggregator for every figure whose interval takes one.

    Quantiles have no interval, and figures by path have that of their aggregator.
    """
    number = 0
    for gate in gates:
        for leaf in leaves(gate):
            number += 1
            if not isinstance(leaf, FigureGate) and leaf.aggregation in ("avg_score", *PERCENT):
                for key in _keys(leaf):
                    yield key, f"{CELLS}{number})", GateCells(gate=leaf, per=gate.per)


def _keys(gate: AggregateGate) -> list[str]:
    return list(gate.weights) if isinstance(gate, WeightedGate) else [gate.metric_key or ""]


class Sureness:
    """Intervals of what gates compare.

    Args:
        gates: The gates of the suite.
        aggregates: What the aggregators of a run computed; what :class:`GateCells` kept is taken out of it.
        bounds: Grader key -> least and greatest score there can be.
    """

    def __init__(
        self,
        gates: Sequence[AnyGate],
        aggregates: Mapping[str, dict[str, Any]],
        bounds: Mapping[str, tuple[float, float]],
    ) -> None:
        self.bounds, self.aggregates = bounds, aggregates
        self.cells: dict[int, dict[str, CellsState]] = {}
        numbers = {id(leaf): at for at, leaf in enumerate((leaf for gate in gates for leaf in leaves(gate)), 1)}
        for key, metrics in aggregates.items():
            for name in [name for name in metrics if name.startswith(CELLS)]:
                for leaf, number in numbers.items():
                    if name == f"{CELLS}{number})":
                        self.cells.setdefault(leaf, {})[key] = metrics[name].get("cells", {})
                del metrics[name]

    def interval(self, gate: Threshold, actual: float | None, group: str | None) -> Interval:
        """Return the 95 % interval of a gate's figure, as a fraction where that is in percent; or why there is none.

        Args:
            gate: The gate.
            actual: What it compares.
            group: The only group of it; None for all samples.
        """
        if actual is None:
            return {"reason": "undefined"}
        if isinstance(gate, FigureGate):
            found = beside(self.aggregates, gate.path, gate.component)
            return {"reason": "the figure has no interval"} if found is None else again(found, actual, 0.95)
        if gate.aggregation not in ("avg_score", *PERCENT):
            return {"reason": "quantile"}
        keys, held = _keys(gate), self.cells.get(id(gate), {})
        weights = gate.weights if isinstance(gate, WeightedGate) else dict.fromkeys(keys, 1.0)
        used = [key for key in keys if weights[key]]
        tasks = _joint([held.get(key, {}) for key in used], group)
        total = math.fsum(weights[key] for key in used)

        def formula(*sums: float) -> dict[str, float | None]:
            parts = []
            for at, key in enumerate(used):
                counted, found, _ = sums[_WIDTH * at : _WIDTH * (at + 1)]
                if not counted:
                    return {"figure": None}
                parts.append(weights[key] * found / counted)
            return {"figure": math.fsum(parts) / total}

        width = _WIDTH * len(used)
        counted = [sum(int(cell[at]) * times for cell, times in tasks.items()) for at in range(0, width, _WIDTH)]
        outside = any(cell[at] for cell in tasks for at in range(2, width, _WIDTH))
        estimate, n = jackknife(formula, tasks, width)["figure"], max(counted, default=0)
        bounds = [self.bounds.get(key, (0.0, 1.0)) for key in used]
        shares = [low >= 0 and high <= 1 for low, high in bounds]
        if gate.aggregation in PERCENT or (not outside and all(shares)):
            return interval(estimate, n)
        lows = [-math.inf if share else low for share, (low, _) in zip(shares, bounds, strict=True)]
        least = math.fsum(weights[key] * low for key, low in zip(used, lows, strict=True)) / total
        return interval(estimate, n, share=False, least=least)


def _joint(states: Sequence[CellsState], group: str | None) -> Counter[Cell]:
    """Return how many tasks have which cells of several states, one after the other; those without any are left out."""
    wanted = [(at, tasks) for at, state in enumerate(states) for name, tasks in state.items() if group in (None, name)]
    found: Counter[Cell] = Counter()
    for parts in mappings([tasks for _, tasks in wanted], _CELLS.fewer):
        joined: dict[str, list[list[float]]] = {}
        for (at, _), tasks in zip(wanted, parts, strict=True):
            for task, notes in tasks.items():
                joined.setdefault(task, [[] for _ in states])[at] += chain.from_iterable(notes)
        for each in joined.values():
            found[tuple([math.fsum(cells[place::_WIDTH]) for cells in each for place in range(_WIDTH)])] += 1
    return found
