"""What is recorded of a sample, as its part of a line of results.jsonl.

It is written before graders see the sample, so that a row shows what was recorded, whatever they do to it. Usually
msgspec writes it. It writes NaN as null without a word and refuses lone surrogates: what it cannot write faithfully
goes through :func:`gradestack.jsonio.values.dumps`, which has a form for both, and sorts the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

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
    replace,
)
from gradestack.rows.encoding import check_all, write
from gradestack.rows.read import Row

UNWRITABLE = (AttributeError, RecursionError, TypeError, ValueError)
"""What writing raises; a text among reasons has no code."""
TOO_DEEP = Fault(category="data", code="too_deep", message="nested too deeply to be written")


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


class Recorded(NamedTuple):
    """What is recorded of a block of samples, written before graders see them."""

    data: list[bytes]
    mended: dict[int, tuple[Sample, Fault]]
    """Place in the block -> the sample as it is written, and why it could not be written whole: its grades fail."""


def recorded_of(samples: Sequence[Sample], *, slim: bool = False) -> Recorded:
    """Return each sample's part of its line.

    A sample that cannot be written is written as a failed run, without what was recorded.

    Args:
        samples: A block.
        slim: Leave trajectories out; they must be writable all the same.
    """
    try:
        _check_samples(samples)
        return Recorded([_written(sample, slim=slim) for sample in samples], {})
    except UNWRITABLE:
        pass
    found = Recorded([], {})
    for place, sample in enumerate(samples):
        try:
            found.data.append(recorded_bytes(sample, slim=slim))
        except UNWRITABLE as error:
            deep = isinstance(error, RecursionError)
            fault = TOO_DEEP if deep else Fault(category="data", code="not_json", message=f"not JSON: {error}")
            bare = _bare(sample, fault)
            found.mended[place] = bare, fault
            found.data.append(recorded_bytes(bare, slim=slim))
    return found


def recorded_bytes(sample: Sample, *, slim: bool = False) -> bytes:
    """Return what is recorded of a sample as JSON.

    Raises:
        RecursionError: Something is nested too deeply.
        TypeError: Something is not JSON.
        ValueError: The same.
    """
    try:
        _check_samples([sample])
        return _written(sample, slim=slim)
    except (TypeError, ValueError):  # NaN, lone surrogates, types msgspec does not know: the standard library decides
        pass
    data: Row = json_data(_recorded(sample))
    if slim:
        dumps(data.pop("trajectory"))
    return dumps(data).encode()


def _written(sample: Sample, *, slim: bool) -> bytes:
    row = _recorded(sample)
    if slim:
        write(row.trajectory)  # what fails in a full row fails here, too: grades do not depend on what is kept
        row.trajectory = ABSENT
    return write(row)


def _bare(sample: Sample, fault: Fault) -> Sample:
    """Return a sample that failed with a fault, without anything recorded that may not be JSON."""
    return replace(
        sample,
        turns=(),
        calls=None,
        plan=None,
        expected=replace(sample.expected, calls=None, alternatives=(), plan=None, state=None),
        recorded={},
        state=None,
        agent_usage=None,
        facets={},
        status=Status.FAILED,
        error=fault,
    )


def _check_samples(samples: Iterable[Sample]) -> None:
    """Refuse values that msgspec would not write as the standard library does: all of a block are looked at together.

    Raises:
        RecursionError, TypeError, ValueError: As :func:`gradestack.rows.encoding.check`.
    """
    calls: list[ToolCall] = []
    expected: list[ExpectedCall] = []
    values: list[Any] = []
    for sample in samples:
        reference = sample.expected
        if sample.calls:
            calls += sample.calls
        if reference.calls:
            expected += reference.calls
        if reference.alternatives:
            expected += chain.from_iterable(reference.alternatives)
        values += (
            *(sample.plan, reference.plan, sample.agent_usage, sample.state, reference.state),
            *(sample.facets or None, sample.recorded or None, sample.remarks or None),
        )
        if sample.usage is not None:
            values += astuple(sample.usage)
        for message in chain.from_iterable(sample.turns):
            values.append(message.content)
            calls += message.tool_calls
    values += [call.seconds for call in calls]
    for call in expected:
        if call.rules:
            for rule in call.rules.values():
                values += (rule.tolerance, *rule.any_of)
    arguments: list[Any] = [call.arguments for call in calls]
    arguments += [call.arguments for call in expected]
    try:
        check_all(chain.from_iterable(map(dict.values, arguments)))
    except TypeError:  # some are None, or of another kind
        check_all(arguments)
    check_all(values)
