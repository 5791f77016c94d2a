"""Runs out of rows: the rows of one trace are one run.

A row is a call of a model, a call of a tool, a step that may be one, or the root of its trace. What
models and tools do below a call of a tool is the run of a sub-agent.
Requests of one trace mostly repeat what was said before: what a request adds is appended, then its
answer. Rows of tools give results to the calls that answers made, by name and order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from gradestack import JSON, Expectation, Source, Usage
from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.readers.chat import text_of, word
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.runs import Run, ToolResult

Kind = Literal["model", "tool", "step", "root", "other"]


class Row(msgspec.Struct, kw_only=True):
    """One row of a trace."""

    kind: Kind
    trace: str = ""
    """What rows of one run share; "" where they name nothing: then requests tell which go on."""
    own: str = ""
    """The id of the row, by which others name it as their parent."""
    parent: str = ""
    group: str | None = None
    """What several traces share, where that is known."""
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
    id: str = ""
    """Of a root, the id of its task, where that is not the trace."""
    source: Source | None = None
    record: Any = None


def runs_of_rows(rows: Iterable[Row], stem: str) -> Iterator[Run]:
    """Yield a run for each trace that has a call of a model or of a tool, or a root, in order.

    Args:
        rows: The rows of a file.
        stem: What ids begin with that are made up where rows name no trace: ``STEM:0``.
    """
    traces: dict[str, list[Row]] = {}
    made: set[str] = set()
    open_ends: dict[str, str] = {}
    for row in _latest(rows):
        trace = row.trace
        if not trace:
            keys = [_key(entry) for entry in row.asked]
            trace = _continued(keys, open_ends) or f"{stem}:{len(made)}"
            made.add(trace)
            open_ends["".join([*keys, *map(_key, row.answer)])] = trace
        traces.setdefault(trace, []).append(row)
    for trace, own in traces.items():
        for run in _runs_of_trace(trace, own):
            if trace in made:
                run.cluster, run.trace = None, {}
            yield run


def _latest(rows: Iterable[Row]) -> list[Row]:
    """Return rows once each: one that is there again, with the same id, is a later state of it."""
    found: dict[tuple[str, str], Row] = {}
    for number, row in enumerate(rows):
        found[row.trace, row.own or f"{number} without an id"] = row
    return list(found.values())


def _runs_of_trace(trace: str, rows: list[Row]) -> Iterator[Run]:
    """Yield the run of a trace, and those of its sub-agents: what stands below calls of tools."""
    agents = _rows_by_agent(rows)
    group = next((row.group for row in rows if row.group), None)
    runs = []
    for agent, own in agents.items():
        run = _run_of(trace, sorted(own, key=lambda row: row.started))
        if run is None:
            continue
        run.cluster = group or trace
        if agent:
            run.id = f"{trace}/{agent}"
            run.facets = {**run.facets, "subagent_of": trace}
        runs.append(run)
    names = [run.id for run in runs if "subagent_of" in run.facets]
    for run in runs:
        if "subagent_of" not in run.facets:
            run.children = tuple(names)
    yield from runs


def _rows_by_agent(rows: list[Row]) -> dict[str, list[Row]]:
    """Return rows by the call of a tool that they stand below and that calls a model; "" for none.

    A tool that calls no model is none: its inner rows belong to whoever called it.
    """
    by_id = {row.own: row for row in rows if row.own}
    places = [_tool_above(row, by_id) for row in rows]
    agents = {place for row, place in zip(rows, places, strict=True) if row.kind == "model"}
    found: dict[str, list[Row]] = {"": []}
    for row, place in zip(rows, places, strict=True):
        found.setdefault(_agent_above(place, agents, by_id), []).append(row)
    return found


def _agent_above(place: str, agents: set[str], by_id: dict[str, Row]) -> str:
    """Return the nearest sub-agent that a call of a tool is, or stands below; "" for none."""
    seen: set[str] = set()
    while place and place not in agents and place not in seen:
        seen.add(place)
        place = _tool_above(by_id[place], by_id)
    return place if place in agents else ""


def _tool_above(row: Row, by_id: dict[str, Row]) -> str:
    """Return the id of the call of a tool that a row stands below; "" where there is none."""
    seen = {row.own}
    above = by_id.get(row.parent)
    while above is not None and above.own not in seen:
        if above.kind == "tool":
            return above.own
        seen.add(above.own)
        above = by_id.get(above.parent)
    return ""


def _continued(keys: list[str], open_ends: dict[str, str]) -> str:
    """Return the trace whose last answer a request goes on from; "" where there is none.

    Args:
        keys: Those of the messages of the request.
        open_ends: What was asked and answered last in each trace, and the trace; that one is taken
            from it.
    """
    for count in range(len(keys) - 1, 0, -1):
        trace = open_ends.pop("".join(keys[:count]), "")
        if trace:
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
        model=next((row.model for row in reversed(models) if row.model), None),
        tools=next((row.tools for row in reversed(models) if row.tools), None),
        usage=_added_usage(models),
        trace={"trace_id": trace},
    )
    if answered and answered[-1].error is not None:
        run.error = answered[-1].error
    if root is not None:
        _add_root(run, root)
    for row in rows:
        run.recorded = {**row.recorded, **run.recorded}
    return run


def _add_root(run: Run, root: Row) -> None:
    """Add what the root of a trace says: question, answer, expectation, scores, error."""
    run.source, run.first = root.source, root.record
    run.id = root.id or run.id
    if not any(word(entry, "role") == "user" for entry in run.entries):
        run.entries = [*root.asked, *run.entries]
    if root.text is not None and not any(map(_is_answer, run.entries[-1:])):
        run.entries.append({"role": "assistant", "content": root.text})
    if isinstance(root.expected, str):
        run.expected = Expectation(text=root.expected)
    if root.error is not None:
        run.error = root.error


def _is_answer(entry: Any) -> bool:
    """Return whether an entry is an answer that says something and calls nothing."""
    speaks = word(entry, "role") == "assistant" and text_of(as_map(entry).get("content")) != ""
    return speaks and not _has_calls(entry)


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
        parts = [kind, said.get("call_id", said.get("id")), *map(said.get, _OF_ITEMS)]
        return f"{parts}\n"
    content = said.get("content")
    blocks = [as_map(block) for block in as_list(content)]
    calls = [as_map(call).get("id") for call in as_list(said.get("tool_calls"))]
    calls += [block.get("id") for block in blocks if block.get("type") == "tool_use"]
    results = [block.get("tool_use_id") for block in blocks if "tool_use_id" in block]
    return f"{[said.get('role'), text_of(content), calls, results, said.get('tool_call_id')]}\n"


_OF_ITEMS: Final = ("name", "arguments", "output")


def _has_calls(entry: Any) -> bool:
    said = as_map(entry)
    blocks = [word(block, "type") for block in as_list(said.get("content"))]
    is_call = word(entry, "type").endswith("_call")
    return is_call or bool(said.get("tool_calls")) or "tool_use" in blocks


def _calls_of(tools: list[Row]) -> Iterator[Any]:
    """Yield the calls that rows of tools are, where no answer made any, and their results."""
    for row in tools:
        call = {"id": row.own or None, "name": row.name, "arguments": row.arguments}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": row.own or None, "name": row.name}
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
