"""Counts of grades that every run has: states, scores, and how many pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from gradestack.grading.plan import SampleRule
from gradestack.model import Grade, Outcome, replace
from gradestack.table import Table


def _no_states() -> dict[str, int]:
    return {str(outcome): 0 for outcome in Outcome}


class Count(msgspec.Struct):
    """Counts of one grader's grades."""

    states: dict[str, int] = msgspec.field(default_factory=_no_states)
    scores: Counter[float] = msgspec.field(default_factory=Counter)
    """Score -> samples that have it."""
    passed: int = 0
    unreadable: int = 0
    """Records no sample could be made of, where they count as lost."""

    @property
    def graded(self) -> int:
        """Samples with a score."""
        return self.states[Outcome.GRADED]

    @property
    def lost(self) -> int:
        """Samples the grader applies to and has no score for.

        Failed, missing or unreadable ones.
        """
        return self.states[Outcome.FAILED] + self.states[Outcome.MISSING] + self.unreadable

    def with_unreadable(self, number: int) -> Count:
        """Return the same with unreadable records, where the grader applies to anything else."""
        return replace(self, unreadable=number if self.graded or self.lost else 0)

    @property
    def sum(self) -> Fraction:
        """Sum of the scores, exact."""
        products = (Fraction(score) * times for score, times in self.scores.items())
        return sum(products, Fraction(0))

    def add(self, grade: Grade, times: int, rule: SampleRule | None) -> None:
        """Count so many equal grades; without a rule a score of 1 or more passes."""
        self.states[grade.outcome] += times
        if grade.score is None:
            return
        self.scores[grade.score] += times
        passes = grade.score >= 1.0 if rule is None else rule.sample_passes(grade.score)
        self.passed += times * passes


def counts_by_model(
    table: Table, key: str, rule: SampleRule | None, rows: Sequence[int] | None = None
) -> dict[str, Count]:
    """Count a grader's grades by model, in the order of first samples; "" names no model."""
    models, grades = table.keys["model"].values, table.grades(key)
    counts: dict[str, Count] = {}
    for (verdict, model), times in table.count_verdicts(key, rows).items():
        name = models[model] or ""
        if name not in counts:
            counts[name] = Count()
        counts[name].add(grades[verdict], times, rule)
    return counts


def merge_counts(counts: Iterable[Count]) -> Count:
    """Add up the counts of several models."""
    merged = Count()
    for count in counts:
        for state, times in count.states.items():
            merged.states[state] += times
        merged.scores.update(count.scores)
        merged.passed += count.passed
    return merged
