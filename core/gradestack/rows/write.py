"""One line of results.jsonl, as bytes.

Usually msgspec writes it. It writes NaN as null without a word and refuses lone surrogates: what it cannot write
faithfully goes through :func:`gradestack.jsonio.values.dumps`, which has a form for both, and sorts the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from gradestack.jsonio.values import dumps, json_data
from gradestack.model import (
    ABSENT,
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Item,
    Message,
    Outcome,
    Reason,
    Sample,
    Source,
    Status,
    ToolCall,
    Usage,
)
from gradestack.rows.encoding import SAFE, check, write
from gradestack.rows.read import Row

_NUMBERS = frozenset({int, float})


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


class _Grade(Struct, gc=False, omit_defaults=True):
    metadata: Any
    rationale: str
    score: float
    state: Outcome
    counts: Any = None
    fault: Fault | None = None
    gold: str | None = None
    items: Any = None
    label: str | None = None
    parts: Any = None
    passed: bool | None = None
    reasons: Any = None


class _Row(Struct, gc=False, omit_defaults=True):
    agent_id: str | None
    agent_usage: Any
    error: Fault | None
    expected: _Content
    facets: Any
    grade: _Grade
    grades: Mapping[str, _Grade]
    model_name: str | None
    passed: bool | None
    predicted: _Content
    recorded: Any
    run: int | str | None
    sample: Any
    source: Source | None
    state: Outcome
    status: Status
    submission: str
    submissions: Any
    tools: Any
    trajectory: Any = ABSENT
    usage: Usage | None = None
    cluster: str | None = None
    ended: str | None = None
    trace: Any = None
    children: Any = None
    remarks: Any = None


def _grade(grade: Grade) -> _Grade:
    metadata, fault = grade.metadata, grade.fault
    if fault is not None:
        metadata = {"error": fault.message, "error_type": fault.type or fault.code, **metadata}
    return _Grade(
        metadata,
        grade.rationale,
        0.0 if grade.score is None else grade.score,
        grade.outcome,
        grade.counts or None,
        fault,
        grade.gold,
        grade.items or None,
        grade.label,
        grade.parts or None,
        grade.passed,
        grade.reasons or None,
    )


def grade_to_json(grade: Grade) -> Row:
    """Return a grade as it stands in a row.

    ``score`` is 0.0 for an ungraded one, as letta-evals writes it; read ``state``. Failures carry ``metadata.error``
    and ``metadata.error_type``.

    Raises:
        TypeError: It is not JSON.
    """
    row: Row = json_data(_grade(grade))
    return row


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


def _submission(sample: Sample, submissions: Mapping[str, str], headline: str) -> str:
    for text in (submissions.get(headline), sample.text, sample.label):
        if text is not None:
            return text
    return ""


def _row(
    sample: Sample,
    grades: Mapping[str, Grade],
    headline: str,
    *,
    passed: bool | None,
    submissions: Mapping[str, str],
) -> _Row:
    expected, calls, tools = sample.expected, sample.calls, sample.tools
    truth = expected.text if expected.text is not None else expected.label
    made = None if calls is None else [_call(call) for call in calls]
    written = {key: _grade(grade) for key, grade in grades.items()}
    return _Row(  # by position: with so many keywords, CPython builds a dict first
        sample.agent_id,
        sample.agent_usage,
        sample.error,
        _expected(expected),
        sample.facets,
        written[headline],
        written,
        sample.model,
        passed,
        _Content(made, sample.label, sample.plan, sample.text, sample.state),
        sample.recorded,
        sample.run,
        {"ground_truth": truth, "id": sample.id, "input": sample.input},
        sample.source,
        grades[headline].outcome,
        sample.status,
        _submission(sample, submissions, headline),
        submissions or None,
        None if tools is None else [tool.name for tool in tools],
        trajectory_of(sample),
        sample.usage,
        sample.cluster,
        sample.ended,
        sample.trace or None,
        sample.children or None,
        sample.remarks or None,
    )


def sample_row(
    sample: Sample,
    grades: Mapping[str, Grade],
    headline: str,
    *,
    passed: bool | None,
    submissions: Mapping[str, str] | None = None,
) -> Row:
    """Return the row of one sample as data: the letta-evals result form, and beside it what gradestack adds.

    Args:
        sample: The recorded run.
        grades: Its grades by grader key.
        headline: Key of the grader shown as ``grade``.
        passed: Whether the headline score passes the per-sample rule; None when there is no score.
        submissions: What each text grader judged, by grader key.
    """
    row: Row = json_data(_row(sample, grades, headline, passed=passed, submissions=submissions or {}))
    return row


def row_bytes(
    sample: Sample,
    grades: Mapping[str, Grade],
    headline: str,
    *,
    passed: bool | None,
    submissions: Mapping[str, str],
    slim: bool = False,
) -> bytes:
    """Return :func:`sample_row` as one line; a slim one leaves the trajectory out, which must be writable all the same.

    Raises:
        RecursionError: Something is nested too deeply.
        TypeError: Something is not JSON.
        ValueError: The same.
    """
    try:
        _check_sample(sample)
        for grade in grades.values():
            check_grade(grade)
        row = _row(sample, grades, headline, passed=passed, submissions=submissions)
        if slim:
            write(row.trajectory)  # what fails in a full row fails here, too: grades do not depend on what is kept
            row.trajectory = ABSENT
        return write(row) + b"\n"
    except (TypeError, ValueError):  # NaN, lone surrogates, types msgspec does not know: the standard library decides
        pass
    data = sample_row(sample, grades, headline, passed=passed, submissions=submissions)
    if slim:
        dumps(data.pop("trajectory"))
    return dumps(data).encode() + b"\n"


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
        _check_numbers([value for value in astuple(sample.usage) if value is not None])
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


def check_grade(of: Grade | Item) -> None:
    """Refuse what msgspec would not write as the standard library does.

    Raises:
        AttributeError: A reason or an item is none.
        TypeError: Something is not JSON.
        ValueError: Something is NaN or infinite.
    """
    if of.metadata:
        check(of.metadata)
    if of.parts:
        _check_numbers(of.parts.values())
    if of.counts:
        _check_numbers(of.counts.values())
    if of.score is not None:
        check(of.score)
    for reason in of.reasons:
        _check_reason(reason)
    if isinstance(of, Grade):
        for item in of.items:
            check_grade(item)


def _check_numbers(values: Iterable[float | None]) -> None:
    """Refuse what is no finite number or None; usually their sum says so, all at once."""
    try:
        total = sum(values)  # type: ignore[arg-type]
    except TypeError:  # None, or something worse
        check(tuple(values))
        return
    if type(total) not in _NUMBERS or not isfinite(total):
        check(tuple(values))


def _check_reason(reason: Reason) -> None:
    for value in (reason.expected, reason.actual):
        if value is not ABSENT and type(value) not in SAFE:
            check(value)
