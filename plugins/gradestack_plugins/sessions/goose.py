"""Reader ``goose``: sessions of goose, and its stream-json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from typing_extensions import override

from gradestack import Input, Usage
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import SURE, add_facets, drop_repeated_lines, session_run

_HEADER: Final = frozenset({"working_dir", "message_count"})
_DOCUMENT: Final = frozenset({"working_dir", "conversation"})
_CALLS: Final = frozenset({"toolRequest", "toolResponse"})
_PRINTED: Final = frozenset({"complete", "notification", "error"})
Line = dict[str, Any]


class Goose(RunReader):
    """Reads sessions of goose: JSON Lines, exported documents, and ``stream-json``.

    A session is one run; its id is the session's, or that of its file. A message whose id is
    repeated counts once.
    """

    example_file = "~/.local/share/goose/sessions/….jsonl"
    version = "1"
    marks = (("working_dir", "conversation"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        keys = record.keys()
        if keys >= _HEADER or record.keys() >= _DOCUMENT:
            return SURE
        message = as_map(record.get("message", record))
        content = message.get("content")
        parts = as_list(content)
        kinds = {word(part, "type") for part in parts}
        if not kinds.isdisjoint(_CALLS):
            return SURE
        is_message = {"role", "created"} <= message.keys() and isinstance(content, list)
        if is_message or word(record, "type") in _PRINTED:
            return None
        return 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        sessions: list[list[Record]] = [[]]
        for record in records:
            if "working_dir" in record.value and sessions[-1]:
                sessions.append([])
            sessions[-1].append(record)
            if word(record.value, "type") == "complete":
                sessions.append([])
        for number, session in enumerate(filter(None, sessions)):
            if number:
                stem = f"{file.name}:{number}"
            else:
                stem = file.name
            yield _run_of_session(session, stem)


def _identity_of(line: Any) -> str:
    if "working_dir" not in line:
        return word(line.get("message", line), "id")
    return ""


def _run_of_session(records: list[Record], stem: str) -> Run:
    """Build the run of a Goose session: its header's model and usage, and its messages."""
    remarks: dict[str, int] = {}
    repeated_lines = drop_repeated_lines(records, _identity_of, remarks)
    lines = [record.value for record in repeated_lines]
    header: Line = next((line for line in lines if "working_dir" in line), {})
    session = word(header, "id")
    run = session_run(records[0], session, stem)
    run.remarks = remarks
    add_facets(run, cwd=header.get("working_dir"))
    model_config = header.get("model_config")
    run.model = word(model_config, "model_name") or None
    run.usage = _usage_of(header)
    run.entries += as_list(header.get("conversation"))
    for line in lines:
        message = line.get("message", line)
        if isinstance(message, dict) and "role" in message:
            run.entries.append(message)
        if word(line, "type") == "error":
            run.error = line.get("error")
    return run


def _usage_of(header: Line) -> Usage | None:
    """Return the tokens of the whole session, else those of its last request."""
    input_tokens = _count_of(header, "input_tokens")
    output_tokens = _count_of(header, "output_tokens")
    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )
    return None if usage == Usage() else usage


def _count_of(header: Line, name: str) -> int | None:
    total = count_of(header.get(f"accumulated_{name}"))
    if total is None:
        return count_of(header.get(name))
    return total
