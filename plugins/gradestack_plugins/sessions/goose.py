"""Reader ``goose``: session files and exports of goose, and what it prints as stream-json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import Input, Usage
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.97
_HEADER: Final = frozenset({"working_dir", "message_count"})
_TOTALS: Final = {
    "input_tokens": ("accumulated_input_tokens", "input_tokens"),
    "output_tokens": ("accumulated_output_tokens", "output_tokens"),
}


@attrs.frozen(kw_only=True)
class Goose(RunReader):
    """Reads sessions of goose: JSON Lines, exported documents, and ``stream-json``.

    A session is one run; its id is the session's, or that of its file.
    """

    example_file = "~/.local/share/goose/sessions/….jsonl"
    version = "1"
    marks = (("working_dir", "conversation"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        if record.keys() >= _HEADER or ("working_dir" in record and "conversation" in record):
            return _SURE
        content = record.get("content", as_map(record.get("message")).get("content"))
        kinds = {word(part, "type") for part in as_list(content)}
        if kinds & {"toolRequest", "toolResponse"}:
            return _SURE
        is_message = "role" in record and "created" in record and isinstance(content, list)
        is_printed = word(record, "type") in {"message", "complete", "notification", "error"}
        return None if is_message or is_printed else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        parts: list[list[Record]] = [[]]
        for record in records:
            if "working_dir" in record.value and parts[-1]:
                parts.append([])
            parts[-1].append(record)
            if word(record.value, "type") == "complete":
                parts.append([])
        for number, given in enumerate(part for part in parts if part):
            made = f"{file.name}:{number}" if number else file.name
            yield _run_of(given, made)


def _run_of(records: list[Record], made: str) -> Run:
    """Return the run of a session's records; ``made`` is its id where they name none."""
    lines = [record.value for record in records]
    header, messages = _parts_of(lines)
    session, directory = word(header, "id"), header.get("working_dir")
    errors = [line.get("error") for line in lines if word(line, "type") == "error"]
    return Run(
        id=session or made,
        entries=messages,
        source=records[0].source,
        first=records[0].value,
        cluster=session or None,
        model=word(header.get("model_config"), "model_name") or None,
        usage=_usage_of(header),
        error=errors[-1] if errors else None,
        trace={"session_id": session} if session else {},
        facets={"cwd": directory} if isinstance(directory, str) else {},
    )


def _parts_of(lines: list[dict[str, Any]]) -> tuple[dict[str, Any], list[Any]]:
    """Return what is said of the session, and its messages."""
    header = next((line for line in lines if "working_dir" in line), {})
    messages: list[Any] = list(as_list(header.get("conversation")))
    for line in lines:
        if isinstance(line.get("message"), dict):
            messages.append(line["message"])
        elif "role" in line:
            messages.append(line)
    return header, messages


def _usage_of(header: dict[str, Any]) -> Usage | None:
    counts = {}
    for name, keys in _TOTALS.items():
        numbers = [number for key in keys if (number := count_of(header.get(key))) is not None]
        counts[name] = numbers[0] if numbers else None
    if all(number is None for number in counts.values()):
        return None
    return Usage(input_tokens=counts["input_tokens"], output_tokens=counts["output_tokens"])
