"""Presets of ``tool_policy``: the rules of deepeval, waza and promptfoo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from gradestack import Fault, Grade, Item, Reason, ToolCall, failed
from gradestack_plugins.trajectory.patterns import CallPattern, Pattern, compiled, text_at
from gradestack_plugins.trajectory.policy_checks import Range

PRESETS: Final = {
    "deepeval/tool_permission": "4.3.1",
    "waza/tool_constraint": "091a1f9",
    "promptfoo/step-count": "0.121.20",
}
TAKES: Final = {
    "deepeval/tool_permission": ("allow", "deny"),
    "waza/tool_constraint": ("expect", "deny"),
    "promptfoo/step-count": ("calls", "per_tool"),
}
"""Preset -> the options it has."""
_WAZA_ARGUMENTS: Final = ("command", "path", "skill")


def waza_problem(patterns: Sequence[CallPattern]) -> str | None:
    """Return what waza has no pattern for: arguments other than three, at the top."""
    for pointer in (pointer for each in patterns for pointer in each.arguments):
        if pointer.removeprefix("/") not in _WAZA_ARGUMENTS:
            named = ", ".join(f"/{name}" for name in _WAZA_ARGUMENTS)
            return f"waza has patterns for the arguments {named}, not for {pointer}"
    return None


def permission(allow: Sequence[Pattern] | None, deny: Sequence[Pattern], calls: Sequence[ToolCall]) -> Grade:
    """Return deepeval's grade: the share of calls of tools that are allowed, by name; 1 without calls."""
    if any(call.arguments is None for call in calls):
        message = "deepeval takes no call whose arguments are no object"
        return failed(Fault(category="data", code="undecodable_arguments", message=message))
    allowed, refused = None if allow is None else set(map(_name, allow)), set(map(_name, deny))
    reasons = []
    for call in calls:
        if call.name in refused:
            reasons.append(Reason(code="denied", subject=call.name))
        elif allowed is not None and call.name not in allowed:
            reasons.append(Reason(code="not_allowed", subject=call.name))
    right = len(calls) - len(reasons)
    score = right / len(calls) if calls else 1.0
    counts = {"calls": len(calls), "authorised": right}
    return Grade(score=score, passed=score >= 1.0, counts=counts, reasons=tuple(reasons))


def _name(pattern: Pattern) -> str:
    return pattern if isinstance(pattern, str) else pattern.tool


def constraint(expect: Sequence[CallPattern], deny: Sequence[CallPattern], calls: Sequence[ToolCall]) -> Grade:
    """Return waza's grade: passed checks / checks; patterns occur in names and arguments, case ignored."""
    items, reasons = [], []
    for code, wanted, patterns in (("tool_not_called", True, expect), ("denied", False, deny)):
        for pattern in patterns:
            found = any(_waza_fits(pattern, call) for call in calls)
            items.append(Item(id=f"{'expect' if wanted else 'deny'} {pattern}", score=float(found is wanted)))
            if found is not wanted:
                reasons.append(Reason(code=code, subject=pattern.tool))
    passed = len(items) - len(reasons)
    counts = {"calls": len(calls), "checks": len(items), "passed": passed}
    score = passed / len(items)
    return Grade(score=score, passed=not reasons, counts=counts, items=tuple(items), reasons=tuple(reasons))


def _waza_fits(pattern: CallPattern, call: ToolCall) -> bool:
    if compiled(pattern.tool.strip(), ignore_case=True).search(call.name) is None:
        return False
    return all(
        not text or compiled(text, ignore_case=True).search(text_at(call.arguments, pointer.removeprefix("/")))
        for pointer, text in pattern.arguments.items()
    )


def step_count(bounds: Range, glob: str | None, calls: Sequence[ToolCall]) -> Grade:
    """Return promptfoo's grade: 1 where the number of calls that fit a glob is within the bounds, else 0."""
    number = len(calls) if glob is None else sum(_glob(glob).fullmatch(call.name.strip()) is not None for call in calls)
    low = bounds.min is not None and number < bounds.min
    high = bounds.max is not None and number > bounds.max
    code, bound = ("too_few_calls", bounds.min) if low else ("too_many_calls", bounds.max)
    broken = low or high
    reasons = (Reason(code=code, subject=glob or "", expected=bound, actual=number),) if broken else ()
    counts = {"calls": len(calls), "matching": number}
    return Grade(score=float(not broken), passed=not broken, counts=counts, reasons=reasons)


@lru_cache(maxsize=256)
def _glob(text: str) -> re.Pattern[str]:
    """Return a glob of promptfoo's: ``*`` any characters but line ends, ``?`` one of them, case ignored."""
    return re.compile("".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in text), re.IGNORECASE)
