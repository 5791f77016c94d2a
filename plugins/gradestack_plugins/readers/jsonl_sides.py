"""Both sides of the ``jsonl`` form: calls that were made, with their details, and what is expected.

Expected calls have rules, and beside them stand alternatives and forbidden tools; both sides have the same short forms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from gradestack import Expectation, ExpectedCall, Rule, ToolCall, replace, suggest
from gradestack.jsonio import as_text, check_depth
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


_KEYS = (*SIDE_KEYS, "alternatives", "forbidden", "state")
_ADDED = frozenset(_KEYS) - frozenset(SIDE_KEYS)
"""Those that the second version of the form added."""
_ARGUMENTS = (str, *chat.OBJECT)
_NAMES = frozenset({"name", "function", "names"})
"""Keys by one of which a reference is a single call."""
_RULE_KEYS = Rule.__struct_fields__
_ADDITIONS = ("rules", "optional", "turn", "group", "requestor")
_COMPARED = ("name", "names", "arguments", *_ADDITIONS)
_MADE = ("id", "type", "index", *(each for each in CallDetails.__struct_fields__ if each != "turn"))
"""What a call that was made has and nothing is expected of: such calls may be given as references."""
_UNNAMED = frozenset({*_MADE, "kwargs"})
"""Keys that are read over, or another word for one, and not named to who mistypes."""
_FLAT = (*_COMPARED, "kwargs", "function", *_MADE)
_WRAPPED = ("function", *_ADDITIONS, *_MADE)
_FUNCTION = ("name", "arguments", "kwargs")
_WANTED = {
    "names": "a list of texts",
    "optional": "true or false",
    "turn": "a whole number of at least 0",
    "group": "a whole number",
    "any_of": "a list of values",
    "ignore": "true or false",
    "compare": "one of exact, text, number, set, schema, regex",
    "tolerance": "a number",
}
_COMPARISONS = ("exact", "text", "number", "set", "schema", "regex")

Form = TypeVar("Form", "_Said", Rule)


class _Said(msgspec.Struct):
    """What the form may say of an expected call in values of one kind."""

    names: tuple[str, ...] = ()
    optional: bool = False
    turn: int | None = None
    group: int | None = None


def expectation(value: Any, version: int) -> Expectation:
    """Return the reference of a record."""
    if isinstance(value, chat.OBJECT) and not _NAMES.isdisjoint(value):
        return Expectation(calls=(_single(value, version),))
    found = side(value, "expected", version, _expected, _KEYS)
    if not isinstance(value, chat.OBJECT):
        return Expectation(**found)
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


def _single(value: Mapping[str, Any], version: int) -> ExpectedCall:
    for name in _KEYS:
        if name in _ADDED and name in value:
            raise Wrong(f"expected.{name}: not beside the name of a call; give the call in a list under expected.calls")
    if not is_named(value, several=True):
        raise wrong("expected", "a call with a name", value)
    return _call(value, "expected", version)


def _expected(value: Any, key: str, version: int) -> tuple[ExpectedCall, ...]:
    calls = named_calls(value, key, several=True)
    return tuple([_call(entry, f"{key}[{position}]", version) for position, entry in enumerate(calls)])


def _call(entry: Mapping[str, Any], key: str, version: int) -> ExpectedCall:
    function: Any = entry.get("function")
    requestor = entry.get("requestor")
    wrapped = function is not None and isinstance(function, chat.OBJECT)
    _check_keys(entry, key, _WRAPPED if wrapped else _FLAT, version)
    inner: Mapping[str, Any] = function if wrapped else entry
    place = f"{key}.function" if wrapped else key
    if wrapped:
        _check_keys(inner, place, _FUNCTION, version)
    elif version > 1 and function is not None:
        raise wrong(place + ".function", "an object with name and arguments", function)
    arguments = inner.get("arguments", inner.get("kwargs"))
    if version > 1 and arguments is not None and not isinstance(arguments, _ARGUMENTS):
        raise wrong(f"{place}.arguments", "an object or JSON text", arguments)
    if requestor is not None and not isinstance(requestor, str):
        raise wrong(f"{key}.requestor", "text", requestor)
    given, text = chat.parse_arguments(arguments)
    compared = version < 2 or inner.get("arguments", ()) is not None
    return ExpectedCall(
        name=as_text(inner.get("name")),
        arguments=given if compared else None,
        raw_arguments=text if given is None else None,
        requestor=requestor,
        rules=None if entry.get("rules") is None else _rules(entry["rules"], f"{key}.rules"),
        **_said(entry, key),
    )


def _check_keys(entry: Mapping[str, Any], key: str, known: tuple[str, ...], version: int) -> None:
    """Check the keys of an expected call.

    The first version of the form let a call hold anything: there only what is nearly a key that it lacks is refused.
    """
    for name in entry:
        if name in known:
            continue
        if version > 1:
            raise unknown(_below(key, name), name, [each for each in known if each not in _UNNAMED])
        lacking = [each for each in _ADDITIONS if each in known and each not in entry]
        nearly = suggest(name, lacking, cutoff=0.85)
        if "arguments" in known and not {"arguments", "kwargs"} & entry.keys():
            nearly = nearly or suggest(name, ("arguments",))
        if nearly:
            raise Wrong(f"{_below(key, name)}: unknown key{nearly}")


def _said(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    if entry.keys().isdisjoint(_Said.__struct_fields__):
        return {}
    given = {name: entry[name] for name in _Said.__struct_fields__ if entry.get(name) is not None}
    said = msgspec.structs.asdict(_as_form(given, _Said, key)) if given else {}
    if said and said["turn"] is not None and said["turn"] < 0:
        raise wrong(f"{key}.turn", _WANTED["turn"], said["turn"])
    return said


def _rules(value: Any, key: str) -> dict[str, Rule]:
    if not isinstance(value, chat.OBJECT):
        raise wrong(key, "an object: argument to rule", value)
    return {name: _rule(rule, _below(key, name)) for name, rule in value.items()}


def _rule(value: Any, key: str) -> Rule:
    if not isinstance(value, chat.OBJECT):
        raise wrong(key, f"a rule, which is an object with any of {', '.join(_RULE_KEYS)}", value)
    for name in value:
        if name not in _RULE_KEYS:
            raise unknown(_below(key, name), name, _RULE_KEYS)
    return _as_form(value, Rule, key)


def _below(key: str, name: Any) -> str:
    """Return the place of what an object holds under a name."""
    shown = str(name)
    return f"{key}.{shown}" if shown.isidentifier() else f"{key}[{json.dumps(shown)}]"


def _as_form(given: Mapping[str, Any], form: type[Form], key: str) -> Form:
    try:
        return msgspec.convert(given, form)
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        name = next(each for each in given if not fits(each, given[each], form))
        known = _COMPARISONS if name == "compare" and isinstance(given[name], str) else ()
        problem = wrong(f"{key}.{name}", _WANTED[name], given[name])
        raise Wrong(f"{problem}{suggest(given[name], known)}") from None
