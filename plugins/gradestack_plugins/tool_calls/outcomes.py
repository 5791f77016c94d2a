"""What becomes of the calls of a run, or of one turn: counts, figures and verdict.

And, call by call, why.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import lcm
from typing import Any, NamedTuple, cast

from gradestack import ABSENT, JSON, Item, Reason
from gradestack_plugins.tool_calls.diff import NOTHING, Diff, Expected, Leaves, Made, Share
from gradestack_plugins.tool_calls.matching import Matching, Options, Pair

ARGUMENTS = ("right", "wrong", "missing", "unknown")
CALLS = ("expected", "made", "matched", "exact", "missing", "extra")
_EXACT, _MATCHED = ("expected", "made", "matched", "exact"), ("expected", "made", "matched")
_MISTAKEN, _MISSING = ("expected", "missing", "made", "extra"), ("expected", "missing")
MOST_REASONS = 50
"""Reasons kept of a sample; one more says how many were left out."""
_SHOWN = 3
Ratio = tuple[int, int]
"""A fraction as it is, so that it is rounded once."""
ONE: Ratio = (1, 1)
ZERO: Ratio = (0, 1)


class Unmatched(NamedTuple):
    """What became of a call without a pair: of an expected one, or of an extra one."""

    expected: Expected | None
    made: Made | None
    diff: Diff
    """Of the arguments; all are missing or unknown where there is nothing to compare them with."""
    share: Share
    code: str
    """Of the reason that is not an argument's.

    Missing_call, wrong_order, undecodable_arguments, extra_call, …
    """


Outcome = Pair | Unmatched


class Scored(NamedTuple):
    """The calls of a run, or of one turn, matched and counted."""

    ratios: tuple[Ratio, ...]
    """Score, precision, recall and F1, of which there are means over turns.

    And both credits, which are added.
    """
    passed: bool
    counts: Mapping[str, int]
    outcomes: Sequence[Outcome]
    turn: int | None
    silent: bool = False
    """Whether it is right whatever is wrong with its calls: then there are no reasons."""


def scored(
    matching: Matching,
    expected: Sequence[Expected],
    made: Sequence[Made],
    tools: frozenset[str] | None,
    turn: int | None = None,
) -> Scored:
    """Return figures, verdict and counts of calls."""
    options, pairs = matching.options, matching.pairs()
    outcomes: list[Outcome] = list(pairs)
    missing: list[Expected] = []
    extra: list[Made] = []
    if len(pairs) < len(expected) or len(pairs) < len(made):
        used = {pair.made.index for pair in pairs}
        matched = {pair.expected.index for pair in pairs}
        missing = [call for call in expected if call.index not in matched and not call.optional]
        extra = [call for call in made if call.index not in used]
        outcomes += _unmatched(
            matching, missing, extra, "extra_call" if expected else "unexpected_call"
        )
        outcomes.sort(key=_place)
    right = wrong = absent = unknown = exact = 0
    for _, _, diff, share, _ in outcomes:
        right += len(diff.right)
        wrong += len(diff.wrong)
        absent += len(diff.missing)
        unknown += len(diff.unknown)
        exact += share[0] == share[1]
    required = [call for call in expected if not call.optional]
    number = len(pairs)
    counts = {
        "expected": len(expected),
        "made": len(made),
        "matched": number,
        "exact": exact,
        "missing": len(missing),
        "extra": len(extra),
        "out_of_order": number - _longest_rise([pair.made.index for pair in pairs])
        if number > 1
        else 0,
        "hallucinated_tool": 0 if tools is None else sum([call.name not in tools for call in made]),
        "required": len(required),
        "weighed": number if options.extra == "allow" else len(made),
        "arguments_right": right,
        "arguments_wrong": wrong,
        "arguments_missing": absent,
        "arguments_unknown": unknown,
    }
    recalled = credit = _total([pair.share for pair in pairs])
    if len(required) < len(expected):
        recalled = _total([pair.share for pair in pairs if not pair.expected.optional])
    figures = _figures(credit, recalled, counts["weighed"], counts["required"])
    score, passed = _judged(counts, figures, options)
    return Scored((score, *figures, credit, recalled), passed, counts, outcomes, turn)


def _place(outcome: Outcome) -> tuple[bool, int]:
    """Expected calls first, then extra ones."""
    call, made = outcome.expected, outcome.made
    return (
        (False, call.index) if call is not None else (True, made.index if made is not None else 0)
    )


def _unmatched(
    matching: Matching, missing: Sequence[Expected], extra: Sequence[Made], code: str
) -> Iterator[Unmatched]:
    """Yield the outcomes of calls without a pair."""
    waiting: dict[str, list[Made]] = {}
    for other in reversed(extra):
        waiting.setdefault(other.name, []).append(other)
    shown = set()
    for call in missing:
        name = next((name for name in call.names if waiting.get(name)), None)
        if name is None:
            yield Unmatched(call, None, Diff([], [], _pointers(call), []), NOTHING, "missing_call")
        else:
            other = waiting[name].pop()
            shown.add(other.index)
            yield _mistake(matching, call, other)
    for other in extra:
        beside = other.index in shown
        diff = Diff([], [], [], [] if beside else _pointers(other))
        yield Unmatched(None, other, diff, NOTHING, "" if beside else code)


def _pointers(call: Expected | Made) -> list[str]:
    return list(Leaves(call.arguments, "json").marks)


def _mistake(matching: Matching, call: Expected, made: Made) -> Unmatched:
    """Return the outcome of a call of which nothing is right, or which came at the wrong place."""
    if call.raw is not None or made.raw is not None:
        return Unmatched(
            call, made, Diff([], [], _pointers(call), []), NOTHING, "undecodable_arguments"
        )
    pair = matching.pair(call, made)
    if matching.options.order != "any" and pair.share[0]:
        return Unmatched(call, made, Diff([], [], _pointers(call), []), NOTHING, "wrong_order")
    return Unmatched(call, made, pair.diff, NOTHING, "")


def _judged(
    counts: Mapping[str, int], figures: tuple[Ratio, ...], options: Options
) -> tuple[Ratio, bool]:
    missing, extra = counts["missing"], counts["extra"]
    passed = (
        not missing
        and (options.extra == "allow" or not extra)
        and counts["exact"] == counts["matched"]
    )
    if options.credit == "none":
        return (ONE if passed else ZERO), passed
    if (options.extra == "forbid" and extra) or (options.missing == "forbid" and missing):
        return ZERO, passed
    return figures[("precision", "recall", "f1").index(options.score)], passed


def _figures(
    credit: Ratio, recalled: Ratio, weighed: int, required: int
) -> tuple[Ratio, Ratio, Ratio]:
    """Return precision, recall and F1.

    All 1 where there are no calls, 0 where there are on one side only.
    """
    if not required and not weighed:
        return ONE, ONE, ONE
    precision = (credit[0], credit[1] * weighed) if weighed else ZERO
    recall = (recalled[0], recalled[1] * required) if required else ONE if credit[0] else ZERO
    above = 2 * precision[0] * recall[0]
    return (
        precision,
        recall,
        (above, precision[0] * recall[1] + recall[0] * precision[1]) if above else ZERO,
    )


def _total(shares: Sequence[Share]) -> Ratio:
    if len(shares) == 1:
        return shares[0]
    of = lcm(*[share[1] for share in shares])
    return sum([right * (of // whole) for right, whole in shares]), of


def _longest_rise(numbers: Sequence[int]) -> int:
    ends: list[int] = []
    for number in numbers:
        place = bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return len(ends)


def figures_of(turns: Sequence[Scored]) -> dict[str, Any]:
    """Return score, verdict, counts and parts of a run.

    The mean over its turns, of which most runs have one.
    """
    counts = turns[0].counts
    if len(turns) == 1:
        numbers = [above / below for above, below in turns[0].ratios]
    else:
        ratios = zip(*[each.ratios for each in turns], strict=True)
        sums = [sum(Fraction(*ratio) for ratio in figure) for figure in ratios]
        numbers = [*(float(each / len(turns)) for each in sums[:4]), *map(float, sums[4:])]
        counts = {name: sum([each.counts[name] for each in turns]) for name in counts}
    score, precision, recall, f1, credit, required = numbers
    return {
        "score": score,
        "passed": all(each.passed for each in turns),
        "counts": counts,
        "parts": {
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "credit": credit,
            "required_credit": required,
        },
    }


def explanation_of(
    turns: Sequence[Scored], tools: frozenset[str] | None, options: Options
) -> dict[str, Any]:
    """Return what a grade says beside its figures: items, reasons and rationale."""
    items: list[Item] = []
    reasons: list[Reason] = []
    for each in turns:
        its = []
        for outcome in each.outcomes:
            own = _reasons(
                outcome, tools, options, "" if each.turn is None else f"turn {each.turn}"
            )
            its += own
            if outcome.expected is not None or outcome.code:
                items.append(_item(outcome, own, each.turn))
        reasons += [] if each.silent else its
    left_out = len(reasons) - MOST_REASONS
    more = (
        []
        if left_out <= 0
        else [Reason(code="more_reasons", message=f"{left_out} more reasons were left out")]
    )
    said = [(each.subject, each.code, each.pointer, each.message) for each in reasons[:_SHOWN]]
    rationale = "; ".join(" ".join(filter(None, each)) for each in said)
    if len(reasons) > _SHOWN:
        rationale += f"; {len(reasons) - _SHOWN} more"
    return {
        "items": tuple(items),
        "reasons": (*reasons[:MOST_REASONS], *more),
        "rationale": rationale,
    }


def _item(outcome: Outcome, reasons: Sequence[Reason], turn: int | None) -> Item:
    call, made, diff, (right, of), _ = outcome
    at, label = (None, None) if made is None else (made.index, made.name)
    if call is None:
        name, gold, counts = f"+{at}", None, {"made": 1, "extra": 1, "arguments_unknown": 0}
    else:
        counted = (
            _MISSING
            if made is None
            else _EXACT
            if right == of
            else _MATCHED
            if right
            else _MISTAKEN
        )
        name, gold, counts = str(call.index), call.name, dict.fromkeys(counted, 1)
    arguments: dict[str, JSON] = {}
    for fate, pointers in zip(ARGUMENTS, diff, strict=False):
        if pointers:
            arguments[fate] = cast("JSON", pointers)
            counts[f"arguments_{fate}"] = len(pointers)
    metadata: dict[str, JSON] = {"call": at, "arguments": arguments}
    if turn is not None:
        metadata["turn"] = turn
    return Item(
        id=name,
        score=right / of,
        gold=gold,
        label=label,
        counts=counts,
        reasons=tuple(reasons),
        metadata=metadata,
    )


def _reasons(
    outcome: Outcome, tools: frozenset[str] | None, options: Options, message: str
) -> list[Reason]:
    call, made, diff, share, code = outcome
    if made is None:
        expected = ABSENT if call is None else call.arguments
        return [
            Reason(code=code, expected=expected, subject=call.name if call else "", message=message)
        ]
    if call is None:
        return _reasons_of_extra(made, code, tools, options, message)
    say = partial(Reason, subject=made.name, message=message)
    if code:
        return [say(code=code, actual=made.raw if code == "undecodable_arguments" else ABSENT)]
    if share[0] == share[1]:
        return []
    left, right = diff.values()
    reasons = []
    for at in diff.wrong:
        code = "wrong_value" if _kind(left[at]) == _kind(right[at]) else "wrong_type"
        reasons.append(say(code=code, pointer=at, expected=left[at], actual=right[at]))
    reasons += [say(code="missing_argument", pointer=at, expected=left[at]) for at in diff.missing]
    reasons += [say(code="unknown_argument", pointer=at, actual=right[at]) for at in diff.unknown]
    return reasons or [say(code="missing_call", subject=call.name)]


def _reasons_of_extra(
    made: Made, code: str, tools: frozenset[str] | None, options: Options, message: str
) -> list[Reason]:
    reasons, say = [], partial(Reason, subject=made.name, message=message)
    if tools is not None and made.name not in tools:
        reasons.append(say(code="unknown_tool"))
    if code and options.extra != "allow":
        if made.raw is not None:
            reasons.append(say(code="undecodable_arguments", actual=made.raw))
        reasons.append(say(code=code, actual=made.arguments))
    return reasons


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__
