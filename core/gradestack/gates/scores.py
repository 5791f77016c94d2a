"""Figures for gates: counted while grading, or aggregated from the scores in results.jsonl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import attrs

from gradestack.api import Profile
from gradestack.exact import exact_ratio
from gradestack.gates.figures import grader_figures, ungraded
from gradestack.gates.rules import PERCENT, AggregateGate, GateSpec, over_total
from gradestack.grading.counts import Count
from gradestack.model import Outcome, Status
from gradestack.rows.read import Row

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


@attrs.frozen
class Counted:
    """What a flat gate compares, as counted while grading: no row is read, and samples pass by the run's own rule."""

    counts: Mapping[str, Count]

    def figure(self, gate: AggregateGate, key: str, profile: Profile) -> Figure:
        """Return the average score, or for ``accuracy`` the pass rate."""
        count = self.counts[key]
        graded, of = self.extent(key)
        if profile == "upstream":
            name = "pass_rate" if gate.aggregation in PERCENT else "avg_score_attempted"
            return Figure(cast("float", grader_figures(count, profile)[name]), graded, of)
        return _figure(gate, count["passed"], graded, of - graded, lambda: exact_ratio(count["sum"], graded))

    def extent(self, key: str) -> tuple[int, int]:
        """Return how many samples a grader has graded, and how many it applies to."""
        states = self.counts[key]["states"]
        graded = states[Outcome.GRADED]
        return graded, graded + ungraded(states)


class Series:
    """Scores by grader key, in input order.

    Attributes:
        graded: Those of all graded samples.
        lost: How many samples failed or are missing.
        ran: Scores of recorded runs that did not fail, as letta-evals' accuracy has it.
        runs: How many such runs there are, graded or not.
    """

    def __init__(self) -> None:
        self.graded: dict[str, list[float]] = {}
        self.lost: Counter[str] = Counter()
        self.ran: dict[str, list[float]] = {}
        self.runs = 0

    def add(self, scores: Mapping[str, float], *, ran: bool, lost: Iterable[str] = ()) -> None:
        """Add one sample.

        Args:
            scores: Grader key -> score.
            ran: Whether its recorded run did not fail.
            lost: Keys of graders it failed or is missing for.
        """
        self.runs += ran
        self.lost.update(lost)
        for key, score in scores.items():
            self.graded.setdefault(key, []).append(score)
            if ran:
                self.ran.setdefault(key, []).append(score)

    def figure(self, gate: AggregateGate, key: str, profile: Profile) -> Figure:
        """Return one figure of a grader's scores.

        Accuracy is the percentage of samples that pass; of a flat gate in ``upstream``, of the recorded runs that did
        not fail, graded or not, else there of the graded ones.
        """
        scores = self.graded.get(key, [])
        graded, of = self.extent(key)
        if profile == "upstream":
            return Figure(self._upstream(gate, key, scores), graded, of)
        passed = sum(map(gate.sample_passes, scores)) if gate.aggregation in PERCENT else 0
        return _figure(gate, passed, graded, of - graded, lambda: _aggregate(gate, scores))

    def extent(self, key: str) -> tuple[int, int]:
        """Return how many samples a grader has graded, and how many it applies to."""
        graded = len(self.graded.get(key, []))
        return graded, graded + self.lost[key]

    def _upstream(self, gate: AggregateGate, key: str, scores: list[float]) -> float | None:
        if gate.aggregation in PERCENT:
            counted, of = scores, len(scores)
            if isinstance(gate, GateSpec):
                counted, of = self.ran.get(key, []), self.runs
            return 100.0 * sum(map(gate.sample_passes, counted)) / of if of else None
        return float(_aggregate(gate, scores)) if scores else None


def _aggregate(gate: AggregateGate, scores: list[float]) -> Fraction | float:
    mean = exact_ratio(scores, len(scores)) if gate.aggregation == "avg_score" else None
    return quantile(sorted(scores), _QUANTILES[gate.aggregation]) if mean is None else mean


def quantile(ordered: list[float], q: float) -> float:
    """Return the q-quantile of sorted values by linear interpolation (position q x (n - 1), as numpy's default)."""
    position = (len(ordered) - 1) * q
    low = int(position)
    share = position - low
    if not share:
        return ordered[low]
    below, above = ordered[low], ordered[low + 1]
    return above - (above - below) * (1 - share) if share >= 0.5 else below + (above - below) * share


class RowSeries:
    """Scores of graded samples, read from rows when first asked for.

    Args:
        rows: Yields the rows anew each time it is called.
    """

    def __init__(self, rows: Callable[[], Iterator[Row]]) -> None:
        self.rows = rows

    @cached_property
    def everything(self) -> Series:
        """Scores of all rows."""
        found = Series()
        for row in self.rows():
            _add_scores(found, row)
        return found

    def groups(self, per: str) -> Mapping[str, Series]:
        """Return group name -> series, by model or by a facet, in order of first appearance.

        A facet that no row has gives no groups, so that a mistyped one does not pass for a group of everything. A group
        in which nothing could be graded is there too, with no scores: a gate has no data about it.
        """
        found: dict[str, Series] = {}
        known = False
        for row in self.rows():
            value = row["model_name"] if per == "model" else row["facets"].get(per)
            name = value if isinstance(value, str) else "none" if value is None else str(value)
            _add_scores(found.setdefault(name, Series()), row)
            known = known or value is not None
        return found if known or per == "model" else {}


def _add_scores(into: Series, row: Row) -> None:
    grades = row["grades"].items()
    graded = {key: grade["score"] for key, grade in grades if grade["state"] == Outcome.GRADED}
    lost = [key for key, grade in grades if grade["state"] in (Outcome.FAILED, Outcome.MISSING)]
    into.add(graded, ran=row["status"] == Status.OK, lost=lost)
