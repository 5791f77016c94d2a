"""Calls in the forms that people write: lists, single calls, names, JSON text, and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from gradestack import compile_later
from gradestack.jsonio import JsonProblem, loads
from gradestack_plugins.readers.chat import OBJECT
from gradestack_plugins.readers.chat.texts import calls_in
from gradestack_plugins.readers.chat.unread import names_a_call

JSON_TEXT: Final = compile_later(r"""\s*(?:\{\s*["}]|\[\s*[\[{"\]\d-])""")
"""The beginning of a text that is a JSON list or object, and not prose in brackets."""
_NO_TOOL: Final = frozenset({"", "none", "no_tool", "-"})
_NAME_KEYS: Final = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS: Final = tuple(
    "arguments args input tool_input input_parameters parameters kwargs".split()  # noqa: SIM905
)
_DETAILS: Final = frozenset(
    """
    id type names rules optional turn group requestor result error error_type exit_code step author
    server kind status started seconds
    """.split()  # noqa: SIM905
)
"""Keys of calls that are taken as they are."""
_UNDERSTOOD: Final = _DETAILS | frozenset(
    """
    name arguments function output index strict parsed_arguments partial_args partialArgs
    will_continue willContinue
    """.split()  # noqa: SIM905
)
"""Keys of calls that are read, or that say nothing about what was called."""
_FENCED: Final = compile_later(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
"""A block of code in a text."""
_LONGEST_NAME: Final = 256
"""Characters of a tool's name in plain text."""


def plain_name(name: str) -> str:
    """Return a name as it is compared: in lower case, without ``_``, ``-``, ``.`` and space."""
    return re.sub(r"[_\-. ]", "", name).lower()


def decoded(value: Any) -> Any:
    """Return the list or object of a JSON text; anything else as it is."""
    if isinstance(value, str) and JSON_TEXT.match(value):
        try:
            return loads(value)
        except JsonProblem:
            return value
    return value


def _as_entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def calls_in_text(text: str) -> list[dict[str, Any]] | None:
    """Return the calls that a text is as JSON, or holds in fenced blocks or tags.

    None for a text that holds no calls in these forms.
    """
    if JSON_TEXT.match(text):
        return _call_entries(decoded(text))
    calls: list[dict[str, Any]] = []
    for block in map(decoded, _FENCED.findall(text)):
        if not isinstance(block, str):
            calls += _call_entries(block) or ()
    if calls:
        return calls
    if "<tool_call>" in text:
        tagged = calls_in(text)[1]
    else:
        tagged = []
    return _call_entries(tagged) if tagged else None


def _call_entries(value: Any) -> list[dict[str, Any]] | None:
    """Return a list of calls, one call, or the calls under ``tool_calls``; None for all else."""
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    entries = _as_entries(value)
    are_calls = all(isinstance(entry, dict) and _names_tool(entry) for entry in entries)
    return entries if are_calls else None


def _names_tool(entry: Any) -> bool:
    """Return whether an entry is a call that names its tool."""
    return call_of(entry)[0] is not entry


def is_tool_name(text: str) -> bool:
    """Return whether a plain text may be the name of a tool: prose is none."""
    return len(text) <= _LONGEST_NAME and not any(map(str.isspace, text))


def with_names(value: Any) -> Any:
    """Return calls ``{TOOL: ARGUMENTS}``, one or a list, as names beside arguments.

    Anything else is returned as it is.
    """
    entries = _as_entries(decoded(value))
    if not entries or not all(map(_is_keyed, entries)):
        return value
    return [
        {"name": tool, "arguments": decoded(arguments)}
        for entry in entries
        for tool, arguments in entry.items()
    ]


def _is_keyed(entry: Any) -> bool:
    """Return whether an entry has arguments under the name of each tool it calls."""
    if not isinstance(entry, dict) or not entry or _names_tool(entry):
        return False
    are_tools = all(is_tool_name(tool) and not names_a_call(tool) for tool in entry)
    return are_tools and all(isinstance(decoded(value), dict) for value in entry.values())


def unread_of(value: Any) -> list[str]:
    """Return the kinds of calls that are not decoded in a value mapped to calls."""
    value = decoded(value)
    if isinstance(value, str) and calls_in_text(value) is not None:
        return []
    entries = [entry for entry in _as_entries(value) if entry is not None and entry != {}]
    return [kind for entry in entries if (kind := _unread_entry(entry)) is not None]


def _unread_entry(entry: Any) -> str | None:
    """Return the kind of a call that is not decoded; None for one that is."""
    if isinstance(entry, str):
        text = entry.strip()
        if is_tool_name(text) or _is_none(entry):
            return None
        return "text"
    if isinstance(entry, OBJECT) and not _names_tool(entry):
        return "entry"
    return None


def _is_none(name: Any) -> bool:
    """Return whether a name says that no tool was called."""
    return isinstance(name, str) and name.strip().lower() in _NO_TOOL


def calls_of(value: Any) -> Any:
    """Return calls in the jsonl form, from a list, one call, a name, or the JSON text of any.

    Anything else is returned as it is. An empty cell, null, and ``none``, ``no_tool`` or ``-`` in
    place of a tool are no call. A call without arguments has ``arguments`` null: where it is
    expected, they are not compared.
    """
    value = decoded(value)
    if isinstance(value, str):
        in_text = calls_in_text(value)
        value = [value] if in_text is None else in_text
    if value is None or value == {}:
        return []
    if isinstance(value, OBJECT):
        value = [value]
    if not isinstance(value, list):
        return value
    calls = [call_of(entry)[0] for entry in value]
    return [call for call in calls if not (isinstance(call, dict) and _is_none(call.get("name")))]


def usual_call(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call with ``name`` and ``arguments``, whatever its format calls these keys."""
    function = entry.get("function")
    if function is not None and isinstance(function, OBJECT):
        named = usual_call(function)
        return entry if named is function else {**entry, "function": named}
    if "name" in entry and "arguments" in entry:
        return entry
    names = _usual_names(tuple(entry))
    if names:
        return {names.get(key, key): value for key, value in entry.items()}
    return entry


@lru_cache(maxsize=1024)
def _usual_names(keys: tuple[Any, ...]) -> Mapping[str, str]:
    """Return the keys of a call that hold its name and arguments under another word."""
    plain = {plain_name(str(key)): key for key in reversed(keys)}
    names: dict[str, str] = {}
    for name, words in (("name", _NAME_KEYS), ("arguments", _ARGUMENT_KEYS)):
        plain_names = map(plain_name, words)
        key = next((plain[word] for word in plain_names if word in plain), name)
        if key != name:
            names[key] = name
    return names


def call_of(entry: Any) -> tuple[Any, list[str]]:
    """Return one call in the jsonl form, and its keys that are not understood.

    An entry that names no tool is returned as it is.
    """
    if isinstance(entry, str):
        return {"name": entry.strip(), "arguments": None}, []
    if not isinstance(entry, OBJECT):
        return entry, []
    recorded = usual_call(entry)
    function = recorded.get("function")
    inner = function if function is not None and isinstance(function, OBJECT) else recorded
    name = inner.get("name")
    if not isinstance(name, str) and "names" not in recorded:
        return entry, []
    call = {key: value for key, value in recorded.items() if key in _DETAILS}
    if "output" in recorded:
        call.setdefault("result", recorded["output"])
    if name is not None:
        call["name"] = name
    call["arguments"] = inner.get("arguments")
    keys = recorded if inner is recorded else (*recorded, *inner)
    return call, [str(key) for key in keys if key not in _UNDERSTOOD]
