"""Counts and metrics of one shard, folded block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradestack.api import Aggregator
from gradestack.gate import SampleRule
from gradestack.model import Grade, Key, Outcome
from gradestack.tally import Tally, add_times, new_count

_MOST_DIFFERENT = 4096
"""Different scores counted before they are settled."""
_GRADED = Outcome.GRADED
_Told = tuple[str, bool, Outcome, float | None]
"""What the tally wants to know of a grade: model, whether the recorded run did not fail, outcome, score."""


class Counting:
    """Folds grades into tally and metrics.

    Args:
        keys: Grader keys.
        metrics: Aggregators, each with the key of the grader it reads.
        gate: Per-sample rule.
        broken: Told about metrics that raise, by their number.

    Attributes:
        states: The aggregators' states, in their order.
    """

    def __init__(
        self,
        keys: Iterable[str],
        metrics: Sequence[tuple[str, Aggregator[Any]]],
        gate: SampleRule | None,
        broken: Callable[[int, BaseException], None],
    ) -> None:
        self._gate, self._metrics, self._broken = gate, metrics, broken
        self.states: list[Any] = [each.start() for _, each in metrics]
        self._tally: Tally = {}
        self._told: dict[str, Counter[_Told]] = {key: Counter() for key in keys}

    def add(self, keys: list[Key], columns: dict[str, list[Grade]], ran: list[bool]) -> None:
        """Count a block of samples; ``ran`` says of each whether its recorded run did not fail."""
        for number, (of, aggregator) in enumerate(self._metrics):
            try:
                self.states[number] = aggregator.add_many(self.states[number], keys, columns[of])
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the other metrics must not be lost with it
                self._broken(number, error)
        models = [key.model or "" for key in keys]
        for name, grades in columns.items():
            told = self._told[name]
            told.update(
                zip(models, ran, [each.outcome for each in grades], [each.score for each in grades], strict=True)
            )
            if len(told) > _MOST_DIFFERENT:
                self._settle()

    def _settle(self) -> None:
        for name, told in self._told.items():
            for (model, ran, outcome, score), times in told.items():
                counts = self._tally.get(model)
                if counts is None:
                    counts = self._tally[model] = {key: new_count() for key in self._told}
                add_times(counts[name], outcome, score, times, self._gate, ran=ran)
            told.clear()

    def tally(self) -> Tally:
        """Return the tally of everything added."""
        self._settle()
        return self._tally
