"""A line of the ``jsonl`` form, decoded straight into a sample.

What the form nests stays in fields of the line; those of the sample are set once. What does not
follow the form in its usual shapes (``Unusual``, or whatever msgspec refuses) is left to
``gradestack_plugins.readers.jsonl_sides``: it gives the same sample where both can, and says what
is wrong where something is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import astuple
from msgspec.structs import force_setattr as _set

from gradestack import (
    Expectation,
    ExpectedCall,
    Sample,
    Source,
    ToolCall,
    ToolSpec,
    Usage,
    impossible_amounts,
    replace,
    suggest,
)
from gradestack.jsonio import check_depth, loads
from gradestack_plugins.readers import chat

VERSIONS = (1, 2)
"""Versions of the form.

What has no version is of the first, with all that the second added. Some things differ: null
arguments of an expected call are none in the first, and not compared in the second; details of
calls made that are of another kind than the form's, and unknown keys of expected calls, are left
out in the first, and refused in the second; arguments of an expected call that are neither an
object nor text cannot be decoded in the first, and are refused in the second.
"""
SAMPLE_SCHEMA: Final[dict[str, Any]] = loads(
    Path(__file__).with_name("sample_schema.json").read_bytes()
)
_MOST_TOOLS = 4096
_LARGEST_TOOL = 32 * 1024
_LONG = 500  # characters of JSON that can be nested too deeply
_NO_EXPECTATION = Expectation()
_known_tools: dict[
    bytes, ToolSpec
] = {}  # tools by their text: records repeat the same few, in any order


_SHOWN_KEY: Final = re.compile(r"[A-Za-z_][\w.-]{0,47}")
USAGE_NOT_READ: Final = "usage not read: "
"""How the remarks begin that name keys of usage nobody reads."""
_KEYS_OF_APIS: Final = frozenset(
    """
    total_tokens prompt_tokens completion_tokens prompt_tokens_details completion_tokens_details
    input_tokens_details output_tokens_details input_token_details output_token_details
    cache_read_input_tokens cache_creation_input_tokens cache_creation cache_read server_tool_use
    service_tier input_tokens_cache_read input_tokens_cache_write
    """.split()  # noqa: SIM905
)
"""Keys of usage as APIs record it, which is not gradestack's form."""


class Unusual(Exception):
    """A line for the thorough way."""


class _Nothing:
    """What no JSON is decoded into: the type of fields that a line cannot set."""


class _Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: Any = UNSET
    kwargs: Any = None


_KNOWN = frozenset({"name", "arguments", "raw_arguments", "id", "requestor"})
_FIELDS = [
    (each.name, each.type, None)
    for each in msgspec.structs.fields(ToolCall)
    if each.name not in _KNOWN
]
CallDetails: Any = msgspec.defstruct(
    "CallDetails", _FIELDS, forbid_unknown_fields=True, gc=False, kw_only=True
)
"""What the form may say of a call that was made, beyond name, arguments, id and requestor."""


class _Made(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str = ""
    arguments: Any = UNSET
    kwargs: Any = None
    function: _Function | None = None
    id: str | None = None
    type: Any = None
    index: Any = None
    requestor: str | None = None


_Call: Any = msgspec.defstruct(
    "_Call", _FIELDS, bases=(_Made,), forbid_unknown_fields=True, gc=False
)
_DETAILS = slice(len(_Made.__struct_fields__), None)
_NO_DETAILS = (None,) * len(_FIELDS)


class _Side(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    calls: list[_Call] | None = None
    label: str | None = None
    text: str | list[str] | None = None
    plan: Any = None


def _hidden(of: type[msgspec.Struct], names: str) -> Any:
    """Return a struct with the fields of another, of which no JSON sets these."""
    fields = {each.name: each for each in msgspec.structs.fields(of)}
    hidden = []
    for name in names.split():
        default: dict[str, Any] = {"default": fields[name].default}
        if fields[name].default is msgspec.NODEFAULT:
            default = {"default_factory": fields[name].default_factory}
        hidden.append((name, _Nothing, msgspec.field(name=f"\ufdd0{name}", **default)))
    return msgspec.defstruct(of.__name__, hidden, bases=(of,), frozen=True, kw_only=True, eq=False)


def _tool(text: bytes) -> ToolSpec:
    spec = chat.tool_spec(loads(text))
    if spec is None:
        raise Unusual
    if len(_known_tools) >= _MOST_TOOLS:
        _known_tools.clear()
    if len(text) <= _LARGEST_TOOL:
        _known_tools[text] = spec
    return spec


_OF_READERS = "calls label text plan tools status agent_usage remarks source native"
"""Fields of a sample that are no keys of the form."""


class _Line(_hidden(Sample, _OF_READERS), frozen=True, eq=False, forbid_unknown_fields=True):  # type: ignore[call-arg, misc]
    id: str | int
    turns: list[list[dict[str, Any]]] | None = ()  # type: ignore[assignment]
    expected: Expectation | list[ExpectedCall] | str | None = _NO_EXPECTATION
    recorded: dict[str, Any] | None = msgspec.field(default_factory=dict)
    error: None = None
    trace: dict[str, str] | None = msgspec.field(default_factory=dict)
    children: tuple[str, ...] | None = ()
    usage: Any = None
    facets: dict[str, Any] | None = msgspec.field(default_factory=dict)
    version: Annotated[int, msgspec.Meta(ge=VERSIONS[0], le=VERSIONS[-1])] = VERSIONS[0]
    predicted: list[_Call] | _Side | str | UnsetType | None = UNSET
    messages: list[dict[str, Any]] | None = None
    entries: list[Raw] | None = msgspec.field(default=None, name="tools")


_Line.__name__ = "Sample"  # as errors of graders call it
_decode, _decode_any = msgspec.json.Decoder(_Line).decode, msgspec.json.Decoder().decode


def _calls(entries: list[Any]) -> tuple[ToolCall, ...]:
    made = []
    for entry in entries:
        inner = entry.function or entry
        arguments, text = inner.arguments, None
        if type(arguments) is str:
            text = arguments
            try:
                arguments = _decode_any(text)
                if len(text) > _LONG:
                    check_depth(text)
            except (ValueError, RecursionError):
                arguments, _ = chat.parse_arguments(text)
            if type(arguments) is not dict:
                arguments = None
        elif type(arguments) is not dict:
            arguments, text = chat.parse_arguments(
                inner.kwargs if arguments is UNSET else arguments
            )
        call = ToolCall(name=inner.name, arguments=arguments, raw_arguments=text, id=entry.id)
        if inner is entry:
            if not entry.name:
                raise Unusual
            if (details := astuple(entry)[_DETAILS]) != _NO_DETAILS:
                call = replace(
                    call,
                    **{
                        name: each
                        for (name, *_), each in zip(_FIELDS, details, strict=True)
                        if each is not None
                    },
                )
        made.append(call if entry.requestor is None else replace(call, requestor=entry.requestor))
    return tuple(made)


def _set_expected(line: Any, given: list[ExpectedCall] | str | None) -> Expectation:
    found = _NO_EXPECTATION
    if given is not None:
        found = (
            Expectation(label=given, text=given)
            if isinstance(given, str)
            else Expectation(calls=tuple(given))
        )
    _set(line, "expected", found)
    return found


def _set_turns(line: Any) -> None:
    """Set the conversation, what else the line does not say, and without a prediction its calls and
    last answer.
    """
    given = None if line.turns is None or line.turns == () else line.turns
    if given is None and line.messages is None:
        _set(line, "turns", ())
        return
    # many files have none
    from gradestack_plugins.readers.chat.conversation import conversation_of  # noqa: PLC0415

    talk = conversation_of(line.messages, turns=given)
    said = talk.said(() if line.predicted is UNSET else ("calls", "text"))
    known = {name for name in ("input", "model", "agent_usage") if getattr(line, name) is not None}
    known |= {"usage"} if "agent_usage" in known else set()
    for name, value in (
        *(each for each in said.items() if each[0] not in known),
        ("remarks", talk.remarks),
    ):
        _set(line, name, value)


def _set_predicted(line: Any, predicted: Any) -> None:
    if type(predicted) is _Side:
        if predicted.calls is not None:
            _set(line, "calls", _calls(predicted.calls))
        if (text := predicted.text) is not None:
            _set(line, "text", "\n".join(text) if type(text) is list else text)
        if predicted.label is not None:
            _set(line, "label", predicted.label)
        if predicted.plan is not None:
            _set(line, "plan", predicted.plan)
    elif type(predicted) is list:
        _set(line, "calls", _calls(predicted))
    elif type(predicted) is str:
        _set(line, "label", predicted)
        _set(line, "text", predicted)


def usage_of(recorded: Any) -> tuple[Usage | None, dict[str, int]]:
    """Return usage recorded in gradestack's own keys, and remarks on the keys that are not read.

    The usage is None for any other form and where it says nothing.
    """
    if not recorded:
        return None, {}
    possible = recorded
    if isinstance(recorded, dict) and impossible_amounts(recorded):
        possible = {
            name: amount for name, amount in recorded.items() if not impossible_amounts(amount)
        }
    try:
        return msgspec.convert(possible, Usage), {}
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        return _known_usage(possible)


def _wanted_amount(name: str) -> str:
    """Return in words which values a field of usage takes."""
    measures = ("cost_usd", "seconds", "first_token_seconds")
    return "expected a number" if name in measures else "expected a whole number"


def _known_usage(recorded: Any) -> tuple[Usage | None, dict[str, int]]:
    """Return the usage in the known keys of an object, and remarks on its other keys."""
    names = Usage.__struct_fields__
    if not isinstance(recorded, dict) or recorded.keys().isdisjoint(names):
        return None, {}
    if not _KEYS_OF_APIS.isdisjoint(recorded):
        return None, {}
    known: dict[str, Any] = {}
    remarks: dict[str, int] = {}
    for key, value in recorded.items():
        try:
            known[key] = getattr(msgspec.convert({key: value}, Usage), key)
        except ValueError:
            shown = key if _SHOWN_KEY.fullmatch(key) else "other"
            if key in names:
                remarks[f"{USAGE_NOT_READ}{shown} ({_wanted_amount(key)})"] = 1
                continue
            hint = suggest(key, [name for name in names if name not in recorded])
            remarks[f"{USAGE_NOT_READ}{shown}{hint}"] = 1
    return (Usage(**known) if known else None), remarks


def _set_usage(line: Any) -> dict[str, int]:
    """Set what a run took, and return remarks on the keys that are not read."""
    _set(line, "agent_usage", line.usage)
    usage, remarks = usage_of(line.usage)
    _set(line, "usage", usage)
    return remarks


def sample_of(data: bytes, file: str, number: int) -> Sample:  # noqa: C901
    """Return the sample of one line of a file, which is UTF-8."""
    line: Any = _decode(data)
    if len(data) > _LONG:
        check_depth(data)
    if line.entries is not None:
        texts = map(bytes, line.entries)
        _set(line, "tools", tuple([_known_tools.get(text) or _tool(text) for text in texts]))
    expected = line.expected
    if type(expected) is not Expectation:
        expected = _set_expected(line, expected)
    for call in expected.calls or ():
        if (
            call.arguments is None
            or call.raw_arguments is not None
            or not call.name
            or (call.turn or 0) < 0
        ):
            raise Unusual
    if expected.alternatives:
        raise Unusual
    _set_predicted(line, line.predicted)
    unread_usage = _set_usage(line) if line.usage is not None else {}
    if line.turns != () or line.messages is not None:
        _set_turns(line)
    _set(line, "remarks", {**line.remarks, **unread_usage} if unread_usage else line.remarks)
    if type(identifier := line.id) is int:
        _set(line, "id", str(identifier))
        _set(line, "source", Source(file=file, ordinal=number - 1, line=number, id=identifier))
    else:
        _set(line, "source", Source(file=file, ordinal=number - 1, line=number))
    if line.recorded is None or line.facets is None or line.trace is None or line.children is None:
        for name, nothing in (("recorded", {}), ("facets", {}), ("trace", {}), ("children", ())):
            _set(line, name, getattr(line, name) or nothing)
    return line  # type: ignore[no-any-return]
