"""Records that are parts of runs: spans, events and steps, which no reader puts together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gradestack_plugins.readers.chat.forms import observation

_TRACES: Final = ("trace_id", "traceId", "root_span_id", "rootSpanId")
_PARENTS: Final = (
    *("parent_id", "parentId", "parent_span_id", "parentSpanId"),
    *("parent_run_id", "span_parents"),
)
_STEP_OF_SWE_AGENT: Final = frozenset({"action", "observation", "thought", "response"})
_PIECE_OF_STREAM: Final = re.compile(
    r"response\..+|message_(?:start|delta|stop)|content_block_(?:start|delta|stop)"
)
CONVERT: Final = (
    "no reader knows this form: write its runs in the one that `gradestack schema sample` prints"
)


def parts_of_runs(records: Iterable[Any]) -> str | None:
    """Return in words what records are of which several make a run; None where each is one."""
    for record in records:
        if not isinstance(record, Mapping) or observation(record) is not None:
            continue
        for words, is_part in _FORMS.items():
            if is_part(record):
                return f"its records are {words}, of which several make a run"
    return None


def _is_span(record: Mapping[str, Any]) -> bool:
    """Return whether a record names its trace and the span that it is a part of."""
    has_trace = any(record.get(name) for name in _TRACES)
    return has_trace and any(record.get(name) for name in _PARENTS)


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
