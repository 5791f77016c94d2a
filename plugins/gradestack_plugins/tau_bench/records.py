"""What a tau-bench record says: the calls made and the calls expected, as the partial scoring script sees them."""

from __future__ import annotations

from typing import Any

import msgspec

from gradestack import Profile
from gradestack.jsonio import JsonProblem, loads

RESPOND = "respond"
"""Name of the pseudo-action that speaks to the user; not a tool call."""
ACTION_MARK = "Action:"
RESULT_MARK = "API output: "


class TauRecord(msgspec.Struct, frozen=True):
    """A record as read from the file, for the grader and the exporter of this family."""

    record: Any


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call made or expected. Values stand exactly as recorded: any JSON value may be in either place."""

    name: Any
    arguments: Any


class Malformed(Exception):
    """A record of a shape on which the original script stops with an exception. The message says what is wrong."""


class Content(msgspec.Struct, frozen=True):
    """What partial scoring needs of one record."""

    errored: bool
    """``info`` holds an ``error`` key; nothing else is looked at."""
    expected: tuple[Call, ...] | None = None
    """None when ``info``, ``info.task`` or ``info.task.actions`` is missing; ``()`` when nothing is expected."""
    made: tuple[Call, ...] = ()


def content_of(record: dict[str, Any], profile: Profile) -> Content:
    """Return what a record holds, in the order the original looks at it."""
    info = record.get("info", {})
    try:
        if "error" in info:
            return Content(errored=True)
        actions = record["info"]["task"]["actions"]
    except KeyError:
        return Content(errored=False)
    except TypeError as error:
        raise Malformed(f"{'info.task' if isinstance(info, dict) else 'info'} is not an object") from error
    made = _made(record, documented=profile == "documented")
    try:
        expected = tuple(Call(action.get("name", ""), action.get("kwargs", {})) for action in actions or ())
    except (AttributeError, TypeError) as error:
        raise Malformed("info.task.actions is not a list of objects") from error
    return Content(errored=False, expected=expected, made=made)


def _made(record: dict[str, Any], *, documented: bool) -> tuple[Call, ...]:
    """Return the calls of a conversation: every truthy ``tool_calls`` of any role, in order.

    A name defaults to "", arguments to ``{}``; arguments that cannot be decoded read as ``{}``, those that decode to
    something else than an object stay as they are. ``documented`` takes arguments recorded as an object as they are,
    and reads the actions of act/react runs when no message has tool calls.
    """
    if "traj" not in record:
        raise Malformed("traj is missing")
    calls: list[Call] = []
    at = -1
    try:
        for at, message in enumerate(record["traj"]):  # noqa: B007 - read by the handler below
            for entry in message.get("tool_calls") or ():
                function = entry.get("function", {})
                arguments = function.get("arguments", "{}")
                if isinstance(arguments, str):
                    try:
                        arguments = loads(arguments)
                    except JsonProblem:
                        arguments = {}
                elif not (documented and isinstance(arguments, dict)):
                    arguments = {}
                calls.append(Call(function.get("name", ""), arguments))
    except (AttributeError, TypeError) as error:
        what = f"message {at} of traj, or one of its tool calls, is not an object" if at >= 0 else "traj is not a list"
        raise Malformed(what) from error
    if documented and not calls:
        said = [each.get("content") for each in record["traj"] if each.get("role") == "assistant"]
        return tuple(action for action in map(react_action, said) if action is not None and action.name != RESPOND)
    return tuple(calls)


def react_action(content: Any) -> Call | None:
    """Return the action an act/react message takes, ``respond`` like any other; None when it is none.

    The action is the JSON text behind the last "Action:" (the whole text without one), an object with a ``name`` and
    object ``arguments``; anything else is speech.
    """
    text = content.rpartition(ACTION_MARK)[2].strip() if isinstance(content, str) else ""
    if not text.startswith("{"):
        return None
    try:
        action = loads(text)  # an object, since it begins with a brace
    except JsonProblem:
        return None
    name, arguments = action.get("name"), action.get("arguments")
    return Call(name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None
