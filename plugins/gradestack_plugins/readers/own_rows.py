"""Rows of gradestack's own runs, read back as samples."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gradestack import DataError, Sample, ToolCall, is_run, load_report, replace
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers import chat

_SAME: Final = (
    *("cluster", "expected", "status", "error", "ended", "trace", "children", "facets", "remarks"),
    *("native", "agent_id", "agent_usage", "usage", "run"),
)
"""Fields that are the same in rows and samples."""
_PREDICTED: Final = ("calls", "label", "text", "plan", "state")
_GRADED: Final = ("grade", "grades", "submission", "submissions")
"""Fields of a row that graders wrote; its sample has them as recorded values."""


def is_own_row(record: Mapping[str, Any]) -> bool:
    """Return whether gradestack wrote a line of results."""
    predicted = record.get("predicted")
    return isinstance(predicted, dict) and isinstance(record.get("expected"), dict)


def begins_like_own_row(text: bytes) -> bool:
    """Return whether a line that breaks off begins as gradestack's rows do, with a grade."""
    return text.startswith(b'{"grade":{') and b'"rationale":' in text


def check_run(path: Path) -> None:
    """Refuse a report directory that lost rows or got some, or whose rows hold no conversation.

    Raises:
        DataError: It cannot be graded again.
    """
    folder = path if path.is_dir() else path.parent
    try:
        report = load_report(folder) if is_run(folder) else None
    except DataError:  # files beside the rows are not needed
        return
    if report is None or not report.has_rows:
        return
    if report.header.get("rows") == "slim":
        raise DataError(
            f"{path}: its rows hold no conversation (rows: slim, of an earlier gradestack)",
            "grade the input of that run instead",
        )
    if path.is_dir():
        deque(report.lines(), maxlen=0)  # counts them


def sample_of_row(row: Mapping[str, Any], identifier: str) -> Sample:
    """Return the sample of a row; of its tools only the names, where the row has no schemas.

    Raises:
        ValueError: The row was changed into another form.
    """
    fields = {name: row[name] for name in _SAME if row.get(name) is not None}
    predicted = as_map(row["predicted"])
    fields |= {name: predicted.get(name) for name in _PREDICTED}
    tools = row.get("tools")
    if isinstance(tools, list):
        fields["tools"] = [{"name": tool} if isinstance(tool, str) else tool for tool in tools]
    graded = {name: row[name] for name in _GRADED if row.get(name) is not None}
    recorded = row.get("recorded")
    fields["recorded"] = {**as_map(recorded), **graded}
    fields["model"] = row.get("model_name")
    fields["input"] = as_map(row.get("sample")).get("input")
    try:
        sample = msgspec.convert({"id": identifier, **fields}, Sample)
    except ValueError as error:
        raise ValueError(f"the row is not as gradestack wrote it: {error}") from error
    trajectory = row.get("trajectory")
    turns = tuple(map(chat.messages, as_list(trajectory)))
    calls_of_messages = chat.made_calls(message for turn in turns for message in turn)
    results = _with_results(sample.calls, calls_of_messages)
    return replace(sample, turns=turns, calls=results)


def _with_results(
    calls: tuple[ToolCall, ...] | None, calls_of_messages: tuple[ToolCall, ...]
) -> tuple[ToolCall, ...] | None:
    """Return a row's calls with ids and results of the same calls in its conversation."""
    names = [call.name for call in calls or ()]
    if not calls or names != [call.name for call in calls_of_messages]:
        return calls
    pairs = zip(calls, calls_of_messages, strict=True)
    return tuple(_with_result(call, same) for call, same in pairs)


def _with_result(call: ToolCall, same: ToolCall) -> ToolCall:
    raw = call.raw_arguments or same.raw_arguments
    return replace(call, raw_arguments=raw, id=same.id, result=same.result)
