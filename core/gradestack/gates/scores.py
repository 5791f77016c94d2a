"""What gates compare: figures of the scores in the table of grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import attrs

from gradestack.api import Profile
from gradestack.gates.rules import PERCENT, AggregateGate, GateSpec, over_total
from gradestack.grading.counts import counted
from gradestack.jsonio.values import compact
from gradestack.table import Table

_QUANTILES: dict[str, float] = {"min": 0.0, "median": 0.5, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@attrs.frozen
class Figure:
    """What a gate compares, and how much of the samples it is about."""

    value: Fraction | float | None
    """Not rounded where it is a mean or a share; None without data."""
    counted: int
    """Samples that count in it."""
    of: int
    """Samples the grader applies to: graded, failed and missing ones."""


def _figure(gate: AggregateGate, passed: int, graded: int, lost: int, average: Callable[[], Any]) -> Figure:
    """Return a figure of graded samples beside ``lost`` ones, which failed or are missing.

    Where these count they count against the gate: as passed for an upper bound, as not passed for any other.
    """
    if gate.aggregation not in PERCENT:
        return Figure(average() if graded else None, graded, graded + lost)
    counted = graded
    if over_total(gate):
        counted += lost
        passed += lost if gate.op in ("lt", "lte") else 0
    return Figure(Fraction(100 * passed, counted) if counted else None, counted, graded + lost)


class Scores:
    """Scores by grader key."""

    def __init__(self, table: Table, rows: Sequence[int] | None = None) -> None:
        self.table = table
        self.rows: Sequence[int] = range(len(table)) if rows is None else rows

    def figure(self, gate: AggregateGate, key: str, profile: Profile) -> Figure:
        """Return one figure of a grader's scores.

        Accuracy is the percentage of samples that pass; of a flat gate in ``upstream``, of the recorded runs that did
        not fail, graded or not, else there of the graded ones.
        """
        codes, grades, ran = self.table.verdicts[key].codes, self.table.grades(key), self.table.ran
        scored = [(score, ran[row]) for row in self.rows if (score := grades[codes[row]].score) is not None]
        scores = [score for score, _ in scored]
        graded, of = self.extent(key)
        if profile != "upstream":
            passed = sum(map(gate.sample_passes, scores)) if gate.aggregation in PERCENT else 0
            return _figure(gate, passed, graded, of - graded, lambda: _aggregate(gate, scores))
        if gate.aggregation not in PERCENT:
            return Figure(float(_aggregate(gate, scores)) if scores else None, graded, of)
        attempted = len(scores)
        if isinstance(gate, GateSpec):
            scores = [score for score, did in scored if did]
            attempted = sum(ran[row] for row in self.rows)
        value = 100.0 * sum(map(gate.sample_passes, scores)) / attempted if attempted else None
        return Figure(value, graded, of)

    def extent(self, key: str) -> tuple[int, int]:
        """Return how many samples a grader has graded, and how many it applies to."""
        count = counted(self.table, key, None, self.rows)
        return count.graded, count.graded + count.lost

    def groups(self, per: str) -> dict[str, Scores]:
        """Return group name -> scores, by model or by a facet, in order of first appearance.

        A facet that no sample has gives no groups, so that a mistyped one does not pass for a group of everything. A
        group in which nothing could be graded is there too, with no scores: a gate has no data about it.
        """
        column = self.table.keys["model" if per == "model" else "facets"]
        values = (
            [each or None for each in column.values]
            if per == "model"
            else [facets.get(per) for facets in self.table.facets()]
        )
        names = _names(values)
        found: dict[str, list[int]] = {}
        known = per == "model"
        for row in self.rows:
            code = column.codes[row]
            found.setdefault(names[code], []).append(row)
            known = known or values[code] is not None
        return {name: Scores(self.table, rows) for name, rows in found.items()} if known else {}


def _names(values: Sequence[Any]) -> list[str]:
    """Return a name for each value, the same for equal ones only: a model called ``none`` is not one without a name."""
    known: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        text = compact(value)
        if text not in known:
            name = "none" if value is None else str(value)
            known[text] = f"{name} ({text})" if name in taken else name
            taken.add(known[text])
    return [known[compact(value)] for value in values]


def _aggregate(gate: AggregateGate, scores: list[float]) -> Fraction | float:
    if gate.aggregation != "avg_score":
        return quantile(sorted(scores), _QUANTILES[gate.aggregation])
    return sum((Fraction(score) * times for score, times in Counter(scores).items()), Fraction(0)) / len(scores)


def quantile(ordered: list[float], q: float) -> float:
    """Return the q-quantile of sorted values by linear interpolation (position q x (n - 1), as numpy's default)."""
    position = (len(ordered) - 1) * q
    low = int(position)
    share = position - low
    if not share:
        return ordered[low]
    below, above = ordered[low], ordered[low + 1]
    return above - (above - below) * (1 - share) if share >= 0.5 else below + (above - below) * share
