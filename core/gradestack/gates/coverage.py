"""The number of graded runs of a gate, and the states of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from gradestack.model import Outcome
from gradestack.table import Table

UNREADABLE = "unreadable"
"""State of a record of which no run could be made."""
_LOST = (str(Outcome.FAILED), str(Outcome.MISSING), UNREADABLE)


class Coverage(msgspec.Struct, omit_defaults=True):
    """Runs that a grader graded, out of all, as summary.json has it."""

    graded: int
    runs: int
    """All runs, with records that could not be read."""
    states: dict[str, int]
    """State of the runs that were not graded and are no other grader's -> their number."""
    elsewhere: dict[str, int] = {}
    """Another grader -> the number of runs that are its own, not this one's."""
    reason: str | None = None
    """The most frequent reason of the most frequent of the states."""

    @property
    def required(self) -> int:
        """The runs without those that are another grader's."""
        elsewhere = self.elsewhere.values()
        return self.runs - sum(elsewhere)

    @property
    def lost(self) -> int:
        """The runs that failed, are missing or could not be read."""
        return sum(self.states.get(state, 0) for state in _LOST)

    @property
    def main_state(self) -> str:
        """The most frequent of the states; "" where there is none."""
        return max(self.states, key=self.states.__getitem__, default="")

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
    counts = count_outcomes(table, rows)
    stand_ins = find_stand_ins(counts, key)
    states: Counter[str] = Counter()
    elsewhere: Counter[str] = Counter()
    for outcomes, times in counts:
        applied = [other for other in stand_ins if outcomes[other] != Outcome.SKIPPED]
        if applied and outcomes[key] == Outcome.SKIPPED:
            graded_by = [other for other in applied if outcomes[other] == Outcome.GRADED]
            stand_in = [*graded_by, *applied][0]
            elsewhere[stand_in] += times
        else:
            states[str(outcomes[key])] += times
    if unreadable:
        states[UNREADABLE] = unreadable
    graded = states.pop(str(Outcome.GRADED), 0)
    return Coverage(graded, len(rows) + unreadable, dict(states), dict(elsewhere))


OutcomeCounts = Sequence[tuple[Mapping[str, Outcome], int]]
"""Outcomes of a run by grader -> how many runs have them, in order of first appearance."""


def count_outcomes(table: Table, rows: Sequence[int]) -> OutcomeCounts:
    """Count which outcomes of all graders runs have."""
    columns = []
    for key, verdicts in table.verdicts.items():
        grades = table.grades(key)
        by_code = [grade.outcome for grade in grades]
        codes = verdicts.codes
        columns.append([by_code[codes[row]] for row in rows])
    counts = []
    for outcomes, times in Counter(zip(*columns, strict=True)).items():
        by_grader = dict(zip(table.verdicts, outcomes, strict=True))
        counts.append((by_grader, times))
    return counts


def find_stand_ins(counts: OutcomeCounts, key: str) -> list[str]:
    """Return the graders that grade runs in a grader's place.

    Each is for other runs: of those that this grader grades it skips more than half. A grader of
    everything, such as one of cost, stands in for nobody.
    """
    graded: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for outcomes, times in counts:
        if outcomes[key] == Outcome.GRADED:
            for other, outcome in outcomes.items():
                graded[other] += times
                skipped[other] += times * (outcome == Outcome.SKIPPED)
    return [other for other in graded if 2 * skipped[other] > graded[other]]
