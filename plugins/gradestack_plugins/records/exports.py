"""Exports of Langfuse and Phoenix: rows of traces, and the scores of traces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gradestack import JSON, Source, Usage, replace
from gradestack.jsonio import as_amount, as_list, as_map
from gradestack_plugins.readers.bodies import answers_in, asked_in
from gradestack_plugins.readers.chat.forms import either, forms_read
from gradestack_plugins.readers.chat.names import decoded
from gradestack_plugins.readers.chat.parts import id_text, row_kind, trace_id_of
from gradestack_plugins.readers.chat.results import error_form
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.rows import Row

Record = Mapping[str, Any]


def rows_in(record: Any) -> list[Any]:
    """Return the observations that an exported trace holds; any other record alone."""
    trace = as_map(record)
    rows = [row for row in as_list(trace.get("observations")) if isinstance(row, dict)]
    if not any(map(row_kind, rows)):
        return [record]
    scores = trace.get("scores")
    if scores:
        rows[0] = {**rows[0], "scores": scores}
    return rows


def row_of(record: Record, source: Source) -> Row:
    """Return what an observation of Langfuse or a span of Phoenix is in its trace."""
    context = as_map(record.get("context"))
    row = Row(
        kind="other",
        trace=trace_id_of(record),
        own=id_text(record.get("id", context.get("span_id"))),
        parent=id_text(either(record, "parentObservationId") or record.get("parent_id")),
        group=id_text(either(record, "sessionId")) or None,
        started=str(either(record, "startTime") or ""),
        error=_error_of(record),
        source=source,
        record=record,
    )
    kind = row_kind(record)
    if kind == "model":
        _add_answer(row, record)
    elif kind == "tool":
        _add_tool_call(row, record)
    return row


def _error_of(record: Record) -> str | None:
    """Return the error of a row; None where the row does not say that it failed."""
    if "ERROR" not in (record.get("level"), record.get("status_code")):
        return None
    return str(either(record, "statusMessage") or record.get("output") or "the step failed")


def _add_answer(row: Row, record: Record) -> None:
    """Add the request and the answer of a call of a model."""
    llm = as_map(as_map(record.get("attributes")).get("llm"))
    request = record.get("input")
    row.kind = "model"
    row.asked = forms_read(as_list(llm.get("input_messages"))) or asked_in(request)
    row.answer = forms_read(as_list(llm.get("output_messages"))) or answers_in(record.get("output"))
    models = [*map(record.get, _MODELS), llm.get("model_name")]
    row.model = next((model for model in models if isinstance(model, str) and model), None)
    row.usage = _usage_of(record, llm)
    tools = record.get("tools") or as_map(decoded(request)).get("tools")
    row.tools = tools if isinstance(tools, list) else None


_MODELS = ("model", "model_name", "provided_model_name", "providedModelName")


def _usage_of(record: Record, llm: Record) -> Usage | None:
    """Return the tokens and the cost of a call of a model."""
    recorded = either(record, "usageDetails") or record.get("usage") or llm.get("token_count")
    usage = usage_of(decoded(recorded))
    cost = as_amount(as_map(decoded(either(record, "costDetails"))).get("total"))
    return usage if usage is None or cost is None else replace(usage, cost_usd=cost)


def _add_tool_call(row: Row, record: Record) -> None:
    """Add the name, the arguments and the result of a call of a tool."""
    attributes = as_map(record.get("attributes"))
    tool = as_map(attributes.get("tool"))
    row.kind = "tool"
    row.name = str(tool.get("name", record.get("name")))
    row.arguments = decoded(record.get("input", tool.get("parameters")))
    row.result = record.get("output", as_map(attributes.get("output")).get("value"))
    if row.error is None:
        form = error_form(row.result)
        row.error = form and form.message


class TraceScores(NamedTuple):
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
    return [score for score in scores if score is not None] if all(scores) else []


def _score_of(entry: Record) -> tuple[str, JSON] | None:
    """Return the name and the value of a score; None where it lacks one of them."""
    name, type_of_score = entry.get("name"), either(entry, "dataType")
    text = either(entry, "stringValue")
    result = as_map(entry.get("result", entry))
    candidates = [result.get("value"), result.get("score"), text, result.get("label")]
    if type_of_score == "CATEGORICAL":
        candidates.insert(0, text)
    value = next((each for each in candidates if isinstance(each, str | int | float)), None)
    if not isinstance(name, str) or value is None:
        return None
    return name, bool(value) if type_of_score == "BOOLEAN" else value
