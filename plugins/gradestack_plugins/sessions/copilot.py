"""Reader ``copilot_cli``: events of sessions of GitHub's Copilot CLI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import Input, Usage
from gradestack.jsonio import as_map
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.libraries import call_block, result_message, text_block
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.declared import Flag, Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import SURE, add_facets, drop_repeated_lines, session_run

_MESSAGES: Final = frozenset({"user.message", "assistant.message", "tool.execution_complete"})
_OTHERS: Final = frozenset(
    {"abort", "assistant", "hook", "session", "skill", "subagent", "system", "tool", "user"}
)
"""First words of the types of events."""


class _Data(msgspec.Struct, rename="camel"):
    """The data of an event, of all types that are read."""

    session_id: Text = None
    context: Object = None
    copilot_version: Text = None
    content: Any = None
    tool_requests: list[dict[str, Any]] = []
    reasoning_text: Text = None
    model: Text = None
    tool_call_id: Text = None
    success: Flag = None
    result: Any = None
    error: Any = None
    message: Text = None
    model_metrics: Object = None


class CopilotCli(RunReader):
    """Reads the events that GitHub's Copilot CLI writes down, a file for each session.

    A session is one run; its id is the session's. Events of a sub-agent, which name the call that
    began it, are a run SESSION/CALL. Tokens are those that the end of the session counts.
    """

    example_file = "~/.copilot/session-state/SESSION/events.jsonl"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        kind = word(record, "type")
        if not isinstance(as_map(record).get("data"), dict):
            return 0.0
        is_start = kind == "session.start" and "sessionId" in record["data"]
        if is_start or kind in _MESSAGES:
            return SURE
        if kind.partition(".")[0] in _OTHERS:
            return None
        return 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        remarks: dict[str, int] = {}
        session, start = "", _Data()
        events: dict[str, list[Record]] = {"": []}
        for record in drop_repeated_lines(records, _id_of, remarks):
            data = record.value["data"]
            if record.value["type"] == "session.start":
                start, _ = convert_record(data, _Data)
                session = start.session_id or ""
            events.setdefault(word(data, "parentToolCallId"), []).append(record)
        for agent, own_events in events.items():
            if not own_events:
                continue
            stem = session or file.name
            parent = stem if agent else ""
            run = session_run(own_events[0], agent or session, stem, parent)
            _add_events(run, own_events)
            if not agent:
                run.remarks = remarks
                run.children = tuple([f"{stem}/{other}" for other in events if other])
            about = as_map(start.context)
            cwd = about.get("cwd")
            branch = about.get("branch")
            add_facets(run, cwd=cwd, branch=branch)
            add_facets(run, version=start.copilot_version)
            day = word(own_events[0].value, "timestamp")[:10]
            add_facets(run, day=day)
            yield run


def _id_of(event: Any) -> str:
    return word(event, "id")


def _add_events(run: Run, events: list[Record]) -> None:
    """Add the messages, the usage, and the error of the events of a run."""
    for event in events:
        kind = event.value["type"]
        data, _ = convert_record(event.value["data"], _Data)
        if kind == "user.message":
            run.entries.append({"role": "user", "content": data.content})
        elif kind == "assistant.message":
            run.entries.append(_answer(data))
            run.error = None
        elif kind == "tool.execution_complete":
            run.entries.append(_result(data))
        elif kind == "session.error":
            run.error = data.message
        elif kind == "session.shutdown":
            model_metrics = as_map(data.model_metrics)
            run.usage = added(map(_usage_of, model_metrics.values()))


def _usage_of(metric: Any) -> Usage | None:
    """Return the usage of one model in a session."""
    requests = as_map(as_map(metric).get("requests")).get("count")
    usage = as_map(metric).get("usage")
    return usage_of({**as_map(usage), "api_calls": requests})


def _answer(data: _Data) -> dict[str, Any]:
    """Return the answer that an event is, with its calls."""
    blocks = [text_block(data.content)] if data.content else []
    for call in data.tool_requests:
        identifier = call.get("toolCallId")
        name = call.get("name")
        arguments = call.get("arguments")
        blocks.append(call_block(identifier, name, arguments))
    answer = {"role": "assistant", "content": blocks, "model": data.model}
    return {**answer, "reasoning_content": data.reasoning_text}


def _result(data: _Data) -> dict[str, Any]:
    """Return the result of a call, with its failure."""
    if data.success is False:
        error = as_map(data.error).get("message", data.error)
        return result_message(data.tool_call_id, None, error, failed=True)
    result = as_map(data.result)
    content = result.get("content", data.result)
    return result_message(data.tool_call_id, None, content)
