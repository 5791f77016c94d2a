"""Reader ``gemini_cli``: sessions of Gemini CLI, and what it prints as stream-json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import Input, Usage
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.97
_PRINTED: Final = frozenset({"init", "message", "tool_use", "tool_result", "error", "result"})


@attrs.frozen(kw_only=True)
class GeminiCli(RunReader):
    """Reads sessions of Gemini CLI: chats as JSON or JSON Lines, and ``stream-json``.

    A file is one run; its id is the session's. Of a message that is written several times the last
    version counts; what was rewound is left out. Output tokens hold those of thoughts.
    """

    example_file = "~/.gemini/tmp/PROJECT/chats/session-….jsonl"
    version = "1"
    marks = (("sessionId", "projectHash", "messages"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        if "sessionId" in record and "projectHash" in record:
            return _SURE
        kind = word(record, "type")
        if kind == "init" and "session_id" in record and "model" in record:
            return _SURE
        is_message = (
            kind in {"user", "gemini", "info", "error", "warning"} and "timestamp" in record
        )
        is_change = "$set" in record or "$rewindTo" in record
        return None if is_change or is_message or kind in _PRINTED else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        session: list[Record] = []
        printed: list[list[Record]] = []
        for record in records:
            if word(record.value, "type") == "init":
                printed.append([])
            (printed[-1] if printed else session).append(record)
        parts = [(_of_session, session)] if session else []
        for read, given in [*parts, *((_of_events, each) for each in printed)]:
            run = read([record.value for record in given])
            run.id = run.id or file.name
            run.source, run.first = given[0].source, given[0].value
            yield run


def _of_session(lines: list[dict[str, Any]]) -> Run:
    """Return the run of a session, whose messages may be changed and rewound by later lines."""
    about: dict[str, Any] = {}
    messages: dict[Any, dict[str, Any]] = {}
    for line in lines:
        if "$rewindTo" in line:
            names = list(messages)
            target = word(line, "$rewindTo")
            dropped = names[names.index(target) :] if target in messages else names
            for name in dropped:
                del messages[name]
        elif "$set" in line:
            about |= as_map(line["$set"])
        elif isinstance(line.get("id"), str):
            messages[line["id"]] = line
        else:
            about |= line
    listed = [message for message in as_list(about.get("messages")) if isinstance(message, dict)]
    entries: list[Any] = []
    for message in listed or messages.values():
        entries += _entries_of(message)
    started = word(about, "startTime")
    session = word(about, "sessionId")
    return Run(
        id=session,
        entries=entries,
        cluster=session or None,
        trace={"session_id": session} if session else {},
        facets={"day": started[:10]} if started else {},
    )


def _entries_of(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind, content = message.get("type"), _texts(message.get("content"))
    if kind == "user":
        yield {"role": "user", "content": content}
    if kind != "gemini":
        return
    calls = [dict(as_map(call)) for call in as_list(message.get("toolCalls"))]
    thoughts = [word(thought, "description") for thought in as_list(message.get("thoughts"))]
    yield {
        "role": "assistant",
        "content": content or None,
        "tool_calls": [
            {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("args")}
            for call in calls
        ],
        "reasoning_content": "\n".join(thoughts) or None,
        "model": message.get("model"),
        "usage": _tokens(as_map(message.get("tokens"))),
    }
    for call in calls:
        status = word(call, "status")
        if call.get("result") is None and status not in {"error", "cancelled"}:
            continue
        result = {"role": "tool", "tool_call_id": call.get("id"), "name": call.get("name")}
        failed = {"status": "error"} if status in {"error", "cancelled"} else {}
        yield {**result, "content": _response(call), **failed}


def _texts(content: Any) -> Any:
    """Return a content of parts as text, where all of them are text."""
    parts = content if isinstance(content, list) else [content]
    texts = [word(part, "text") if isinstance(part, dict) else part for part in parts]
    is_text = all(isinstance(text, str) for text in texts)
    return "".join(texts) if is_text else content


def _response(call: dict[str, Any]) -> Any:
    """Return what a call gave: the response in its parts, or what the screen showed."""
    for part in as_list(call.get("result")):
        response = as_map(as_map(part).get("functionResponse")).get("response")
        if response is not None:
            return as_map(response).get("output", response)
    return call.get("result", call.get("resultDisplay"))


def _tokens(tokens: Any) -> dict[str, Any] | None:
    """Return the tokens of an answer under the names of Gemini's API."""
    if not tokens:
        return None
    names = {
        "input": "promptTokenCount",
        "output": "candidatesTokenCount",
        "cached": "cachedContentTokenCount",
        "thoughts": "thoughtsTokenCount",
    }
    return {name: tokens[key] for key, name in names.items() if key in tokens}


def _of_events(lines: list[dict[str, Any]]) -> Run:
    """Return the run of the events that stream-json prints; pieces of one text are one answer."""
    begun = next(line for line in lines if word(line, "type") == "init")
    entries: list[dict[str, Any]] = []
    error, end = None, {}
    for line in lines:
        kind = word(line, "type")
        if kind == "message":
            entries.append({"role": line.get("role"), "content": line.get("content")})
            is_piece = line.get("delta") is True and isinstance(line.get("content"), str)
            if is_piece and len(entries) > 1 and _is_open_text(entries[-2], line.get("role")):
                entries[-2]["content"] += entries.pop()["content"]
        elif kind == "tool_use":
            call = {"id": line.get("tool_id"), "name": line.get("tool_name")}
            call["arguments"] = line.get("parameters")
            if entries and entries[-1]["role"] == "assistant":
                entries[-1].setdefault("tool_calls", []).append(call)
            else:
                entries.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "tool_result":
            failed = {"status": "error"} if line.get("status") == "error" else {}
            said = line.get("output") or as_map(line.get("error")).get("message")
            result = {"role": "tool", "tool_call_id": line.get("tool_id"), "content": said}
            entries.append({**result, **failed})
        elif kind == "result":
            end, error = line, line.get("error")
    stats = as_map(end.get("stats"))
    seconds = as_number(stats.get("duration_ms"))
    session = word(begun, "session_id")
    return Run(
        id=session,
        entries=entries,
        cluster=session or None,
        model=word(begun, "model") or None,
        usage=Usage(
            input_tokens=count_of(stats.get("input_tokens")),
            output_tokens=count_of(stats.get("output_tokens")),
            cached_input_tokens=count_of(stats.get("cached")),
            seconds=None if seconds is None else seconds / 1000,
        ),
        error=error,
        ended=_ENDED.get(word(end, "status")),
        trace={"session_id": session} if session else {},
    )


_ENDED: Final = {"success": "completed", "error": "error"}


def _is_open_text(entry: dict[str, Any], role: Any) -> bool:
    """Return whether a piece of text continues a message: it is of the same speaker, and text."""
    is_same = entry["role"] == role and isinstance(entry["content"], str)
    return is_same and not entry.get("tool_calls")
