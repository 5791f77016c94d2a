"""A record of the ``jsonl`` form, value by value: short forms and dialects understood, or what is wrong, and where.

The first version of the form looked at less than the second: ``jsonl_lines.VERSIONS`` says what it lets pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec

from gradestack import (
    Expectation,
    ExpectedCall,
    Fault,
    Rule,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    replace,
    suggest,
)
from gradestack.jsonio import as_text, check_depth
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.jsonl_lines import SAMPLE_SCHEMA, VERSIONS, CallDetails, fits, usage_of

KEYS = frozenset(SAMPLE_SCHEMA["properties"])
_SIDE = ("calls", "label", "text", "plan")
_ADDED = ("alternatives", "forbidden", "state")  # keys of `expected` that the second version of the form added
_NAMES = ("name", "function", "names")  # keys by one of which a reference is a single call
_RULED = ("rules", "optional", "turn", "group", "requestor")
_MADE = ("id", "type", "index", *(each for each in CallDetails.__struct_fields__ if each != "turn"))
"""What a call that was made has and nothing is expected of: such calls may be given as references."""
_UNNAMED = frozenset({*_MADE, "kwargs"})
"""Keys that are read over, or another word for one, and not named to who mistypes."""
_FLAT = ("name", "names", "arguments", *_RULED, "kwargs", "function", *_MADE)
_WRAPPED = ("function", *_RULED, *_MADE)
_FUNCTION = ("name", "arguments", "kwargs")


class Wrong(ValueError):
    """A record that does not follow the form; the message names the key."""


def wrong(key: str, wanted: str, value: Any) -> Wrong:
    """Return that a key holds something else than what was expected."""
    shown = json.dumps(value, default=str)
    check_depth(shown)
    return Wrong(f"{key}: expected {wanted}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")


def _unknown(key: str, name: Any, known: Sequence[str]) -> Wrong:
    return Wrong(f"{key}: unknown key{suggest(name, known) or '; known: ' + ', '.join(known)}")


class _SampleFields(msgspec.Struct, gc=False):
    """Keys of a record whose values are of one type."""

    cluster: str | None = None
    model: str | None = None
    run: int | str | None = None
    input: str | tuple[str, ...] | None = None
    ended: str | None = None
    trace: dict[str, str] | None = None
    children: tuple[str, ...] | None = None
    agent_id: str | None = None


class _CallFields(msgspec.Struct):
    """Keys of an expected call whose values are of one type."""

    names: tuple[str, ...] = ()
    optional: bool = False
    turn: int | None = None
    group: int | None = None
    requestor: str | None = None


Form = TypeVar("Form", bound=msgspec.Struct)
_CHOICES = {
    each.name: tuple(word for part in (each.type, *get_args(each.type)) for word in get_args(part) if type(word) is str)
    for form in (CallDetails, Rule)
    for each in msgspec.structs.fields(form)
}
"""Field -> the words it may hold, where these are few."""
_WANTED = {
    "run": "a whole number or text",
    "input": "text or a list of texts",
    "trace": "an object of texts",
    "children": "a list of texts",
    "names": "a list of texts",
    "optional": "true or false",
    "turn": "a whole number of at least 0",
    "step": "a whole number",
    "group": "a whole number",
    "seconds": "a number",
    "any_of": "a list of values",
    "ignore": "true or false",
    "tolerance": "a number",
    **{name: f"one of {', '.join(words)}" for name, words in _CHOICES.items() if words},
}


def _converted(given: Mapping[str, Any], form: type[Form], place: str = "") -> Form:
    """Return what an object says of a form's fields; ``place`` stands before their names."""
    try:
        return msgspec.convert(given, form)
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        name = next(each for each in form.__struct_fields__ if each in given and not fits(each, given[each], form))
        meant = suggest(given[name], _CHOICES.get(name, ())) if isinstance(given[name], str) else ""
        raise Wrong(f"{wrong(place + name, _WANTED.get(name, 'text'), given[name])}{meant}") from None


def version_problem(record: Any) -> str | None:
    """Return why a record cannot be of a version of the form that is known; None where it can."""
    version = record.get("version", VERSIONS[0]) if isinstance(record, chat.OBJECT) else VERSIONS[0]
    if version in VERSIONS and not isinstance(version, bool):
        return None
    return (
        f"version {version!r} of the sample form is unknown, this gradestack reads versions up to {VERSIONS[-1]}; "
        "upgrade gradestack, or write the file in the form of `gradestack schema sample`"
    )


def sample_of_record(record: Any, source: Source) -> Sample:
    """Return the sample of a decoded record.

    Raises:
        Wrong: It does not follow the form.
        RecursionError: It is nested too deeply.
    """
    if not isinstance(record, chat.OBJECT):
        raise wrong("record", "an object", record)
    if problem := version_problem(record):
        raise Wrong(problem)
    if not KEYS.issuperset(record):
        key = next(each for each in record if each not in KEYS)
        raise Wrong(f"{key}: unknown key{suggest(key, KEYS) or '; put your own data under facets'}")
    if "id" not in record:
        raise Wrong("id is missing")
    talk, version = _talk(record), record.get("version", VERSIONS[0])
    predicted = _side(record.get("predicted"), "predicted", version)
    said = {} if talk is None else talk.said(("calls", "text") if "predicted" in record else ())
    found = said | predicted
    if isinstance(answer := found.get("text"), tuple):
        found["text"] = "\n".join(answer)
    error, usage, identifier = _error(record.get("error")), record.get("usage"), record["id"]
    plain = msgspec.structs.asdict(_converted(record, _SampleFields))
    found |= {name: value for name, value in plain.items() if value is not None}
    if usage is not None:
        found |= {"usage": usage_of(usage), "agent_usage": usage}
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        source = replace(source, id=identifier)
    elif not isinstance(identifier, str):
        raise wrong("id", "text or a whole number", identifier)
    return Sample(
        **found,
        id=str(identifier),
        tools=_tools(record.get("tools")),
        expected=expectation(record.get("expected"), version),
        recorded=_object(record, "recorded"),
        status=Status.OK if error is None else Status.FAILED,
        error=error,
        state=record.get("state"),
        facets=_object(record, "facets"),
        remarks={} if talk is None else talk.remarks,
        source=source,
    )


def _object(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = record.get(key)
    if value is None or isinstance(value, chat.OBJECT):
        return value or {}
    raise wrong(key, "an object", value)


def _talk(record: Mapping[str, Any]) -> Any:
    """Return the conversation of a record; None where it has none."""
    turns, messages = record.get("turns"), record.get("messages")
    if turns is None and messages is None:
        return None
    if turns is not None and not isinstance(turns, list):
        raise wrong("turns", "a list of lists of messages", turns)
    for turn in [messages] if turns is None else turns:
        if not isinstance(turn, list) or not all(isinstance(each, chat.OBJECT) for each in turn):
            raise wrong("messages", "a list of messages", turn)
    try:
        from gradestack_plugins.readers.chat.conversation import conversation_of  # noqa: PLC0415 - many files have none

        return conversation_of(messages, turns=turns)
    except ValueError as error:
        raise Wrong(str(error)) from None


def _tools(value: Any) -> tuple[ToolSpec, ...] | None:
    if value is None:
        return None
    specs = [chat.tool_spec(each) for each in value] if isinstance(value, list) else [None]
    if not all(specs):
        raise wrong("tools", "a list of tools with a name", value)
    return tuple(spec for spec in specs if spec is not None)


def _error(value: Any) -> Fault | None:
    if value is None:
        return None
    if isinstance(value, str):
        return Fault(category="target", code="target_error", message=value)
    if not isinstance(value, chat.OBJECT):
        raise wrong("error", "text or an object with type and message", value)
    kind, message = value.get("type"), value.get("message")
    return Fault(category="target", code="target_error", message=str(message or ""), type=str(kind or ""))


def _list_of(value: Any, key: str, kind: type[Any] | tuple[type[Any], ...], wanted: str) -> list[Any]:
    if isinstance(value, list) and all(isinstance(each, kind) for each in value):
        return value
    raise wrong(key, wanted, value)


def _named_calls(value: Any, key: str, *, several: bool = False) -> list[Mapping[str, Any]]:
    """Return the entries of a list of calls, each of which names its tool, or (``several``) tools."""
    from gradestack_plugins.readers.chat.names import usual_call  # noqa: PLC0415 - most lines go the straight way

    entries = _list_of(value, key, object, "a list of calls")
    calls = [usual_call(entry) if isinstance(entry, chat.OBJECT) else entry for entry in entries]
    for position, entry in enumerate(calls):
        _check_named(entry, f"{key}[{position}]", several=several)
    return calls


def _inner(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what holds the name and the arguments of a call: its ``function`` in OpenAI's form."""
    function = entry.get("function")
    return function if function is not None and isinstance(function, chat.OBJECT) else entry


def _check_named(entry: Any, key: str, *, several: bool) -> None:
    if isinstance(entry, chat.OBJECT):
        name, names = _inner(entry).get("name"), entry.get("names") if several else None
        if isinstance(name, str):
            return
        if name is None and names and isinstance(names, list) and all(isinstance(each, str) for each in names):
            return
    raise wrong(key, "a call with a name", entry)


def _made(value: Any, key: str, version: int) -> tuple[ToolCall, ...]:
    """Return calls that were made; the first version of the form leaves out details of another kind."""
    found = []
    for position, entry in enumerate(_named_calls(value, key)):
        call: Any = chat.tool_call(entry)
        given: dict[str, Any] = {}
        if _inner(entry) is entry:
            given = {name: entry[name] for name in CallDetails.__struct_fields__ if entry.get(name) is not None}
        if version == 1:
            given = {name: value for name, value in given.items() if fits(name, value)}
        if given:
            details = msgspec.structs.asdict(_converted(given, CallDetails, f"{key}[{position}]."))
            call = replace(call, **{name: details[name] for name in given})
        found.append(call)
    return tuple(found)


Calls = Callable[[Any, str, int], tuple[Any, ...]]


def _side(value: Any, key: str, version: int, calls: Calls = _made, added: tuple[str, ...] = ()) -> dict[str, Any]:
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
        if name not in _SIDE and name not in added:
            raise _unknown(f"{key}.{name}", name, (*_SIDE, *added))
    found = {name: value[name] for name in ("label", "text", "plan") if value.get(name) is not None}
    if isinstance(text := found.get("text"), list):
        found["text"] = tuple(_list_of(text, f"{key}.text", str, "text"))
    elif not isinstance(found.get("text", ""), str):
        raise wrong(f"{key}.text", "text", text)
    if not isinstance(label := found.get("label", ""), str):
        raise wrong(f"{key}.label", "text", label)
    if value.get("calls") is not None:
        found["calls"] = calls(value["calls"], f"{key}.calls", version)
    return found


def expectation(value: Any, version: int) -> Expectation:
    """Return the reference of a record."""
    if not isinstance(value, chat.OBJECT):
        return Expectation(**_side(value, "expected", version, _expected))
    if any(name in value for name in _NAMES):
        for name in (*_SIDE, *_ADDED):
            if name in value and name in _ADDED:
                raise Wrong(
                    f"expected.{name}: not beside the name of a call; give the call in a list under expected.calls"
                )
        _check_named(value, "expected", several=True)
        return Expectation(calls=(_call(value, "expected", version),))
    found = _side(value, "expected", version, _expected, _ADDED)
    if (lists := value.get("alternatives")) is not None:
        key = "expected.alternatives"
        given = enumerate(_list_of(lists, key, object, "a list of lists of calls"))
        found["alternatives"] = tuple([_expected(each, f"{key}[{at}]", version) for at, each in given])
    if (forbidden := value.get("forbidden")) is not None:
        found["forbidden"] = tuple(_list_of(forbidden, "expected.forbidden", str, "a list of texts"))
    return Expectation(**found, state=value.get("state"))


def _expected(value: Any, key: str, version: int) -> tuple[ExpectedCall, ...]:
    calls = _named_calls(value, key, several=True)
    return tuple([_call(entry, f"{key}[{position}]", version) for position, entry in enumerate(calls)])


def _call(entry: Mapping[str, Any], key: str, version: int) -> ExpectedCall:
    inner, place, function = _inner(entry), key, entry.get("function")
    if inner is entry:
        _check_keys(entry, key, _FLAT, version)
        if version > 1 and function is not None:
            raise wrong(f"{key}.function", "an object with name and arguments", function)
    else:
        place = f"{key}.function"
        _check_keys(entry, key, _WRAPPED, version)
        _check_keys(inner, place, _FUNCTION, version)
    arguments = inner.get("arguments", inner.get("kwargs"))
    if version > 1 and arguments is not None and not isinstance(arguments, (str, *chat.OBJECT)):
        raise wrong(f"{place}.arguments", "an object or JSON text", arguments)
    given, text = chat.parse_arguments(arguments)
    said = _converted(
        {name: entry[name] for name in _CallFields.__struct_fields__ if entry.get(name) is not None},
        _CallFields,
        f"{key}.",
    )
    if (said.turn or 0) < 0:
        raise wrong(f"{key}.turn", _WANTED["turn"], said.turn)
    rules = entry.get("rules")
    return ExpectedCall(
        **msgspec.structs.asdict(said),
        name=as_text(inner.get("name")),
        arguments=given if version < 2 or inner.get("arguments", ()) is not None else None,
        raw_arguments=text if given is None else None,
        rules=None if rules is None else _rules(rules, f"{key}.rules"),
    )


def _check_keys(entry: Mapping[str, Any], key: str, known: tuple[str, ...], version: int) -> None:
    """Check the keys of an expected call.

    The first version of the form let a call hold anything: there only what is nearly a key that it lacks is refused.
    """
    for name in entry:
        if name in known:
            continue
        if version > 1:
            raise _unknown(_below(key, name), name, [each for each in known if each not in _UNNAMED])
        nearly = suggest(name, [each for each in _RULED if each in known and each not in entry], cutoff=0.85)
        if "arguments" in known and not {"arguments", "kwargs"} & entry.keys():
            nearly = nearly or suggest(name, ("arguments",))
        if nearly:
            raise Wrong(f"{_below(key, name)}: unknown key{nearly}")


def _rules(value: Any, key: str) -> dict[str, Rule]:
    if not isinstance(value, chat.OBJECT):
        raise wrong(key, "an object: argument to rule", value)
    known, found = Rule.__struct_fields__, {}
    for argument, rule in value.items():
        place = _below(key, argument)
        if not isinstance(rule, chat.OBJECT):
            raise wrong(place, f"a rule, which is an object with any of {', '.join(known)}", rule)
        for name in rule:
            if name not in known:
                raise _unknown(_below(place, name), name, known)
        found[argument] = _converted(rule, Rule, f"{place}.")
    return found


def _below(key: str, name: Any) -> str:
    """Return the place of what an object holds under a name."""
    shown = str(name)
    return f"{key}.{shown}" if shown.isidentifier() else f"{key}[{json.dumps(shown)}]"
