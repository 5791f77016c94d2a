"""The short way to the figures of calls that do not compete: each tool is expected once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradestack import ExpectedCall, Grade, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.account import UNDECODABLE, Account, Weighing
from gradestack_plugins.tool_calls.calls import Arguments, arguments_of, raw_of
from gradestack_plugins.tool_calls.comparison import NO_DIFFERENCES, NOTHING, Differences, Share, compared, share_of
from gradestack_plugins.tool_calls.grades import grade_of
from gradestack_plugins.tool_calls.matching import Manner
from gradestack_plugins.tool_calls.scoring import ZERO, figures_of, judged, longest_rise

_MANY = 64
"""Calls made, from which on they are matched as any others are: what is looked up here is looked for in lists."""


def apart(
    expected: Sequence[ExpectedCall],
    made: Sequence[ToolCall],
    tools: Sequence[ToolSpec] | None,
    manner: Manner,
    weighing: Weighing,
    metadata: Mapping[str, Any],
) -> Grade | None:
    """Return the grade of calls in any order that need no matching, their names telling which belong together.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        tools: The tools the run had.
        manner: How calls are matched.
        weighing: What extra and missing calls cost.
        metadata: Of the grade.

    Returns:
        What the matching comes to; None where calls have to be matched, or are more than a name and arguments.
    """
    names = _names(expected, made, manner)
    if names is None:
        return None
    try:
        known = None if tools is None else {tool.name for tool in tools}
    except TypeError:  # a name that is no text
        return None
    account = Account(weighing, known)
    matched: list[int] = []
    shown: list[int] = []
    exact, (credit, whole) = 0, ZERO
    for index, call in enumerate(expected):
        name, arguments = call.name, arguments_of(call.arguments)
        if name not in names:
            account.missing(index, name, arguments)
            continue
        at, right, found = _closest(arguments, made, name, names, manner)
        agree, of = right
        if agree:
            exact += agree == of
            credit, whole = (credit * of + agree * whole, whole * of) if matched else right
            matched.append(at)
            account.pair(index, name, at, name, right, found)
            continue
        shown.append(at)
        raw = raw_of(made[at])
        if raw is None:
            account.pair(index, name, at, name, NOTHING, found)
        else:
            account.misplaced(index, name, at, name, code=UNDECODABLE, arguments=arguments, actual=raw)
    pairs, number, required = len(matched), len(names), len(expected)
    if pairs < number:
        for at, name in enumerate(names):
            if at in shown:
                account.reasons += account.unknown(name)
            elif at not in matched:
                account.unasked(at, name, arguments_of(made[at].arguments), raw_of(made[at]), code="extra_call")
    weighed = pairs if weighing.extra == "allow" else number
    counts = {
        "expected": required,
        "made": number,
        "matched": pairs,
        "exact": exact,
        "missing": required - pairs,
        "extra": number - pairs,
        "out_of_order": pairs - longest_rise(matched) if pairs > 1 else 0,
        "hallucinated_tool": 0 if known is None else sum([name not in known for name in names]),
        "required": required,
        "weighed": weighed,
        "arguments_right": account.right,
        "arguments_wrong": account.wrong,
        "arguments_missing": account.absent,
        "arguments_unknown": account.surplus,
    }
    figures = (precision, of_made), (recall, of_expected), (f1, of) = figures_of(
        (credit, whole), (credit, whole), weighed, required
    )
    (score, of_score), passed = judged(counts, figures, weighing)
    numbers = score / of_score, precision / of_made, recall / of_expected, f1 / of, credit / whole, credit / whole
    return grade_of(numbers, counts, account.items, account.reasons, passed=passed, metadata=metadata)


def _names(expected: Sequence[ExpectedCall], made: Sequence[ToolCall], manner: Manner) -> list[str] | None:
    """Return the tools of the calls that were made; None where calls have to be matched, or there is something odd."""
    if not expected or len(made) > _MANY:
        return None
    for wanted in expected:
        if type(wanted.name) is not str or type(wanted.arguments) is not dict or wanted.requestor is not None:
            return None
        if wanted.rules or wanted.names or wanted.optional:
            return None
    names = []
    for call in made:
        if type(call.name) is not str or (type(call.arguments) is not dict and call.arguments is not None):
            return None
        names.append(call.name)
    if len(expected) > 1 and len({call.name for call in expected}) < len(expected):
        return None
    if (manner.first_fit or len(names) > manner.max_pairs) and len(set(names)) < len(names):
        return None
    return names


def _closest(
    arguments: Arguments, made: Sequence[ToolCall], name: str, names: list[str], manner: Manner
) -> tuple[int, Share, Differences]:
    """Return the place of the call that is closest to an expected one, the first of several; its share; how it differs.

    If nothing is right in any, that is the first.
    """
    first = closest = names.index(name)
    share, differences = NOTHING, NO_DIFFERENCES
    for at in [first] if names.count(name) == 1 else [at for at, each in enumerate(names) if each == name]:
        if raw_of(made[at]) is not None:
            continue
        found = compared(arguments, arguments_of(made[at].arguments), manner.terms)
        agree, of = share_of(found)
        if not manner.partial and agree < of:
            agree = 0
        if at == closest or agree * share[1] > share[0] * of:
            closest, share, differences = at, (agree, of), found
    return closest, share, differences
