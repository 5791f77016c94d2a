"""``predicted`` of the ``jsonl`` form: calls with their details, and the short forms it shares with ``expected``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import ToolCall, replace, suggest
from gradestack.jsonio import check_depth
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.jsonl_lines import CallDetails, fits

SIDE_KEYS = ("calls", "label", "text", "plan")


class Wrong(ValueError):
    """A record that does not follow the form; the message names the key."""


def wrong(key: str, wanted: str, value: Any) -> Wrong:
    """Return that a key holds something else than what was expected."""
    shown = json.dumps(value, default=str)
    check_depth(shown)
    return Wrong(f"{key}: expected {wanted}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")


def unknown(key: str, name: Any, known: Sequence[str]) -> Wrong:
    """Return that there is no such key, and which was meant or there are."""
    hint = suggest(name, known) or f"; known: {', '.join(known)}"
    return Wrong(f"{key}: unknown key{hint}")


def named_calls(value: Any, key: str, *, several: bool = False) -> list[Mapping[str, Any]]:
    """Return the entries of a list of calls, each of which names its tool, or (``several``) tools."""
    if not isinstance(value, list):
        raise wrong(key, "a list of calls", value)
    from gradestack_plugins.readers.chat.names import usual_call  # noqa: PLC0415 - most lines go the straight way

    calls = [usual_call(entry) if isinstance(entry, chat.OBJECT) else entry for entry in value]
    for position, entry in enumerate(calls):
        if not is_named(entry, several=several):
            raise wrong(f"{key}[{position}]", "a call with a name", entry)
    return calls


def is_named(entry: Any, *, several: bool) -> bool:
    """Return whether a call names its tool, or (``several``) tools."""
    if not isinstance(entry, chat.OBJECT):
        return False
    function: Any = entry.get("function")
    wrapped = function is not None and isinstance(function, chat.OBJECT)
    name = (function if wrapped else entry).get("name")
    if name is None and several:
        names = entry.get("names")
        return isinstance(names, list) and bool(names) and all(isinstance(each, str) for each in names)
    return isinstance(name, str)


def _details(entry: Mapping[str, Any], key: str, version: int) -> dict[str, Any]:
    """Return what a call that was made says beyond name and arguments.

    The first version of the form looked at nothing more of a call: what is of another kind there is left out.
    """
    given = {name: entry[name] for name in CallDetails.__struct_fields__ if entry.get(name) is not None}
    if not given:
        return {}
    try:
        return _converted(given, key)
    except Wrong:
        if version > 1:
            raise
    return _converted({name: value for name, value in given.items() if fits(name, value)}, key)


def _converted(given: Any, key: str) -> dict[str, Any]:
    try:
        return msgspec.structs.asdict(msgspec.convert(given, CallDetails))
    except UnicodeEncodeError as error:
        raise Wrong(f"{key}: a text that is not UTF-8, where something else is expected") from error
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        raise Wrong(f"{key}{where.rstrip('`')}: {what[:1].lower()}{what[1:]}") from error


def _made(value: Any, key: str, version: int) -> tuple[ToolCall, ...]:
    found = []
    for position, entry in enumerate(named_calls(value, key)):
        call = chat.tool_call(entry)
        wrapped = isinstance(entry.get("function"), chat.OBJECT)
        details = {} if wrapped else _details(entry, f"{key}[{position}]", version)
        if call is not None:
            found.append(replace(call, **details) if details else call)
    return tuple(found)


Calls = Callable[[Any, str, int], tuple[Any, ...]]


def side(
    value: Any, key: str, version: int, calls: Calls = _made, known: tuple[str, ...] = SIDE_KEYS
) -> dict[str, Any]:
    """Return calls, label, text and plan of ``expected`` or ``predicted``, from any of its short forms."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"label": value, "text": value}
    if isinstance(value, list):
        return {"calls": calls(value, key, version)}
    if not isinstance(value, chat.OBJECT):
        raise wrong(key, "calls, text or an object", value)
    if "name" in value or "function" in value:
        return {"calls": calls([value], key, version)}
    for name in value:
        if name not in known:
            raise unknown(f"{key}.{name}", name, known)
    found: dict[str, Any] = {name: value[name] for name in ("label", "text", "plan") if value.get(name) is not None}
    for name in ("label", "text"):
        turns = name == "text" and isinstance(found.get(name), list) and all(isinstance(t, str) for t in found[name])
        if name in found and not isinstance(found[name], str) and not turns:
            raise wrong(f"{key}.{name}", "text", found[name])
        if turns:
            found[name] = tuple(found[name])
    if value.get("calls") is not None:
        found["calls"] = calls(value["calls"], f"{key}.calls", version)
    return found


def texts(value: Any, key: str) -> tuple[str, ...]:
    """Return a list of texts."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise wrong(key, "a list of texts", value)
