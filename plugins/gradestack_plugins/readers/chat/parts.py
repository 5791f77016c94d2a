"""Records that are parts of runs: rows of traces, and events and steps that no reader joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from gradestack import compile_later
from gradestack.jsonio import as_map

RowKind = Literal["model", "tool", "score", "other"]
"""Kinds of the rows that Langfuse and Phoenix export."""
_ROW_KINDS: Final[Mapping[str, RowKind]] = {
    **dict.fromkeys(("GENERATION", "LLM"), "model"),
    "TOOL": "tool",
    **dict.fromkeys(("SPAN", "EVENT", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING"), "other"),
    **dict.fromkeys(("RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT", "UNKNOWN"), "other"),
}
"""Kind of a row by Langfuse's ``type`` or Phoenix's ``span_kind``."""
_TRACES: Final = ("trace_id", "traceId", "root_span_id", "rootSpanId")
_PARENTS: Final = (
    *("parent_id", "parentId", "parent_span_id", "parentSpanId"),
    *("parent_run_id", "span_parents"),
)
_STEP_OF_SWE_AGENT: Final = frozenset({"action", "observation", "thought", "response"})
_PIECE_OF_STREAM: Final = compile_later(
    r"response\..+|message_(?:start|delta|stop)|content_block_(?:start|delta|stop)"
)
CONVERT: Final = (
    "no reader knows this form: write its runs in the one that `gradestack schema sample` prints"
)


def id_text(value: Any) -> str:
    """Return an id, a text or a whole number, as text; "" for anything else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, str) or is_number:
        return str(value)
    return ""


def trace_id_of(record: Mapping[str, Any]) -> str:
    """Return the id of the trace that a row of Langfuse or Phoenix names; "" without one."""
    context = as_map(record.get("context"))
    trace_id = context.get("trace_id")
    return id_text(record.get("trace_id", record.get("traceId", trace_id)))


def row_kind(record: Any) -> RowKind | None:
    """Return the kind of a row that Langfuse or Phoenix exports; None for any other record."""
    if not isinstance(record, dict):
        return None
    kind = record.get("span_kind", record.get("type"))
    if isinstance(kind, str):
        return _ROW_KINDS[kind] if kind in _ROW_KINDS and trace_id_of(record) else None
    data_type = record.get("data_type")
    type_of_score = record.get("dataType", data_type)
    if kind is not None or not type_of_score or not isinstance(record.get("name"), str):
        return None
    session_id = record.get("session_id")
    session = record.get("sessionId", session_id)
    return "score" if session is not None or trace_id_of(record) else None


def parts_of_runs(records: Iterable[Any]) -> str | None:
    """Describe records that are only parts of runs; None where each record is a run."""
    for record in records:
        if not isinstance(record, Mapping) or row_kind(record) is not None:
            continue
        for description, is_part in _FORMS.items():
            if is_part(record):
                return f"its records are {description}, of which several make a run"
    return None


def _is_span(record: Mapping[str, Any]) -> bool:
    """Return whether a record names its trace and its parent span."""
    return any(map(record.get, _TRACES)) and any(map(record.get, _PARENTS))


def _is_step_of_swe_agent(record: Mapping[str, Any]) -> bool:
    return record.keys() >= _STEP_OF_SWE_AGENT


def _is_piece_of_a_stream(record: Mapping[str, Any]) -> bool:
    is_of_chat = str(record.get("object", "")).endswith(".chunk")
    return is_of_chat or bool(_PIECE_OF_STREAM.fullmatch(str(record.get("type", ""))))


_FORMS: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "spans of traces": _is_span,
    "steps of SWE-agent": _is_step_of_swe_agent,
    "pieces of streamed answers": _is_piece_of_a_stream,
}
