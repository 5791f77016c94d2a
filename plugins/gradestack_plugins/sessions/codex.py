"""Reader ``codex``: rollout files of Codex, and what ``codex exec --json`` prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import Input, Usage
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.dialect import is_item, is_message
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.97
_ENVELOPES: Final = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "inter_agent"}
)
"""Types of the lines of a rollout, each with its content as ``payload``."""
_CONTEXT: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
)
"""How texts begin that Codex puts into the user's place."""
_EXIT: Final = re.compile(r"^Process exited with code (-?\d+)$", re.MULTILINE)
_HEAD_LINES: Final = 400
"""Characters of a result in which a line says how its command ended."""


@attrs.frozen(kw_only=True)
class Codex(RunReader):
    """Reads sessions of Codex: the files below ``~/.codex/sessions``, and ``codex exec --json``.

    A file is one run; its id is that of the session or thread. Instructions and descriptions of the
    environment in the user's place are context, no questions. Tokens are the last total, as they
    are counted over the session.
    """

    example_file = "~/.codex/sessions/2026/01/01/rollout-….jsonl"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        kind = word(record, "type")
        if kind in _ENVELOPES and isinstance(record.get("payload"), dict):
            return _SURE
        if kind == "thread.started" and isinstance(record.get("thread_id"), str):
            return _SURE
        is_event = kind == "error" or (kind.startswith(("turn.", "item.")) and kind.count(".") == 1)
        is_line = isinstance(record.get("payload"), dict) and "timestamp" in record
        return None if is_event or is_line or "record_type" in record else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return cls.looks_like(record) != 0.0 or is_item(record) or is_message(record)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        rollout: list[Record] = []
        threads: dict[str, list[Record]] = {}
        events: list[Record] = []
        for record in records:
            kind = word(record.value, "type")
            if kind == "thread.started":
                events = threads.setdefault(word(record.value, "thread_id"), [])
            is_printed = kind == "error" or kind.startswith(("thread.", "turn.", "item."))
            (events if is_printed else rollout).append(record)
        if not threads and events:
            threads[""] = events
        parts = [(_of_rollout, rollout)] if rollout else []
        for read, given in [*parts, *((_of_events, each) for each in threads.values())]:
            run = read([record.value for record in given])
            run.source, run.first = given[0].source, given[0].value
            run.id = run.id or file.name
            yield run


def _of_rollout(lines: list[dict[str, Any]]) -> Run:
    """Return the run of a rollout: items of Responses, and what stands beside them."""
    begun = next((line for line in lines if word(line, "type") == "session_meta"), {})
    about = as_map(begun.get("payload"))
    events = _payloads(lines, "event_msg")
    asked = {word(event, "message") for event in events if word(event, "type") == "user_message"}
    contexts = _payloads(lines, "turn_context") or [{}]
    items = _items(_without_undone(lines))
    entries = [_with_speaker(_with_exit_code(item), asked) for item in items]
    totals = [
        as_map(as_map(event.get("info")).get("total_token_usage"))
        for event in events
        if word(event, "type") == "token_count"
    ]
    facets = {name: about[key] for key, name in _FACETS.items() if isinstance(about.get(key), str)}
    branch = as_map(about.get("git")).get("branch")
    if isinstance(branch, str):
        facets["branch"] = branch
    if word(about, "timestamp"):
        facets["day"] = word(about, "timestamp")[:10]
    identifier, parent = word(about, "id"), _parent_of(about)
    if parent:
        facets["subagent_of"] = parent
    return Run(
        id=f"{parent}/{identifier}" if parent else identifier,
        entries=entries,
        cluster=parent or identifier or None,
        model=word(contexts[-1], "model") or None,
        usage=_usage_of(totals[-1]) if totals else None,
        agent_usage=totals[-1] if totals else None,
        trace={"session_id": parent or identifier},
        facets=facets,
        ended="cancelled" if _is_aborted(events) else None,
    )


_FACETS: Final = {"cwd": "cwd", "cli_version": "version", "originator": "originator"}


def _payloads(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [dict(as_map(line.get("payload"))) for line in lines if word(line, "type") == kind]


def _without_undone(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines without the turns that were taken back later."""
    kept: list[dict[str, Any]] = []
    starts: list[int] = []
    for line in lines:
        event = as_map(line.get("payload")) if word(line, "type") == "event_msg" else {}
        kind, number = word(event, "type"), count_of(event.get("num_turns"))
        if kind == "user_message":
            starts.append(_start_of_turn(kept))
        elif kind == "thread_rolled_back" and number and starts:
            place = starts[-min(number, len(starts))]
            del starts[-number:], kept[place:]
        kept.append(line)
    return kept


def _start_of_turn(lines: list[dict[str, Any]]) -> int:
    """Return where a turn begins: before the user's message, which may stand before its event."""
    is_asked = bool(lines) and word(lines[-1].get("payload"), "role") == "user"
    return len(lines) - is_asked


def _items(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the items of a rollout, also those of the first versions, which wrapped none."""
    for line in lines:
        if word(line, "type") == "response_item":
            yield dict(as_map(line.get("payload")))
        elif "payload" not in line and (is_item(line) or is_message(line)):
            yield line


def _parent_of(about: Any) -> str:
    """Return the thread that began this one as its sub-agent; "" where none did."""
    spawned = as_map(as_map(as_map(about.get("source")).get("subagent")).get("thread_spawn"))
    return word(dict(spawned), "parent_thread_id")


def _is_aborted(events: list[dict[str, Any]]) -> bool:
    kinds = [word(event, "type") for event in events]
    ends = [kind for kind in kinds if kind in {"task_complete", "turn_aborted"}]
    return bool(ends) and ends[-1] == "turn_aborted"


def _with_speaker(item: dict[str, Any], asked: set[str]) -> dict[str, Any]:
    """Return an item; what the program said in the user's place is the developer's.

    Args:
        item: An item of Responses.
        asked: What the user said by the events beside; empty where none say it.
    """
    if word(item, "role") != "user":
        return item
    texts = [word(part, "text") for part in as_list(item.get("content"))]
    text = "".join(texts)
    is_context = text.lstrip().startswith(_CONTEXT)
    is_question = text in asked if asked else not is_context
    return item if is_question and not is_context else {**item, "role": "developer"}


def _with_exit_code(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item; the result of a command holds its exit code where a line of it says so."""
    output = item.get("output")
    if word(item, "type") != "function_call_output" or not isinstance(output, str):
        return item
    ended = _EXIT.search(output[:_HEAD_LINES])
    if ended is None:
        return item
    return {**item, "output": {"output": output, "metadata": {"exit_code": int(ended[1])}}}


def _usage_of(total: Any) -> Usage:
    names = {
        "input_tokens": "input_tokens",
        "cached_input_tokens": "cached_input_tokens",
        "output_tokens": "output_tokens",
        "reasoning_output_tokens": "reasoning_tokens",
    }
    return Usage(**{name: count_of(total.get(key)) for key, name in names.items()})


def _of_events(lines: list[dict[str, Any]]) -> Run:
    """Return the run of the events that ``codex exec --json`` prints."""
    thread, entries, usage, error = "", [], None, None
    remarks: dict[str, int] = {}
    for line in lines:
        kind, item = word(line, "type"), dict(as_map(line.get("item")))
        if kind == "thread.started":
            thread = word(line, "thread_id")
        elif kind == "item.completed":
            read = _PRINTED.get(word(item, "type"))
            if read is None:
                name = f"item:{word(item, 'type') or 'other'}"
                remarks[name] = remarks.get(name, 0) + 1
            else:
                entries += read(item)
        elif kind == "turn.completed":
            usage, error = as_map(line.get("usage")), None
        elif kind in {"turn.failed", "error"}:
            error = line.get("error") or line.get("message") or kind
    return Run(
        id=thread,
        entries=entries,
        cluster=thread or None,
        usage=None if usage is None else _usage_of(usage),
        agent_usage=None if usage is None else dict(usage),
        error=error,
        ended="error" if error is not None else "completed" if usage is not None else None,
        trace={"session_id": thread} if thread else {},
        remarks=remarks,
    )


def _call(item: dict[str, Any], name: str, arguments: Any, output: Any) -> list[dict[str, Any]]:
    """Return a call with its result, as two items of Responses."""
    identifier = word(item, "id")
    call = {"type": "function_call", "call_id": identifier, "name": name}
    result = {"type": "function_call_output", "call_id": identifier, "output": output}
    status = {"status": "failed"} if word(item, "status") in {"failed", "declined"} else {}
    return [{**call, "arguments": arguments}, {**result, **status}]


def _command(item: dict[str, Any]) -> list[dict[str, Any]]:
    output = {"output": item.get("aggregated_output"), "exit_code": item.get("exit_code")}
    return _call(item, "shell", {"command": item.get("command")}, output)


def _tool(item: dict[str, Any]) -> list[dict[str, Any]]:
    keys = ("arguments", "result", "error", "status", "id")
    call = {key: item[key] for key in keys if item.get(key) is not None}
    result = call.pop("result", None)
    return [
        {
            **call,
            "type": "mcp_call",
            "name": item.get("tool"),
            "server_label": item.get("server"),
            "output": result if isinstance(result, str | None) else compact(result),
        }
    ]


_PRINTED: Final[dict[str, Callable[[dict[str, Any]], list[dict[str, Any]]]]] = {
    "agent_message": lambda item: [
        {"type": "message", "role": "assistant", "content": item.get("text")}
    ],
    "reasoning": lambda item: [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": item.get("text")}]}
    ],
    "command_execution": _command,
    "file_change": lambda item: _call(
        item, "apply_patch", {"changes": item.get("changes")}, word(item, "status")
    ),
    "mcp_tool_call": _tool,
    "web_search": lambda item: [
        {"type": "web_search_call", "status": "completed", "query": item.get("query")}
    ],
    "todo_list": lambda _: [],
    "error": lambda _: [],
}
"""Type of a printed item -> the items of Responses it stands for."""
