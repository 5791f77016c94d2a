"""How many of the runs a gate is about were graded, and in which states the others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from gradestack.model import JSON, Outcome
from gradestack.table import Table

UNREADABLE = "unreadable"
"""State of a record of which no run could be made."""


class Coverage(msgspec.Struct, frozen=True):
    """Runs that a grader graded, out of all and out of those it should have graded."""

    graded: int
    runs: int
    """All runs, with records that could not be read."""
    elsewhere: Mapping[str, int]
    """Another grader -> the number of runs that are its own, not this one's."""
    states: Mapping[str, int]
    """State of the other runs that were not graded -> their number."""

    @property
    def required(self) -> int:
        """The runs without those that are another grader's."""
        return self.runs - sum(self.elsewhere.values())

    def is_below(self, least: float) -> bool:
        """Return whether fewer than this share of the required runs were graded."""
        return self.graded < least * self.required

    def as_json(self) -> dict[str, JSON]:
        """Return it as summary.json has it."""
        counts: dict[str, JSON] = {"graded": self.graded, "runs": self.runs}
        if self.elsewhere:
            counts["elsewhere"] = dict(self.elsewhere)
        return {**counts, "states": dict(self.states)}


def measure_coverage(table: Table, key: str, rows: Sequence[int], unreadable: int = 0) -> Coverage:
    """Count the runs that a grader graded among some rows.

    Args:
        table: The grades.
        key: Key of the grader.
        rows: Numbers of the rows the gate is about.
        unreadable: Records that could not be read.
    """
    outcomes = outcomes_of(table, key, rows)
    instead = graders_instead(table, rows, outcomes)
    states: Counter[str] = Counter()
    elsewhere: Counter[str] = Counter()
    for outcome, grader in zip(outcomes, instead, strict=True):
        if grader is not None:
            elsewhere[grader] += 1
        else:
            states[str(outcome)] += 1
    if unreadable:
        states[UNREADABLE] = unreadable
    graded = states.pop(str(Outcome.GRADED), 0)
    return Coverage(graded, len(rows) + unreadable, dict(elsewhere), dict(states))


def outcomes_of(table: Table, key: str, rows: Sequence[int]) -> list[Outcome]:
    """List a grader's outcome for each row."""
    by_code = [grade.outcome for grade in table.grades(key)]
    codes = table.verdicts[key].codes
    return [by_code[codes[row]] for row in rows]


def graders_instead(
    table: Table, rows: Sequence[int], outcomes: Sequence[Outcome]
) -> list[str | None]:
    """Name for each row the grader whose run it is, where one with these outcomes skips it.

    Another grader stands in where it is for other runs: of those that this grader grades it skips
    more than half. A grader of everything, such as one of cost, stands in for nobody.
    """
    instead: list[str | None] = [None] * len(rows)
    graded = outcomes.count(Outcome.GRADED)
    if not graded or Outcome.SKIPPED not in outcomes:
        return instead
    stand_ins: dict[str, list[Outcome]] = {}
    for other in table.verdicts:
        others = outcomes_of(table, other, rows)
        both = [*zip(outcomes, others, strict=True)]
        if 2 * both.count((Outcome.GRADED, Outcome.SKIPPED)) > graded:
            stand_ins[other] = others
    for states in ((Outcome.GRADED,), (Outcome.FAILED, Outcome.MISSING)):
        for other, others in stand_ins.items():
            for place, (outcome, another) in enumerate(zip(outcomes, others, strict=True)):
                is_free = outcome == Outcome.SKIPPED and instead[place] is None
                if is_free and another in states:
                    instead[place] = other
    return instead
