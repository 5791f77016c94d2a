"""What is recorded of a sample, as its part of a line of results.jsonl.

It is written before graders see the sample, so that a row shows what was recorded, whatever they do to it. Usually
msgspec writes it. It writes NaN as null without a word and refuses lone surrogates: what it cannot write faithfully
goes through :func:`gradestack.jsonio.values.dumps`, which has a form for both, and sorts the keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from gradestack.jsonio.values import dumps, json_data
from gradestack.model import (
    ABSENT,
    Expectation,
    ExpectedCall,
    Fault,
    Message,
    Sample,
    Status,
    ToolCall,
    Usage,
)
from gradestack.rows.encoding import SAFE, check, check_numbers, write
from gradestack.rows.read import Row


class _Call(Struct, gc=False, omit_defaults=True):
    """A call that was made: without its id and result, and without the text of arguments that could be decoded."""

    name: str
    arguments: Any
    raw_arguments: str | None = None
    error: str | None = None
    turn: int | None = None
    step: int | None = None
    author: str | None = None
    server: str | None = None
    kind: str | None = None
    status: str | None = None
    error_type: str | None = None
    started: str | None = None
    seconds: float | None = None


class _Content(Struct, gc=False, omit_defaults=True):
    """What was expected, or predicted."""

    calls: Any
    label: str | None
    plan: Any
    text: Any
    state: Any = None
    alternatives: Any = None
    forbidden: Any = None


class _ExpectedCall(Struct, gc=False, omit_defaults=True):
    name: str
    arguments: Any
    raw_arguments: str | None = None
    names: Any = None
    rules: Any = None
    optional: bool = False
    turn: int | None = None
    group: int | None = None
    requestor: str | None = None


class _Message(Struct, gc=False, omit_defaults=True):
    content: Any
    role: str
    name: str | None = None
    reasoning: str | None = None
    tool_call_id: str | None = None
    tool_calls: Any = None


class _Recorded(Struct, gc=False, omit_defaults=True):
    agent_id: str | None
    agent_usage: Any
    error: Fault | None
    expected: _Content
    facets: Any
    model_name: str | None
    predicted: _Content
    recorded: Any
    run: int | str | None
    sample: Any
    source: Any
    status: Status
    tools: Any
    trajectory: Any = ABSENT
    usage: Usage | None = None
    cluster: str | None = None
    ended: str | None = None
    trace: Any = None
    children: Any = None
    remarks: Any = None


def _call(call: ToolCall) -> _Call:
    arguments = call.arguments
    return _Call(
        call.name,
        arguments,
        call.raw_arguments if arguments is None else None,
        call.error,
        call.turn,
        call.step,
        call.author,
        call.server,
        call.kind,
        call.status,
        call.error_type,
        call.started,
        call.seconds,
    )


def _expected_call(call: ExpectedCall) -> _ExpectedCall:
    return _ExpectedCall(
        call.name,
        call.arguments,
        call.raw_arguments,
        call.names or None,
        call.rules,
        call.optional,
        call.turn,
        call.group,
        call.requestor,
    )


def _expected(of: Expectation) -> _Content:
    calls = None if of.calls is None else [_expected_call(call) for call in of.calls]
    lists = [[_expected_call(call) for call in calls] for calls in of.alternatives] or None
    return _Content(calls, of.label, of.plan, of.text, of.state, lists, of.forbidden or None)


def _chat_call(call: ToolCall) -> Row:
    arguments = call.raw_arguments if call.raw_arguments is not None else call.arguments
    return {"function": {"arguments": arguments, "name": call.name}, "id": call.id, "type": "function"}


def _message(message: Message) -> _Message:
    calls = [_chat_call(call) for call in message.tool_calls] or None
    return _Message(message.content, message.role, message.name, message.reasoning, message.tool_call_id, calls)


def trajectory_of(sample: Sample) -> Any:
    """Return a sample's turns as they stand in its row."""
    return [[_message(message) for message in turn] for turn in sample.turns] if sample.turns else ()


def _recorded(sample: Sample) -> _Recorded:
    expected, calls, tools = sample.expected, sample.calls, sample.tools
    truth = expected.text if expected.text is not None else expected.label
    made = None if calls is None else [_call(call) for call in calls]
    source, place, number = sample.source, None, None
    if source is not None:
        place, number = {"file": source.file, "ordinal": source.ordinal, "line": source.line}, source.id
    return _Recorded(  # by position: with so many keywords, CPython builds a dict first
        sample.agent_id,
        sample.agent_usage,
        sample.error,
        _expected(expected),
        sample.facets,
        sample.model,
        _Content(made, sample.label, sample.plan, sample.text, sample.state),
        sample.recorded,
        sample.run,
        {"ground_truth": truth, "id": sample.id if number is None else number, "input": sample.input},
        place,
        sample.status,
        None if tools is None else [tool.name for tool in tools],
        trajectory_of(sample),
        sample.usage,
        sample.cluster,
        sample.ended,
        sample.trace or None,
        sample.children or None,
        sample.remarks or None,
    )


def recorded_bytes(sample: Sample, *, slim: bool = False) -> bytes:
    """Return what is recorded of a sample as JSON; a slim one without trajectory, which must be writable all the same.

    Raises:
        RecursionError: Something is nested too deeply.
        TypeError: Something is not JSON.
        ValueError: The same.
    """
    try:
        _check_sample(sample)
        row = _recorded(sample)
        if slim:
            write(row.trajectory)  # what fails in a full row fails here, too: grades do not depend on what is kept
            row.trajectory = ABSENT
        return write(row)
    except (TypeError, ValueError):  # NaN, lone surrogates, types msgspec does not know: the standard library decides
        pass
    data: Row = json_data(_recorded(sample))
    if slim:
        dumps(data.pop("trajectory"))
    return dumps(data).encode()


def _check_sample(sample: Sample) -> None:
    """Refuse values that msgspec would not write as the standard library does."""
    expected = sample.expected
    _check_calls(sample.calls or ())
    _check_calls(expected.calls or ())
    if sample.facets:
        check(sample.facets)
    if sample.recorded:
        check(sample.recorded)
    if sample.remarks:
        check(sample.remarks)
    for value in (sample.plan, expected.plan, sample.agent_usage, sample.state, expected.state):
        if value is not None:
            check(value)
    if sample.usage is not None:
        check_numbers([value for value in astuple(sample.usage) if value is not None])
    for calls in expected.alternatives:
        _check_calls(calls)
    for turn in sample.turns:
        for message in turn:
            if type(message.content) not in SAFE:
                check(message.content)
            _check_calls(message.tool_calls)


def _check_calls(calls: Iterable[ToolCall | ExpectedCall]) -> None:
    for call in calls:
        if call.arguments:
            check(call.arguments)
        if isinstance(call, ToolCall):
            if call.seconds is not None:
                check(call.seconds)
        elif call.rules:
            for rule in call.rules.values():
                check((rule.tolerance, *rule.any_of))
