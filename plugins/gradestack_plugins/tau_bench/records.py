"""What a tau-bench record says: the calls made and the calls expected, as the partial scoring script sees them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import attrs
import msgspec

from gradestack import LARGEST_SCORE, Profile
from gradestack.jsonio import JsonProblem, loads

_LARGEST = sys.float_info.max
RESPOND = "respond"
"""Name of the pseudo-action that speaks to the user; not a tool call."""
ACTION_MARK = "Action:"
RESULT_MARK = "API output: "


@attrs.frozen
class TauRecord:
    """A record as read from the file, for the grader and the exporter of this family."""

    record: Any


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call made or expected. Values are kept exactly as recorded: any JSON value may stand in either place."""

    name: Any
    arguments: Any


class Malformed(Exception):
    """A record of a shape on which the original script stops with an exception. The message says what is wrong."""


@attrs.frozen
class Content:
    """What partial scoring needs of one record."""

    errored: bool
    """``info`` holds an ``error`` key; nothing else is looked at."""
    expected: tuple[Call, ...] | None
    """None when ``info``, ``info.task`` or ``info.task.actions`` is missing; ``()`` when nothing is expected."""
    made: tuple[Call, ...] = ()


def content_of(record: dict[str, Any], profile: Profile) -> Content:
    """Return what a record holds, in the order the original looks at it.

    Args:
        record: A tau-bench record.
        profile: ``documented`` also understands arguments recorded as objects and act/react runs.

    Raises:
        Malformed: The original stops here: ``info`` or ``task`` null, ``traj`` missing or null when reached, a message,
            call or action that is not an object.
    """
    info = record.get("info", {})
    try:
        if "error" in info:
            return Content(errored=True, expected=None)
        actions = record["info"]["task"]["actions"]
    except KeyError:
        return Content(errored=False, expected=None)
    except TypeError as error:
        where = "info.task" if isinstance(info, dict) else "info"
        raise Malformed(f"{where} is not an object") from error
    made = made_calls(record, profile)
    return Content(errored=False, expected=_expected(actions), made=made)


def _expected(actions: Any) -> tuple[Call, ...]:
    if not actions:
        return ()
    try:
        return tuple(Call(action.get("name", ""), action.get("kwargs", {})) for action in actions)
    except (AttributeError, TypeError) as error:
        raise Malformed("info.task.actions is not a list of objects") from error


def made_calls(record: dict[str, Any], profile: Profile) -> tuple[Call, ...]:
    """Return the calls of a record's conversation: every truthy ``tool_calls`` of any role, in order.

    A name defaults to "", arguments to ``{}``; arguments that cannot be decoded read as ``{}``, arguments that decode
    to something else than an object are kept as they are. ``documented`` takes arguments recorded as an object as they
    are, and reads the actions of act/react runs when no message has tool calls.

    Raises:
        Malformed: ``traj`` is missing or null, or a message, a call or its ``function`` is not an object.
    """
    if "traj" not in record:
        raise Malformed("traj is missing")
    traj = record["traj"]
    objects = profile == "documented"
    calls: list[Call] = []
    at = -1
    try:
        for at, message in enumerate(traj):  # noqa: B007 - read by the handler below
            entries = message.get("tool_calls")
            if entries:
                for entry in entries:
                    function = entry.get("function", {})
                    arguments = _decoded(function.get("arguments", "{}"), objects=objects)
                    calls.append(Call(function.get("name", ""), arguments))
    except (AttributeError, TypeError) as error:
        what = f"message {at} of traj, or one of its tool calls, is not an object" if at >= 0 else "traj is not a list"
        raise Malformed(what) from error
    if not calls and objects:
        return tuple(react_calls(traj))
    return tuple(calls)


def _decoded(raw: Any, *, objects: bool) -> Any:
    if isinstance(raw, str):
        try:
            return loads(raw)
        except JsonProblem:
            return {}
    return raw if objects and isinstance(raw, dict) else {}


def react_action(content: Any) -> Call | None:
    """Return the action an act/react message takes, None when it is none.

    The action is the JSON text behind the last "Action:" (the whole text without one), an object with a ``name`` and
    object ``arguments``; anything else is speech. The ``respond`` action is returned like any other.
    """
    if not isinstance(content, str):
        return None
    text = content.rpartition(ACTION_MARK)[2].strip()
    if not text.startswith("{"):
        return None
    try:
        action = loads(text)  # an object, since it begins with a brace
    except JsonProblem:
        return None
    name, arguments = action.get("name"), action.get("arguments")
    return Call(name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def react_calls(traj: Any) -> Iterator[Call]:
    """Yield the tool calls of an act/react conversation: actions of assistant messages except ``respond``."""
    for message in traj:
        if isinstance(message, dict) and message.get("role") == "assistant":
            action = react_action(message.get("content"))
            if action is not None and action.name != RESPOND:
                yield action


def reward_of(value: Any) -> float | None:
    """Return a recorded reward, None when it is no finite number, or larger than any score may be."""
    number = finite_number(value)
    return number if number is not None and abs(number) <= LARGEST_SCORE else None


def finite_number(value: Any) -> float | None:
    """Return a value as a finite float, None when it is not such a number. A boolean counts as 0 or 1."""
    if type(value) is float:
        return value if -_LARGEST <= value <= _LARGEST else None
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < float("inf") else None
