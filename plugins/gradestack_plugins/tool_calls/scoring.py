"""From matched calls to figures and verdict, of a whole run or of one turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from typing import NamedTuple

from gradestack import Item, Reason
from gradestack_plugins.tool_calls.account import Account, Weighing
from gradestack_plugins.tool_calls.comparison import Given, Wanted
from gradestack_plugins.tool_calls.matching import Matching, Pair

Ratio = tuple[int, int]
"""A fraction as it is, so that it is rounded once."""
ONE: Ratio = (1, 1)
ZERO: Ratio = (0, 1)


class Scored(NamedTuple):
    """What is said of the calls of a run, or of one turn."""

    score: Ratio
    passed: bool
    precision: Ratio
    recall: Ratio
    f1: Ratio
    credit: Ratio
    """What the pairs come to: the sum of their shares."""
    required_credit: Ratio
    """The same of calls that are not optional."""
    counts: Mapping[str, int]
    items: tuple[Item, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def ratios(self) -> tuple[Ratio, ...]:
        """Score, precision, recall and F1, of which there are means over turns; and both credits, which are added."""
        return self.score, self.precision, self.recall, self.f1, self.credit, self.required_credit


def scored(
    matching: Matching,
    wanted: Sequence[Wanted],
    given: Sequence[Given],
    tools: frozenset[str] | None,
    weighing: Weighing,
    turn: int | None = None,
) -> Scored:
    """Return what is said of calls.

    Args:
        matching: Of these calls.
        wanted: Expected calls.
        given: Calls that were made.
        tools: Names of the tools the run had; None where that is not known.
        weighing: What extra and missing calls cost.
        turn: The turn they belong to, for reasons.

    Raises:
        TooManyCalls: There are too many to be matched.
    """
    pairs = matching.pairs()
    told = Account(matching, wanted, given, pairs, tools, weighing, turn)
    required = sum([not call.optional for call in wanted])
    missing, extra = len(told.missing), len(told.extra)
    weighed = len(pairs) if weighing.extra == "allow" else len(given)
    credit, recalled = _sums(pairs)
    precision, recall, f1 = _figures(credit, recalled, weighed, required)
    passed = not missing and (weighing.extra == "allow" or not extra) and all(pair.exact for pair in pairs)
    if weighing.verdict_only:
        score = ONE if passed else ZERO
    elif (weighing.extra == "forbid" and extra) or (weighing.missing == "forbid" and missing):
        score = ZERO
    else:
        score = {"f1": f1, "precision": precision, "recall": recall}[weighing.figure]
    counts = told.counts(required, weighed)
    return Scored(
        score, passed, precision, recall, f1, credit, recalled, counts, tuple(told.items), tuple(told.reasons)
    )


def _figures(credit: Ratio, recalled: Ratio, weighed: int, required: int) -> tuple[Ratio, Ratio, Ratio]:
    """Return precision, recall and F1: all 1 where there are no calls, 0 where there are on one side only."""
    if not required and not weighed:
        return ONE, ONE, ONE
    (right, of), (found, whole) = credit, recalled
    precision = (right, of * weighed) if weighed else ZERO
    recall = (found, whole * required) if required else ONE if right else ZERO
    above = 2 * precision[0] * recall[0]
    return precision, recall, (above, precision[0] * recall[1] + recall[0] * precision[1]) if above else ZERO


def _sums(pairs: Sequence[Pair]) -> tuple[Ratio, Ratio]:
    """Return the sum of all shares, and of those of calls that are not optional."""
    if len(pairs) == 1:
        ((wanted, _, right),) = pairs
        return right, (0, right[1]) if wanted.optional else right
    of = lcm(*[pair.share[1] for pair in pairs])
    every = required = 0
    for pair in pairs:
        part = pair.share[0] * (of // pair.share[1])
        every += part
        if not pair.wanted.optional:
            required += part
    return (every, of), (required, of)
