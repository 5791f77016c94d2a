"""Reader ``codex``: rollout files of Codex, and the events of ``codex exec --json``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import Input, Usage, compile_later
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.dialect import is_item, is_message
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.declared import Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import (
    SURE,
    add_facets,
    day_of,
    drop_repeated_lines,
    session_run,
    timed_line,
)

_ENVELOPES: Final = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "inter_agent"}
)
"""Types of the lines of a rollout, each with its content as ``payload``."""
_EVENTS: Final = compile_later(r"error|(?:thread|turn|item)\.\w+")
"""Types of the events that ``codex exec`` prints."""
_CONTEXT: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
)
"""Beginnings of texts that Codex writes in the user's name."""
_READ_EVENTS: Final = frozenset(
    {"user_message", "token_count", "thread_rolled_back", "task_complete", "turn_aborted"}
)
"""Events of a rollout that are read; others repeat what its items say, with whole outputs."""
_EXIT: Final = compile_later(r"^Process exited with code (-?\d+)$", re.MULTILINE)
_HEAD: Final = 400
"""Characters at the beginning of a result that may have a line with the exit code."""
_TOKENS: Final = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}
Line = dict[str, Any]


class _Meta(msgspec.Struct):
    """The first line of a rollout, about its session."""

    id: str = ""
    timestamp: Text = None
    cwd: Text = None
    cli_version: Text = None
    originator: Text = None
    git: Object = None
    source: Any = None


class Codex(RunReader):
    """Reads sessions of Codex: the files below ``~/.codex/sessions``, and ``codex exec --json``.

    A file is one run; its id is that of the session or thread. Instructions and descriptions of the
    environment in the user's name are context, no questions. Tokens are the last total, as they
    are counted over the session. A line that is written twice counts once.
    """

    example_file = "~/.codex/sessions/2026/01/01/rollout-….jsonl"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        kind = word(record, "type")
        payload = as_map(record).get("payload")
        has_payload = isinstance(payload, dict)
        if kind in _ENVELOPES and has_payload:
            return SURE
        if kind == "thread.started" and word(record, "thread_id"):
            return SURE
        is_line = has_payload and "timestamp" in record
        is_other = is_line or "record_type" in as_map(record)
        return None if is_other or _EVENTS.fullmatch(kind) else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return cls.looks_like(record) != 0.0 or is_item(record) or is_message(record)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        rollout: list[Record] = []
        threads: dict[str, list[Record]] = {}
        thread = ""
        remarks: dict[str, int] = {}
        for record in drop_repeated_lines(records, timed_line, remarks):
            kind = word(record.value, "type")
            if kind == "thread.started":
                thread = word(record.value, "thread_id")
            if _EVENTS.fullmatch(kind):
                threads.setdefault(thread, []).append(record)
            elif kind != "event_msg" or word(record.value.get("payload"), "type") in _READ_EVENTS:
                rollout.append(record)
        if rollout:
            if not any(map(_is_of_rollout, rollout)):
                raise ValueError(_FOREIGN)
            run = _run_of_rollout(rollout, file.name)
            run.remarks = remarks
            yield run
        for thread, events in threads.items():
            yield _run_of_events(thread, events, file.name)


_FOREIGN: Final = "no session of Codex: a line with timestamp, type and payload is expected"


def _is_of_rollout(record: Record) -> bool:
    """Return whether a line is Codex's own: items of the first versions are anybody's."""
    keys = record.value.keys()
    return not keys.isdisjoint({"payload", "record_type", "instructions"})


def _run_of_rollout(records: list[Record], stem: str) -> Run:
    """Return the run of a rollout: items of Responses, and the lines beside them."""
    lines = [record.value for record in records]
    payloads = _payloads(lines, "session_meta")
    payload = next(iter(payloads), {})
    meta, _ = convert_record(payload, _Meta)
    events = _payloads(lines, "event_msg")
    contexts = _payloads(lines, "turn_context")
    kind = _of_kind(events, "user_message")
    questions = {word(event, "message") for event in kind}
    parent = _parent_of(meta.source)
    run = session_run(records[0], meta.id, stem, parent)
    for item in _items_of(_without_undone(lines)):
        entry = _with_exit_code(item)
        run.entries.append(_with_speaker(entry, questions))
    add_facets(run, cwd=meta.cwd, version=meta.cli_version, originator=meta.originator)
    branch = as_map(meta.git).get("branch")
    day = day_of(meta.timestamp)
    add_facets(run, branch=branch, day=day)
    if contexts:
        last_context = contexts[-1]
        run.model = word(last_context, "model") or None
    counts = _of_kind(events, "token_count")
    if counts:
        last_count = counts[-1]
        total_token_usage = as_map(last_count.get("info")).get("total_token_usage")
        _add_usage(run, total_token_usage)
    ends = _of_kind(events, "task_complete", "turn_aborted")
    if ends and ends[-1]["type"] == "turn_aborted":
        run.ended = "cancelled"
    return run


def _of_kind(lines: Sequence[Line], *kinds: str) -> list[Line]:
    return [line for line in lines if word(line, "type") in kinds]


def _payloads(lines: Sequence[Line], kind: str) -> list[Line]:
    return [dict(as_map(line.get("payload"))) for line in _of_kind(lines, kind)]


def _without_undone(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without the turns that were taken back later."""
    valid: list[Line] = []
    starts: list[int] = []
    for line in lines:
        if word(line, "type") == "event_msg":
            event = as_map(line.get("payload"))
        else:
            event = {}
        kind = word(event, "type")
        number = count_of(event.get("num_turns"))
        if kind == "user_message":
            starts.append(_start_of_turn(valid))
        elif kind == "thread_rolled_back" and number and starts:
            start = starts[-min(number, len(starts))]
            del starts[-number:], valid[start:]
        valid.append(line)
    return valid


def _start_of_turn(lines: Sequence[Line]) -> int:
    """Return where a turn begins: before the user's message, which may stand before its event."""
    if lines and word(lines[-1].get("payload"), "role") == "user":
        return len(lines) - 1
    return len(lines)


def _items_of(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the items of a rollout; lines of the first versions are items themselves."""
    for line in lines:
        if word(line, "type") == "response_item":
            payload = line.get("payload")
            yield dict(as_map(payload))
        elif "payload" not in line:
            yield line


def _parent_of(source: Any) -> str:
    """Return the thread that began this one as its sub-agent; "" where none did."""
    subagent = as_map(source).get("subagent")
    thread_spawn = as_map(subagent).get("thread_spawn")
    spawned = as_map(thread_spawn)
    return word(dict(spawned), "parent_thread_id")


def _with_speaker(item: Line, questions: set[str]) -> Line:
    """Return an item; a message that the program wrote in the user's name is the developer's.

    Args:
        item: An item of Responses.
        questions: The user's messages by the events beside; empty where there are none.
    """
    if word(item, "role") != "user":
        return item
    parts = as_list(item.get("content"))
    text = "".join(word(part, "text") for part in parts)
    is_context = text.lstrip().startswith(_CONTEXT)
    if is_context or (questions and text not in questions):
        return {**item, "role": "developer"}
    return item


def _with_exit_code(item: Line) -> Line:
    """Return an item; the result of a command has its exit code where one of its lines says it."""
    output = item.get("output")
    if word(item, "type") != "function_call_output" or not isinstance(output, str):
        return item
    exited = _EXIT.search(output[:_HEAD])
    if exited is None:
        return item
    metadata = {"exit_code": int(exited[1])}
    return {**item, "output": {"output": output, "metadata": metadata}}


def _add_usage(run: Run, total: Any) -> None:
    tokens = dict(as_map(total))
    counts = {name: count_of(tokens.get(key)) for key, name in _TOKENS.items()}
    run.usage = Usage(**counts)
    run.agent_usage = tokens


def _run_of_events(thread: str, records: list[Record], stem: str) -> Run:
    """Return the run of the events that ``codex exec --json`` prints."""
    run = session_run(records[0], thread, stem)
    completed: set[str] = set()
    for line in (record.value for record in records):
        kind = word(line, "type")
        if kind == "turn.started":
            completed.clear()
        elif kind == "item.completed":
            item = dict(as_map(line.get("item")))
            if word(item, "id") in completed:
                _count_remark(run, "repeated_line")
            else:
                completed.add(word(item, "id"))
                _add_item(run, item)
        elif kind == "turn.completed":
            _add_usage(run, line.get("usage"))
            run.ended, run.error = "completed", None
        elif kind in {"turn.failed", "error"}:
            run.ended = "error"
            error = line.get("error")
            run.error = error or line.get("message") or kind
    return run


def _count_remark(run: Run, kind: str) -> None:
    run.remarks = {**run.remarks, kind: run.remarks.get(kind, 0) + 1}


def _add_item(run: Run, item: Line) -> None:
    """Add a printed item as items of Responses; one of an unknown type is remarked."""
    kind = word(item, "type")
    read = _PRINTED.get(kind)
    if read is None:
        _count_remark(run, f"item:{kind or 'other'}")
    else:
        run.entries += read(item)


def _message(item: Line) -> list[Line]:
    text = item.get("text")
    return [{"type": "message", "role": "assistant", "content": text}]


def _reasoning(item: Line) -> list[Line]:
    text = item.get("text")
    summary = {"type": "summary_text", "text": text}
    return [{"type": "reasoning", "summary": [summary]}]


def _call(item: Line, name: str, arguments: Line, output: Any) -> list[Line]:
    """Return a call with its result, as two items of Responses."""
    identifier = word(item, "id")
    call = {"type": "function_call", "call_id": identifier, "name": name, "arguments": arguments}
    result = {"type": "function_call_output", "call_id": identifier, "output": output}
    if word(item, "status") in {"failed", "declined"}:
        result["status"] = "failed"
    return [call, result]


def _command(item: Line) -> list[Line]:
    aggregated_output = item.get("aggregated_output")
    exit_code = item.get("exit_code")
    output = {"output": aggregated_output, "exit_code": exit_code}
    command = item.get("command")
    return _call(item, "shell", {"command": command}, output)


def _file_change(item: Line) -> list[Line]:
    changes = item.get("changes")
    output = word(item, "status")
    return _call(item, "apply_patch", {"changes": changes}, output)


def _mcp_call(item: Line) -> list[Line]:
    call = {key: value for key, value in item.items() if value is not None}
    result = call.pop("result", None)
    if result is not None:
        call["output"] = result if isinstance(result, str) else compact(result)
    name = item.get("tool")
    server = item.get("server")
    return [{**call, "type": "mcp_call", "name": name, "server_label": server}]


def _web_search(item: Line) -> list[Line]:
    query = item.get("query")
    return [{"type": "web_search_call", "status": "completed", "query": query}]


def _no_items(_: Line) -> list[Line]:
    return []


_PRINTED: Final[dict[str, Callable[[Line], list[Line]]]] = {
    "agent_message": _message,
    "reasoning": _reasoning,
    "command_execution": _command,
    "file_change": _file_change,
    "mcp_tool_call": _mcp_call,
    "web_search": _web_search,
    "todo_list": _no_items,
    "error": _no_items,
}
"""Type of a printed item -> the function that returns it as items of Responses."""
