"""Reader ``cursor``: transcripts of Cursor's agent, and its stream-json."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from typing_extensions import override

from gradestack import Input, compile_later
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.libraries import call_block, result_message
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import SURE, add_facets, session_run

_TRANSCRIPT: Final = {"role", "message"}
_PRINTED: Final = frozenset({"system", "user", "assistant", "thinking", "result"})
_QUERY: Final = compile_later(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
"""The words of the user in a prompt, beside what the program adds."""
Line = dict[str, Any]


class Cursor(RunReader):
    """Reads transcripts of Cursor's agent, a file for each session, and ``stream-json``.

    A transcript names no session: its id is the file's name. It holds no results, so how its calls
    ended is not known. What is printed holds them.
    """

    example_file = "~/.cursor/projects/PROJECT/agent-transcripts/SESSION/SESSION.jsonl"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        line = as_map(record)
        kind = word(record, "type")
        message = as_map(line.get("message"))
        keys = line.keys()
        if keys == _TRANSCRIPT and message.keys() == {"content"}:
            return SURE
        is_call = kind == "tool_call" and "call_id" in line
        if is_call and isinstance(line.get("tool_call"), dict):
            return SURE
        has_session = "session_id" in line and "parent_tool_use_id" not in line
        is_printed = has_session and kind in _PRINTED
        return None if is_printed or kind == "turn_ended" else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        sessions: dict[str, list[Record]] = {}
        for record in records:
            sessions.setdefault(word(record.value, "session_id"), []).append(record)
        for session, lines in sessions.items():
            run = session_run(lines[0], session, file.name)
            run.executed = bool(session)
            for line, _ in lines:
                _add_line(run, line)
            yield run


def _add_line(run: Run, line: Line) -> None:
    """Add the message, the call, or the end that a line holds."""
    kind = word(line, "type") or word(line, "role")
    message = line.get("message")
    content = as_map(message).get("content")
    if kind == "system":
        run.model = word(line, "model") or None
        add_facets(run, cwd=line.get("cwd"))
    elif kind == "user":
        words_of_user = _words_of_user(content)
        run.entries.append({"role": "user", "content": words_of_user})
    elif kind == "assistant":
        run.entries.append({"role": "assistant", "content": content})
    elif kind == "tool_call":
        run.entries += _call(line)
    elif kind == "turn_ended" and word(line, "status") == "success":
        run.ended = "completed"
    elif line.get("is_error") is True:
        run.error = line.get("result")


def _words_of_user(content: Any) -> Any:
    """Return the parts of a prompt, each text without what the program adds to it."""
    parts = []
    for part in as_list(content):
        query = _QUERY.search(word(part, "text"))
        parts.append(part if query is None else {**part, "text": query[1]})
    return parts or content


def _call(line: Line) -> Iterator[Line]:
    """Yield the answer that a call is, or the result of one that has ended."""
    identifier = line.get("call_id")
    is_start = word(line, "subtype") == "started"
    for key, about in line["tool_call"].items():
        if not isinstance(about, dict):
            continue
        name = word(about, "name") or key.removesuffix("ToolCall")
        if is_start:
            arguments = about.get("args", about.get("arguments"))
            block = call_block(identifier, name, arguments)
            yield {"role": "assistant", "content": [block]}
        elif "result" in about:
            result = as_map(about["result"])
            content = next(iter(result.values()), None)
            yield result_message(identifier, name, content, failed="success" not in result)
