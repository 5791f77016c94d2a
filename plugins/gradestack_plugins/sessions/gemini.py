"""Reader ``gemini_cli``: sessions of Gemini CLI, and its stream-json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import Input, Usage
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.libraries import result_message
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.declared import Items, Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import SURE, add_facets, day_of, session_run

_PRINTED: Final = frozenset({"init", "message", "tool_use", "tool_result", "error", "result"})
_RECORDED: Final = frozenset({"user", "gemini", "info", "error", "warning"})
_TOKENS: Final = {
    "input": "promptTokenCount",
    "output": "candidatesTokenCount",
    "cached": "cachedContentTokenCount",
    "thoughts": "thoughtsTokenCount",
}
"""Count of a message -> its name in Gemini's API."""
_ENDED: Final = {"success": "completed", "error": "error"}
Line = dict[str, Any]


class _Call(msgspec.Struct):
    """A call in a message, with its result."""

    id: Text = None
    name: Text = None
    args: Any = None
    status: Text = None
    result: Any = None
    resultDisplay: Any = None  # noqa: N815


class _Message(msgspec.Struct):
    """A message of a session."""

    type: Text = None
    content: Any = None
    toolCalls: list[_Call] = []  # noqa: N815
    thoughts: Items = None
    model: Text = None
    tokens: Object = None


class GeminiCli(RunReader):
    """Reads sessions of Gemini CLI: chats as JSON or JSON Lines, and ``stream-json``.

    A file is one run; its id is the session's. Of a message that is written several times the last
    version counts; rewound messages are left out. Output tokens hold those of thoughts.
    """

    example_file = "~/.gemini/tmp/PROJECT/chats/session-….jsonl"
    version = "1"
    marks = (("sessionId", "projectHash", "messages"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        kind = word(record, "type")
        is_start = kind == "init" and {"session_id", "model"} <= record.keys()
        if is_start or {"sessionId", "projectHash"} <= record.keys():
            return SURE
        is_message = kind in _RECORDED and "timestamp" in record
        is_change = "$set" in record or "$rewindTo" in record
        if is_change or is_message or kind in _PRINTED:
            return None
        return 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        session: list[Record] = []
        printed: list[list[Record]] = []
        for record in records:
            if word(record.value, "type") == "init":
                printed.append([])
            (printed[-1] if printed else session).append(record)
        if session:
            yield _run_of_session(session, file.name)
        for events in printed:
            yield _run_of_events(events, file.name)


def _run_of_session(records: list[Record], stem: str) -> Run:
    """Read the run of a session; later lines may change or take back earlier messages."""
    about: Line = {}
    messages: dict[str, Line] = {}
    for line in (record.value for record in records):
        if "$rewindTo" in line:
            _rewind(messages, word(line, "$rewindTo"))
        elif "$set" in line:
            about |= as_map(line["$set"])
        elif isinstance(line.get("id"), str):
            messages[line["id"]] = line
        else:
            about |= line
    session = word(about, "sessionId")
    run = session_run(records[0], session, stem)
    start_time = about.get("startTime")
    add_facets(run, day=day_of(start_time))
    listed = [message for message in as_list(about.get("messages")) if isinstance(message, dict)]
    for recorded in listed or messages.values():
        message, remarks = convert_record(recorded, _Message)
        run.entries += _entries_of(message)
        run.remarks = {**run.remarks, **remarks}
    return run


def _rewind(messages: dict[str, Line], target: str) -> None:
    """Remove a message and those behind it; all of them where it is not known."""
    names = list(messages)
    start = 0
    if target in messages:
        start = names.index(target)
    for name in names[start:]:
        del messages[name]


def _entries_of(message: _Message) -> Iterator[Line]:
    """Yield the chat messages of a message: a question, or an answer with its tool results."""
    content = _texts(message.content)
    if message.type == "user":
        yield {"role": "user", "content": content}
    if message.type != "gemini":
        return
    calls = message.toolCalls
    thoughts = [word(thought, "description") for thought in message.thoughts or ()]
    tokens = message.tokens or {}
    usage = {name: tokens[key] for key, name in _TOKENS.items() if key in tokens}
    tool_calls = [_call(call.id, call.name, call.args) for call in calls]
    reasoning_content = "\n".join(thoughts) or None
    yield {
        "role": "assistant",
        "content": content or None,
        "tool_calls": tool_calls,
        "reasoning_content": reasoning_content,
        "model": message.model,
        "usage": usage or None,
    }
    for call in calls:
        has_failed = call.status in {"error", "cancelled"}
        if has_failed or call.result is not None:
            response = _response(call)
            yield result_message(call.id, call.name, response, failed=has_failed)


def _call(identifier: Any, name: Any, arguments: Any) -> Line:
    return {"id": identifier, "name": name, "arguments": arguments}


def _texts(content: Any) -> Any:
    """Return a content of parts as text, where all of them are text."""
    parts = content if isinstance(content, list) else [content]
    texts = [word(part, "text") if isinstance(part, dict) else part for part in parts]
    is_text = all(isinstance(text, str) for text in texts)
    return "".join(texts) if is_text else content


def _response(call: _Call) -> Any:
    """Return the result of a call: the response in its parts, or the text on the screen."""
    for part in as_list(call.result):
        function_response = as_map(as_map(part).get("functionResponse"))
        response = function_response.get("response")
        if response is not None:
            return as_map(response).get("output", response)
    return call.resultDisplay if call.result is None else call.result


def _run_of_events(records: list[Record], stem: str) -> Run:
    """Return the run of the events that stream-json prints."""
    start = records[0].value
    session = word(start, "session_id")
    run = session_run(records[0], session, stem)
    run.model = word(start, "model") or None
    run.usage = Usage()
    for line in (record.value for record in records):
        kind = word(line, "type")
        if kind == "message":
            _add_message(run.entries, line)
        elif kind == "tool_use":
            _add_call(run.entries, line)
        elif kind == "tool_result":
            output = line.get("output") or as_map(line.get("error")).get("message")
            has_failed = line.get("status") == "error"
            identifier = line.get("tool_id")
            run.entries.append(result_message(identifier, None, output, failed=has_failed))
        elif kind == "result":
            run.usage = _usage_of(line)
            run.error = line.get("error")
            run.ended = _ENDED.get(word(line, "status"))
    return run


def _add_message(entries: list[Line], line: Line) -> None:
    """Add a message; append a streamed piece of text to the message before it."""
    role = line.get("role")
    content = line.get("content")
    last = entries[-1] if entries else {}
    continues = last.get("role") == role and not last.get("tool_calls")
    texts = (last.get("content"), content)
    are_texts = all(isinstance(text, str) for text in texts)
    if continues and are_texts and line.get("delta") is True:
        last["content"] += content
    else:
        entries.append({"role": role, "content": content})


def _add_call(entries: list[Line], line: Line) -> None:
    """Add a call to the answer before it, or as an answer of its own."""
    tool_id = line.get("tool_id")
    tool_name = line.get("tool_name")
    parameters = line.get("parameters")
    call = _call(tool_id, tool_name, parameters)
    if not entries or entries[-1]["role"] != "assistant":
        entries.append({"role": "assistant", "content": None})
    last_entry = entries[-1]
    last_entry.setdefault("tool_calls", []).append(call)


def _usage_of(end: Line) -> Usage:
    """Return tokens and time of the last line of a session of Gemini CLI."""
    stats = as_map(end.get("stats"))
    milliseconds = as_number(stats.get("duration_ms"))
    input_tokens = stats.get("input_tokens")
    return Usage(
        input_tokens=count_of(input_tokens),
        output_tokens=count_of(stats.get("output_tokens")),
        cached_input_tokens=count_of(stats.get("cached")),
        seconds=None if milliseconds is None else milliseconds / 1000,
    )
