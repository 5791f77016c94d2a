"""``expected`` and ``predicted`` of the ``jsonl`` form: calls with their details, and the short forms of either."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from gradestack import Expectation, ExpectedCall, Rule, ToolCall, replace, suggest
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.jsonl_fast import CallDetails

_SIDE_KEYS = ("calls", "label", "text", "plan")
_EXPECTED_KEYS = (*_SIDE_KEYS, "alternatives", "forbidden", "state")


class Wrong(ValueError):
    """A record that does not follow the form; the message names the key."""


def wrong(key: str, wanted: str, value: Any) -> Wrong:
    """Return that a key holds something else than what was expected."""
    shown = json.dumps(value, default=str)
    return Wrong(f"{key}: expected {wanted}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")


def _named(value: Any, key: str, *, several: bool = False) -> list[Mapping[str, Any]]:
    """Return the entries of a list of calls, each of which names its tool, or (``several``) tools."""
    if not isinstance(value, list):
        raise wrong(key, "a list of calls", value)
    for position, entry in enumerate(value):
        if not _is_named(entry, several=several):
            raise wrong(f"{key}[{position}]", "a call with a name", entry)
    return value


def _is_named(entry: Any, *, several: bool) -> bool:
    if not isinstance(entry, Mapping):
        return False
    function = entry.get("function")
    name = (function if isinstance(function, Mapping) else entry).get("name")
    if name is None and several:
        names = entry.get("names")
        return isinstance(names, list) and bool(names) and all(isinstance(each, str) for each in names)
    return isinstance(name, str)


def _details(entry: Mapping[str, Any], form: type[Details], key: str, version: int) -> dict[str, Any]:
    """Return what a call says beyond name and arguments.

    The first version of the form looked at nothing more of a call: what is of another kind there is left out.

    Raises:
        Wrong: Something is of another kind than the form's, and the record says that it is of the second version.
    """
    given = {name: entry[name] for name in form.__struct_fields__ if entry.get(name) is not None}
    if not given:
        return {}
    try:
        return _converted(given, form, key)
    except Wrong:
        if version > 1:
            raise
    return _converted({name: value for name, value in given.items() if _fits(name, value, form)}, form, key)


def _fits(name: str, value: Any, form: type[Details]) -> bool:
    try:
        msgspec.convert({name: value}, form)
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        return False
    return True


def _converted(given: Any, form: type[Details], key: str) -> dict[str, Any]:
    try:
        return msgspec.structs.asdict(msgspec.convert(given, form))
    except UnicodeEncodeError as error:
        msg = f"{key}: a text that is not UTF-8, where something else is expected"
        raise Wrong(msg) from error
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        msg = f"{key}{where.rstrip('`')}: {what[:1].lower()}{what[1:]}"
        raise Wrong(msg) from error


def _made(value: Any, key: str, version: int) -> tuple[ToolCall, ...]:
    found = []
    for position, entry in enumerate(_named(value, key)):
        call = chat.tool_call(entry)
        wrapped = isinstance(entry.get("function"), Mapping)
        details = {} if wrapped else _details(entry, CallDetails, f"{key}[{position}]", version)
        if call is not None:
            found.append(replace(call, **details) if details else call)
    return tuple(found)


class _Expected(msgspec.Struct):
    """What the form may say of an expected call, beyond name and arguments."""

    names: tuple[str, ...] = ()
    rules: dict[str, Rule] | None = None
    optional: bool = False
    turn: int | None = None
    group: int | None = None


Details = TypeVar("Details", CallDetails, _Expected)


def _expected(value: Any, key: str, version: int) -> tuple[ExpectedCall, ...]:
    found = []
    for position, entry in enumerate(_named(value, key, several=True)):
        call = chat.tool_call(entry)
        if call is None:
            continue
        function, requestor = entry.get("function"), entry.get("requestor")
        inner = function if isinstance(function, Mapping) else entry
        compared = version < 2 or inner.get("arguments", ()) is not None
        found.append(
            ExpectedCall(
                name=call.name,
                arguments=call.arguments if compared else None,
                raw_arguments=call.raw_arguments if call.arguments is None else None,
                requestor=requestor if isinstance(requestor, str) else None,
                **_details(entry, _Expected, f"{key}[{position}]", version),
            )
        )
    return tuple(found)


def _is_call(value: Mapping[str, Any], *, several: bool) -> bool:
    return "name" in value or "function" in value or (several and "names" in value)


Calls = Callable[[Any, str, int], tuple[Any, ...]]


def side(
    value: Any, key: str, version: int, calls: Calls = _made, known: tuple[str, ...] = _SIDE_KEYS
) -> dict[str, Any]:
    """Return calls, label, text and plan of ``expected`` or ``predicted``, from any of its short forms.

    Raises:
        Wrong: It does not follow the form.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return {"label": value, "text": value}
    if isinstance(value, list):
        return {"calls": calls(value, key, version)}
    if not isinstance(value, Mapping):
        raise wrong(key, "calls, text or an object", value)
    if _is_call(value, several=calls is _expected):
        return {"calls": calls([value], key, version)}
    for name in value:
        if name not in known:
            hint = suggest(name, known) or f"; known: {', '.join(known)}"
            msg = f"{key}.{name}: unknown key{hint}"
            raise Wrong(msg)
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


def expectation(value: Any, version: int) -> Expectation:
    """Return the reference of a record.

    Raises:
        Wrong: It does not follow the form.
    """
    found = side(value, "expected", version, _expected, _EXPECTED_KEYS)
    if isinstance(value, Mapping) and not _is_call(value, several=True):
        lists = value.get("alternatives")
        if lists is not None and not isinstance(lists, list):
            raise wrong("expected.alternatives", "a list of lists of calls", lists)
        if lists:
            found["alternatives"] = tuple(
                _expected(each, f"expected.alternatives[{at}]", version) for at, each in enumerate(lists)
            )
        forbidden = value.get("forbidden")
        if forbidden is not None:
            found["forbidden"] = texts(forbidden, "expected.forbidden")
        if value.get("state") is not None:
            found["state"] = value["state"]
    return Expectation(**found)


def texts(value: Any, key: str) -> tuple[str, ...]:
    """Return a list of texts.

    Raises:
        Wrong: It is none.
    """
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise wrong(key, "a list of texts", value)
