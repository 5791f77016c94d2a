"""A record of the ``jsonl`` form, value by value.

Short forms and dialects understood, or what is wrong, and where.

The first version of the form looked at less than the second: ``jsonl_lines.VERSIONS`` says what it
lets pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

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
    replace,
    suggest,
)
from gradestack.jsonio import as_text, check_depth
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.jsonl_lines import SAMPLE_SCHEMA, VERSIONS, CallDetails, usage_of

KEYS = frozenset(SAMPLE_SCHEMA["properties"])
_PLAIN: Final = tuple(
    "cluster model run input ended trace children agent_id recorded state facets".split()  # noqa: SIM905
)
"""Keys of a record that are fields of the sample."""
_SIDE: Final = ("calls", "label", "text", "plan")
_ADDED: Final = (
    "alternatives",
    "forbidden",
    "state",
)  # keys of `expected` that the second version of the form added
_RULED: Final = ("rules", "optional", "turn", "group", "requestor")
_DETAILS: Final = CallDetails.__struct_fields__
_MADE: Final = ("id", "type", "index", *(each for each in _DETAILS if each != "turn"))
"""What a call that was made has and nothing is expected of.

Such calls may be given as references.
"""
_UNNAMED: Final = frozenset({*_MADE, "kwargs"})
"""Keys that are read over, or another word for one, and not named to who mistypes."""
_FLAT: Final = ("name", "names", "arguments", *_RULED, "kwargs", "function", *_MADE)
_WRAPPED: Final = ("function", *_RULED, *_MADE)
_FUNCTION: Final = ("name", "arguments", "kwargs")


def _types(kind: Any) -> tuple[Any, ...]:
    """Return the types one of which a value of a kind has."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


_KINDS: Final = {
    form: {each.name: (each.type, _types(each.type)) for each in msgspec.structs.fields(form)}
    for form in (Sample, Expectation, ExpectedCall, Rule, CallDetails)
}
"""Fields of a form, of what kind each is, and the types this is made of."""
_WANTED: Final = {
    **dict.fromkeys(("recorded", "facets"), "an object"),
    **dict.fromkeys(("children", "names", "forbidden"), "a list of texts"),
    **dict.fromkeys(("optional", "ignore"), "true or false"),
    **dict.fromkeys(("step", "group"), "a whole number"),
    **dict.fromkeys(("seconds", "tolerance"), "a number"),
    "run": "a whole number or text",
    "input": "text or a list of texts",
    "trace": "an object of texts",
    "turn": "a whole number of at least 0",
    "any_of": "a list of values",
}
"""What is expected of a field, where it is not text, and not one of few words."""


class Wrong(ValueError):
    """A record that does not follow the form; the message names the key."""


def wrong(key: str, wanted: str, value: Any) -> Wrong:
    """Return that a key holds something else than what was expected."""
    shown = json.dumps(value, default=str)
    check_depth(shown)
    return Wrong(
        f"{key}: expected {wanted}, got {shown if len(shown) <= 60 else shown[:57] + '...'}"
    )


def _unknown(key: str, name: Any, known: Sequence[str]) -> Wrong:
    return Wrong(f"{key}: unknown key{suggest(name, known) or '; known: ' + ', '.join(known)}")


def _below(key: str, name: Any) -> str:
    """Return the place of what an object holds under a name."""
    shown = str(name)
    return f"{key}.{shown}" if shown.isidentifier() else f"{key}[{json.dumps(shown)}]"


def _fields(
    given: Mapping[str, Any],
    form: Any,
    names: Iterable[str],
    place: str = "",
    *,
    lenient: bool = False,
) -> dict[str, Any]:
    """Return what an object has under the names of a form's fields, null left out.

    ``place`` stands before the names.

    What is of another kind is refused, or (``lenient``) left out.
    """
    found, kinds = {}, _KINDS[form]
    for name in names:
        if (value := given.get(name)) is None and form is not Rule:
            continue
        kind, types = kinds[name]
        if type(value) in types or kind is Any:
            found[name] = value
            continue
        try:
            found[name] = msgspec.convert(value, kind)
        except ValueError:  # of msgspec's own kind, or a lone surrogate
            if lenient:
                continue
            words = [word for part in types for word in get_args(part) if type(word) is str]
            meant = suggest(value, words) if words and isinstance(value, str) else ""
            wanted = f"one of {', '.join(words)}" if words else _WANTED.get(name, "text")
            raise Wrong(f"{wrong(place + name, wanted, value)}{meant}") from None
    return found


def sample_of_record(record: Any, source: Source) -> Sample:  # noqa: C901
    """Return the sample of a decoded record.

    Raises:
        Wrong: It does not follow the form.
        RecursionError: It is nested too deeply.
    """
    if not isinstance(record, chat.OBJECT):
        raise wrong("record", "an object", record)
    version = record.get("version", VERSIONS[0])
    if version not in VERSIONS or isinstance(version, bool):
        raise Wrong(
            f"version {version!r} of the sample form is unknown, this gradestack reads versions "
            f"up to {VERSIONS[-1]}; "
            "upgrade gradestack, or write the file in the form of `gradestack schema sample`"
        )
    if not KEYS.issuperset(record):
        key = next(each for each in record if each not in KEYS)
        raise Wrong(f"{key}: unknown key{suggest(key, KEYS) or '; put your own data under facets'}")
    if "id" not in record:
        raise Wrong("id is missing")
    talk = _talk(record)
    found = (
        {} if talk is None else {**talk.said(("calls", "text") if "predicted" in record else ())}
    )
    found |= {} if talk is None else {"remarks": talk.remarks}
    found |= _side(record.get("predicted"), "predicted", version, _made)
    if isinstance(answer := found.get("text"), tuple):
        found["text"] = "\n".join(answer)
    found |= _fields(record, Sample, _PLAIN)
    if (error := _error(record.get("error"))) is not None:
        found |= {"status": Status.FAILED, "error": error}
    if (usage := record.get("usage")) is not None:
        known_usage, unread_usage = usage_of(usage)
        found |= {"usage": known_usage, "agent_usage": usage}
        if unread_usage:
            found["remarks"] = {**found.get("remarks", {}), **unread_usage}
    identifier = record["id"]
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        source = replace(source, id=identifier)
    elif not isinstance(identifier, str):
        raise wrong("id", "text or a whole number", identifier)
    tools, expected = _tools(record.get("tools")), expectation(record.get("expected"), version)
    return Sample(**found, id=str(identifier), tools=tools, expected=expected, source=source)


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
        # many files have none
        from gradestack_plugins.readers.chat.conversation import conversation_of  # noqa: PLC0415

        return conversation_of(messages, turns=turns)
    except ValueError as error:
        raise Wrong(str(error)) from None


def _tools(value: Any) -> tuple[Any, ...] | None:
    if value is None:
        return None
    specs = [chat.tool_spec(each) for each in value] if isinstance(value, list) else [None]
    if not all(specs):
        raise wrong("tools", "a list of tools with a name", value)
    return tuple(specs)


def _error(value: Any) -> Fault | None:
    """Return the recorded error; an empty text, list or object, or false, is none.

    True is one of which nothing more is recorded.
    """
    if value is None or value is False or value in ("", {}, []):
        return None
    if value is True:
        value = "the record says error: true, and no more"
    if isinstance(value, str):
        return Fault(category="target", code="target_error", message=value)
    if not isinstance(value, chat.OBJECT):
        raise wrong("error", "text or an object with type and message", value)
    kind, message = value.get("type"), value.get("message")
    return Fault(
        category="target", code="target_error", message=str(message or ""), type=str(kind or "")
    )


Call = Callable[[Any, str, int], Any]


def _calls(value: Any, key: str, version: int, call: Call) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise wrong(key, "a list of calls", value)
    return tuple(
        [call(entry, f"{key}[{position}]", version) for position, entry in enumerate(value)]
    )


def _side(  # noqa: C901
    value: Any, key: str, version: int, call: Call, added: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return calls, label, text and plan of ``expected`` or ``predicted``, from any of its short
    forms.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return {"label": value, "text": value}
    if isinstance(value, list):
        return {"calls": _calls(value, key, version, call)}
    if not isinstance(value, chat.OBJECT):
        raise wrong(key, "calls, text or an object", value)
    if "name" in value or "function" in value or (added and "names" in value):
        for name in value:
            if name in _ADDED and added:
                raise Wrong(
                    f"{key}.{name}: not beside the name of a call; give the call in a list under "
                    f"{key}.calls"
                )
        return {"calls": (call(value, key, version),)}
    for name in value:
        if name not in _SIDE and name not in added:
            raise _unknown(f"{key}.{name}", name, (*_SIDE, *added))
    found = _fields(value, Expectation, (*_SIDE[1:], *added[1:]), f"{key}.")
    if value.get("calls") is not None:
        found["calls"] = _calls(value["calls"], f"{key}.calls", version, call)
    return found


def _named(
    entry: Any, key: str, *, several: bool = False
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return a call that names its tool, or (``several``) tools, and what of it holds name and
    arguments.
    """
    # most lines go the straight way
    from gradestack_plugins.readers.chat.names import usual_call  # noqa: PLC0415

    call = usual_call(entry) if isinstance(entry, chat.OBJECT) else {}
    function = call.get("function")
    inner = function if function is not None and isinstance(function, chat.OBJECT) else call
    name, names = inner.get("name"), call.get("names") if several else None
    among = (
        name is None
        and names
        and isinstance(names, list)
        and all(isinstance(each, str) for each in names)
    )
    if isinstance(name, str) or among:
        return call, inner
    raise wrong(key, "a call with a name", entry)


def _made(entry: Any, key: str, version: int) -> ToolCall:
    """Return a call that was made.

    The first version of the form leaves out details of another kind.
    """
    entry, inner = _named(entry, key)
    call: Any = chat.tool_call(entry)
    if inner is not entry:
        return call  # type: ignore[no-any-return]
    details = _fields(entry, CallDetails, _DETAILS, f"{key}.", lenient=version == 1)
    return replace(call, **details) if details else call  # type: ignore[no-any-return]


def expectation(value: Any, version: int) -> Expectation:
    """Return the reference of a record."""
    found = _side(value, "expected", version, _expected, _ADDED)
    lists = value.get("alternatives") if isinstance(value, chat.OBJECT) else None
    if lists is not None:
        key = "expected.alternatives"
        if not isinstance(lists, list):
            raise wrong(key, "a list of lists of calls", lists)
        given = enumerate(lists)
        found["alternatives"] = tuple(
            [_calls(each, f"{key}[{at}]", version, _expected) for at, each in given]
        )
    return Expectation(**found)


def _expected(entry: Any, key: str, version: int) -> ExpectedCall:
    entry, inner = _named(entry, key, several=True)
    place, function = key, entry.get("function")
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
    found = _fields(entry, ExpectedCall, ("names", *_RULED[1:]), f"{key}.")
    if found.get("turn", 0) < 0:
        raise wrong(f"{key}.turn", _WANTED["turn"], found["turn"])
    rules = entry.get("rules")
    return ExpectedCall(
        **found,
        name=as_text(inner.get("name")),
        arguments=given if version < 2 or inner.get("arguments", ()) is not None else None,
        raw_arguments=text if given is None else None,
        rules=None if rules is None else _rules(rules, f"{key}.rules"),
    )


def _check_keys(entry: Mapping[str, Any], key: str, known: tuple[str, ...], version: int) -> None:
    """Check the keys of an expected call.

    The first version of the form let a call hold anything: there only what is nearly a key that it
    lacks is refused.
    """
    for name in entry:
        if name in known:
            continue
        if version > 1:
            raise _unknown(
                _below(key, name), name, [each for each in known if each not in _UNNAMED]
            )
        nearly = suggest(
            name, [each for each in _RULED if each in known and each not in entry], cutoff=0.85
        )
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
        found[argument] = Rule(**_fields(rule, Rule, rule, f"{place}."))
    return found
