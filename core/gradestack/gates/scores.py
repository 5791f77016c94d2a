"""Figures for gates: counted while grading, or aggregated from the scores in results.jsonl."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import attrs

from gradestack.api import Profile
from gradestack.exact import exact_mean
from gradestack.gates.figures import grader_figures
from gradestack.gates.rules import PERCENT, GateSpec, Threshold
from gradestack.grading.counts import Count
from gradestack.model import Outcome, Status
from gradestack.rows.read import Row

_QUANTILES: dict[str, float] = {"min": 0.0, "median": 0.5, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@attrs.frozen
class Counted:
    """What a flat gate compares, as counted while grading: no row is read, and samples pass by the run's own rule."""

    counts: Mapping[str, Count]

    def figure(self, gate: Threshold, key: str, profile: Profile) -> float | None:
        """Return the average score, or for ``accuracy`` the pass rate; None without data."""
        name = "pass_rate" if gate.aggregation in PERCENT else "avg_score_attempted"
        return cast("float | None", grader_figures(self.counts[key], profile)[name])


class Series:
    """Scores by grader key, in input order.

    Attributes:
        graded: Those of all graded samples.
        ran: Those of recorded runs that did not fail, as letta-evals' accuracy has it.
        runs: How many such runs there are, graded or not.
    """

    def __init__(self) -> None:
        self.graded: dict[str, list[float]] = {}
        self.ran: dict[str, list[float]] = {}
        self.runs = 0

    def add(self, scores: Mapping[str, float], *, ran: bool) -> None:
        """Add the scores of one sample, by grader key; ``ran`` says whether its recorded run did not fail."""
        self.runs += ran
        for key, score in scores.items():
            self.graded.setdefault(key, []).append(score)
            if ran:
                self.ran.setdefault(key, []).append(score)

    def figure(self, gate: Threshold, key: str, profile: Profile) -> float | None:
        """Return one figure of a grader's scores; None when there are none.

        Accuracy is the percentage of graded samples that pass; of a flat gate in ``upstream``, of the recorded runs
        that did not fail, graded or not.
        """
        scores = self.graded.get(key, [])
        if gate.aggregation in PERCENT:
            counted, of = scores, len(scores)
            if isinstance(gate, GateSpec) and profile == "upstream":
                counted, of = self.ran.get(key, []), self.runs
            return 100.0 * sum(map(gate.sample_passes, counted)) / of if of else None
        if gate.aggregation == "avg_score" or not scores:
            return exact_mean(scores, len(scores))
        return quantile(sorted(scores), _QUANTILES[gate.aggregation])


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
        read: Yields the rows anew each time it is called.
        run: Leave out the rows of other runs.
    """

    def __init__(self, read: Callable[[], Iterator[Row]], run: Any = ...) -> None:
        self._read, self._run = read, run

    def _rows(self) -> Iterator[Row]:
        for row in self._read():
            if self._run is ... or row["run"] == self._run:
                yield row

    @cached_property
    def everything(self) -> Series:
        """Scores of all rows."""
        found = Series()
        for row in self._rows():
            _add_scores(found, row)
        return found

    def groups(self, per: str) -> Mapping[str, Series]:
        """Return group name -> series, by model or by a facet, in order of first appearance.

        A facet that no row has gives no groups, so that a mistyped one does not pass for a group of everything. A group
        in which nothing could be graded is there too, with no scores: a gate has no data about it.
        """
        found: dict[str, Series] = {}
        known = False
        for row in self._rows():
            value = row["model_name"] if per == "model" else row["facets"].get(per)
            name = value if isinstance(value, str) else "none" if value is None else str(value)
            _add_scores(found.setdefault(name, Series()), row)
            known = known or value is not None
        return found if known or per == "model" else {}


def _add_scores(into: Series, row: Row) -> None:
    graded = {key: grade["score"] for key, grade in row["grades"].items() if grade["state"] == Outcome.GRADED}
    into.add(graded, ran=row["status"] == Status.OK)
