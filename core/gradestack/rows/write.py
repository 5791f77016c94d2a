"""One line of results.jsonl, as bytes.

Usually msgspec writes it. It writes NaN as null without a word and refuses lone surrogates: what it cannot write
faithfully goes through :func:`gradestack.jsonio.values.dumps`, which has a form for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, Raw

from gradestack.jsonio.values import dumps
from gradestack.model import (
    ABSENT,
    Expectation,
    Grade,
    Item,
    Message,
    Outcome,
    Reason,
    Sample,
    Source,
    Status,
    ToolCall,
)
from gradestack.rows.forms import (
    CallForm,
    ChatCallForm,
    ExpectedForm,
    FunctionForm,
    GradeForm,
    ItemForm,
    MessageForm,
    ReasonForm,
    RowForm,
    RowPart,
    SourceForm,
    TaskForm,
    foreign,
    own,
    write,
)
from gradestack.rows.read import Row, plain

Piece = Callable[[Any], Any]
"""Turns data of others into something the row can hold."""
_GRADED, _OK = Outcome.GRADED, Status.OK
_MOST_HELD, _LARGEST_HELD = 4096, 2048
"""Encoded objects kept, and bytes of each at most."""


def _reasons(reasons: tuple[Reason, ...], piece: Piece) -> Any:
    return [
        ReasonForm(
            UNSET if each.actual is ABSENT else piece(each.actual),
            each.code,
            UNSET if each.expected is ABSENT else piece(each.expected),
            each.message or UNSET,
            each.pointer or UNSET,
            each.subject or UNSET,
        )
        for each in reasons
    ]


def _item(item: Item, piece: Piece, own: Piece) -> ItemForm:
    return ItemForm(
        piece(item.counts) if item.counts else UNSET,
        UNSET if item.fault is None else plain(item.fault),
        UNSET if item.gold is None else item.gold,
        item.id,
        UNSET if item.label is None else item.label,
        own(item.metadata) if item.metadata else UNSET,
        "graded" if item.outcome is _GRADED else str(item.outcome),
        piece(item.parts) if item.parts else UNSET,
        _reasons(item.reasons, piece) if item.reasons else UNSET,
        piece(item.score),
    )


def _grade(grade: Grade, piece: Piece, own: Piece) -> GradeForm:
    fault = grade.fault
    metadata: Any = grade.metadata
    if fault is not None:
        metadata = {"error": fault.message, "error_type": fault.type or fault.code, **plain(metadata)}
    return GradeForm(
        piece(grade.counts) if grade.counts else UNSET,
        UNSET if fault is None else plain(fault),
        UNSET if grade.gold is None else grade.gold,
        [_item(item, piece, own) for item in grade.items] if grade.items else UNSET,
        UNSET if grade.label is None else grade.label,
        own(metadata),
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
    row: Row = _builtins(_grade(grade, plain, plain))
    return row


def _calls(calls: tuple[ToolCall, ...] | None, piece: Piece) -> Any:
    if calls is None:
        return None
    return [
        CallForm(
            piece(call.arguments),
            UNSET if call.error is None else call.error,
            call.name,
            UNSET if call.arguments is not None else call.raw_arguments,
        )
        for call in calls
    ]


def _expected(expected: Expectation, piece: Piece) -> ExpectedForm:
    return ExpectedForm(
        calls=_calls(expected.calls, piece),
        label=expected.label,
        plan=None if expected.plan is None else piece(expected.plan),
        text=expected.text,
    )


def _message(message: Message, piece: Piece) -> MessageForm:
    return MessageForm(
        content=message.content if type(message.content) is str else piece(message.content),
        name=UNSET if message.name is None else message.name,
        role=message.role,
        tool_call_id=UNSET if message.tool_call_id is None else message.tool_call_id,
        tool_calls=[_chat_call(call, piece) for call in message.tool_calls] if message.tool_calls else UNSET,
    )


def _chat_call(call: ToolCall, piece: Piece) -> ChatCallForm:
    arguments = call.raw_arguments if call.raw_arguments is not None else piece(call.arguments)
    return ChatCallForm(id=call.id, function=FunctionForm(name=call.name, arguments=arguments))


def _submission(sample: Sample, submissions: Mapping[str, str], headline: str) -> str:
    for text in (submissions.get(headline), sample.text, sample.label):
        if text is not None:
            return text
    return ""


def _source(source: Source | None) -> SourceForm | None:
    return None if source is None else SourceForm(source.file, source.line, source.ordinal)


def _row(
    sample: Sample,
    grades: Mapping[str, Grade],
    headline: str,
    *,
    passed: bool | None,
    submissions: Mapping[str, str],
    piece: Piece,
    judged: Callable[[Grade], Any],
    reference: Callable[[Expectation], Any],
) -> RowForm:
    """Return a sample's row; the callables say how data of others, grades and references are put into it."""
    expected = sample.expected
    written = {key: judged(grade) for key, grade in grades.items()}
    return RowForm(
        agent_id=sample.agent_id,
        agent_usage=None if sample.usage is None else piece(sample.usage),
        error=None if sample.error is None else plain(sample.error),
        expected=reference(expected),
        facets=piece(sample.facets),
        grade=written[headline],
        grades=written,
        model_name=sample.model,
        passed=passed,
        predicted=ExpectedForm(
            calls=_calls(sample.calls, piece),
            label=sample.label,
            plan=None if sample.plan is None else piece(sample.plan),
            text=sample.text,
        ),
        recorded=piece(sample.recorded) if sample.recorded else {},
        run=sample.run,
        sample=TaskForm(
            ground_truth=expected.text if expected.text is not None else expected.label,
            id=sample.id,
            input=sample.input,
        ),
        source=_source(sample.source),
        state="graded" if grades[headline].outcome is _GRADED else str(grades[headline].outcome),
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
    row = _row(
        sample,
        grades,
        headline,
        passed=passed,
        submissions=submissions or {},
        piece=plain,
        judged=grade_to_json,
        reference=lambda expected: _expected(expected, plain),
    )
    plainly: Row = _builtins(row)
    return plainly


def _builtins(value: Any) -> Any:
    if isinstance(value, RowPart):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: _builtins(item) for name, item in fields if item is not UNSET}
    if isinstance(value, list | tuple):
        return [_builtins(item) for item in value]
    return value


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
            grades,
            headline,
            passed=passed,
            submissions=submissions,
            piece=foreign,
            judged=_judged,
            reference=_reference,
        )
        return write(row) + b"\n"
    except (TypeError, ValueError):  # NaN, lone surrogates, types msgspec does not know: the standard library decides
        pass
    return dumps(sample_row(sample, grades, headline, passed=passed, submissions=submissions)).encode() + b"\n"


class _Once:
    """Encodes objects that come again and again once: the grade of all runs without fault, the reference of a task.

    They are told by their identity; an entry holds its object, so that no other can take the identity over.
    """

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self._held: dict[int, tuple[Any, Raw]] = {}

    def __call__(self, value: Any) -> Raw:
        """Return an object as JSON.

        Raises:
            TypeError: It is not JSON.
            ValueError: The same.
        """
        held = self._held.get(id(value))
        if held is not None and held[0] is value:
            return held[1]
        text = self._encode(value)
        made = Raw(text)
        if len(text) <= _LARGEST_HELD:
            if len(self._held) >= _MOST_HELD:
                self._held.clear()
            self._held[id(value)] = (value, made)
        return made


def _encoded(grade: Grade) -> bytes:
    return write(_grade(grade, foreign, own))


_plain_grade = _Once(_encoded)
_reference = _Once(lambda expected: write(_expected(expected, foreign)))


def _judged(grade: Grade) -> Raw:
    return Raw(_encoded(grade)) if grade.reasons or grade.metadata else _plain_grade(grade)
