"""Calls as they are compared: a name and arguments, which may be undecodable, or not to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack import ExpectedCall, Rule, ToolCall
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.tool_calls.leaves import Leaves
from gradestack_plugins.tool_calls.rules import check

Arguments = dict[str, Any]


class Expected:
    """An expected call."""

    __slots__ = (
        *("arguments", "compared", "group", "index", "leaves", "name", "names"),
        *("optional", "raw", "requestor", "rules", "turn"),
    )

    def __init__(self, index: int, call: ExpectedCall, *, rules: bool = False, requestor: bool = False) -> None:
        self.index, self.optional, self.group, self.turn = index, call.optional, call.group, call.turn
        self.names = call.names or (name_of(call.name),)
        self.name = self.names[0]
        self.arguments, self.raw = arguments_of(call.arguments), _raw_of(call)
        self.compared = call.arguments is not None or self.raw is not None or bool(call.rules)
        self.rules: Mapping[str, Rule] = call.rules if rules and call.rules else {}
        if self.rules:
            check(self.rules)
        self.requestor = call.requestor if requestor else None
        self.leaves: dict[str, Leaves] = {}
        """Those compared with calls of a tool, worked out once."""


class Made:
    """A call that was made."""

    __slots__ = ("arguments", "failed", "index", "leaves", "name", "raw", "requestor", "turn")

    def __init__(self, index: int, call: ToolCall) -> None:
        self.index, self.name, self.requestor, self.turn = index, name_of(call.name), call.requestor, call.turn
        self.arguments, self.raw = arguments_of(call.arguments), _raw_of(call)
        self.failed = call.status in {"error", "denied", "not_run"} or (call.status is None and call.error is not None)
        self.leaves: dict[frozenset[str], Leaves] = {}
        """Those compared but for arguments a rule decides, worked out once."""


def name_of(name: Any) -> str:
    """Return a tool's name; what is no text is shown in brackets, so that it equals no text."""
    return name if isinstance(name, str) else f"({compact(name)})"


def arguments_of(arguments: Mapping[str, Any] | None) -> Arguments:
    """Return arguments as a dict; none are an empty one."""
    if type(arguments) is dict:
        return arguments
    return dict(arguments) if arguments is not None and isinstance(arguments, Mapping) else {}


def _raw_of(call: ToolCall | ExpectedCall) -> str | None:
    """Return the text of arguments that are no object, None where they are one or there are none."""
    return call.raw_arguments if call.arguments is None else None


def decoded(call: Expected | Made) -> Any:
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
