"""Runs out of rows: the rows of one trace are one run.

A row is a call of a model, a call of a tool, a step that may be one, or the root of its trace.
Calls of models and tools below a call of a tool are the run of a sub-agent. Requests of one trace
mostly repeat the messages before them: a message is read once, however often it is recorded, and
the messages that a request adds are appended, then its answer. Rows of tools
give results to the calls that answers made, by name and order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from operator import attrgetter
from typing import Any, Final, Literal

import msgspec

from gradestack import JSON, Expectation, Source, Usage
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers.chat import text_of, word
from gradestack_plugins.readers.chat.forms import forms_read
from gradestack_plugins.readers.chat.usage import added
from gradestack_plugins.readers.runs import Run, ToolResult

Kind = Literal["model", "tool", "step", "root", "other"]
_started: Final = attrgetter("started")


MessageKey = tuple[str, str]
"""What two records of one message have in common: its text, and what is beside that."""


class Row(msgspec.Struct, kw_only=True):
    """One row of a trace.

    Attributes:
        trace: The id that the rows of a run share; "" where a row names none: then requests tell
            which rows continue others.
        own: The id of the row, by which others name it as their parent.
        group: The id that several traces share.
        request: The messages of the request, in any form; ``runs_of_rows`` reads them.
        response: The messages and items of the answer, in the forms of the APIs.
        request_keys: The keys by which the messages of the request are equal; so for the answer.
        name: The name of a tool.
        text: The answer of a root.
        task: The id of a root's task; "" where that is the trace.
        record: The row as recorded; ``runs_of_rows`` drops it where nobody looks into it.
    """

    kind: Kind
    trace: str = ""
    own: str = ""
    parent: str = ""
    group: str = ""
    started: str = ""
    request: list[Any] = []
    response: list[Any] = []
    request_keys: list[MessageKey] = []
    response_keys: list[MessageKey] = []
    model: str | None = None
    usage: Usage | None = None
    tools: list[Any] | None = None
    name: str = ""
    arguments: Any = None
    result: Any = None
    error: Any = None
    text: str | None = None
    expected: str | None = None
    recorded: dict[str, JSON] = {}
    task: str = ""
    source: Source | None = None
    record: Any = None
    remarks: dict[str, int] = {}


def runs_of_rows(rows: Iterable[Row], stem: str, *, keeps_records: bool) -> Iterator[Run]:
    """Yield a run for each trace that has a call of a model or of a tool, or a root, in order.

    Args:
        rows: The rows of a file.
        stem: The beginning of ids that are made up where rows name no trace: ``STEM:0``.
        keeps_records: Whether ids of tasks are looked for in the recorded rows.
    """
    traces: dict[str, list[Row]] = {}
    made_ids: set[str] = set()
    open_ends = _OpenEnds()
    for row in _latest_rows(rows, keeps_records=keeps_records):
        trace = row.trace
        if not trace:
            trace = open_ends.trace_of(row, f"{stem}:{len(made_ids)}")
            made_ids.add(trace)
        traces.setdefault(trace, []).append(row)
    for trace, own_rows in traces.items():
        for run in _runs_of_trace(trace, own_rows):
            if trace in made_ids:
                run.cluster, run.trace = None, {}
            yield run


class _Messages:
    """The messages of a file, each read once, however often requests repeat it."""

    def __init__(self) -> None:
        """Begin without a message."""
        self._by_text: dict[bytes | str, tuple[list[Any], list[MessageKey]]] = {}

    def read(self, recorded: Iterable[Any]) -> tuple[list[Any], list[MessageKey]]:
        """Return messages in the forms of the APIs, and the keys by which they are equal."""
        messages: list[Any] = []
        keys: list[MessageKey] = []
        for entry in recorded:
            text = _exact_text(entry)
            if text not in self._by_text:
                read = forms_read((entry,))
                self._by_text[text] = read, [message_key(message) for message in read]
            own_messages, own_keys = self._by_text[text]
            messages += own_messages
            keys += own_keys
        return messages, keys


def _exact_text(entry: Any) -> bytes | str:
    """Return a text that two records have in common only where they are the same."""
    try:
        return _ENCODER.encode(entry)
    except (UnicodeEncodeError, OverflowError):  # a lone surrogate, or a very large number
        return repr(entry)


_ENCODER: Final = msgspec.msgpack.Encoder()


def _latest_rows(rows: Iterable[Row], *, keeps_records: bool) -> list[Row]:
    """Return the latest state of each row, with its messages read.

    Of rows with the same id the last one counts. One that equals the row before is a copy, and
    noted in its remarks.
    """
    latest: dict[tuple[str, str | int], Row] = {}
    contents: dict[tuple[str, str | int], int] = {}
    messages = _Messages()
    for number, row in enumerate(rows):
        key = (row.trace, row.own or number)
        if row.own:
            content = hash(_exact_text(row.record))
            if contents.get(key) == content:
                row.remarks = {**row.remarks, "repeated_row": 1}
            contents[key] = content
        if not keeps_records:
            row.record = None
        row.request, row.request_keys = messages.read(row.request)
        row.response_keys = [message_key(entry) for entry in row.response]
        latest[key] = row
    return list(latest.values())


class _OpenEnds:
    """The ends of conversations, which a request may continue.

    Messages from the first to a later one are a beginning. It is known by a number, which its last
    message and the number of the beginning before that tell.
    """

    def __init__(self) -> None:
        """Begin without a conversation."""
        self._numbers: dict[tuple[int, MessageKey], int] = {}
        self._traces: dict[int, str] = {}

    def trace_of(self, row: Row, new: str) -> str:
        """Return the trace whose last answer a request continues, else a new one.

        The end of the trace is then the row's answer.
        """
        beginnings = [0]
        for key in (*row.request_keys, *row.response_keys):
            beginning = (beginnings[-1], key)
            number = self._numbers.setdefault(beginning, len(self._numbers) + 1)
            beginnings.append(number)
        before = beginnings[1 : len(row.request_keys)]
        end = next(filter(self._traces.__contains__, reversed(before)), None)
        trace = new if end is None else self._traces.pop(end)
        self._traces[beginnings[-1]] = trace
        return trace


def _runs_of_trace(trace: str, rows: list[Row]) -> Iterator[Run]:
    """Yield the run of a trace, and those of its sub-agents: the rows below calls of tools."""
    groups = [row.group for row in rows if row.group]
    runs: list[Run] = []
    names: list[str] = []
    for agent, own_rows in _rows_by_agent(rows).items():
        run = _run_of_rows(trace, sorted(own_rows, key=_started))
        if run is None:
            continue
        run.cluster = groups[0] if groups else trace
        if agent:
            run.id = f"{trace}/{agent}"
            run.facets = {"subagent_of": trace}
            names.append(run.id)
        runs.append(run)
    missing = {row.parent for row in rows if row.parent}
    missing.difference_update([row.own for row in rows])
    for run in runs:
        if run.facets:
            continue
        run.children = tuple(names)
        if missing:
            run.remarks = {**run.remarks, "missing_parent": len(missing)}
    yield from runs


def _rows_by_agent(rows: list[Row]) -> dict[str, list[Row]]:
    """Return rows by the sub-agent that they belong to, "" for the run's own.

    A call of a tool is a sub-agent where rows of models stand below it.
    """
    if "tool" not in [row.kind for row in rows]:
        return {"": rows}
    by_id = {row.own: row for row in rows if row.own}
    tools = [_tool_above(row, by_id) for row in rows]
    agents = {tool for row, tool in zip(rows, tools, strict=True) if row.kind == "model"}
    by_agent: dict[str, list[Row]] = {"": []}
    for row, tool in zip(rows, tools, strict=True):
        agent = _agent_above(tool, agents, by_id)
        by_agent.setdefault(agent, []).append(row)
    return by_agent


def _agent_above(tool: str, agents: set[str], by_id: dict[str, Row]) -> str:
    """Return the nearest sub-agent that a call of a tool is, or stands below; "" for none."""
    visited: set[str] = set()
    while tool and tool not in agents and tool not in visited:
        visited.add(tool)
        tool = _tool_above(by_id[tool], by_id)
    return tool if tool in agents else ""


def _tool_above(row: Row, by_id: dict[str, Row]) -> str:
    """Return the id of the call of a tool that a row stands below; "" where there is none."""
    visited = {row.own}
    above = by_id.get(row.parent)
    while above is not None and above.own not in visited:
        if above.kind == "tool":
            return above.own
        visited.add(above.own)
        above = by_id.get(above.parent)
    return ""


def _run_of_rows(trace: str, rows: list[Row]) -> Run | None:
    """Return the run of rows in order; None where they neither answer nor call a tool."""
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    models = by_kind.get("model", [])
    tools = by_kind.get("tool", [])
    roots = by_kind.get("root", [])
    if not models and not tools and (not roots or roots[0].text is None):
        return None
    answered = [row for row in models if row.error is None] or models
    conversation = _conversation(answered)
    names = [row.model for row in models if row.model]
    tools_on_offer = [row.tools for row in models if row.tools]
    usage = added([row.usage for row in models])
    first = rows[0]
    run = Run(
        id=trace,
        entries=conversation,
        is_in_api_form=True,
        source=first.source,
        first=first.record,
        model=names[-1] if names else None,
        tools=tools_on_offer[-1] if tools_on_offer else None,
        usage=usage,
        trace={"trace_id": trace},
    )
    for row in rows:
        if row.remarks:
            counts = {kind: run.remarks.get(kind, 0) + 1 for kind in row.remarks}
            run.remarks = {**run.remarks, **counts}
    if tools and not any(map(_has_calls, run.entries)):
        run.entries[-1:-1] = _calls_of_tools(tools)
        tools = []
    run.results = [
        ToolResult(row.name, row.arguments, row.result, _error_text(row.error))
        for row in (*tools, *by_kind.get("step", []))
    ]
    if answered:
        run.error = answered[-1].error
    if roots:
        _add_root(run, roots[0])
    for row in roots:
        run.recorded = {**row.recorded, **run.recorded}
    return run


def _add_root(run: Run, root: Row) -> None:
    """Add the question, answer, expectation, scores and error of a trace's root."""
    run.source = root.source
    run.first = root.record
    run.id = root.task or run.id
    run.expected = Expectation(text=root.expected)
    if not any(word(entry, "role") == "user" for entry in run.entries):
        run.entries[:0] = root.request
    if root.text is not None and not any(map(_is_answer, run.entries[-1:])):
        run.entries.append({"role": "assistant", "content": root.text})
    if root.error is not None:
        run.error = root.error


def _is_answer(entry: Any) -> bool:
    """Return whether an entry is an answer that says something and calls nothing."""
    text = text_of(as_map(entry).get("content"))
    return word(entry, "role") == "assistant" and text != "" and not _has_calls(entry)


def _conversation(models: list[Row]) -> list[Any]:
    """Return the entries of a conversation: the new messages of each request, and its answer."""
    entries: list[Any] = []
    keys: list[MessageKey] = []
    for row in models:
        entries += add_request(keys, row.request, row.request_keys)
        entries += row.response
        keys += row.response_keys
    return entries


def add_request(
    keys: list[MessageKey], messages: list[Any], message_keys: list[MessageKey]
) -> list[Any]:
    """Return the messages of a request that its conversation does not have yet.

    Args:
        keys: The keys of the messages of the conversation, to which those of new ones are added.
        messages: The messages of the request.
        message_keys: Their keys.
    """
    n_shared = 0
    for key, other in zip(keys, message_keys, strict=False):
        if key != other:
            break
        n_shared += 1
    new_messages = messages[n_shared:]
    new_keys = message_keys[n_shared:]
    if n_shared < len(keys):
        known = set(keys)
        is_new = [key not in known for key in new_keys]
        new_messages = [*compress(new_messages, is_new)]
        new_keys = [*compress(new_keys, is_new)]
    keys += new_keys
    return new_messages


def message_key(entry: Any) -> MessageKey:
    """Return a key that is equal for two records of one message: text, speaker, calls, results."""
    message = as_map(entry)
    kind = message.get("type")
    if kind and kind != "message" and isinstance(kind, str):
        identifier = message.get("call_id", message.get("id"))
        return kind, f"{[identifier, *map(message.get, _ITEM_KEYS)]}"
    content = message.get("content")
    listed = message.get("tool_calls")
    calls = [_call_key(as_map(call)) for call in as_list(listed)] if listed else []
    results: list[Any] = []
    if isinstance(content, str):
        text = content
    elif isinstance(content, dict):
        text = compact(content)
    else:
        text = text_of(content)
        for block in as_list(content):
            if isinstance(block, dict) and "tool_use_id" in block:
                results.append(block["tool_use_id"])
            elif word(block, "type") == "tool_use":
                calls.append(block.get("id"))
    role = message.get("role")
    tool_call_id = message.get("tool_call_id")
    return text, f"{role!r} {calls} {results} {tool_call_id!r}"


def _call_key(call: Mapping[str, Any]) -> Any:
    return call.get("id") or as_map(call.get("function", call)).get("name")


_ITEM_KEYS: Final = ("name", "arguments", "output")


def _has_calls(entry: Any) -> bool:
    message = as_map(entry)
    blocks = [word(block, "type") for block in as_list(message.get("content"))]
    is_call = word(entry, "type").endswith("_call")
    return is_call or bool(message.get("tool_calls")) or "tool_use" in blocks


def _calls_of_tools(tools: list[Row]) -> Iterator[Any]:
    """Yield the calls that rows of tools are, where no answer made any, and their results."""
    for row in tools:
        identifier = row.own or None
        call = {"id": identifier, "name": row.name, "arguments": row.arguments}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": identifier, "name": row.name}
        if row.error is None:
            yield {**result, "content": row.result}
        else:
            error_text = _error_text(row.error)
            yield {**result, "content": error_text, "status": "error"}


def _error_text(error: Any) -> str | None:
    if error is None or isinstance(error, str):
        return error
    about = as_map(error)
    message = about.get("message", about.get("error"))
    return message if isinstance(message, str) else compact(error)
