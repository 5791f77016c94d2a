"""Reader ``opencode``: what ``opencode export`` writes, and what ``opencode run`` prints as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import JSON, Input
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.97
_PRINTED: Final = frozenset({"step_start", "step_finish", "text", "tool_use", "reasoning", "error"})


@attrs.frozen(kw_only=True)
class OpenCode(RunReader):
    """Reads exported sessions of opencode, a JSON document each, and the events it prints.

    A session is one run; its id is the session's. Parts of the assistant are answers, cut where a
    step ends. Input tokens hold those of caches, output tokens those of reasoning.
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
            return _SURE if all("parts" in as_map(message) for message in messages) else 0.0
        is_event = word(record, "type") in _PRINTED and "sessionID" in record
        return _SURE if is_event else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        is_document = isinstance(record, dict) and {"info", "messages"} <= record.keys()
        return is_document or bool(word(record, "sessionID"))

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        sessions: dict[str, list[Record]] = {}
        for record in records:
            if "messages" in record.value:
                run = _of_export(record.value)
                run.source, run.first, run.id = record.source, record.value, run.id or file.name
                yield run
            else:
                sessions.setdefault(word(record.value, "sessionID"), []).append(record)
        for events in sessions.values():
            run = _of_events([event.value for event in events])
            run.source, run.first, run.id = events[0].source, events[0].value, run.id or file.name
            yield run


def _of_export(document: dict[str, Any]) -> Run:
    """Return the run of an exported session."""
    about = as_map(document.get("info"))
    entries: list[dict[str, Any]] = []
    error = None
    for message in as_list(document.get("messages")):
        said = as_map(as_map(message).get("info"))
        parts = [dict(as_map(part)) for part in as_list(as_map(message).get("parts"))]
        if said.get("role") == "user":
            texts = [part for part in parts if part.get("synthetic") is not True]
            entries.append({"role": "user", "content": _content(texts)})
            continue
        entries += _answers(parts, as_map(said))
        error = said.get("error")
    session, parent = word(about, "id"), word(about, "parentID")
    facets: dict[str, JSON] = {}
    if isinstance(about.get("directory"), str):
        facets["cwd"] = about["directory"]
    if parent:
        facets["subagent_of"] = parent
    return Run(
        id=f"{parent}/{session}" if parent else session,
        entries=entries,
        cluster=parent or session or None,
        error=as_map(error).get("data", error) if error else None,
        trace={"session_id": parent or session},
        facets=facets,
    )


def _content(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part if part.get("type") != "text" else _text(part) for part in parts]


def _text(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": part.get("text")}


def _answers(parts: Iterable[dict[str, Any]], said: Any) -> Iterator[dict[str, Any]]:
    """Yield the answers of a message of the assistant, each with the results of its calls."""
    blocks: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    usage, model = None, said.get("modelID")
    has_steps = False
    for part in [*parts, {"type": "step-finish"}]:
        kind = word(part, "type")
        if kind in {"step-finish", "step_finish"}:
            has_steps = has_steps or "tokens" in part
            usage = part if "tokens" in part else None if has_steps else said
            if blocks:
                tokens = _usage_of(usage) if usage else None
                answer = {"role": "assistant", "content": blocks, "model": model, "usage": tokens}
                yield answer
            yield from results
            blocks, results = [], []
        elif kind == "tool":
            call, result = _tool(part)
            blocks.append(call)
            results += [] if result is None else [result]
        elif kind == "reasoning":
            blocks.append({"type": "thinking", "thinking": part.get("text")})
        elif kind == "text":
            blocks.append(_text(part))
        elif kind not in _SILENT:
            blocks.append(part)


_SILENT: Final = frozenset(
    {"step-start", "step_start", "snapshot", "patch", "file", "agent", "compaction", "retry"}
)


def _tool(part: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the call of a tool's part, and its result; None where there is none yet."""
    state, identifier, name = as_map(part.get("state")), part.get("callID"), part.get("tool")
    call = {"type": "tool_use", "id": identifier, "name": name, "input": state.get("input")}
    status = word(state, "status")
    if status not in {"completed", "error"}:
        return call, None
    result = {"role": "tool", "tool_call_id": identifier, "name": name}
    if status == "error":
        return call, {**result, "content": state.get("error"), "status": "error"}
    code = as_map(state.get("metadata")).get("exit")
    output = state.get("output")
    content = {"output": output, "exit_code": code} if isinstance(code, int) else output
    return call, {**result, "content": content}


def _usage_of(part: Any) -> dict[str, Any]:
    """Return the tokens and the cost of a step under names that keep caches apart."""
    tokens = as_map(part.get("tokens"))
    cache = as_map(tokens.get("cache"))
    output, reasoning = tokens.get("output"), tokens.get("reasoning")
    numbers = [count for count in (output, reasoning) if isinstance(count, int)]
    found = {
        "input_tokens": tokens.get("input"),
        "output_tokens": sum(numbers) if numbers else None,
        "reasoning_tokens": reasoning,
        "cache_read_input_tokens": cache.get("read"),
        "cache_creation_input_tokens": cache.get("write"),
        "cost_usd": part.get("cost"),
    }
    return {key: value for key, value in found.items() if value is not None}


def _of_events(events: list[dict[str, Any]]) -> Run:
    """Return the run of the events that ``opencode run --format json`` prints."""
    session = word(events[0], "sessionID")
    parts = [dict(as_map(event.get("part"))) for event in events]
    errors = [event.get("error") for event in events if word(event, "type") == "error"]
    return Run(
        id=session,
        entries=list(_answers(parts, {})),
        cluster=session or None,
        error=errors[-1] if errors else None,
        trace={"session_id": session} if session else {},
    )
