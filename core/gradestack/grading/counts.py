"""The figures every run has, whatever its graders: counts by state, averages, pass rates; per grader and per model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Protocol

import attrs

from gradestack.model import Outcome
from gradestack.table import Table


class SampleRule(Protocol):
    """What decides whether one score passes."""

    def sample_passes(self, score: float) -> bool:
        """Return whether one score passes."""


def passes(gate: SampleRule | None, score: float) -> bool:
    """Return whether one score passes by the gate's per-sample rule; without a gate, score >= 1.0."""
    return score >= 1.0 if gate is None else gate.sample_passes(score)


@attrs.define
class Count:
    """What is counted of one grader's grades."""

    states: dict[str, int] = attrs.field(factory=lambda: {str(outcome): 0 for outcome in Outcome})
    sum: Fraction = Fraction(0)
    """Of the scores, exact."""
    passed: int = 0
    ran: int = 0
    """Samples whose recorded run did not fail, whatever the grade."""
    passed_ran: int = 0
    """Those of them that pass."""

    @property
    def graded(self) -> int:
        """Samples with a score."""
        return self.states[Outcome.GRADED]

    @property
    def lost(self) -> int:
        """Samples the grader applies to and has no score for: those that failed or are missing."""
        return self.states[Outcome.FAILED] + self.states[Outcome.MISSING]


def counted(table: Table, key: str, rule: SampleRule | None, rows: Sequence[int] | None = None) -> Count:
    """Return what is counted of a grader's grades.

    Args:
        table: The grades.
        key: The grader.
        rule: What decides whether one score passes.
        rows: Rows of the table; default: all.
    """
    codes = table.verdicts[key].codes
    pairs: Iterable[tuple[int, int]] = (
        zip(codes, table.ran, strict=True) if rows is None else [(codes[row], table.ran[row]) for row in rows]
    )
    grades, found = table.grades(key), Count()
    scores: Counter[float] = Counter()
    for (code, ran), times in Counter(pairs).items():
        grade = grades[code]
        found.states[grade.outcome] += times
        found.ran += times * ran
        if grade.score is not None:
            passed = passes(rule, grade.score)
            scores[grade.score] += times
            found.passed += times * passed
            found.passed_ran += times * passed * ran
    found.sum = sum((Fraction(score) * times for score, times in scores.items()), Fraction(0))
    return found
