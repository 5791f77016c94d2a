"""The short way to the figures of calls that do not compete: each tool is expected once."""

from __future__ import annotations

from collections.abc import Sequence

from gradestack import ExpectedCall, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.account import UNDECODABLE, Account, Weighing
from gradestack_plugins.tool_calls.calls import Arguments, arguments_of, raw_of
from gradestack_plugins.tool_calls.comparison import NO_DIFFERENCES, NOTHING, Differences, Share, compared, share_of
from gradestack_plugins.tool_calls.matching import Manner
from gradestack_plugins.tool_calls.scoring import Scored, longest_rise, summed, total

_DECODED = frozenset({dict, type(None)})


def apart(
    expected: Sequence[ExpectedCall],
    made: Sequence[ToolCall],
    tools: Sequence[ToolSpec] | None,
    manner: Manner,
    weighing: Weighing,
) -> Scored | None:
    """Return what is said of calls in any order that need no matching, their names telling which belong together.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        tools: The tools the run had.
        manner: How calls are matched.
        weighing: What extra and missing calls cost.

    Returns:
        What the matching comes to; None where calls have to be matched, or are more than a name and arguments.
    """
    places = _places(made)
    if places is None or not all(map(_is_plain, expected)) or len({call.name for call in expected}) < len(expected):
        return None
    if not expected or (len(places) < len(made) and (manner.first_fit or len(made) > manner.max_pairs)):
        return None
    names = None if tools is None else {tool.name for tool in tools}
    account = Account(weighing, names)
    shares: list[Share] = []
    matched: list[int] = []
    shown: list[int] = []
    for index, call in enumerate(expected):
        name, arguments = call.name, arguments_of(call.arguments)
        if name not in places:
            account.missing(index, name, arguments)
            continue
        at, right, found = _closest(arguments, made, places[name], manner)
        if right[0]:
            account.pair(index, name, at, name, right, found)
            shares.append(right)
            matched.append(at)
            continue
        shown.append(at)
        raw = raw_of(made[at])
        if raw is None:
            account.mistaken(index, name, at, name, found)
        else:
            account.misplaced(index, name, at, name, code=UNDECODABLE, arguments=arguments, actual=raw)
    if len(matched) < len(made):
        for at, each in enumerate(made):
            if at in shown:
                account.reasons += account.unknown(each.name)
            elif at not in matched:
                account.unasked(at, each.name, arguments_of(each.arguments), raw_of(each), code="extra_call")
    counts = {
        "expected": len(expected),
        "made": len(made),
        "matched": len(matched),
        "exact": sum([right == of for right, of in shares]),
        "missing": len(expected) - len(matched),
        "extra": len(made) - len(matched),
        "out_of_order": len(matched) - longest_rise(matched),
        "hallucinated_tool": 0 if names is None else sum([each.name not in names for each in made]),
        "required": len(expected),
        "weighed": len(matched) if weighing.extra == "allow" else len(made),
    }
    credit = total(shares)
    return summed(account, counts, credit, credit, weighing)


def _closest(
    arguments: Arguments, made: Sequence[ToolCall], places: Sequence[int], manner: Manner
) -> tuple[int, Share, Differences]:
    """Return the place of the call that is closest to an expected one, the first of several; its share; how it differs.

    If nothing is right in any, that is the first.
    """
    closest, share, differences = places[0], NOTHING, NO_DIFFERENCES
    for at in places:
        if raw_of(made[at]) is not None:
            continue
        found = compared(arguments, arguments_of(made[at].arguments), manner.terms)
        agree, of = share_of(found)
        if not manner.partial and agree < of:
            agree = 0
        if at == closest or agree * share[1] > share[0] * of:
            closest, share, differences = at, (agree, of), found
    return closest, share, differences


def _places(made: Sequence[ToolCall]) -> dict[str, list[int]] | None:
    """Return the places of each tool's calls; None where there is something odd."""
    places: dict[str, list[int]] = {}
    for at, call in enumerate(made):
        name = call.name
        if type(name) is not str or type(call.arguments) not in _DECODED:
            return None
        places.setdefault(name, []).append(at)
    return places


def _is_plain(call: ExpectedCall) -> bool:
    """Return whether nothing but a name and arguments is expected."""
    if type(call.name) is not str or type(call.arguments) is not dict:
        return False
    return not (call.rules or call.names or call.optional) and call.requestor is None
