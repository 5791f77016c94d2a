"""The figures every run has, whatever its graders: counts by state, averages, pass rates; per grader and per model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypedDict

from gradestack.api import Aggregator
from gradestack.exact import Partials, merge_exact
from gradestack.exact import add_times as add_exact_times
from gradestack.model import Grade, Key, Outcome


class SampleRule(Protocol):
    """What decides whether one score passes."""

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes."""


def passes(gate: SampleRule | None, score: float) -> bool:
    """Return whether one score passes by the gate's per-sample rule; without a gate, score >= 1.0."""
    return score >= 1.0 if gate is None else gate.sample_passes(score)


class Count(TypedDict):
    """JSON state of one grader's figures."""

    states: dict[str, int]
    sum: Partials
    passed: int
    ran: int
    """Samples whose recorded run did not fail, whatever the grade."""
    passed_ran: int
    """Those of them that pass."""


Tally = dict[str, dict[str, Count]]
"""Model (JSON text: a name, or null) -> grader key -> figures."""


def new_count() -> Count:
    """Return the figures of nothing seen."""
    return {"states": {str(outcome): 0 for outcome in Outcome}, "sum": [], "passed": 0, "ran": 0, "passed_ran": 0}


def add_times(
    count: Count, outcome: Outcome, score: float | None, times: int, gate: SampleRule | None, *, ran: bool
) -> None:
    """Count grades of one outcome and score, in place."""
    count["states"][outcome] += times
    if ran:
        count["ran"] += times
    if score is not None:
        passed = times if passes(gate, score) else 0
        add_exact_times(count["sum"], score, times)
        count["passed"] += passed
        if ran:
            count["passed_ran"] += passed


def add_count(left: Count, right: Count) -> None:
    """Add ``right`` to ``left``, in place."""
    for state, number in right["states"].items():
        left["states"][state] += number
    merge_exact(left["sum"], right["sum"])
    for name in ("passed", "ran", "passed_ran"):
        left[name] += right[name]


def merge_tallies(left: Tally, right: Tally) -> Tally:
    """Add ``right`` to ``left`` in place and return ``left``; models keep the order of their first sample."""
    for model, counts in right.items():
        mine = left.setdefault(model, {})
        for key, count in counts.items():
            add_count(mine.setdefault(key, new_count()), count)
    return left


_MOST_DIFFERENT = 4096
"""Different scores counted before they are settled."""
_Seen = tuple[str, bool, Outcome, float | None]
"""What the tally wants to know of a grade: model, whether the recorded run did not fail, outcome, score."""


class Counting:
    """Folds grades into tally and metrics.

    Args:
        keys: Grader keys.
        metrics: Aggregators, each with its name and the key of the grader it reads.
        gate: Per-sample rule.
        broken: Called with the name of a metric that raises, and the error.

    Attributes:
        states: The aggregators' states, in their order.
    """

    def __init__(
        self,
        keys: Iterable[str],
        metrics: Sequence[tuple[str, str, Aggregator[Any]]],
        gate: SampleRule | None,
        broken: Callable[[str, BaseException], None],
    ) -> None:
        self._gate, self._metrics, self._broken = gate, metrics, broken
        self.states: list[Any] = [each.start() for *_, each in metrics]
        self._tally: Tally = {}
        self._seen: dict[str, Counter[_Seen]] = {key: Counter() for key in keys}

    def add(self, keys: list[Key], columns: dict[str, list[Grade]], ran: list[bool]) -> None:
        """Count a block of samples; ``ran`` says of each whether its recorded run did not fail."""
        for number, (name, of, aggregator) in enumerate(self._metrics):
            try:
                grades = aggregator.together(of, columns)
                self.states[number] = aggregator.add_many(self.states[number], keys, grades)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the other metrics must not be lost with it
                self._broken(name, error)
        models = [key.model or "" for key in keys]
        for name, grades in columns.items():
            seen = self._seen[name]
            seen.update(
                zip(models, ran, [each.outcome for each in grades], [each.score for each in grades], strict=True)
            )
            if len(seen) > _MOST_DIFFERENT:
                self._settle()

    def _settle(self) -> None:
        for name, seen in self._seen.items():
            for (model, ran, outcome, score), times in seen.items():
                counts = self._tally.get(model)
                if counts is None:
                    counts = self._tally[model] = {key: new_count() for key in self._seen}
                add_times(counts[name], outcome, score, times, self._gate, ran=ran)
            seen.clear()

    def tally(self) -> Tally:
        """Return the tally of everything added."""
        self._settle()
        return self._tally
