"""From matched calls to figures and verdict, of a whole run or of one turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import lcm
from typing import NamedTuple

from gradestack import Item, Reason
from gradestack_plugins.tool_calls.account import UNDECODABLE, Account, Weighing
from gradestack_plugins.tool_calls.comparison import NOTHING, Given, Share, Wanted
from gradestack_plugins.tool_calls.fates import pair_fate
from gradestack_plugins.tool_calls.matching import Matching

Ratio = tuple[int, int]
"""A fraction as it is, so that it is rounded once."""
ONE: Ratio = (1, 1)
ZERO: Ratio = (0, 1)


class Scored(NamedTuple):
    """What is said of the calls of a run, or of one turn."""

    score: Ratio
    precision: Ratio
    recall: Ratio
    f1: Ratio
    credit: Ratio
    """What the pairs come to: the sum of their shares."""
    required_credit: Ratio
    """The same of calls that are not optional."""
    passed: bool
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
    found = {pair.wanted.index: pair for pair in pairs}
    used = {pair.given.index for pair in pairs}
    missing = [call for call in wanted if call.index not in found and not call.optional]
    extra = [made for made in given if made.index not in used]
    account = Account(weighing, tools, turn)
    shown = _shown(missing, extra) if missing and extra else {}
    for call in wanted:
        index, name = call.index, call.name
        if index in found:
            _, made, right = found[index]
            account.pair(index, name, made.index, made.name, *pair_fate(matching.differences(call, made), right))
        elif index in shown:
            _mistaken(account, matching, call, shown[index], weighing)
        elif not call.optional:
            account.missing(index, name, call.arguments)
    beside = {made.index for made in shown.values()}
    for made in extra:
        if made.index in beside:
            account.reasons += account.unknown(made.name)
        else:
            code = "extra_call" if wanted else "unexpected_call"
            account.unasked(made.index, made.name, made.arguments, made.raw, code=code)
    counts = {
        "expected": len(wanted),
        "made": len(given),
        "matched": len(pairs),
        "exact": sum([pair.exact for pair in pairs]),
        "missing": len(missing),
        "extra": len(extra),
        "out_of_order": len(pairs) - longest_rise([pair.given.index for pair in pairs]),
        "hallucinated_tool": 0 if tools is None else sum([made.name not in tools for made in given]),
        "required": sum([not call.optional for call in wanted]),
        "weighed": len(pairs) if weighing.extra == "allow" else len(given),
        "arguments_right": account.right,
        "arguments_wrong": account.wrong,
        "arguments_missing": account.absent,
        "arguments_unknown": account.surplus,
    }
    credit = total([pair.share for pair in pairs])
    optional = any(pair.wanted.optional for pair in pairs)
    recalled = total([pair.share for pair in pairs if not pair.wanted.optional]) if optional else credit
    figures = figures_of(credit, recalled, counts["weighed"], counts["required"])
    score, passed = judged(counts, figures, weighing)
    return Scored(score, *figures, credit, recalled, passed, counts, tuple(account.items), tuple(account.reasons))


def judged(counts: Mapping[str, int], figures: tuple[Ratio, Ratio, Ratio], weighing: Weighing) -> tuple[Ratio, bool]:
    """Return score and verdict.

    Args:
        counts: Of calls.
        figures: Precision, recall and F1.
        weighing: What extra and missing calls cost.
    """
    missing, extra = counts["missing"], counts["extra"]
    passed = not missing and (weighing.extra == "allow" or not extra) and counts["exact"] == counts["matched"]
    if weighing.verdict_only:
        return (ONE if passed else ZERO), passed
    if (weighing.extra == "forbid" and extra) or (weighing.missing == "forbid" and missing):
        return ZERO, passed
    precision, recall, f1 = figures
    return (f1 if weighing.figure == "f1" else precision if weighing.figure == "precision" else recall), passed


def _shown(missing: Sequence[Wanted], extra: Sequence[Given]) -> dict[int, Given]:
    """Return missing calls, by index, with an extra one of the same tool: more telling than either alone."""
    waiting: dict[str, list[Given]] = {}
    for made in reversed(extra):
        waiting.setdefault(made.name, []).append(made)
    found = {}
    for call in missing:
        for name in call.names:
            if waiting.get(name):
                found[call.index] = waiting[name].pop()
                break
    return found


def _mistaken(account: Account, matching: Matching, call: Wanted, made: Given, weighing: Weighing) -> None:
    """Tell of a call that was made, of which nothing is right, or which came at the wrong place."""
    pair = (call.index, call.name, made.index, made.name)
    if call.raw is not None or made.raw is not None:
        account.misplaced(*pair, code=UNDECODABLE, arguments=call.arguments, actual=made.raw)
    elif weighing.order != "any" and matching.share(call, made)[0]:
        account.misplaced(*pair, code="wrong_order", arguments=call.arguments)
    else:
        account.pair(*pair, *pair_fate(matching.differences(call, made), NOTHING))


def figures_of(credit: Ratio, recalled: Ratio, weighed: int, required: int) -> tuple[Ratio, Ratio, Ratio]:
    """Return precision, recall and F1: all 1 where there are no calls, 0 where there are on one side only."""
    if not required and not weighed:
        return ONE, ONE, ONE
    (right, of), (found, whole) = credit, recalled
    precision = (right, of * weighed) if weighed else ZERO
    recall = (found, whole * required) if required else ONE if right else ZERO
    above = 2 * precision[0] * recall[0]
    return precision, recall, (above, precision[0] * recall[1] + recall[0] * precision[1]) if above else ZERO


def total(shares: Sequence[Share]) -> Ratio:
    """Return the sum of shares."""
    if len(shares) == 1:
        return shares[0]
    of = lcm(*[share[1] for share in shares])
    return sum([right * (of // whole) for right, whole in shares]), of


def longest_rise(numbers: Sequence[int]) -> int:
    """Return the length of the longest rising subsequence."""
    if len(numbers) < 2 or sorted(numbers) == numbers:
        return len(numbers)
    ends: list[int] = []
    for number in numbers:
        place = bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return len(ends)
