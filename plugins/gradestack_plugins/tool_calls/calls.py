"""Calls as rules compare them: a name and arguments, which may be undecodable, or not to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack import ExpectedCall, ToolCall
from gradestack.jsonio import JsonProblem, compact, loads

Arguments = dict[str, Any]


@attrs.frozen
class Call:
    """One call, made or expected, as a published rule sees it."""

    name: str
    arguments: Arguments
    """Empty where there are none, and where they are undecodable."""
    raw: str | None = None
    """The text of arguments that are no object; None where they are one."""
    compared: bool = True
    """Of an expected call: whether its arguments are compared at all."""
    failed: bool = False
    """Of a call that was made: whether it ended in an error, or was not run."""
    turn: int | None = None

    def same(self, other: Call) -> bool:
        """Return whether names and arguments are equal as Python has it: True = 1 = 1.0."""
        return self.name == other.name and self.arguments == other.arguments


def name_of(name: Any) -> str:
    """Return a tool's name; what is no text is shown in brackets, so that it equals no text."""
    return name if isinstance(name, str) else f"({compact(name)})"


def arguments_of(arguments: Mapping[str, Any] | None) -> Arguments:
    """Return arguments as a dict; none are an empty one."""
    if type(arguments) is dict:
        return arguments
    return dict(arguments) if arguments is not None and isinstance(arguments, Mapping) else {}


def raw_of(call: ToolCall | ExpectedCall) -> str | None:
    """Return the text of arguments that are no object, None where they are one or there are none."""
    return call.raw_arguments if call.arguments is None else None


def made_call(call: ToolCall) -> Call:
    """Return a call that was made."""
    failed = call.status in {"error", "denied", "not_run"} or (call.status is None and call.error is not None)
    return Call(name_of(call.name), arguments_of(call.arguments), raw_of(call), failed=failed, turn=call.turn)


def expected_call(call: ExpectedCall) -> Call:
    """Return a call that is expected, of which no rule knows more than name and arguments."""
    raw = raw_of(call)
    compared = call.arguments is not None or raw is not None
    return Call(name_of(call.name), arguments_of(call.arguments), raw, compared=compared, turn=call.turn)


def value_of(call: Call) -> Any:
    """Return what a call's arguments are: an object, else the JSON value of their text, else the text itself."""
    if call.raw is None:
        return call.arguments
    try:
        return loads(call.raw)
    except JsonProblem:
        return call.raw.strip()


def is_json(text: str) -> bool:
    """Return whether a text can be decoded."""
    try:
        loads(text)
    except JsonProblem:
        return False
    return True
