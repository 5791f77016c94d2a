"""One line of results.jsonl: how a sample and its grades are written, and read back."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.model import ABSENT, JSON, Fault, Grade, Item, Key, Message, Outcome, Reason, Sample, ToolCall

Row = dict[str, Any]


def _plain(value: Any) -> JSON:
    """Return a value as JSON data: attrs objects become mappings without their absent fields."""
    if isinstance(value, enum.Enum):
        return value.value
    if attrs.has(type(value)):
        fields = ((field.name, getattr(value, field.name)) for field in attrs.fields(type(value)))
        return {name: _plain(item) for name, item in fields if item is not ABSENT}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _reason(reason: Reason) -> Row:
    row: Row = {"code": reason.code}
    for name in ("pointer", "subject", "message"):
        if text := getattr(reason, name):
            row[name] = text
    for name in ("expected", "actual"):
        if (value := getattr(reason, name)) is not ABSENT:
            row[name] = value
    return row


def _shared(grade: Grade | Item) -> Row:
    row: Row = {}
    for name in ("counts", "parts"):
        if value := getattr(grade, name):
            row[name] = dict(value)
    for name in ("label", "gold"):
        if (value := getattr(grade, name)) is not None:
            row[name] = value
    if grade.reasons:
        row["reasons"] = [_reason(reason) for reason in grade.reasons]
    if grade.fault is not None:
        row["fault"] = _plain(grade.fault)
    return row


def _item(item: Item) -> Row:
    row = {"id": item.id, "outcome": str(item.outcome), "score": item.score, **_shared(item)}
    if item.metadata:
        row["metadata"] = _plain(item.metadata)
    return row


def grade_to_json(grade: Grade) -> Row:
    """Return a grade as it stands in a row.

    ``score`` is 0.0 for an ungraded one, as letta-evals writes it; read ``state``. Failures carry ``metadata.error``
    and ``metadata.error_type``.
    """
    row = _shared(grade)
    row["score"] = 0.0 if grade.score is None else grade.score
    row["state"] = str(grade.outcome)
    row["rationale"] = grade.rationale
    metadata = _plain(grade.metadata)
    if grade.fault is not None:
        metadata = {"error": grade.fault.message, "error_type": grade.fault.type or grade.fault.code, **metadata}
    row["metadata"] = metadata
    if grade.passed is not None:
        row["passed"] = grade.passed
    if grade.items:
        row["items"] = [_item(item) for item in grade.items]
    return row


def _call(call: ToolCall) -> Row:
    arguments = call.raw_arguments if call.raw_arguments is not None else call.arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _message(message: Message) -> Row:
    row: Row = {"role": message.role, "content": message.content}
    if message.tool_calls:
        row["tool_calls"] = [_call(call) for call in message.tool_calls]
    for name in ("name", "tool_call_id"):
        if (value := getattr(message, name)) is not None:
            row[name] = value
    return row


def _calls(calls: tuple[ToolCall, ...] | None) -> list[Row] | None:
    if calls is None:
        return None
    rows = []
    for call in calls:
        row: Row = {"name": call.name, "arguments": call.arguments}
        if call.arguments is None:
            row["raw_arguments"] = call.raw_arguments
        if call.error is not None:
            row["error"] = call.error
        rows.append(row)
    return rows


def _submission(sample: Sample, submissions: Mapping[str, str], headline: str) -> str:
    return next((text for text in (submissions.get(headline), sample.text, sample.label) if text is not None), "")


def sample_row(
    sample: Sample,
    grades: Mapping[str, Grade],
    headline: str,
    *,
    passed: bool | None,
    submissions: Mapping[str, str] | None = None,
) -> Row:
    """Return the row of one sample: the letta-evals result form, and beside it what gradestack adds.

    Args:
        sample: The recorded run.
        grades: Its grades by grader key.
        headline: Key of the grader shown as ``grade``.
        passed: Whether the headline score passes the per-sample rule; None when there is no score.
        submissions: What each text grader judged, by grader key.
    """
    expected = sample.expected
    truth = expected.text if expected.text is not None else expected.label
    written = {key: grade_to_json(grade) for key, grade in grades.items()}
    return {
        "sample": {"id": sample.id, "input": _plain(sample.input), "ground_truth": _plain(truth)},
        "submission": _submission(sample, submissions or {}, headline),
        "submissions": dict(submissions) if submissions else None,
        "trajectory": [[_message(message) for message in turn] for turn in sample.turns],
        "agent_id": sample.agent_id,
        "agent_usage": sample.usage,
        "model_name": sample.model,
        "grade": written[headline],
        "grades": written,
        "state": str(grades[headline].outcome),
        "passed": passed,
        "run": sample.run,
        "status": str(sample.status),
        "error": _plain(sample.error),
        "facets": _plain(sample.facets),
        "source": _plain(sample.source),
        "recorded": _plain(sample.recorded),
        "tools": None if sample.tools is None else [tool.name for tool in sample.tools],
        "expected": {
            "calls": _calls(expected.calls),
            "label": expected.label,
            "text": _plain(expected.text),
            "plan": expected.plan,
        },
        "predicted": {
            "calls": _calls(sample.calls),
            "label": sample.label,
            "plan": sample.plan,
            "text": sample.text,
        },
    }


def _fault_from(row: Row | None) -> Fault | None:
    return None if row is None else Fault(**row)


def _graded_from(row: Row) -> dict[str, Any]:
    return {
        "counts": row.get("counts", {}),
        "parts": row.get("parts", {}),
        "label": row.get("label"),
        "gold": row.get("gold"),
        "reasons": tuple(Reason(**reason) for reason in row.get("reasons", ())),
        "fault": _fault_from(row.get("fault")),
    }


def grade_from_json(row: Row) -> Grade:
    """Return the grade :func:`grade_to_json` wrote, so that metrics can be recomputed from results.jsonl alone."""
    outcome = Outcome(row["state"])
    items = tuple(
        Item(
            id=item["id"],
            outcome=Outcome(item["outcome"]),
            score=item["score"],
            metadata=item.get("metadata", {}),
            **_graded_from(item),
        )
        for item in row.get("items", ())
    )
    return Grade(
        outcome=outcome,
        score=row["score"] if outcome is Outcome.GRADED else None,
        passed=row.get("passed"),
        items=items,
        rationale=row["rationale"],
        metadata=row["metadata"],
        **_graded_from(row),
    )


def key_from_row(row: Row, ordinal: int) -> Key:
    """Return the aggregation key of a row; ``ordinal`` is its position in results.jsonl."""
    return Key(id=row["sample"]["id"], model=row["model_name"], run=row["run"], ordinal=ordinal, facets=row["facets"])
