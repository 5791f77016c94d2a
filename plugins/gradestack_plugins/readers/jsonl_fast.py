"""The straight way from a line of the ``jsonl`` form to a sample.

Lines that follow the form in its usual shapes are decoded into typed structures and turned into samples without a look
at every key. For anything else (:class:`Unusual`, or whatever msgspec refuses) the thorough way in
:mod:`gradestack_plugins.readers.jsonl` decides; it gives the same sample where both can, and says what is wrong where
something is.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gradestack import Expectation, Message, Sample, Source, Status, ToolCall, ToolSpec
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.jsonl_schema import FORM_VERSION

_MOST_TOOLS = 4096
_LARGEST_TOOL = 32 * 1024
_NOTHING: dict[str, Any] = {}
_OK = Status.OK
_MOST_EXPECTATIONS = 4096
_LARGEST_EXPECTATION = 4096
_expectations: dict[bytes, Expectation] = {}
_tools: dict[bytes, ToolSpec] = {}
"""Tools met before, by their text: records of one benchmark repeat the same few."""


class Unusual(Exception):
    """A line for the thorough way."""


class _Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):  # skipped keys would not be checked for UTF-8
    name: str
    arguments: Any = UNSET
    kwargs: Any = None


class _Call(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: Any = None
    arguments: Any = UNSET
    kwargs: Any = None
    function: _Function | None = None
    id: Any = None
    type: Any = None
    index: Any = None
    requestor: Any = None


class _Side(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    calls: list[_Call] | None = None
    label: str | None = None
    text: str | list[str] | None = None
    plan: Any = None


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: str | int
    version: int = FORM_VERSION
    expected: Raw = Raw(b"null")
    predicted: list[_Call] | _Side | str | UnsetType | None = UNSET
    model: str | None = None
    run: int | str | None = None
    input: str | list[str] | None = None
    messages: list[dict[str, Any]] | None = None
    turns: list[list[dict[str, Any]]] | None = None
    tools: list[Raw] | None = None
    recorded: dict[str, Any] | None = None
    error: Any = None
    agent_id: str | None = None
    usage: Any = None
    facets: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder().decode
_decode_side = msgspec.json.Decoder(list[_Call] | _Side | str | None).decode


def _calls(entries: list[_Call]) -> tuple[ToolCall, ...]:
    made = []
    for entry in entries:
        inner = entry.function or entry
        name, arguments, text = inner.name, inner.arguments, None
        if arguments is UNSET:
            arguments = inner.kwargs
        if type(arguments) is str:
            text = arguments
            try:
                arguments = _decode_any(text)
            except (ValueError, RecursionError):
                arguments = _slowly(text)
            if type(arguments) is not dict:
                arguments = None
        elif arguments is None:
            arguments = {}
        elif type(arguments) is not dict:
            arguments, text = None, compact(arguments)
        if type(name) is not str:
            raise Unusual
        identifier, requestor = entry.id, entry.requestor
        identifier = identifier if type(identifier) is str else None
        requestor = requestor if type(requestor) is str else "assistant"
        made.append(ToolCall(name=name, arguments=arguments, raw_arguments=text, id=identifier, requestor=requestor))
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
    texts = list(map(bytes, raws))
    specs = tuple(map(_tools.get, texts))
    return specs if all(specs) else tuple(map(_tool, texts))  # type: ignore[return-value]


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


def _side(given: list[_Call] | _Side | str | None) -> tuple[Any, Any, Any, Any]:
    """Return calls, label, text and plan."""
    if given is None:
        return None, None, None, None
    if type(given) is list:
        return _calls(given), None, None, None
    if type(given) is str:
        return None, given, given, None
    text = given.text  # type: ignore[union-attr]
    calls = given.calls  # type: ignore[union-attr]
    return (
        None if calls is None else _calls(calls),
        given.label,  # type: ignore[union-attr]
        tuple(text) if type(text) is list else text,
        given.plan,  # type: ignore[union-attr]
    )


def _expectation_of(raw: Raw) -> Expectation:
    """Return the reference of a record; one met before is the same object again: runs of a task share theirs."""
    text = bytes(raw)
    found = _expectations.get(text)
    if found is None:
        calls, label, answer, plan = _side(_decode_side(raw))
        found = Expectation(calls=calls, label=label, text=answer, plan=plan)
        if len(_expectations) >= _MOST_EXPECTATIONS:
            _expectations.clear()
        if len(text) <= _LARGEST_EXPECTATION:
            _expectations[text] = found
    return found


def _turns(line: _Line) -> tuple[tuple[Message, ...], ...]:
    turns = line.turns
    if turns is None:
        turns = [] if line.messages is None else [line.messages]
    return tuple(chat.messages(turn) for turn in turns)


def _from_messages(turns: tuple[tuple[Message, ...], ...]) -> tuple[Any, Any, Any, Any]:
    flat = [message for turn in turns for message in turn]
    if not flat:
        return None, None, None, None
    answers = [chat.text_of(message.content) for message in flat if message.role == "assistant"]
    return chat.made_calls(flat), None, answers[-1] if answers else None, None


def sample_of(data: bytes, source: Source) -> Sample:
    """Return the sample of one line.

    Raises:
        Unusual: The line is not of a usual shape, or wrong.
        ValueError: It is not JSON for msgspec, or not of the form.
        RecursionError: It is nested too deeply.
    """
    if not data.isascii():
        data.decode()  # what is kept raw, or overridden by a later key, would not be looked at
    line = _decode(data)
    if line.version != FORM_VERSION or line.error is not None:
        raise Unusual
    turns = () if line.messages is None and line.turns is None else _turns(line)
    predicted = line.predicted
    if type(predicted) is list:
        made, answer_label, answer, answer_plan = _calls(predicted), None, None, None
    else:
        made, answer_label, answer, answer_plan = _from_messages(turns) if predicted is UNSET else _side(predicted)
    identifier, given = line.id, line.input
    return Sample(
        id=identifier if type(identifier) is str else str(identifier),
        model=line.model,
        run=line.run,
        input=tuple(given) if isinstance(given, list) else given,
        turns=turns,
        calls=made,
        label=answer_label,
        text="\n".join(answer) if type(answer) is tuple else answer,
        plan=answer_plan,
        tools=None if line.tools is None else tool_specs(line.tools),
        expected=_expectation_of(line.expected),
        recorded=_NOTHING if line.recorded is None else line.recorded,
        agent_id=line.agent_id,
        usage=line.usage,
        facets=_NOTHING if line.facets is None else line.facets,
        source=source,
    )
