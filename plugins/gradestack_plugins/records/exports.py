"""Exports of Langfuse and Phoenix: rows of traces, and the scores of traces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gradestack import JSON
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat.forms import either
from gradestack_plugins.readers.chat.parts import row_kind, trace_id_of
from gradestack_plugins.readers.chat.results import error_form
from gradestack_plugins.readers.rows import Row
from gradestack_plugins.readers.spans import field_paths, read_row

Record = Mapping[str, Any]


def rows_in(record: Any) -> list[Any]:
    """Return the observations that an exported trace holds; any other record alone."""
    trace = as_map(record)
    observations = trace.get("observations")
    rows = [row for row in as_list(observations) if isinstance(row, dict)]
    if not any(map(row_kind, rows)):
        return [record]
    scores = trace.get("scores")
    if scores:
        rows[0] = {**rows[0], "scores": scores}
    return rows


_PATHS: Final = field_paths(
    {
        "trace": "trace_id traceId context.trace_id",
        "own": "id context.span_id",
        "parent": "parentObservationId parent_observation_id parent_id",
        "group": "sessionId session_id",
        "kind": "span_kind type",
        "name": "attributes.tool.name name",
        "started": "startTime start_time",
        "input": "attributes.llm.input_messages input attributes.tool.parameters",
        "output": "attributes.llm.output_messages output attributes.output.value",
        "model": "model model_name provided_model_name providedModelName attributes.llm.model_name",
        "usage": "usageDetails usage_details usage attributes.llm.token_count",
        "cost": "costDetails.total cost_details.total",
    }
)
"""The paths of the values of a span in rows of Langfuse and Phoenix."""


def row_of(record: Record) -> Row:
    """Return an observation of Langfuse or a span of Phoenix as a row of its trace."""
    kind = row_kind(record)
    row = read_row(record, _PATHS, lambda _: kind if kind in ("model", "tool") else "other")
    row.record = record
    level = record.get("level")
    status_code = record.get("status_code")
    if "ERROR" in (level, status_code):
        message = either(record, "statusMessage") or record.get("output")
        row.error = str(message or "the step failed")
    elif kind == "tool":
        form = error_form(row.result)
        row.error = form and form.message
    return row


class TraceScores(msgspec.Struct, frozen=True):
    """Scores of exported traces."""

    by_trace: dict[str, dict[str, JSON]]
    """Of several values of one name the last."""
    replaced: int
    """Number of values in whose place a later one of their trace and name stands."""
    without_run: int
    """Number of scores of traces without a call of a model."""


def collect_scores(records: Iterable[Record]) -> TraceScores:
    """Return the scores that rows of traces hold, and those that are rows themselves."""
    by_trace: dict[str, dict[str, JSON]] = {}
    values: dict[tuple[str, str], list[JSON]] = {}
    traces = set[str]()
    for record in records:
        trace = trace_id_of(record)
        if row_kind(record) == "model":
            traces.add(trace)
        for name, value in scores_in(record):
            by_trace.setdefault(trace, {})[name] = value
            values.setdefault((trace, name), []).append(value)
    replaced = without_run = 0
    for (trace, _), listed in values.items():
        if trace not in traces:
            without_run += len(listed)
        elif listed.count(listed[0]) < len(listed):
            replaced += len(listed) - 1
    return TraceScores(by_trace, replaced, without_run)


def scores_in(record: Record) -> list[tuple[str, JSON]]:
    """Return names and values of the scores that a row is or holds, as scores or annotations.

    A row whose lists hold anything else has none.
    """
    kind = row_kind(record)
    if kind is None:
        return []
    if kind == "score":
        entries = [record]
    else:
        entries = [*as_list(record.get("scores")), *as_list(record.get("annotations"))]
    scores = [_score_of(as_map(entry)) for entry in entries]
    if all(scores):
        return [score for score in scores if score is not None]
    return []


def _score_of(entry: Record) -> tuple[str, JSON] | None:
    """Return the name and the value of a score; None where it lacks one of them."""
    name = entry.get("name")
    type_of_score = either(entry, "dataType")
    text = either(entry, "stringValue")
    result = as_map(entry.get("result", entry))
    score = result.get("score")
    label = result.get("label")
    candidates = [result.get("value"), score, text, label]
    if type_of_score == "CATEGORICAL":
        candidates.insert(0, text)
    value = next((v for v in candidates if isinstance(v, str | int | float)), None)
    if not isinstance(name, str) or value is None:
        return None
    return name, bool(value) if type_of_score == "BOOLEAN" else value
