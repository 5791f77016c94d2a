"""How many of the runs a gate is about were graded, and in which states the others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from gradestack.model import Outcome
from gradestack.table import Table

UNREADABLE = "unreadable"
"""State of a record of which no run could be made."""


class Coverage(msgspec.Struct, frozen=True):
    """Runs that a grader graded, out of all and out of those it should have graded."""

    graded: int
    runs: int
    """All runs, with records that could not be read."""
    required: int
    """The runs without those that another grader grades in its place."""
    states: Mapping[str, int]
    """State of the runs that were not graded -> their number."""

    def is_below(self, least: float) -> bool:
        """Return whether fewer than this share of the required runs were graded."""
        return self.graded < least * self.required


def measure_coverage(table: Table, key: str, rows: Sequence[int], unreadable: int = 0) -> Coverage:
    """Count the runs that a grader graded among some rows.

    Args:
        table: The grades.
        key: Key of the grader.
        rows: Numbers of the rows the gate is about.
        unreadable: Records that could not be read.
    """
    outcomes = outcomes_of(table, key, rows)
    counts = Counter(str(outcome) for outcome in outcomes)
    if unreadable:
        counts[UNREADABLE] = unreadable
    graded = counts.pop(str(Outcome.GRADED), 0)
    runs = len(rows) + unreadable
    elsewhere = count_graded_elsewhere(table, key, rows, outcomes)
    return Coverage(graded, runs, runs - elsewhere, dict(counts))


def outcomes_of(table: Table, key: str, rows: Sequence[int]) -> list[Outcome]:
    """List a grader's outcome for each row."""
    by_code = [grade.outcome for grade in table.grades(key)]
    codes = table.verdicts[key].codes
    return [by_code[codes[row]] for row in rows]


def count_graded_elsewhere(
    table: Table, key: str, rows: Sequence[int], outcomes: Sequence[Outcome]
) -> int:
    """Count the runs that a grader skips and that another grader grades in its place.

    Another grader stands in where it is for other runs: it grades fewer than half of the runs that
    this grader grades. A grader of everything, such as one of cost, stands in for nobody.
    """
    skipped = [outcome == Outcome.SKIPPED for outcome in outcomes]
    graded = [outcome == Outcome.GRADED for outcome in outcomes]
    number = sum(graded)
    if not number or not any(skipped):
        return 0
    is_elsewhere = [False] * len(rows)
    for other in table.verdicts:
        if other == key:
            continue
        flags = [outcome == Outcome.GRADED for outcome in outcomes_of(table, other, rows)]
        shared = sum(map(min, graded, flags))
        if 2 * shared < number:
            is_elsewhere = [known or flag for known, flag in zip(is_elsewhere, flags, strict=True)]
    return sum(map(min, skipped, is_elsewhere))
