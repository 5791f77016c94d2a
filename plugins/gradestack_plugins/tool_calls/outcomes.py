"""Outcomes of the calls of a run, or of one turn: counts, figures and verdict, and the reasons."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import lcm
from typing import Any, Final, NamedTuple, cast

from gradestack import ABSENT, JSON, Item, Reason, replace
from gradestack.jsonio import is_beyond_json
from gradestack_plugins.tool_calls.diff import NOTHING, Diff, Expected, Made, Share, no_diff
from gradestack_plugins.tool_calls.matching import Matching, Options, Pair
from gradestack_plugins.tool_calls.values import Leaves

_BEYOND: Final = "NaN and numbers too large for a float equal nothing"
ARGUMENTS: Final = ("right", "wrong", "missing", "unknown")
_ARGUMENT_COUNTS: Final = tuple(f"arguments_{name}" for name in ARGUMENTS)
CALLS: Final = ("expected", "made", "matched", "exact", "missing", "extra")
_EXACT, _MATCHED = ("expected", "made", "matched", "exact"), ("expected", "made", "matched")
_MISTAKEN, _MISSING = ("expected", "missing", "made", "extra"), ("expected", "missing")
MOST_REASONS: Final = 50
"""Reasons kept of a sample; one more says how many were left out."""
_SHOWN: Final = 3
Ratio = tuple[int, int]
"""A fraction as it is, so that it is rounded once."""
ONE: Ratio = (1, 1)
ZERO: Ratio = (0, 1)
Tools = frozenset[str] | None
"""Names of the tools of a run; None where they are not recorded."""


class Unmatched(NamedTuple):
    """A call without a pair: an expected one, or an extra one."""

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


def score_calls(
    matching: Matching,
    expected: Sequence[Expected],
    made: Sequence[Made],
    tools: Tools,
    turn: int | None = None,
) -> Scored:
    """Return figures, verdict and counts of calls."""
    options = matching.options
    pairs = matching.pairs()
    outcomes: list[Outcome] = list(pairs)
    missing: list[Expected] = []
    extra: list[Made] = []
    if len(pairs) < len(expected) or len(pairs) < len(made):
        used = {pair.made.index for pair in pairs}
        matched = {pair.expected.index for pair in pairs}
        missing = [call for call in expected if call.index not in matched and not call.optional]
        extra = [call for call in made if call.index not in used]
        code = "extra_call" if expected else "unexpected_call"
        outcomes += _unmatched(matching, missing, extra, code)
        outcomes.sort(key=_place_of)
    required = [call for call in expected if not call.optional]
    if tools is None:
        hallucinated = 0
    else:
        hallucinated = sum([call.name not in tools for call in made])
    exact = sum([outcome.share[0] == outcome.share[1] for outcome in outcomes])
    out_of_order = _count_out_of_order(pairs)
    if options.extra == "allow":
        weighed = len(pairs)
    else:
        weighed = len(made)
    counts = {
        "expected": len(expected),
        "made": len(made),
        "matched": len(pairs),
        "exact": exact,
        "missing": len(missing),
        "extra": len(extra),
        "out_of_order": out_of_order,
        "hallucinated_tool": hallucinated,
        "required": len(required),
        "weighed": weighed,
    }
    diffs = [outcome.diff[:4] for outcome in outcomes]
    by_kind = zip(*diffs, strict=True)
    for name in _ARGUMENT_COUNTS:
        counts[name] = sum(map(len, next(by_kind, ())))
    shares = [pair.share for pair in pairs]
    recalled = credit = _total(shares)
    if len(required) < len(expected):
        recalled = _total([pair.share for pair in pairs if not pair.expected.optional])
    figures = _figures(credit, recalled, counts["weighed"], counts["required"])
    score, passed = _judge(counts, figures, options)
    return Scored((score, *figures, credit, recalled), passed, counts, outcomes, turn)


def _place_of(outcome: Outcome) -> tuple[bool, int]:
    """Return a sorting key of an outcome: whether the call is extra, and its number."""
    call = outcome.expected or outcome.made
    return outcome.expected is None, 0 if call is None else call.index


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
            pointers = _pointers(call)
            yield Unmatched(call, None, no_diff(pointers), NOTHING, "missing_call")
            continue
        other = waiting[name].pop()
        shown.add(other.index)
        yield _mistake(matching, call, other)
    for other in extra:
        if other.index in shown:
            yield Unmatched(None, other, no_diff(), NOTHING, "")
        else:
            unknown = _pointers(other)
            yield Unmatched(None, other, no_diff(unknown=unknown), NOTHING, code)


def _pointers(call: Expected | Made) -> list[str]:
    return list(Leaves(call.arguments, "json").marks)


def _mistake(matching: Matching, call: Expected, made: Made) -> Unmatched:
    """Return the outcome of a call of which nothing is right, or which came at the wrong place."""
    has_text = call.raw is not None or made.raw is not None
    pair = None if has_text else matching.pair(call, made)
    if pair is not None and (matching.options.order == "any" or not pair.share[0]):
        return Unmatched(call, made, pair.diff, NOTHING, "")
    code = "undecodable_arguments" if has_text else "wrong_order"
    pointers = _pointers(call)
    return Unmatched(call, made, no_diff(pointers), NOTHING, code)


def _judge(
    counts: Mapping[str, int], figures: tuple[Ratio, ...], options: Options
) -> tuple[Ratio, bool]:
    """Compute the score as a ratio, and whether the run passes."""
    missing = counts["missing"]
    extra = counts["extra"]
    has_wrong_extra = extra and options.extra != "allow"
    passed = not missing and not has_wrong_extra and counts["exact"] == counts["matched"]
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
    if weighed:
        precision = (credit[0], credit[1] * weighed)
    else:
        precision = ZERO
    recall = ONE if credit[0] else ZERO
    if required:
        recall = (recalled[0], recalled[1] * required)
    above = 2 * precision[0] * recall[0]
    if not above:
        return precision, recall, ZERO
    below = precision[0] * recall[1] + recall[0] * precision[1]
    return precision, recall, (above, below)


def _total(shares: Sequence[Share]) -> Ratio:
    if len(shares) == 1:
        return shares[0]
    common = lcm(*[leaves for _, leaves in shares])
    return sum([right * (common // leaves) for right, leaves in shares]), common


def _count_out_of_order(pairs: Sequence[Pair]) -> int:
    """Return the number of pairs outside the longest run of made calls in rising order."""
    if len(pairs) < 2:
        return 0
    run_ends: list[int] = []
    for pair in pairs:
        position = bisect_left(run_ends, pair.made.index)
        run_ends[position : position + 1] = [pair.made.index]
    return len(pairs) - len(run_ends)


def figures_of(turns: Sequence[Scored]) -> dict[str, Any]:
    """Return score, verdict, counts and parts of a run.

    The mean over its turns, of which most runs have one.
    """
    counts = turns[0].counts
    if len(turns) == 1:
        numbers = [above / below for above, below in turns[0].ratios]
    else:
        columns = zip(*[turn.ratios for turn in turns], strict=True)
        sums = [sum(Fraction(*ratio) for ratio in ratios) for ratios in columns]
        totals = sums[:4]
        means = [float(total / len(turns)) for total in totals]
        numbers = [*means, *map(float, sums[4:])]
        counts = {name: sum([turn.counts[name] for turn in turns]) for name in counts}
    score, *parts = numbers
    names = ("precision", "recall", "f1", "credit", "required_credit")
    passed = all(turn.passed for turn in turns)
    pairs = dict(zip(names, parts, strict=True))
    return {
        "score": score,
        "passed": passed,
        "counts": counts,
        "parts": pairs,
    }


def explanation_of(turns: Sequence[Scored], tools: Tools, options: Options) -> dict[str, Any]:
    """Return items, reasons and rationale of a grade."""
    items: list[Item] = []
    reasons: list[Reason] = []
    for turn in turns:
        if turn.turn is None:
            message = ""
        else:
            message = f"turn {turn.turn}"
        for outcome in turn.outcomes:
            of_outcome = _reasons(outcome, tools, options, message)
            reasons += [] if turn.silent else of_outcome
            if outcome.expected is not None or outcome.code:
                items.append(_item(outcome, of_outcome, turn.turn))
    more = len(reasons) - _SHOWN
    texts = list(map(_text_of, reasons[:_SHOWN])) + ([f"{more} more"] if more > 0 else [])
    left_out = len(reasons) - MOST_REASONS
    if left_out > 0:
        message = f"{left_out} more reasons were left out"
        reason = Reason(code="more_reasons", message=message)
        reasons[MOST_REASONS:] = [reason]
    rationale = "; ".join(texts)
    return {"items": tuple(items), "reasons": tuple(reasons), "rationale": rationale}


def _text_of(reason: Reason) -> str:
    parts = reason.subject, reason.code, reason.pointer, reason.message
    return " ".join(filter(None, parts))


def _item(outcome: Outcome, reasons: Sequence[Reason], turn: int | None) -> Item:
    """Build the item of an expected call, or of an extra call, whose id begins with a plus sign."""
    call, made, diff, (right, leaves), _ = outcome
    index, label = (None, None) if made is None else (made.index, made.name)
    if call is None:
        name = f"+{index}"
        gold = None
        counts = {"made": 1, "extra": 1, "arguments_unknown": 0}
    else:
        counted: tuple[str, ...] = _MISSING
        if made is not None:
            if right == leaves:
                counted = _EXACT
            else:
                counted = _MATCHED if right else _MISTAKEN
        name = str(call.index)
        gold = call.name
        counts = dict.fromkeys(counted, 1)
    arguments: dict[str, JSON] = {}
    for kind, name_of_count, pointers in zip(ARGUMENTS, _ARGUMENT_COUNTS, diff, strict=False):
        if pointers:
            arguments[kind] = cast("JSON", pointers)
            counts[name_of_count] = len(pointers)
    metadata: dict[str, JSON] = {"call": index, "arguments": arguments}
    if turn is not None:
        metadata["turn"] = turn
    score = right / leaves
    return Item(
        id=name,
        score=score,
        gold=gold,
        label=label,
        counts=counts,
        reasons=tuple(reasons),
        metadata=metadata,
    )


def _reasons(outcome: Outcome, tools: Tools, options: Options, message: str) -> list[Reason]:
    """List the reasons why the outcome of a call is not fully right, none where it is."""
    call, made, diff, share, code = outcome
    if made is None:
        expected = ABSENT if call is None else call.arguments
        subject = "" if call is None else call.name
        return [Reason(code=code, expected=expected, subject=subject, message=message)]
    reason = partial(Reason, subject=made.name, message=message)
    if call is None:
        return _reasons_of_extra(made, code, tools, options, reason)
    if code:
        return [reason(code=code, actual=made.raw if code == "undecodable_arguments" else ABSENT)]
    if share[0] == share[1]:
        return []
    wanted, actual = diff.values()
    reasons = [_wrong_value(at, wanted[at], actual[at], reason) for at in diff.wrong]
    for at in diff.missing:
        reasons.append(reason(code="missing_argument", pointer=at, expected=wanted[at]))
    for at in diff.unknown:
        reasons.append(reason(code="unknown_argument", pointer=at, actual=actual[at]))
    return reasons or [reason(code="missing_call", subject=call.name)]


def _wrong_value(pointer: str, wanted: Any, actual: Any, reason: partial[Reason]) -> Reason:
    code = "wrong_type"
    if _kind(wanted) == _kind(actual):
        code = "wrong_value"
    wrong = reason(code=code, pointer=pointer, expected=wanted, actual=actual)
    if is_beyond_json(wanted) or is_beyond_json(actual):
        message = wrong.message or _BEYOND
        return replace(wrong, message=message)
    return wrong


def _reasons_of_extra(
    made: Made, code: str, tools: Tools, options: Options, reason: partial[Reason]
) -> list[Reason]:
    """List the reasons against a call that is not expected: unknown tool, arguments, surplus."""
    reasons = []
    if tools is not None and made.name not in tools:
        reasons.append(reason(code="unknown_tool"))
    if code and options.extra != "allow":
        if made.raw is not None:
            reasons.append(reason(code="undecodable_arguments", actual=made.raw))
        reasons.append(reason(code=code, actual=made.arguments))
    return reasons


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__
