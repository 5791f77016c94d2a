"""The figures every run has, whatever its graders: counts by state, averages, pass rates; per grader and per model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import msgspec

from gradestack.grading.plan import SampleRule
from gradestack.model import Outcome, replace
from gradestack.table import Table


def passes(gate: SampleRule | None, score: float) -> bool:
    """Return whether one score passes by the gate's per-sample rule; without a gate, score >= 1.0."""
    return score >= 1.0 if gate is None else gate.sample_passes(score)


class Count(msgspec.Struct):
    """What is counted of one grader's grades."""

    states: dict[str, int] = msgspec.field(default_factory=lambda: {str(outcome): 0 for outcome in Outcome})
    scores: Counter[float] = msgspec.field(default_factory=Counter)
    """Score -> samples that have it."""
    passed: int = 0
    ran: int = 0
    """Samples whose recorded run did not fail, whatever the grade."""
    passed_ran: int = 0
    """Those of them that pass."""
    unreadable: int = 0
    """Records no sample could be made of, where they count as lost."""

    @property
    def graded(self) -> int:
        """Samples with a score."""
        return self.states[Outcome.GRADED]

    @property
    def lost(self) -> int:
        """Samples the grader applies to and has no score for: failed, missing or unreadable ones."""
        return self.states[Outcome.FAILED] + self.states[Outcome.MISSING] + self.unreadable

    def with_unreadable(self, number: int) -> Count:
        """Return the same with unreadable records, where the grader applies to anything else."""
        return replace(self, unreadable=number if self.graded or self.lost else 0)

    @property
    def sum(self) -> Fraction:
        """Sum of the scores, exact."""
        return sum((Fraction(score) * times for score, times in self.scores.items()), Fraction(0))

    def add(self, outcome: str, score: float | None, times: int, ran: int, rule: SampleRule | None) -> None:
        """Count so many alike grades of samples whose recorded runs did not fail (1), or did (0)."""
        self.states[outcome] += times
        self.ran += times * ran
        if score is not None:
            passed = passes(rule, score)
            self.scores[score] += times
            self.passed += times * passed
            self.passed_ran += times * passed * ran


def counted(table: Table, key: str, rule: SampleRule | None, rows: Sequence[int] | None = None) -> dict[str, Count]:
    """Return what is counted of a grader's grades: of each model, in the order of first samples, empty for none."""
    models, grades = table.keys["model"], table.grades(key)
    columns: list[Sequence[int]] = [table.verdicts[key].codes, models.codes, table.ran]
    if rows is not None:
        columns = [list(map(codes.__getitem__, rows)) for codes in columns]
    found: dict[str, Count] = {}
    alike: Counter[tuple[str, str, float | None, int]] = Counter()
    for (code, model, ran), times in Counter(zip(*columns, strict=True)).items():
        grade = grades[code]
        alike[models.values[model] or "", grade.outcome, grade.score, ran] += times
    for (name, outcome, score, ran), times in alike.items():
        found.setdefault(name, Count()).add(outcome, score, times, ran, rule)
    return found


def in_all(counts: Iterable[Count]) -> Count:
    """Return what counts of several models come to."""
    found = Count()
    for each in counts:
        found.states = {state: times + each.states[state] for state, times in found.states.items()}
        found.scores.update(each.scores)
        found.passed += each.passed
        found.ran += each.ran
        found.passed_ran += each.passed_ran
    return found
