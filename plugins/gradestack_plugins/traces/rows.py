"""Runs out of rows: the rows of one trace are one run.

A row is a call of a model, a call of a tool, a step that may be one, or the root of its trace.
Requests of one trace mostly repeat what was said before: what a request adds is appended, then its
answer. Rows of tools give results to the calls that answers made, by name and order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from gradestack import JSON, Expectation, Source, Usage
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers.chat import text_of
from gradestack_plugins.readers.chat.dialect import word
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.runs import Run, ToolResult

Kind = Literal["model", "tool", "step", "root"]


class Row(msgspec.Struct, kw_only=True):
    """One row of a trace."""

    kind: Kind
    trace: str = ""
    """What rows of one run share; "" where they name nothing: then requests tell which go on."""
    started: str = ""
    asked: list[Any] = []
    answer: list[Any] = []
    model: str | None = None
    usage: Any = None
    tools: list[Any] | None = None
    name: str = ""
    """Of a tool's row, what is called."""
    arguments: Any = None
    result: Any = None
    error: Any = None
    text: str | None = None
    """Of a root, the answer of the run."""
    expected: Any = None
    recorded: dict[str, JSON] = {}
    facets: dict[str, JSON] = {}
    id: str = ""
    """Of a root, the id of its task, where that is not the trace."""
    source: Source | None = None
    record: Any = None


def runs_of_rows(rows: Iterable[Row]) -> Iterator[Run]:
    """Yield a run for each trace that has a call of a model or of a tool, or a root, in order."""
    traces: dict[str, list[Row]] = {}
    open_ends: list[tuple[list[str], str]] = []
    for row in rows:
        trace = row.trace
        if not trace:
            trace = _continued(row, open_ends) or f"row-{len(traces)}"
            said = [_key(entry) for entry in (*row.asked, *row.answer)]
            open_ends.append((said, trace))
        traces.setdefault(trace, []).append(row)
    for trace, own in traces.items():
        run = _run_of(trace, sorted(own, key=lambda row: row.started))
        if run is not None:
            yield run


def _continued(row: Row, open_ends: list[tuple[list[str], str]]) -> str:
    """Return the trace whose last answer a request goes on from; "" where there is none."""
    asked = [_key(entry) for entry in row.asked]
    for place in range(len(open_ends) - 1, -1, -1):
        said, trace = open_ends[place]
        if said and len(asked) > len(said) and asked[: len(said)] == said:
            del open_ends[place]
            return trace
    return ""


def _run_of(trace: str, rows: list[Row]) -> Run | None:
    models = [row for row in rows if row.kind == "model"]
    answered = [row for row in models if row.error is None] or models
    root = next((row for row in rows if row.kind == "root"), None)
    tools = [row for row in rows if row.kind == "tool"]
    if not answered and not tools and (root is None or root.text is None):
        return None
    entries = _conversation(answered)
    if tools and not any(map(_has_calls, entries)):
        entries = [*entries[:-1], *_calls_of(tools), *entries[-1:]]
        tools = []
    steps = [row for row in rows if row.kind == "step"]
    results = [
        ToolResult(row.name, row.arguments, row.result, _error_text(row.error))
        for row in (*tools, *steps)
    ]
    run = Run(
        id=trace,
        entries=entries,
        results=results,
        source=rows[0].source,
        first=rows[0].record,
        cluster=trace,
        model=next((row.model for row in reversed(models) if row.model), None),
        tools=next((row.tools for row in reversed(models) if row.tools), None),
        usage=_added_usage(models),
        trace={"trace_id": trace},
    )
    if answered and answered[-1].error is not None:
        run.error = answered[-1].error
    if root is not None:
        _add_root(run, root)
    return run


def _add_root(run: Run, root: Row) -> None:
    """Add what the root of a trace says: question, answer, expectation, scores, error."""
    run.source, run.first = root.source, root.record
    run.id = root.id or run.id
    run.recorded, run.facets = root.recorded, root.facets
    if not any(word(entry, "role") == "user" for entry in run.entries):
        run.entries = [*root.asked, *run.entries]
    speaks = [word(entry, "role") == "assistant" for entry in run.entries]
    if root.text is not None and (not speaks or not speaks[-1]):
        run.entries.append({"role": "assistant", "content": root.text})
    if isinstance(root.expected, str):
        run.expected = Expectation(text=root.expected)
    if root.error is not None:
        run.error = root.error


def _conversation(models: list[Row]) -> list[Any]:
    """Return the entries of a conversation, out of requests that repeat it, and their answers."""
    entries: list[Any] = []
    keys: list[str] = []
    for row in models:
        asked = [_key(entry) for entry in row.asked]
        same = _shared_beginning(keys, asked)
        known = set(keys)
        for place, entry in enumerate(row.asked):
            if place >= same and (same == len(keys) or asked[place] not in known):
                entries.append(entry)
                keys.append(asked[place])
        for entry in row.answer:
            entries.append(entry)
            keys.append(_key(entry))
    return entries


def _shared_beginning(one: list[str], other: list[str]) -> int:
    """Return how many keys two lists begin with in common."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _key(entry: Any) -> str:
    """Return what two records of one message have in common: speaker, text, calls and results."""
    said = as_map(entry)
    kind = word(entry, "type")
    if kind and kind != "message":
        output = said.get("output")
        call = said.get("call_id", said.get("id"))
        return compact([kind, call, said.get("name"), said.get("arguments"), output])
    content = said.get("content")
    blocks = [as_map(block) for block in as_list(content)]
    calls = [as_map(call).get("id") for call in as_list(said.get("tool_calls"))]
    calls += [block.get("id") for block in blocks if block.get("type") == "tool_use"]
    results = [block.get("tool_use_id") for block in blocks if "tool_use_id" in block]
    return compact([said.get("role"), text_of(content), calls, results, said.get("tool_call_id")])


def _has_calls(entry: Any) -> bool:
    said = as_map(entry)
    blocks = [word(block, "type") for block in as_list(said.get("content"))]
    is_call = word(entry, "type").endswith("_call")
    return is_call or bool(said.get("tool_calls")) or "tool_use" in blocks


def _calls_of(tools: list[Row]) -> Iterator[Any]:
    """Yield the calls that rows of tools are, where no answer made any, and their results."""
    for number, row in enumerate(tools):
        call = {"id": f"row-{number}", "name": row.name, "arguments": row.arguments}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": f"row-{number}", "name": row.name}
        if row.error is None:
            yield {**result, "content": row.result}
        else:
            yield {**result, "content": _error_text(row.error), "status": "error"}


def _error_text(error: Any) -> str | None:
    if error is None or isinstance(error, str):
        return error
    said = as_map(error)
    message = said.get("message", said.get("error"))
    return message if isinstance(message, str) else compact(error)


def _added_usage(models: list[Row]) -> Usage | None:
    return added(
        row.usage if isinstance(row.usage, Usage | None) else usage_of(row.usage) for row in models
    )
