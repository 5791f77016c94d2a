"""One line of results.jsonl, as bytes.

Usually msgspec writes it, keys sorted. It writes NaN as null without a word and refuses lone surrogates: what it cannot
write faithfully goes through :func:`gradestack.jsonio.values.dumps`, which has a form for both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from gradestack.jsonio.values import dumps, json_data
from gradestack.model import ABSENT, Expectation, Grade, Item, Message, Outcome, Reason, Sample, Status, ToolCall
from gradestack.rows.encoding import Once, checked, write
from gradestack.rows.read import Row

Piece = Callable[[Any], Any]
"""Turns data of others into something the row can hold."""
_GRADED, _OK = Outcome.GRADED, Status.OK


def _form(keys: str) -> Callable[..., Any]:
    """Return a part of a row: written key by key in this order, which is that of their names; UNSET ones left out."""
    names = map(sys.intern, keys.split())  # keywords are looked for by identity first
    return msgspec.defstruct("Part", [(name, Any, UNSET) for name in names], gc=False)


_CALL = _form("arguments error name raw_arguments")
_CHAT_CALL = _form("function id type")
_CONTENT = _form("calls label plan text")
_FUNCTION = _form("arguments name")
_GRADE = _form("counts fault gold items label metadata parts passed rationale reasons score state")
_ITEM = _form("counts fault gold id label metadata outcome parts reasons score")
_MESSAGE = _form("content name role tool_call_id tool_calls")
_REASON = _form("actual code expected message pointer subject")
_SOURCE = _form("file line ordinal")
_TASK = _form("ground_truth id input")
_ROW = _form(
    "agent_id agent_usage error expected facets grade grades model_name passed predicted recorded run sample source "
    "state status submission submissions tools trajectory"
)


def _reasons(reasons: tuple[Reason, ...], piece: Piece) -> Any:
    return [
        _REASON(
            UNSET if each.actual is ABSENT else piece(each.actual),
            each.code,
            UNSET if each.expected is ABSENT else piece(each.expected),
            each.message or UNSET,
            each.pointer or UNSET,
            each.subject or UNSET,
        )
        for each in reasons
    ]


def _item(item: Item, piece: Piece) -> Any:
    return _ITEM(
        piece(item.counts) if item.counts else UNSET,
        UNSET if item.fault is None else json_data(item.fault),
        UNSET if item.gold is None else item.gold,
        item.id,
        UNSET if item.label is None else item.label,
        piece(item.metadata) if item.metadata else UNSET,
        "graded" if item.outcome is _GRADED else str(item.outcome),
        piece(item.parts) if item.parts else UNSET,
        _reasons(item.reasons, piece) if item.reasons else UNSET,
        piece(item.score),
    )


def _grade(grade: Grade, piece: Piece) -> Any:
    fault, metadata = grade.fault, piece(grade.metadata)
    if fault is not None:
        metadata = {"error": fault.message, "error_type": fault.type or fault.code, **metadata}
    return _GRADE(
        piece(grade.counts) if grade.counts else UNSET,
        UNSET if fault is None else json_data(fault),
        UNSET if grade.gold is None else grade.gold,
        [_item(item, piece) for item in grade.items] if grade.items else UNSET,
        UNSET if grade.label is None else grade.label,
        metadata,
        piece(grade.parts) if grade.parts else UNSET,
        UNSET if grade.passed is None else grade.passed,
        grade.rationale,
        _reasons(grade.reasons, piece) if grade.reasons else UNSET,
        0.0 if grade.score is None else grade.score,
        "graded" if grade.outcome is _GRADED else str(grade.outcome),
    )


def grade_to_json(grade: Grade) -> Row:
    """Return a grade as it stands in a row.

    ``score`` is 0.0 for an ungraded one, as letta-evals writes it; read ``state``. Failures carry ``metadata.error``
    and ``metadata.error_type``.

    Raises:
        TypeError: It is not JSON.
    """
    row: Row = json_data(_grade(grade, json_data))
    return row


def _content(of: Expectation | Sample, piece: Piece) -> Any:
    """Return what was expected, or predicted."""
    calls = None if of.calls is None else [_call(call, piece) for call in of.calls]
    return _CONTENT(calls, of.label, None if of.plan is None else piece(of.plan), of.text)


def _call(call: ToolCall, piece: Piece) -> Any:
    return _CALL(
        piece(call.arguments),
        UNSET if call.error is None else call.error,
        call.name,
        UNSET if call.arguments is not None else call.raw_arguments,
    )


def _message(message: Message, piece: Piece) -> Any:
    return _MESSAGE(
        message.content if type(message.content) is str else piece(message.content),
        UNSET if message.name is None else message.name,
        message.role,
        UNSET if message.tool_call_id is None else message.tool_call_id,
        [_chat_call(call, piece) for call in message.tool_calls] if message.tool_calls else UNSET,
    )


def _chat_call(call: ToolCall, piece: Piece) -> Any:
    arguments = call.raw_arguments if call.raw_arguments is not None else piece(call.arguments)
    return _CHAT_CALL(_FUNCTION(arguments, call.name), call.id, "function")


def _submission(sample: Sample, submissions: Mapping[str, str], headline: str) -> str:
    for text in (submissions.get(headline), sample.text, sample.label):
        if text is not None:
            return text
    return ""


def _row(
    sample: Sample,
    grades: Mapping[str, Any],
    headline: str,
    *,
    state: Outcome,
    passed: bool | None,
    submissions: Mapping[str, str],
    expected: Any,
    piece: Piece,
) -> Any:
    """Return a sample's row, given its grades and what was expected as they are written."""
    truth, source = sample.expected.text, sample.source
    return _ROW(
        agent_id=sample.agent_id,
        agent_usage=None if sample.usage is None else piece(sample.usage),
        error=None if sample.error is None else json_data(sample.error),
        expected=expected,
        facets=piece(sample.facets),
        grade=grades[headline],
        grades=grades,
        model_name=sample.model,
        passed=passed,
        predicted=_content(sample, piece),
        recorded=piece(sample.recorded) if sample.recorded else {},
        run=sample.run,
        sample=_TASK(truth if truth is not None else sample.expected.label, sample.id, sample.input),
        source=None if source is None else _SOURCE(source.file, source.line, source.ordinal),
        state="graded" if state is _GRADED else str(state),
        status="ok" if sample.status is _OK else sample.status.value,
        submission=_submission(sample, submissions, headline),
        submissions=dict(submissions) if submissions else None,
        tools=None if sample.tools is None else [tool.name for tool in sample.tools],
        trajectory=[[_message(message, piece) for message in turn] for turn in sample.turns] if sample.turns else [],
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
    row: Row = json_data(
        _row(
            sample,
            {key: _grade(grade, json_data) for key, grade in grades.items()},
            headline,
            state=grades[headline].outcome,
            passed=passed,
            submissions=submissions or {},
            expected=_content(sample.expected, json_data),
            piece=json_data,
        )
    )
    return row


def row_bytes(
    sample: Sample,
    grades: Mapping[str, Grade],
    headline: str,
    *,
    passed: bool | None,
    submissions: Mapping[str, str],
) -> bytes:
    """Return :func:`sample_row` as one line.

    Raises:
        RecursionError: Something is nested too deeply.
        TypeError: Something is not JSON.
        ValueError: The same.
    """
    try:
        row = _row(
            sample,
            {key: _encoded_grade(grade) for key, grade in grades.items()},
            headline,
            state=grades[headline].outcome,
            passed=passed,
            submissions=submissions,
            expected=_encoded_expected(sample.expected),
            piece=checked,
        )
        return write(row) + b"\n"
    except (TypeError, ValueError):  # NaN, lone surrogates, types msgspec does not know: the standard library decides
        pass
    return dumps(sample_row(sample, grades, headline, passed=passed, submissions=submissions)).encode() + b"\n"


_usual_grade = Once(lambda grade: write(_grade(grade, checked)))
_encoded_expected = Once(lambda expected: write(_content(expected, checked)))


def _encoded_grade(grade: Grade) -> msgspec.Raw:
    if grade.reasons or grade.metadata:
        return msgspec.Raw(write(_grade(grade, checked)))
    return _usual_grade(grade)
