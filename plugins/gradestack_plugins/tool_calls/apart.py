"""The short way to the figures of calls that do not compete: each tool is expected once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from gradestack import ExpectedCall, Grade, Item, Reason, ToolCall
from gradestack_plugins.tool_calls.account import UNDECODABLE, Weighing
from gradestack_plugins.tool_calls.calls import Arguments, arguments_of, raw_of
from gradestack_plugins.tool_calls.comparison import NOTHING
from gradestack_plugins.tool_calls.fates import Fate, fate_of, places_of
from gradestack_plugins.tool_calls.grades import grade_of
from gradestack_plugins.tool_calls.matching import Manner
from gradestack_plugins.tool_calls.scoring import ZERO, Ratio, figures_of, judged, longest_rise, total

_NAME = attrgetter("name")
_TEXTS = frozenset({str})
_MANY = 64
"""Calls made, from which on they are matched as any others are: what is looked up here is looked for in lists."""


def apart(
    expected: Sequence[ExpectedCall],
    made: Sequence[ToolCall],
    known: Sequence[str] | None,
    manner: Manner,
    weighing: Weighing,
    metadata: Mapping[str, Any],
    right: int,
) -> Grade | None:
    """Return the grade of calls in any order that need no matching, their names telling which belong together.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        known: Names of the tools the run had; None where that is not known.
        manner: How calls are matched.
        weighing: What extra and missing calls cost.
        metadata: Of the grade.
        right: How many calls at the beginning are known to be right.

    Returns:
        What the matching comes to; None where calls have to be matched, or are more than a name and arguments.
    """
    if not expected or len(made) > _MANY:
        return None
    names = list(map(_NAME, made))
    if not _TEXTS.issuperset(map(type, names)) or "" in names or _compete(expected, names, manner):
        return None
    items: list[Item] = []
    reasons: list[Reason] = []
    fates: list[Fate] = []
    said: list[str] = []
    matched: list[int] = []
    shown: list[int] = []
    for index, call in enumerate(expected):
        name, arguments = call.name, call.arguments
        if type(name) is not str or not name or type(arguments) is not dict:
            return None
        if call.requestor is not None or call.rules or call.names or call.optional:
            return None
        if index < right:
            at, fate, own = index, places_of(arguments).fate("right"), []
            matched.append(index)
        elif name not in names:
            at, fate = None, places_of(arguments).fate("missing")
            own = [Reason(code="missing_call", expected=arguments, subject=name)]
            said.append(f"{name} missing_call")
        else:
            at = names.index(name) if names.count(name) == 1 else _closest(arguments, made, name, names, manner)
            if type(made[at].arguments) is not dict and made[at].arguments is not None:
                return None
            fate, own = _paired(arguments, made[at], name, manner, said)
            (matched if fate.score else shown).append(at)
        fates.append(fate)
        reasons += own
        items.append(
            Item(
                id=str(index),
                score=fate.score,
                gold=name,
                label=None if at is None else name,
                counts=fate.counts,
                reasons=tuple(own),
                metadata={"call": at, "arguments": fate.arguments},
            )
        )
    strangers = [] if known is None else [name for name in names if name not in known]
    if strangers or len(matched) < len(names):
        told = _Told(items, reasons, fates, said)
        for at, name in enumerate(names):
            strange, extra = name in strangers, at not in shown
            if at not in matched and not _other(at, made[at], told, weighing, strange=strange, extra=extra):
                return None
    late = len(matched) - longest_rise(matched) if len(matched) > 1 else 0
    counts, credit = _summed(fates, weighing, len(names), late, len(strangers))
    figures = figures_of(credit, credit, counts["weighed"], counts["required"])
    score, passed = judged(counts, figures, weighing)
    numbers = [above / below for above, below in (score, *figures, credit, credit)]
    return grade_of(numbers, counts, items, reasons, metadata, said, passed=passed)


class _Told(NamedTuple):
    """What is told of calls so far."""

    items: list[Item]
    reasons: list[Reason]
    fates: list[Fate]
    said: list[str]
    """Of each reason."""


def _paired(
    arguments: Arguments, call: ToolCall, name: str, manner: Manner, said: list[str]
) -> tuple[Fate, list[Reason]]:
    """Return the fate of a call that was made for an expected one, and what is wrong with it, which is said, too."""
    if call.arguments is None and call.raw_arguments is not None:
        said.append(f"{name} {UNDECODABLE}")
        reason = Reason(code=UNDECODABLE, actual=call.raw_arguments, subject=name)
        return places_of(arguments).fate("misplaced"), [reason]
    fate, values = fate_of(arguments, arguments_of(call.arguments), manner.terms, partial=manner.partial)
    reasons = []
    for (code, pointer, text), (wanted, actual) in zip(fate.losses, values, strict=True):
        reasons.append(Reason(code=code, pointer=pointer, expected=wanted, actual=actual, subject=name))
        said.append(name + text)
    return fate, reasons


def _other(at: int, call: ToolCall, told: _Told, weighing: Weighing, *, strange: bool, extra: bool) -> bool:
    """Tell of a call that has no part in a pair; return False for one that is more than a name and arguments.

    Args:
        at: Its index.
        call: The call.
        told: What is told.
        weighing: What it costs.
        strange: Whether there is no tool of that name.
        extra: Whether it is not shown beside an expected one.
    """
    name = call.name
    own = [Reason(code="unknown_tool", subject=name)] if strange else []
    if extra:
        if type(call.arguments) is not dict and call.arguments is not None:
            return False
        if weighing.extra != "allow":
            if (raw := raw_of(call)) is not None:
                own.append(Reason(code=UNDECODABLE, actual=raw, subject=name))
            own.append(Reason(code="extra_call", actual=arguments_of(call.arguments), subject=name))
        fate = places_of(arguments_of(call.arguments)).fate("extra")
        metadata = {"call": at, "arguments": fate.arguments}
        told.fates.append(fate)
        told.items.append(
            Item(id=f"+{at}", score=0.0, label=name, counts=fate.counts, reasons=tuple(own), metadata=metadata)
        )
    told.said.extend([f"{name} {reason.code}" for reason in own])
    told.reasons.extend(own)
    return True


def _summed(
    fates: Sequence[Fate], weighing: Weighing, number: int, late: int, hallucinated: int
) -> tuple[dict[str, int], Ratio]:
    """Return counts, and credit, of calls that fare so.

    Args:
        fates: How they fare.
        weighing: What they cost.
        number: How many were made.
        late: How many were made too late.
        hallucinated: How many are of no tool.
    """
    required = exact = right = wrong = missing = surplus = 0
    shares = []
    for fate in fates:
        required += "expected" in fate.counts
        agree, of = fate.share
        if agree:
            shares.append(fate.share)
            exact += agree == of
        fine, other, absent, unknown = fate.numbers
        right, wrong, missing, surplus = right + fine, wrong + other, missing + absent, surplus + unknown
    pairs, credit = len(shares), total(shares) if shares else ZERO
    weighed = pairs if weighing.extra == "allow" else number
    return {
        "expected": required,
        "made": number,
        "matched": pairs,
        "exact": exact,
        "missing": required - pairs,
        "extra": number - pairs,
        "out_of_order": late,
        "hallucinated_tool": hallucinated,
        "required": required,
        "weighed": weighed,
        "arguments_right": right,
        "arguments_wrong": wrong,
        "arguments_missing": missing,
        "arguments_unknown": surplus,
    }, credit


def _compete(expected: Sequence[ExpectedCall], names: list[str], manner: Manner) -> bool:
    """Return whether calls of one name compete, or it matters which comes first."""
    if len(expected) > 1:
        wanted = list(map(_NAME, expected))
        if not _TEXTS.issuperset(map(type, wanted)) or len(set(wanted)) < len(wanted):
            return True
    return (manner.first_fit or len(names) > manner.max_pairs) and len(set(names)) < len(names)


def _closest(arguments: Arguments, made: Sequence[ToolCall], name: str, names: list[str], manner: Manner) -> int:
    """Return the place of the call of that name that is closest to an expected one, the first of several.

    If nothing is right in any, that is the first.
    """
    closest, share = names.index(name), NOTHING
    for at, each in enumerate(names):
        given = made[at].arguments
        if each != name or (given is None and made[at].raw_arguments is not None):
            continue
        agree, of = fate_of(arguments, arguments_of(given), manner.terms, partial=manner.partial)[0].share
        if agree * share[1] > share[0] * of:
            closest, share = at, (agree, of)
    return closest
