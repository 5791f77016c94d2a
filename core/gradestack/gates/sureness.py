"""How sure the figure is that a gate compares: its interval, clustered by task, of the whole formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from gradestack.estimates.interval import Cell, Interval, again, interval, jackknife
from gradestack.gates.rules import PERCENT, AggregateGate, FigureGate, Threshold, WeightedGate, over_total
from gradestack.gates.scores import Scores
from gradestack.model import Grade, Outcome

_WIDTH = 3


def _keys(gate: AggregateGate) -> list[str]:
    return list(gate.weights) if isinstance(gate, WeightedGate) else [gate.metric_key or ""]


class Sureness:
    """Intervals of what gates compare."""

    def __init__(self, bounds: Mapping[str, tuple[float, float]]) -> None:
        self.bounds = bounds

    def interval(
        self, gate: Threshold, actual: float | None, scores: Scores, beside: Interval | None = None
    ) -> Interval:
        """Return the 95 % interval of a gate's figure, as a fraction where that is in percent; or why there is none."""
        if actual is None:
            return {"reason": "undefined"}
        if isinstance(gate, FigureGate):
            return {"reason": "the figure has no interval"} if beside is None else again(beside, actual, 0.95)
        if gate.aggregation not in ("avg_score", *PERCENT):
            return {"reason": "quantile"}
        keys = _keys(gate)
        weights = gate.weights if isinstance(gate, WeightedGate) else dict.fromkeys(keys, 1.0)
        used = [key for key in keys if weights[key]]
        tasks = _joint(gate, used, scores)
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


def _cell(gate: AggregateGate, grade: Grade) -> Cell | None:
    """Return what a grade adds to the figure a gate compares: how many count, their sum, and whether it is no share."""
    if grade.score is not None:
        value = int(gate.sample_passes(grade.score)) if gate.aggregation in PERCENT else float(grade.score)
        return (1, value, int(not 0 <= value <= 1))
    if over_total(gate) and grade.outcome in (Outcome.FAILED, Outcome.MISSING):
        return (1, int(gate.op in ("lt", "lte")), 0)
    return None


def _joint(gate: AggregateGate, keys: Sequence[str], scores: Scores) -> Counter[Cell]:
    """Return how many tasks add what to the figures of several graders, one after the other; none where none does."""
    table = scores.table
    _, tasks = table.tasks()
    columns = [(table.verdicts[key].codes, [_cell(gate, grade) for grade in table.grades(key)]) for key in keys]
    by_task: dict[int, list[list[Cell]]] = {}
    for row in scores.rows:
        for at, (codes, cells) in enumerate(columns):
            cell = cells[codes[row]]
            if cell is not None:
                by_task.setdefault(tasks[row], [[] for _ in keys])[at].append(cell)
    return Counter(
        [
            tuple([math.fsum(cell[place] for cell in cells) for cells in each for place in range(_WIDTH)])
            for each in by_task.values()
        ]
    )
