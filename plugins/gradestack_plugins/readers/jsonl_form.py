"""A record of the ``jsonl`` form, value by value: short forms and dialects, or what is wrong where.

The first version of the form looked at less than the second: ``VERSIONS`` says what it allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw

from gradestack import (
    JSON,
    Expectation,
    ExpectedCall,
    Fault,
    Rule,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    Usage,
    compile_later,
    impossible_amounts,
    replace,
    suggest,
)
from gradestack.jsonio import as_text, check_depth, loads
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.chat.calls import usual_call

VERSIONS: Final = (1, 2)
"""Versions of the form.

A record without a version is of the first, with all that the second added. Some things differ: null
arguments of an expected call are none in the first, and not compared in the second; details of
calls made that are of another kind than the form's, and unknown keys of expected calls, are left
out in the first, and refused in the second; arguments of an expected call that are neither an
object nor text cannot be decoded in the first, and are refused in the second.
"""


class _Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A record. Fields that a sample takes as they are have their type here.

    They stand in the order in which most lines have them, where a decoder finds them soonest.
    """

    id: str | int
    version: Any = VERSIONS[0]
    input: str | tuple[str, ...] | None = None
    facets: Mapping[str, JSON] | None = None
    model: str | None = None
    run: int | str | None = None
    tools: Any = None
    expected: Any = None
    predicted: Any = UNSET
    cluster: str | None = None
    ended: str | None = None
    trace: Mapping[str, str] | None = None
    children: tuple[str, ...] | None = None
    agent_id: str | None = None
    recorded: Mapping[str, JSON] | None = None
    state: JSON = None
    turns: Any = None
    messages: Any = None
    error: Any = None
    usage: Any = None


class _UsualFunction(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A function that is called."""

    name: str
    arguments: dict[str, Any] | str


class _UsualCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A call, flat or in OpenAI's form, of which nothing else is said."""

    id: str | None = None
    type: Any = None
    function: _UsualFunction | None = None
    name: str | msgspec.UnsetType = UNSET
    arguments: dict[str, Any] | str | msgspec.UnsetType = UNSET


class _UsualSide(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The answer of a run or the expected answer, without conditions."""

    calls: list[_UsualCall] | None = None
    label: str | None = None
    text: str | None = None
    plan: Any = None


class _Line(_Record, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A record as it stands in most lines: of the usual forms, with tools that other lines have."""

    version: Literal[1, 2] = VERSIONS[0]
    tools: list[Raw] | None = None
    expected: _UsualSide | list[_UsualCall] | str | None = None
    predicted: _UsualSide | list[_UsualCall] | str | msgspec.UnsetType | None = UNSET


def sample_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    path = Path(__file__).with_name("sample_schema.json")
    schema: dict[str, Any] = loads(path.read_bytes())
    return schema


KEYS: Final = frozenset(_Record.__struct_fields__)
_USUAL_NAMES: Final = {"trial": "run", "prompt": "input", "question": "input"}
"""Words that people use -> the key of the form that means the same."""
_decode_line: Final = msgspec.json.Decoder(_Line).decode
_NOTHING_RARE: Final = (None,) * 7
"""What most records have in the fields that ``_with_rare`` reads."""
_LARGEST_TOOL: Final = 32 * 1024
"""Bytes of a tool that is remembered."""
_MOST_TOOLS: Final = 4096
"""Tools that are remembered at a time."""
_SIDE: Final = ("calls", "label", "text", "plan")
_EXPECTED_ONLY: Final = ("alternatives", "forbidden", "state")
"""Keys of ``expected`` alone."""
_RULED: Final = ("rules", "optional", "turn", "group", "requestor")
_CONDITIONS: Final = frozenset({"names", *_RULED})
"""Keys of an expected call beside its name and arguments."""
_DETAILS: Final = frozenset(ToolCall.__struct_fields__).difference(
    ("name", "arguments", "raw_arguments", "id", "requestor")
)
"""Keys of a call that was made, beyond name, arguments, id and requestor."""
_MADE: Final = ("id", "type", "index", *sorted(_DETAILS - {"turn"}))
"""Keys of a call that was made that nothing is expected of: it may be given as a reference."""
_UNNAMED: Final = frozenset({*_MADE, "kwargs"})
"""Keys that are read over, or another word for one: no message names them."""
_FLAT: Final = ("name", "names", "arguments", *_RULED, "kwargs", "function", *_MADE)
_WRAPPED: Final = ("function", *_RULED, *_MADE)
_FUNCTION: Final = ("name", "arguments", "kwargs")
_SHOWN: Final = 60
"""Characters of a value that a message shows."""


def _types(kind: Any) -> tuple[Any, ...]:
    """Return the types that a type is the union of."""
    origin = get_origin(kind)
    return get_args(kind) if origin in (Union, UnionType) else (kind,)


@cache
def _kinds_of(form: type[msgspec.Struct]) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return the type of each field of a form, and the types that it is the union of."""
    fields = msgspec.structs.fields(form)
    return {field.name: (field.type, _types(field.type)) for field in fields}


_WANTED: Final = {
    **dict.fromkeys(("recorded", "facets"), "an object"),
    **dict.fromkeys(("children", "names", "forbidden"), "a list of texts"),
    **dict.fromkeys(("optional", "ignore"), "true or false"),
    **dict.fromkeys(("step", "group"), "a whole number"),
    **dict.fromkeys(("seconds", "tolerance"), "a number"),
    "id": "text or a whole number",
    "run": "a whole number or text",
    "input": "text or a list of texts",
    "trace": "an object of texts",
    "turn": "a whole number of at least 0",
    "any_of": "a list of values",
}
"""Field -> its values in words, where they are not text, and not one of few words."""


class Wrong(ValueError):
    """A record that does not follow the form; the message begins with the path in it."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path
        """Path in the value that was looked at, such as ``.calls[0].turn``."""

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.')}: {self.problem}" if self.path else self.problem

    def below(self, path: str) -> Wrong:
        """Return the error with its path below another one."""
        self.path = path + self.path
        return self


def wrong(wanted: str, value: Any, path: str = "") -> Wrong:
    """Return the error of a value that is not the one that was expected."""
    shown = json.dumps(value, default=str)
    check_depth(shown)
    if len(shown) > _SHOWN:
        shown = shown[: _SHOWN - 3] + "..."
    return Wrong(f"expected {wanted}, got {shown}", path)


def _unknown_key(name: Any, known: Sequence[str]) -> Wrong:
    hint = suggest(name, known) or f"; known: {', '.join(known)}"
    path = _path_of(name)
    return Wrong(f"unknown key{hint}", path)


def _path_of(name: Any) -> str:
    """Return the path of a key of an object."""
    shown = str(name)
    return f".{shown}" if shown.isidentifier() else f"[{json.dumps(shown)}]"


def _field(form: Any, name: str, value: Any) -> Any:
    """Return a value as a field of a form has it.

    Raises:
        Wrong: It is of another type.
    """
    kind, types = _kinds_of(form)[name]
    if type(value) in types or kind is Any:
        return value
    try:
        return msgspec.convert(value, kind)
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        words = [word for part in types for word in get_args(part) if type(word) is str]
        if not words:
            path = f".{name}"
            raise wrong(_WANTED.get(name, "text"), value, path) from None
        wanted = f"one of {', '.join(words)}"
        error = wrong(wanted, value, f".{name}")
        hint = suggest(value, words) if isinstance(value, str) else ""
        raise Wrong(error.problem + hint, error.path) from None


_SHOWN_KEY: Final = compile_later(r"[A-Za-z_][\w.-]{0,47}")
USAGE_NOT_READ: Final = "usage not read: "
"""The beginning of remarks on keys of usage that nobody reads."""
_KEYS_OF_APIS: Final = frozenset(
    """
    total_tokens prompt_tokens completion_tokens prompt_tokens_details completion_tokens_details
    input_tokens_details output_tokens_details input_token_details output_token_details
    cache_read_input_tokens cache_creation_input_tokens cache_creation cache_read server_tool_use
    service_tier input_tokens_cache_read input_tokens_cache_write
    """.split()  # noqa: SIM905
)
"""Keys of usage as APIs record it, which is not gradestack's form."""
_MEASURES: Final = ("cost_usd", "seconds", "first_token_seconds")
"""Fields of usage that are not whole numbers."""


def sample_of_line(data: bytes, source: Source) -> Sample:
    """Return the sample of one line, which is UTF-8.

    Raises:
        ValueError: It does not follow the form, or is JSON of the standard library's kind only;
            ``sample_of_record`` says of the decoded line which.
        RecursionError: It is nested too deeply.
    """
    record = _decode_line(data)
    check_depth(data)
    return _sample(record, source)


def sample_of_record(record: Any, source: Source) -> Sample:
    """Return the sample of a decoded record.

    Raises:
        Wrong: It does not follow the form.
        RecursionError: It is nested too deeply.
    """
    try:
        converted = msgspec.convert(record, _Record)
    except ValueError as error:  # of msgspec's own kind, or a lone surrogate
        _check_record(record)
        raise Wrong(str(error)) from None
    _check_version(converted.version)
    return _sample(converted, source)


def _check_record(record: Any) -> None:
    """Check the keys of a record, and the fields that a sample takes as they are.

    Raises:
        Wrong: One of them is wrong.
    """
    if not isinstance(record, chat.OBJECT):
        raise wrong("an object", record, "record")
    _check_version(record.get("version", VERSIONS[0]))
    for key in record:
        if key not in KEYS:
            usual_name = _USUAL_NAMES.get(key, key)
            hint = suggest(usual_name, KEYS) or "; put your own data under facets"
            raise Wrong(f"unknown key{hint}", f".{key}")
    if "id" not in record:
        raise Wrong("id is missing")
    for name, value in record.items():
        _field(_Record, name, value)


def _check_version(version: Any) -> None:
    if version not in VERSIONS or isinstance(version, bool):
        raise Wrong(
            f"version {version!r} of the sample form is unknown, this gradestack reads versions "
            f"up to {VERSIONS[-1]}; "
            "upgrade gradestack, or write the file in the form of `gradestack schema sample`"
        )


def _sample(record: _Record, source: Source) -> Sample:
    """Return the sample of a record, whose keys are known to be those of the form.

    ``usage`` is what could be read of the recorded usage, ``agent_usage`` is that as it stands.
    """
    talk = None
    if record.messages is not None or record.turns is not None:
        talk = _talk(record)  # a conversation that is none is told before anything else
    calls, label, text, plan = _predicted(record.predicted, record.version)
    if isinstance(text, tuple):
        text = "\n".join(text)
    error = None if record.error is None else _error(record.error)
    tools = None if record.tools is None else _tools(record.tools)
    reference = _reference(record.expected, record.version)
    identifier = record.id
    if isinstance(identifier, int):
        source = replace(source, id=identifier)
        identifier = str(identifier)
    sample = Sample(  # of more keywords CPython would build a dict first
        id=identifier,
        model=record.model,
        run=record.run,
        input=record.input,
        calls=calls,
        label=label,
        text=text,
        plan=plan,
        tools=tools,
        expected=reference,
        recorded=record.recorded or {},
        facets=record.facets or {},
        source=source,
    )
    if error is not None:
        sample = replace(sample, status=Status.FAILED, error=error)
    rare = (
        record.cluster,
        record.trace,
        record.children,
        record.agent_id,
        record.state,
        record.ended,
        record.usage,
    )
    if rare != _NOTHING_RARE:
        sample = _with_rare(sample, record)
    return sample if talk is None else _with_talk(sample, talk, record)


def _with_rare(sample: Sample, record: _Record) -> Sample:
    """Return a sample with the fields of its record that most records lack."""
    usage, remarks = usage_of(record.usage)
    return replace(
        sample,
        cluster=record.cluster,
        state=record.state,
        ended=record.ended,
        trace=record.trace or {},
        children=record.children or (),
        agent_id=record.agent_id,
        usage=usage,
        agent_usage=record.usage,
        remarks=remarks,
    )


def _with_talk(sample: Sample, talk: Any, record: _Record) -> Sample:
    """Return a sample with its conversation, and the fields of it that the record does not have."""
    predicted = () if record.predicted is UNSET else ("calls", "text")
    recorded = {"input": record.input, "model": record.model}
    recorded |= dict.fromkeys(("usage", "agent_usage"), record.usage)
    fields = talk.fields_beside(predicted)
    missing = {name: value for name, value in fields.items() if recorded.get(name) is None}
    remarks = {**talk.remarks, **sample.remarks}
    return replace(sample, **missing, remarks=remarks)


def usage_of(recorded: Any) -> tuple[Usage | None, dict[str, int]]:
    """Return usage recorded in gradestack's own keys, and remarks on the keys that are not read.

    The usage is None for any other form and where it says nothing.
    """
    if not recorded:
        return None, {}
    possible = recorded
    if isinstance(recorded, dict) and impossible_amounts(recorded):
        possible = {key: recorded[key] for key in recorded if not impossible_amounts(recorded[key])}
    try:
        return msgspec.convert(possible, Usage), {}
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        return _known_usage(possible)


def _known_usage(recorded: Any) -> tuple[Usage | None, dict[str, int]]:
    """Return the usage in the known keys of an object, and remarks on its other keys."""
    names = Usage.__struct_fields__
    if not isinstance(recorded, dict) or recorded.keys().isdisjoint(names):
        return None, {}
    if not _KEYS_OF_APIS.isdisjoint(recorded):
        return None, {}
    known: dict[str, Any] = {}
    remarks: dict[str, int] = {}
    free = [name for name in names if name not in recorded]
    for key, value in recorded.items():
        try:
            known[key] = getattr(msgspec.convert({key: value}, Usage), key)
        except ValueError:
            shown = key if _SHOWN_KEY.fullmatch(key) else "other"
            hint = suggest(key, free)
            if key in names:
                kind = "a number" if key in _MEASURES else "a whole number"
                hint = f" (expected {kind})"
            remarks[f"{USAGE_NOT_READ}{shown}{hint}"] = 1
    return (Usage(**known) if known else None), remarks


def _talk(record: _Record) -> Any:
    """Return the conversation of a record that has one."""
    turns, messages = record.turns, record.messages
    if turns is not None and not isinstance(turns, list):
        raise wrong("a list of lists of messages", turns, "turns")
    for turn in [messages] if turns is None else turns:
        if not _are_objects(turn):
            raise wrong("a list of messages", turn, "messages")
    try:
        # many files have none
        from gradestack_plugins.readers.chat.conversation import conversation_of  # noqa: PLC0415

        return conversation_of(messages, turns=turns)
    except ValueError as error:
        raise Wrong(str(error)) from None


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, chat.OBJECT) for entry in value)


def _tools(value: Any) -> tuple[Any, ...]:
    """Return tools, decoded or each as the text that it is in a line."""
    if not isinstance(value, list):
        raise _wrong_tools(value)
    specs = []
    for tool in value:
        if type(tool) is Raw:
            text = bytes(tool)
            spec = _tools_of_lines.get(text) or _tool_of_text(text)
        else:
            spec = chat.tool_spec(tool)
        if spec is None:
            raise _wrong_tools(value)
        specs.append(spec)
    return tuple(specs)


def _wrong_tools(value: Any) -> Wrong:
    return wrong("a list of tools with a name", value, "tools")


_tools_of_lines: Final[dict[bytes, ToolSpec]] = {}
"""Texts of tools in lines -> what they are: records repeat the same few, in any order."""


def _tool_of_text(text: bytes) -> ToolSpec | None:
    """Return the tool of a text, and remember it if it is not long; None where it has no name."""
    spec = chat.tool_spec(loads(text))
    if spec is not None and len(text) <= _LARGEST_TOOL:
        if len(_tools_of_lines) == _MOST_TOOLS:
            _tools_of_lines.clear()
        _tools_of_lines[text] = spec
    return spec


def _error(value: Any) -> Fault | None:
    """Return the recorded error; an empty text, list or object, or false, is none."""
    if value is False or value in ("", {}, []):
        return None
    if value is True:
        value = "the record says error: true, and no more"
    if isinstance(value, str):
        return Fault(category="target", code="target_error", message=value)
    if not isinstance(value, chat.OBJECT):
        raise wrong("text or an object with type and message", value, "error")
    kind = str(value.get("type") or "")
    message = str(value.get("message") or "")
    return Fault(category="target", code="target_error", message=message, type=kind)


Call = Callable[[Any, int], Any]
"""Returns a call, in a version of the form."""


class _Side(msgspec.Struct, frozen=True):
    """One side of a record: the calls and texts of a run, or those that are expected."""

    key: str
    known: tuple[str, ...]
    """Keys that it may have."""
    naming: frozenset[str]
    """Keys of a call: with one of them it is no side but its only call."""
    call: Call


def _predicted(value: Any, version: int) -> tuple[Any, ...]:
    """Return the calls and texts of a run, in the order of ``_SIDE``."""
    if type(value) is _UsualSide:
        calls = None if value.calls is None else _made_usually(value.calls)
        return calls, value.label, value.text, value.plan
    if value is UNSET:
        return None, None, None, None
    if _are_usual(value):
        return _made_usually(value), None, None, None
    parts = _parts(value, version, _PREDICTED)
    return tuple(map(parts.get, _SIDE))


def _reference(value: Any, version: int) -> Expectation:
    """Return the expectation of a run."""
    if type(value) is _UsualSide:
        calls = None if value.calls is None else _expected_usually(value.calls)
        return Expectation(calls=calls, label=value.label, text=value.text, plan=value.plan)
    if _are_usual(value):
        return Expectation(calls=_expected_usually(value))
    return Expectation(**_parts(value, version, _EXPECTED))


def _are_usual(value: Any) -> bool:
    """Return whether a side is a list of calls of the usual form."""
    return type(value) is list and (value == [] or type(value[0]) is _UsualCall)


def _made_usually(calls: list[_UsualCall]) -> tuple[ToolCall, ...]:
    """Return calls that were made, as ``_made_call`` does.

    Raises:
        ValueError: One has no name, so that it is of no usual form.
    """
    made = []
    for call in calls:
        name, arguments, text = _parts_of_call(call.function or call)
        made.append(ToolCall(name=name, arguments=arguments, raw_arguments=text, id=call.id))
    return tuple(made)


def _expected_usually(calls: list[_UsualCall]) -> tuple[ExpectedCall, ...]:
    """Return expected calls, as ``_expected_call`` does.

    Raises:
        ValueError: One has no name, or another beside that of its function, so that it is of no
            usual form.
    """
    expected = []
    for call in calls:
        is_named_beside = call.name is not UNSET or call.arguments is not UNSET
        if call.function is not None and is_named_beside:
            raise ValueError("a name or arguments beside a function")
        name, arguments, text = _parts_of_call(call.function or call)
        raw_arguments = text if arguments is None else None
        expected.append(ExpectedCall(name=name, arguments=arguments, raw_arguments=raw_arguments))
    return tuple(expected)


def _parts_of_call(call: _UsualCall | _UsualFunction) -> tuple[str, Any, str | None]:
    """Return the name of a call, its arguments, and their text where they are one.

    Raises:
        ValueError: It has no name.
    """
    name, text = call.name, None
    arguments: Any = call.arguments
    if name is UNSET:
        raise ValueError("a call without a name")
    if type(arguments) is str:
        arguments, text = chat.parse_arguments(arguments)
    elif arguments is UNSET:
        arguments = {}
    return name, arguments, text


def _parts(value: Any, version: int, side: _Side) -> dict[str, Any]:
    """Return the fields of a side, also of one in a short form, by their keys."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"label": value, "text": value}
    try:
        if isinstance(value, list):
            return {"calls": _calls(value, version, side.call)}
        if not isinstance(value, chat.OBJECT):
            raise wrong("calls, text or an object", value)
        if side.naming.isdisjoint(value):
            return _parts_of_object(value, version, side)
        return {"calls": (_only_call(value, version, side),)}
    except Wrong as error:
        raise error.below(side.key) from None


def _only_call(value: Mapping[str, Any], version: int, side: _Side) -> Any:
    """Return the call that a side is, beside which nothing else of a side can stand."""
    for name in value:
        if name in _EXPECTED_ONLY and name in side.known:
            advice = f"give the call in a list under {side.key}.calls"
            raise Wrong(f"not beside the name of a call; {advice}", f".{name}")
    return side.call(value, version)


def _parts_of_object(value: Mapping[str, Any], version: int, side: _Side) -> dict[str, Any]:
    """Convert the object of expectations into its fields; an unknown key is an error."""
    fields: dict[str, Any] = {}
    for name, part in value.items():
        if name not in side.known:
            raise _unknown_key(name, side.known)
        if part is None:
            continue
        if name in ("calls", "alternatives"):
            fields[name] = _lists_of_calls(name, part, version, side.call)
        else:
            fields[name] = _field(Expectation, name, part)
    return fields


def _lists_of_calls(name: str, value: Any, version: int, call: Call) -> tuple[Any, ...]:
    """Return the calls of a side, or (``alternatives``) lists of them."""
    try:
        if name == "calls":
            return _calls(value, version, call)
        if not isinstance(value, list):
            raise wrong("a list of lists of calls", value)
        return _calls(value, version, lambda calls, _: _calls(calls, version, call))
    except Wrong as error:
        raise error.below(f".{name}") from None


def _calls(value: Any, version: int, call: Call) -> tuple[Any, ...]:
    """Convert a list of calls by ``call``; an error names the position in the list."""
    if not isinstance(value, list):
        raise wrong("a list of calls", value)
    calls: list[Any] = []
    try:
        for entry in value:
            calls.append(call(entry, version))
    except Wrong as error:
        path = f"[{len(calls)}]"
        raise error.below(path) from None
    return tuple(calls)


def _named_call(
    entry: Any, *, several: bool = False
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return a call that names its tool, or (``several``) tools, and its object with the name."""
    if isinstance(entry, chat.OBJECT):
        call = usual_call(entry)
        function = call.get("function")
        inner = call if function is None or not isinstance(function, chat.OBJECT) else function
        name = inner.get("name")
        has_names = name is None and several and _are_names(call.get("names"))
        if isinstance(name, str) or has_names:
            return call, inner
    raise wrong("a call with a name", entry)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(x, str) for x in value)


def _made_call(entry: Any, version: int) -> ToolCall:
    """Return a call that was made.

    The first version of the form leaves out details of another type.
    """
    entry, inner = _named_call(entry)
    call: Any = chat.tool_call(entry)
    if inner is not entry or _DETAILS.isdisjoint(entry):
        return call  # type: ignore[no-any-return]
    details = {}
    for name, value in entry.items():
        if name not in _DETAILS or value is None:
            continue
        try:
            details[name] = _field(ToolCall, name, value)
        except Wrong:
            if version > 1:
                raise
    return replace(call, **details)  # type: ignore[no-any-return]


def _expected_call(entry: Any, version: int) -> ExpectedCall:
    """Convert an expected call, flat or inside ``function``, with its conditions."""
    entry, inner = _named_call(entry, several=True)
    if inner is entry:
        _check_keys(entry, _FLAT, version)
        recorded = _arguments(entry, version)
        if version > 1 and entry.get("function") is not None:
            raise wrong("an object with name and arguments", entry["function"], ".function")
    else:
        _check_keys(entry, _WRAPPED, version)
        try:
            _check_keys(inner, _FUNCTION, version)
            recorded = _arguments(inner, version)
        except Wrong as error:
            raise error.below(".function") from None
    arguments, text = chat.parse_arguments(recorded)
    is_compared = version < 2 or inner.get("arguments", ()) is not None
    raw_arguments = text if arguments is None else None
    call = ExpectedCall(
        name=as_text(inner.get("name")),
        arguments=arguments if is_compared else None,
        raw_arguments=raw_arguments,
    )
    return call if _CONDITIONS.isdisjoint(entry) else replace(call, **_conditions(entry))


def _arguments(call: Mapping[str, Any], version: int) -> Any:
    """Return the recorded arguments of an expected call."""
    arguments = call.get("arguments", call.get("kwargs"))
    if version > 1 and not isinstance(arguments, (str, *chat.OBJECT)) and arguments is not None:
        raise wrong("an object or JSON text", arguments, ".arguments")
    return arguments


def _conditions(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions of an expected call beside its name and arguments."""
    fields: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "rules" and value is not None:
            fields[name] = _rules(value)
        elif name in _CONDITIONS and value is not None:
            fields[name] = _field(ExpectedCall, name, value)
    if fields.get("turn", 0) < 0:
        raise wrong(_WANTED["turn"], fields["turn"], ".turn")
    return fields


_PREDICTED: Final = _Side("predicted", _SIDE, frozenset({"name", "function"}), _made_call)
_EXPECTED: Final = _Side(
    "expected",
    (*_SIDE, *_EXPECTED_ONLY),
    frozenset({"name", "names", "function"}),
    _expected_call,
)


def _check_keys(entry: Mapping[str, Any], known: tuple[str, ...], version: int) -> None:
    """Check the keys of an expected call.

    The first version of the form let a call hold anything: there a key is refused only where it is
    nearly one that the call lacks.
    """
    for name in entry:
        if name in known:
            continue
        if version > 1:
            keys = [key for key in known if key not in _UNNAMED]
            raise _unknown_key(name, keys)
        lacking = [key for key in _RULED if key in known and key not in entry]
        hint = suggest(name, lacking, cutoff=0.85)
        has_arguments = "arguments" not in known or {"arguments", "kwargs"} & entry.keys()
        if not hint and not has_arguments:
            hint = suggest(name, ("arguments",))
        if hint:
            path = _path_of(name)
            raise Wrong(f"unknown key{hint}", path)


def _rules(value: Any) -> dict[str, Rule]:
    """Convert an object of argument to rule; an error names the argument."""
    if not isinstance(value, chat.OBJECT):
        raise wrong("an object: argument to rule", value, ".rules")
    rules = {}
    for argument, rule in value.items():
        try:
            rules[argument] = _rule(rule)
        except Wrong as error:
            path = f".rules{_path_of(argument)}"
            raise error.below(path) from None
    return rules


def _rule(value: Any) -> Rule:
    known = Rule.__struct_fields__
    if not isinstance(value, chat.OBJECT):
        wanted = f"a rule, which is an object with any of {', '.join(known)}"
        raise wrong(wanted, value)
    for name in value:
        if name not in known:
            raise _unknown_key(name, known)
    fields_by_name = {name: _field(Rule, name, entry) for name, entry in value.items()}
    return Rule(**fields_by_name)
