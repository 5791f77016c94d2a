"""Exporter ``otel_evaluation``: grades as log records of OpenTelemetry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradestack import (
    BadRecord,
    Exporter,
    ExportSummary,
    Grade,
    Outcome,
    Sample,
    Shard,
    __version__,
    compile_later,
)
from gradestack_plugins.otel.trace import EVALUATION

FILE: Final = "otel_evaluation.jsonl"
_TRACE_ID: Final = compile_later(r"(?!0{32})[0-9a-f]{32}")
_SPAN_ID: Final = compile_later(r"(?!0{16})[0-9a-f]{16}")


class OtelEvaluation(Exporter):
    """Writes ``otel_evaluation.jsonl``: OTLP JSON Lines of logs, a line per sample.

    An event is ``gen_ai.evaluation.result`` with ``gen_ai.evaluation.name`` (key of the grader),
    ``.score.value`` and ``.explanation`` (the rationale). ``.score.label`` is the grade's label,
    else its verdict: ``pass`` or ``fail``. Failed grades have ``error.type`` (code of the fault).
    Skipped and missing grades have none; the first line counts them, as attributes of its resource:
    ``gradestack.KEY.skipped``. An event belongs to the recorded trace and span, where their ids are
    those of OpenTelemetry, and names the recorded response and session; ``gradestack.sample.id``,
    ``.model`` and ``.run`` name its sample. It has no time, so that equal runs give equal bytes.
    """

    version: ClassVar[str] = "1"

    @override
    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterator[tuple[str, str]]:
        if not isinstance(record, Sample):
            return
        about = _about(record)
        events = []
        for key, grade in grades.items():
            if grade.outcome in _WRITTEN:
                attributes_of_grade = _attributes_of_grade(key, grade)
                attributes = [*attributes_of_grade, *about["attributes"]]
                events.append({**about, "attributes": attributes})
        if events:
            yield FILE, _line({"service.name": "gradestack"}, events)

    @override
    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        resource: dict[str, Any] = {"service.name": "gradestack"}
        resource["gradestack.input"] = summary.input.shown
        for key, grader in summary.graders.items():
            for state in ("skipped", "missing"):
                resource[f"gradestack.{key}.{state}"] = grader.states.get(state, 0)
        return _line(resource, []), ""


_WRITTEN: Final = frozenset({Outcome.GRADED, Outcome.FAILED})


def _line(resource: Mapping[str, Any], events: list[dict[str, Any]]) -> str:
    scope = {"scope": {"name": "gradestack", "version": __version__}, "logRecords": events}
    attributes = _attributes(resource)
    logs = [{"resource": {"attributes": attributes}, "scopeLogs": [scope]}]
    text = json.dumps({"resourceLogs": logs}, separators=(",", ":"))
    return text + "\n"


def _attributes_of_grade(key: str, grade: Grade) -> list[dict[str, Any]]:
    """Return a grade as attributes of OpenTelemetry's GenAI evaluation event."""
    attributes: dict[str, Any] = {"gen_ai.evaluation.name": key}
    if grade.score is not None:
        attributes["gen_ai.evaluation.score.value"] = float(grade.score)
    has_failed = grade.outcome is Outcome.FAILED
    if not has_failed:
        verdict = _VERDICTS.get(grade.passed)
        label = verdict if grade.label is None else grade.label
        attributes["gen_ai.evaluation.score.label"] = label
    attributes["gen_ai.evaluation.explanation"] = grade.rationale or None
    if has_failed:
        attributes["error.type"] = grade.fault.code if grade.fault else "_OTHER"
    return _attributes(attributes)


_VERDICTS: Final[dict[bool | None, str]] = {True: "pass", False: "fail"}


def _about(sample: Sample) -> dict[str, Any]:
    """Return the part of an event that all grades of a sample share."""
    trace = sample.trace
    event: dict[str, Any] = {"eventName": EVALUATION}
    trace_id, span_id = (trace.get(name, "").lower() for name in ("trace_id", "span_id"))
    if _TRACE_ID.fullmatch(trace_id):
        event["traceId"] = trace_id
        if _SPAN_ID.fullmatch(span_id):
            event["spanId"] = span_id
    response_id = trace.get("response_id")
    session_id = trace.get("session_id")
    event["attributes"] = _attributes(
        {
            "gen_ai.response.id": response_id,
            "gen_ai.conversation.id": session_id,
            "gradestack.sample.id": sample.id,
            "gradestack.sample.model": sample.model,
            "gradestack.sample.run": sample.run,
        }
    )
    return event


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": _value(value)} for key, value in values.items() if value is not None
    ]


def _value(value: str | float) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    return {"doubleValue": value} if isinstance(value, float) else {"intValue": str(value)}
