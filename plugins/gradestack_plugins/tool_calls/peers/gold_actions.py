"""Rules by which one call that was made may serve several expected ones: tau2-bench's actions, ToolSandbox's traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradestack import ExpectedCall, Sample
from gradestack_plugins.tool_calls.calls import Call, arguments_of, expected_call
from gradestack_plugins.tool_calls.peers.verdict import Verdict, boolean, refuse_undecodable

Agree = Callable[[ExpectedCall, Call], bool]


def actions(expected: Sequence[Call], made: Sequence[Call], sample: Sample) -> Verdict:
    """Return whether every gold action of tau2-bench is matched by some call, names and compared arguments."""
    refuse_undecodable(expected, made)
    gold = sample.expected.calls or ()
    return boolean(all(any(_same_action(action, call) for call in made) for action in gold))


def _same_action(action: ExpectedCall, call: Call) -> bool:
    """Return whether a call is a gold action: by the keys of the call itself, unless the action names its own."""
    if action.name != call.name:
        return False
    if action.arguments is None:
        return True
    wanted = arguments_of(action.arguments)
    if not action.rules:
        keys = set(call.arguments)
    else:  # those that are not to be compared have a rule
        keys = {key for key in wanted if not (key in action.rules and action.rules[key].ignore)}
    return {key: wanted[key] for key in wanted if key in keys} == {
        key: value for key, value in call.arguments.items() if key in keys
    }


def tool_trace(expected: Sequence[Call], made: Sequence[Call], sample: Sample) -> Verdict:
    """Return whether one of ToolSandbox's alternatives is some call of its name that has its arguments."""
    refuse_undecodable(expected, made)
    gold = sample.expected.calls or ()
    return boolean(any(_traces(wanted, call) for wanted in gold for call in made))


def _traces(wanted: ExpectedCall, call: Call) -> bool:
    if wanted.name != call.name:
        return False
    rules = wanted.rules or {}
    for key, value in expected_call(wanted).arguments.items():
        rule = rules.get(key)
        if rule is not None and rule.ignore:
            continue
        tolerance = None if rule is None else rule.tolerance
        if key not in call.arguments or not _close(value, call.arguments[key], tolerance):
            return False
    return True


def _close(wanted: Any, value: Any, tolerance: float | None) -> bool:
    if tolerance is None or not isinstance(wanted, int | float) or not isinstance(value, int | float):
        return bool(wanted == value)
    return abs(value - wanted) <= tolerance
