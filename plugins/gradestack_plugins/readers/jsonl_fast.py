"""The straight way from a line of the ``jsonl`` form to a sample.

Lines that follow the form in its usual shapes are decoded into the model, or into structures close to it, without a
look at every key. For anything else (:class:`Unusual`, or whatever msgspec refuses) the thorough way in
:mod:`gradestack_plugins.readers.jsonl` decides; it gives the same sample where both can, and says what is wrong where
something is.

One line at a time: decoding a block of lines at once (``decode_lines``) was measured and gains nothing.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gradestack import Expectation, ExpectedCall, Message, Sample, Source, ToolCall, ToolSpec, Usage, replace
from gradestack.jsonio import JsonProblem, check_depth, check_utf8, compact, loads
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.jsonl_schema import VERSIONS

_MOST_TOOLS = 4096
_LARGEST_TOOL = 32 * 1024
_NOTHING: dict[str, Any] = {}
_NO_EXPECTATION = Expectation()
_tools: dict[bytes, ToolSpec] = {}
"""Tools met before, by their text: records repeat the same few, and decoding them adds half to a line."""


class Unusual(Exception):
    """A line for the thorough way."""


CallT = TypeVar("CallT")


class _Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: Any = UNSET
    kwargs: Any = None


class CallDetails(msgspec.Struct, forbid_unknown_fields=True, gc=False, kw_only=True):
    """What the form may say of a call that was made, beyond name, arguments, id and requestor."""

    result: Any = None
    error: str | None = None
    turn: int | None = None
    step: int | None = None
    author: str | None = None
    server: str | None = None
    kind: Literal["function", "builtin", "mcp", "custom"] | None = None
    status: Literal["ok", "error", "denied", "not_run"] | None = None
    error_type: str | None = None
    started: str | None = None
    seconds: float | None = None


class _Call(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: Any = None
    arguments: Any = UNSET
    kwargs: Any = None
    function: _Function | None = None
    id: Any = None
    type: Any = None
    index: Any = None
    requestor: Any = None


_DetailedCall = msgspec.defstruct(
    "_DetailedCall",
    [(field.name, field.type, field.default) for field in msgspec.structs.fields(CallDetails)],
    bases=(_Call,),
    forbid_unknown_fields=True,
    gc=False,
)
"""A call with more than most have: looked for in lines whose calls are not of the usual keys."""


class _Side(msgspec.Struct, Generic[CallT], forbid_unknown_fields=True, gc=False):
    calls: list[CallT] | None = None
    label: str | None = None
    text: str | list[str] | None = None
    plan: Any = None


class _Line(msgspec.Struct, Generic[CallT], forbid_unknown_fields=True, gc=False):
    id: str | int
    version: int = VERSIONS[0]
    expected: Expectation | list[ExpectedCall] | str | None = None
    predicted: list[CallT] | _Side[CallT] | str | UnsetType | None = UNSET
    cluster: str | None = None
    model: str | None = None
    run: int | str | None = None
    input: str | list[str] | None = None
    messages: list[dict[str, Any]] | None = None
    turns: list[list[dict[str, Any]]] | None = None
    tools: list[Raw] | None = None
    recorded: dict[str, Any] | None = None
    error: Any = None
    state: Any = None
    ended: str | None = None
    trace: dict[str, str] | None = None
    children: tuple[str, ...] | None = None
    agent_id: str | None = None
    usage: Any = None
    facets: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Line[_Call]).decode
_decode_detailed = msgspec.json.Decoder(_Line[_DetailedCall]).decode  # type: ignore[valid-type]
_decode_any = msgspec.json.Decoder().decode
_DETAILS = CallDetails.__struct_fields__
_RARE = ("cluster", "state", "ended", "trace", "children", "usage")
_NOTHING_RARE = (None,) * len(_RARE)


def _calls(entries: list[_Call]) -> tuple[ToolCall, ...]:
    made = []
    for entry in entries:
        function = entry.function
        inner = entry if function is None else function
        name, arguments, text = inner.name, inner.arguments, None
        if type(arguments) is str:
            text = arguments
            try:
                arguments = _decode_any(text)
                check_depth(text)
            except (ValueError, RecursionError):
                arguments = _slowly(text)
            if type(arguments) is not dict:
                arguments = None
        elif type(arguments) is not dict:
            arguments = inner.kwargs if arguments is UNSET else arguments
            if arguments is None:
                arguments = {}
            elif type(arguments) is str:
                raise Unusual
            elif type(arguments) is not dict:
                arguments, text = None, compact(arguments)
        if type(name) is not str:
            raise Unusual
        identifier, requestor = entry.id, entry.requestor
        call = ToolCall(
            name=name,
            arguments=arguments,
            raw_arguments=text,
            id=identifier if type(identifier) is str else None,
            requestor=requestor if type(requestor) is str else "assistant",
        )
        if type(entry) is _DetailedCall and inner is entry:
            details = {each: found for each in _DETAILS if (found := getattr(entry, each)) is not None}
            call = replace(call, **details) if details else call
        made.append(call)
    return tuple(made)


def _slowly(text: str) -> Any:
    try:
        return loads(text)
    except JsonProblem:
        return None


def tool_specs(raws: list[Raw]) -> tuple[ToolSpec, ...]:
    """Return the tools of a record; one met before is the same object again.

    Raises:
        Unusual: One of them is no tool with a name.
    """
    specs = tuple(map(_tools.get, map(bytes, raws)))
    return specs if all(specs) else tuple(map(_tool, map(bytes, raws)))  # type: ignore[return-value]


def _tool(text: bytes) -> ToolSpec:
    spec = _tools.get(text)
    if spec is not None:
        return spec
    spec = chat.tool_spec(loads(text))
    if spec is None:
        raise Unusual
    if len(_tools) >= _MOST_TOOLS:
        _tools.clear()
    if len(text) <= _LARGEST_TOOL:
        _tools[text] = spec
    return spec


def _expectation(given: Expectation | list[ExpectedCall] | str | None) -> Expectation:
    if given is None:
        return _NO_EXPECTATION
    if isinstance(given, str):
        return Expectation(label=given, text=given)
    expected = Expectation(calls=tuple(given)) if isinstance(given, list) else given
    if expected.alternatives:
        raise Unusual
    for call in expected.calls or ():
        if call.arguments is None or call.raw_arguments is not None or not call.name:
            raise Unusual
        if (turn := call.turn) is not None and turn < 0:
            raise Unusual
    return expected


def _from_messages(turns: tuple[tuple[Message, ...], ...]) -> tuple[Any, Any]:
    """Return the calls made in a conversation, and its last answer."""
    flat = [message for turn in turns for message in turn]
    if not flat:
        return None, None
    answers = [chat.text_of(message.content) for message in flat if message.role == "assistant"]
    return chat.made_calls(flat), answers[-1] if answers else None


def usage_of(recorded: Any) -> Usage | None:
    """Return usage recorded in gradestack's own keys, None for any other form and where it says nothing."""
    if not recorded:
        return None
    try:
        return msgspec.convert(recorded, Usage)
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        return None


def _line(data: bytes) -> _Line[Any]:
    if not data.isascii():
        check_utf8(data)  # what is kept raw, or overridden by a later key, would not be looked at
    try:
        line: _Line[Any] = _decode(data)
    except msgspec.ValidationError:
        line = _decode_detailed(data)
    check_depth(data)
    return line


def sample_of(data: bytes, source: Source) -> Sample:
    """Return the sample of one line.

    Raises:
        Unusual: The line is not of a usual shape, or wrong.
        ValueError: It is not JSON for msgspec, or not of the form.
        RecursionError: It is nested too deeply.
    """
    line = _line(data)
    if line.version not in VERSIONS or line.error is not None:
        raise Unusual
    turns: tuple[tuple[Message, ...], ...] = ()
    if line.turns is not None:
        turns = tuple(map(chat.messages, line.turns))
    elif line.messages is not None:
        turns = (chat.messages(line.messages),)
    predicted = line.predicted
    calls = label = plan = text = None
    if type(predicted) is _Side:
        label, plan, answer = predicted.label, predicted.plan, predicted.text
        text = "\n".join(answer) if isinstance(answer, list) else answer
        if predicted.calls is not None:
            calls = _calls(predicted.calls)
    elif type(predicted) is list:
        calls = _calls(predicted)
    elif type(predicted) is str:
        label = text = predicted
    elif predicted is UNSET and turns:
        calls, text = _from_messages(turns)
    identifier, asked = line.id, line.input
    if type(identifier) is int:
        source = replace(source, id=identifier)
    sample = Sample(  # with more than 15 keywords, CPython builds a dict first, and this takes six times as long
        id=str(identifier),
        model=line.model,
        run=line.run,
        input=tuple(asked) if isinstance(asked, list) else asked,
        turns=turns,
        calls=calls,
        label=label,
        text=text,
        plan=plan,
        tools=None if line.tools is None else tool_specs(line.tools),
        expected=_expectation(line.expected),
        recorded=line.recorded or _NOTHING,
        agent_id=line.agent_id,
        facets=line.facets or _NOTHING,
        source=source,
    )
    if (line.cluster, line.state, line.ended, line.trace, line.children, line.usage) == _NOTHING_RARE:
        return sample
    more = {name: found for name in _RARE if (found := getattr(line, name)) is not None}
    if "usage" in more:
        more |= {"usage": usage_of(line.usage), "agent_usage": line.usage}
    return replace(sample, **more)
