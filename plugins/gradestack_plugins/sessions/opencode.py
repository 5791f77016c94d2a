"""Reader ``opencode``: exports of opencode, and the JSON events of ``opencode run``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import Input
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.libraries import (
    call_block,
    result_message,
    text_block,
    thought_block,
)
from gradestack_plugins.readers.declared import Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import (
    SURE,
    add_facets,
    drop_repeated_lines,
    session_run,
    timed_line,
)

_PRINTED: Final = frozenset({"step_start", "step_finish", "text", "tool_use", "reasoning", "error"})
_SILENT: Final = frozenset(
    {"step-start", "step_start", "snapshot", "patch", "file", "agent", "compaction", "retry"}
)
"""Types of parts that say nothing."""
_STEP_ENDS: Final = frozenset({"step-finish", "step_finish"})
Line = dict[str, Any]


class _Part(msgspec.Struct, rename={"call": "callID"}):
    """A part of a message of the assistant."""

    type: str = ""
    text: Any = None
    call: Text = None
    tool: Text = None
    state: Object = None


class OpenCode(RunReader):
    """Reads exported sessions of opencode, a JSON document each, and the events it prints.

    A session is one run; its id is the session's. Parts of the assistant are answers, cut where a
    step ends. Input tokens hold those of caches, output tokens those of reasoning. An event
    that is written twice counts once.
    """

    example_file = "session.json"
    version = "1"
    marks = (("info", "messages", "parts", "sessionID"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        messages = record.get("messages")
        if isinstance(record.get("info"), dict) and isinstance(messages, list):
            if all("parts" in as_map(message) for message in messages):
                return SURE
            return 0.0
        is_event = word(record, "type") in _PRINTED and "sessionID" in record
        return SURE if is_event else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        is_document = isinstance(record, dict) and {"info", "messages"} <= record.keys()
        return is_document or bool(word(record, "sessionID"))

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        remarks: dict[str, int] = {}
        sessions: dict[str, list[Record]] = {}
        for record in drop_repeated_lines(records, timed_line, remarks):
            if "messages" in record.value:
                yield run_of_export(record, file.name)
            else:
                sessions.setdefault(word(record.value, "sessionID"), []).append(record)
        for session, events in sessions.items():
            run = _run_of_events(session, events, file.name)
            run.remarks, remarks = remarks, {}
            yield run


def run_of_export(record: Record, stem: str) -> Run:
    """Return the run of an exported session."""
    document = record.value
    about = dict(as_map(document.get("info")))
    session = word(about, "id")
    parent = word(about, "parentID")
    run = session_run(record, session, stem, parent)
    add_facets(run, cwd=about.get("directory"))
    for message in as_list(document.get("messages")):
        about_message = dict(as_map(as_map(message).get("info")))
        parts = [dict(as_map(part)) for part in as_list(as_map(message).get("parts"))]
        if about_message.get("role") == "user":
            content = [_question_part(part) for part in parts if part.get("synthetic") is not True]
            run.entries.append({"role": "user", "content": content})
        else:
            run.entries += _answers(parts, about_message)
            run.error = about_message.get("error") or None
    error = as_map(run.error)
    run.error = error.get("data", run.error)
    return run


def _question_part(part: Line) -> Line:
    is_text = part.get("type") == "text"
    return text_block(part.get("text")) if is_text else part


def _run_of_events(session: str, records: list[Record], stem: str) -> Run:
    """Return the run of the events that ``opencode run --format json`` prints."""
    run = session_run(records[0], session, stem)
    events = [record.value for record in records]
    parts = [dict(as_map(event.get("part"))) for event in events]
    run.entries += _answers(parts, {})
    for event in events:
        if word(event, "type") == "error":
            run.error = event.get("error")
    return run


def _answers(parts: Iterable[Line], about_message: Line) -> Iterator[Line]:
    """Yield the answers of a message of the assistant, each with the results of its calls.

    Args:
        parts: The parts of the message.
        about_message: The usage and the model of the message; its usage counts where no step has
            its own.
    """
    blocks: list[Line] = []
    results: list[Line] = []
    has_steps = False
    for recorded in [*parts, {"type": "step-finish"}]:
        part, _ = convert_record(recorded, _Part)
        if part.type in _STEP_ENDS:
            has_steps = has_steps or "tokens" in recorded
            tokens = recorded if has_steps else about_message
            if blocks:
                model_id = about_message.get("modelID")
                reply = {
                    "role": "assistant",
                    "content": blocks,
                    "model": model_id,
                }
                yield {**reply, "usage": _usage_of(tokens)}
            yield from results
            blocks, results = [], []
        elif part.type == "tool":
            arguments = as_map(part.state).get("input")
            block = call_block(part.call, part.tool, arguments)
            blocks.append(block)
            results += _results(part)
        elif part.type == "reasoning":
            blocks.append(thought_block(part.text))
        elif part.type == "text":
            blocks.append(text_block(part.text))
        elif part.type not in _SILENT:
            blocks.append(recorded)


def _results(part: _Part) -> Iterator[Line]:
    """Yield the result of a tool's part; nothing where there is none yet."""
    state = part.state or {}
    status = state.get("status")
    output = state.get("output")
    if status == "error":
        error = state.get("error")
        yield result_message(part.call, part.tool, error, failed=True)
    elif status == "completed":
        metadata = state.get("metadata")
        code = as_map(metadata).get("exit")
        if isinstance(code, int):
            output = {"output": output, "exit_code": code}
        yield result_message(part.call, part.tool, output)


def _usage_of(counted: Line) -> Line:
    """Return the tokens and the cost of a step under names that tell caches from input."""
    tokens = as_map(counted.get("tokens"))
    cache = as_map(tokens.get("cache"))
    output = tokens.get("output")
    outputs = (output, tokens.get("reasoning"))
    numbers = [count for count in outputs if isinstance(count, int)]
    input_tokens = tokens.get("input")
    reasoning = tokens.get("reasoning")
    cache_read_input_tokens = cache.get("read")
    cost = counted.get("cost")
    output_tokens = sum(numbers) if numbers else None
    usage = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "reasoning_tokens": reasoning,
        "cache_read_input_tokens": cache_read_input_tokens,
        "cache_creation_input_tokens": cache.get("write"),
        "cost_usd": cost,
    }
    return {name: value for name, value in usage.items() if value is not None}
