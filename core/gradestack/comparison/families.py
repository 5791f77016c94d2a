"""Tests that are decided together: which are one, and what Holm's rule says of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gradestack.comparison.paired import Difference, are_one_test, holm

CERTAIN = frozenset({"better", "worse", "higher", "lower"})
"""Verdicts that say that there is a difference."""
_WORDS = {
    "higher": ("better", "worse"),
    "lower": ("worse", "better"),
    "neither": ("higher", "lower"),
}


class Test(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The task differences of one figure, and what they say alone.

    A test is its vector of task differences, with the difference of the figures, divided by the
    largest of the tasks. Vectors that are equal or opposite are one test.
    """

    difference: Difference
    tasks: Sequence[str]
    vector: Sequence[float]
    """Empty where no task differs."""

    @property
    def is_decided(self) -> bool:
        """Whether there is something to test: a p, and a task that differs."""
        return self.difference.p is not None and self.difference.size > 0

    def is_one_with(self, other: Test) -> bool:
        """Return whether two are the same test."""
        return self.tasks == other.tasks and are_one_test(self.vector, other.vector)


def make_test(difference: Difference, tasks: Sequence[str], gaps: Sequence[float]) -> Test:
    """Return the test of a figure."""
    size, shown = difference.size, difference.difference
    vector = [gap / size for gap in gaps] if size else []
    if vector and shown is not None:
        vector.append(shown / size)
    return Test(difference=difference, tasks=tasks, vector=vector)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one test of a family."""

    p: float | None
    p_holm: float | None
    """p, adjusted for the tests of the family; it is below α exactly where ``is_certain``."""
    tests: int
    """Number of tests that p is adjusted for; 1: it is not."""
    level: float
    """α of the interval: p is below it exactly where ``is_certain``."""
    difference: Difference

    @property
    def is_certain(self) -> bool:
        """Whether there is a difference, as far as the family can say."""
        return self.p is not None and self.p < self.level

    @property
    def ends(self) -> list[float] | None:
        """Both ends of the interval at the level; they leave out 0 where ``is_certain``."""
        return self.difference.interval(self.level)


def decide_p_values(p_values: Sequence[float], alpha: float) -> tuple[list[float | None], float]:
    """Return p of a family adjusted by Holm's rule, and the level at which all are decided.

    Of m sorted p those are certain that are below α / (m − j + 1) with all before them, r in
    number. Then p < α / (m − r) holds of exactly these, or p < α where they are all.
    Source: Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    left = len(p_values)
    for p in sorted(p_values):
        if p >= alpha / left:
            break
        left -= 1
    return holm(p_values), alpha / max(left, 1)


def group_tests(tests: Sequence[Test]) -> list[list[int]]:
    """Return the places of tests that are one, of all in which some task differs."""
    groups: list[list[int]] = []
    for place, test in enumerate(tests):
        if not test.is_decided:
            continue
        for group in groups:
            if test.is_one_with(tests[group[0]]):
                group.append(place)
                break
        else:
            groups.append([place])
    return groups


def decide_alone(test: Test, alpha: float) -> Decision:
    """Decide one test at a level of its own."""
    p = test.difference.p
    return Decision(p=p, p_holm=p, tests=1, level=alpha, difference=test.difference)


def decide_together(tests: Sequence[Test], alpha: float) -> list[Decision]:
    """Decide tests by Holm's rule; those that are one count once and share p.

    A figure that is the same in every task, or has no p, is no test of the family.
    """
    decisions = [decide_alone(test, alpha) for test in tests]
    groups = group_tests(tests)
    p_values = [decisions[group[0]].p or 0.0 for group in groups]
    adjusted, level = decide_p_values(p_values, alpha)
    for group, p, p_holm in zip(groups, p_values, adjusted, strict=True):
        for place in group:
            decisions[place] = share_decision(
                tests[place], p=p, p_holm=p_holm, tests=len(groups), level=level
            )
    return decisions


def share_decision(test: Test, **shared: Any) -> Decision:
    """Return the decision on a test that has p and level of another that it is one with."""
    difference = msgspec.structs.replace(test.difference, p=shared["p"])
    return Decision(difference=difference, **shared)


def name_verdict(decision: Decision, better_is: str) -> str:
    """Return the verdict on a figure, by which direction of it is better."""
    known = decision.difference
    if decision.p is None:
        return "no test"
    if not known.size:
        return "same"
    if not decision.is_certain or not known.difference:
        return "no evidence"
    up, down = _WORDS[better_is]
    return up if known.difference > 0 else down


def all_rows(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of a comparison."""
    rate = [pair["outcome"]] if "outcome" in pair else []
    return [*rate, *pair.get("figures", {}).values(), *pair["metrics"].values()]


def compared_rows(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a comparison, or of one of its ``pairs``.

    The outcome's rate, the headline's figures, means. A mean score that is the same as that rate
    is left out.
    """
    rate = pair.get("outcome") or {}
    twin = pair["metrics"].get(rate.get("grader"))
    return [row for row in all_rows(pair) if row is not twin or _numbers(row) != _numbers(rate)]


def _numbers(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("a", "b", "difference", "stderr", "p", "p_exact"))
