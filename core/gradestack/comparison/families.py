"""Figures that are decided together: which are one test, and what Holm's rule says of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gradestack.comparison.paired import ROUNDING, Difference, are_one_test, holm
from gradestack.model import replace

CERTAIN = frozenset({"better", "worse", "higher", "lower"})
"""Verdicts that say that there is a difference."""
_WORDS = {
    "higher": ("better", "worse"),
    "lower": ("worse", "better"),
    "neither": ("higher", "lower"),
    "cause": ("more often", "less often"),
}
"""Which values are better -> verdicts on a rise and on a fall."""
_NUMBERS = ("a", "b", "difference", "stderr", "p", "p_exact")


class Row(msgspec.Struct, eq=False, kw_only=True):
    """A difference in one figure: its test, and what is decided of it with others.

    Attributes:
        fields: What comparison.json says of it.
        difference: Its test alone.
        tasks: Tasks that the test is over.
        better_is: Which values are better, or ``cause``.
        level: α of the interval; p is below it exactly where the row is certain.
        p: p of the test, or of one that is the same.
        p_holm: p, adjusted for the tests of its family.
        tests: Number of tests that p is adjusted for; 1: it is not.
    """

    fields: dict[str, Any]
    difference: Difference
    tasks: Sequence[str]
    better_is: str
    level: float
    p: float | None = None
    p_holm: float | None = None
    tests: int = 1

    def __post_init__(self) -> None:
        self.p = self.p_holm = self.difference.p

    @property
    def is_tested(self) -> bool:
        """Whether there is something to test: a p, and a task that differs."""
        return self.p is not None and self.difference.size > 0

    def is_one_with(self, other: Row) -> bool:
        """Return whether two rows are the same test.

        A test is its vector of task differences. Vectors that are equal or opposite are one test.
        """
        one = self.difference.vector
        two = other.difference.vector
        if not one or not two or abs(abs(one[-1]) - abs(two[-1])) > ROUNDING:
            return False
        return self.tasks == other.tasks and are_one_test(one, two)

    def forget_tasks(self) -> None:
        """Drop what there is of each task: there may be thousands of pairs."""
        self.tasks = ()
        self.difference = replace(self.difference, vector=())

    @property
    def ends(self) -> list[float] | None:
        """Both ends of the interval; they leave out 0 where the row is certain."""
        return self.difference.interval(self.level, self.p)

    @property
    def verdict(self) -> str:
        """Whether there is a difference, as far as the family can say."""
        gap = self.difference.difference
        if self.p is None:
            return "no test"
        if not self.difference.size:
            return "same"
        if self.p >= self.level or not gap:
            return "no evidence"
        up, down = _WORDS[self.better_is]
        return up if gap > 0 else down

    def describe(self) -> dict[str, Any]:
        """Return the decision on the row."""
        return {
            "p": self.p,
            "p_holm": self.p_holm,
            "tests": self.tests,
            "verdict": self.verdict,
        }


def decide_groups(groups: Sequence[Sequence[Row]], alpha: float) -> float:
    """Decide groups of rows by Holm's rule; the rows of a group are one test and share its p.

    Return the level of their intervals.

    Of m sorted p those are certain that are below α / (m − j + 1) with all before them, r in
    number. Then p < α / (m − r) holds of exactly these, or p < α where they are all.
    Source: Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    p_values = [group[0].p or 0.0 for group in groups]
    left = len(groups)
    for p in sorted(p_values):
        if p >= alpha / left:
            break
        left -= 1
    level = alpha / max(left, 1)
    for group, p, p_holm in zip(groups, p_values, holm(p_values), strict=True):
        for row in group:
            row.p, row.p_holm = p, p_holm
            row.tests = len(groups)
            row.level = level
    return level


def decide_together(rows: Sequence[Row], alpha: float) -> float:
    """Decide rows by Holm's rule, and return the level of their intervals.

    A figure that is the same in every task, or has no p, is no test of the family.
    """
    groups: list[list[Row]] = []
    for row in rows:
        if not row.is_tested:
            continue
        same = next((group for group in groups if row.is_one_with(group[0])), None)
        if same is None:
            groups.append([row])
        else:
            same.append(row)
    return decide_groups(groups, alpha)


def compared_rows(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a comparison, or of one of its ``pairs``.

    The outcome's rate, the headline's figures, means. A mean score that is the same as that rate
    is left out.
    """
    figures = [*pair.get("figures", {}).values()]
    means = pair["metrics"]
    rate = pair.get("outcome")
    if rate is None:
        return [*figures, *means.values()]
    twin = means.get(rate["grader"], {})
    if all(twin.get(name) == rate[name] for name in _NUMBERS):
        means = {key: row for key, row in means.items() if row is not twin}
    return [rate, *figures, *means.values()]
