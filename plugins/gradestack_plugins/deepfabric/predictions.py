"""One result record per sample, and the original's way of writing it as JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any, Final

import attrs

from gradestack import JSON, Grade, Outcome, Sample, Status
from gradestack_plugins.deepfabric.aggregators import NO_SCORE
from gradestack_plugins.deepfabric.records import Truth
from gradestack_plugins.deepfabric.samples import NO_REPLY, Native
from gradestack_plugins.deepfabric.upstream import Seen
from gradestack_plugins.deepfabric.versions import OLD, USUAL, Reading


@attrs.frozen(kw_only=True)
class Prediction:
    """What was asked, expected and done in one sample, and the verdicts; fields in the original's order."""

    sample_id: int
    query: str
    available_tools: tuple[str, ...] | None = ()
    """Names of the tools; None: the version that was followed does not write them."""
    expected_tool: str | None = None
    predicted_tool: str | None = None
    expected_parameters: Mapping[str, JSON] = attrs.field(factory=dict)
    predicted_parameters: Mapping[str, JSON] = attrs.field(factory=dict)
    expected_answer: str | None = None
    predicted_answer: str | None = None
    tool_selection_correct: bool | None = False
    """None when the sample was skipped."""
    parameters_correct: bool | None = False
    execution_valid: bool | None = False
    response_score: float = 0.0
    error: str | None = None
    """Why the sample could not be processed; None when it was."""
    state: str = "graded"
    """State of the grade (not part of the written record)."""


def prediction(sample: Sample, grade: Grade | None) -> Prediction:
    """Return the result record of a graded sample."""
    native = sample.native if isinstance(sample.native, Native) else Native(0)
    error = _error(sample, grade)
    reading = Reading.of(grade.metadata) if grade is not None and grade.metadata else USUAL
    shown = _as_sampled(sample, native) if native.case is None else _as_seen(native.as_read(reading))
    if error is not None:
        shown |= {"predicted_tool": None, "predicted_parameters": {}, "predicted_answer": None}
    if reading.version == OLD:
        shown["available_tools"] = None
    skipped = grade is not None and grade.outcome is Outcome.SKIPPED
    parts: Mapping[str, float | None] = grade.parts if grade is not None else {}
    verdicts: list[bool | None] = [
        None if skipped else bool(parts.get(name))
        for name in ("tool_selection", "parameter_accuracy", "execution_success")
    ]
    return Prediction(
        sample_id=native.row,
        **shown,
        tool_selection_correct=verdicts[0],
        parameters_correct=verdicts[1],
        execution_valid=verdicts[2],
        response_score=parts.get("response_quality") or 0.0,
        error=error,
        state=str(grade.outcome) if grade is not None else str(Outcome.MISSING),
    )


def _as_sampled(sample: Sample, native: Native) -> dict[str, Any]:
    """Return what was asked, expected and done in a sample as the document reads it."""
    expected = sample.expected.calls[0] if sample.expected.calls else None
    made = sample.calls[0] if sample.calls else None
    text = sample.expected.text
    return {
        "query": sample.input if isinstance(sample.input, str) else "",
        "available_tools": tuple(each.name for each in sample.tools or ()),
        "expected_tool": expected.name if expected is not None else None,
        "predicted_tool": made.name if made is not None and native.named else None,
        "expected_parameters": (expected.arguments or {}) if expected is not None else {},
        "predicted_parameters": (made.arguments or {}) if made is not None else {},
        "expected_answer": text if isinstance(text, str) else None,
        "predicted_answer": sample.text,
    }


def _as_seen(seen: Seen | None) -> dict[str, Any]:
    """Return the same as the program sees it."""
    if seen is None:
        return {"query": ""}
    truth, said = seen.truth or Truth("", (), None), seen.responses
    expected = truth.calls[0] if truth.calls else None
    made = seen.calls[0] if seen.calls else None
    return {
        "query": truth.query,
        "available_tools": seen.offered,
        "expected_tool": expected.name if expected is not None else None,
        "predicted_tool": made.name if made is not None else None,
        "expected_parameters": (expected.arguments or {}) if expected is not None else {},
        "predicted_parameters": made.arguments if made is not None and isinstance(made.arguments, dict) else {},
        "expected_answer": truth.answer,
        "predicted_answer": said[-1].content if said else None,
    }


def _error(sample: Sample, grade: Grade | None) -> str | None:
    """Return why a sample could not be processed: what its grade says, or without one the sample itself."""
    if sample.status is Status.MISSING:
        return NO_REPLY
    fault = grade.fault if grade is not None else sample.error
    return fault.message if fault is not None and fault.code != NO_SCORE else None


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_WORDS: Final = {None: "null", True: "true", False: "false"}


def written(record: Prediction) -> str:
    """Return a record as the original writes it inside ``predictions``: indented by two steps, in its key order."""
    offered = record.available_tools
    tools = "" if offered is None else f'      "available_tools": {render(offered, 3)},\n'
    return (
        f'    {{\n      "sample_id": {record.sample_id},\n'
        f'      "query": {_text(record.query)},\n{tools}'
        f'      "expected_tool": {render(record.expected_tool)},\n'
        f'      "predicted_tool": {render(record.predicted_tool)},\n'
        f'      "expected_parameters": {render(record.expected_parameters, 3)},\n'
        f'      "predicted_parameters": {render(record.predicted_parameters, 3)},\n'
        f'      "expected_answer": {render(record.expected_answer)},\n'
        f'      "predicted_answer": {render(record.predicted_answer)},\n'
        f'      "tool_selection_correct": {_WORDS[record.tool_selection_correct]},\n'
        f'      "parameters_correct": {_WORDS[record.parameters_correct]},\n'
        f'      "execution_valid": {_WORDS[record.execution_valid]},\n'
        f'      "response_score": {number(record.response_score)},\n'
        f'      "error": {render(record.error)}\n    }}'
    )


def render(value: Any, level: int = 0) -> str:
    """Return a value as the original writes it: indent 2, non-ASCII kept, NaN and infinities as null.

    Args:
        value: A JSON value.
        level: How many steps its own line is indented (the first line is not).
    """
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        inner = "\n" + "  " * (level + 1)
        rows = []
        for key, item in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            rows.append(f"{_text(str(key))}: {render(item, level + 1)}")
        return _enclose("{", rows, "}", inner)
    if isinstance(value, list | tuple):
        inner = "\n" + "  " * (level + 1)
        rows = []
        for item in value:
            rows.append(render(item, level + 1))
        return _enclose("[", rows, "]", inner)
    return render(dict(value), level) if isinstance(value, Mapping) else _text(str(value))


def _enclose(opening: str, rows: list[str], closing: str, inner: str) -> str:
    return f"{opening}{inner}{f',{inner}'.join(rows)}{inner[:-2]}{closing}" if rows else opening + closing


def _text(value: str) -> str:
    text = encode_basestring(value)
    if text.isascii():
        return text
    # UTF-8 cannot carry a lone surrogate, so it is escaped as JSON allows.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def number(value: float) -> str:
    """Return a float as the original writes it: like Python, but 0.00001 and exponents without a leading zero."""
    if not math.isfinite(value):
        return "null"
    text = float.__repr__(value)
    mantissa, mark, exponent = text.partition("e-")
    if not mark:
        return text
    if exponent != "05":
        return f"{mantissa}e-{exponent.lstrip('0')}"
    sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    return f"{sign}0.0000{digits.replace('.', '')}"
