"""A sample of an inspect_ai log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import (
    IMPOSSIBLE_AMOUNT,
    JSON,
    Expectation,
    Message,
    Sample,
    Source,
    ToolSpec,
    Usage,
    impossible_amounts,
    replace,
)
from gradestack.jsonio import as_list, as_map, as_number, compact
from gradestack_plugins.readers.chat import text_of, text_or_none, tool_spec, word
from gradestack_plugins.readers.chat.conversation import Conversation
from gradestack_plugins.readers.chat.identity import Identity
from gradestack_plugins.readers.chat.samples import broken, log_sample
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.declared import Items, Object, Text, convert_record

ATTACHMENT: Final = "attachment://"
VALUES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Grades that scorers give as letters: correct, incorrect, partial, no answer."""
_UNPARSED: Final = "Error parsing the following tool call arguments: "


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The model and the task of a log."""

    model: Text = None
    task: Text = None
    finished: bool = True
    """Whether it has a header, which is written when a task has ended."""


class _Limit(msgspec.Struct):
    """The limit that ended a sample."""

    type: Any = None


class _Score(msgspec.Struct):
    """The value of a scorer, and its explanation."""

    value: Any = None
    explanation: Any = None


class _Record(msgspec.Struct):
    """A sample of a log, as far as it is read."""

    id: str | int
    messages: list[Any]
    epoch: int | None = None
    attachments: Any = None
    events: Items = None
    scores: dict[str, _Score] | None = None
    store: Any = None
    model_usage: dict[str, dict[str, Any]] | None = None
    total_time: Any = None
    invalidation: Any = None
    limit: _Limit | None = None
    error: Any = None
    target: str | list[Any] | None = None
    input: str | list[Any] | None = None
    metadata: Object = None


def header_of(value: Any, *, finished: bool = True) -> Header:
    """Return the header of a log, or of the beginning of an unfinished one."""
    about = as_map(as_map(value).get("eval"))
    model = text_or_none(about.get("model"))
    task = text_or_none(about.get("task"))
    return Header(model=model, task=task, finished=finished)


class _Talk(Conversation):
    """Reads messages whose results may stand beside an error."""

    @override
    def _read_result(self, role: str, entry: dict[str, Any]) -> None:
        problem = entry.get("error")
        if not isinstance(problem, dict):
            super()._read_result(role, entry)
            return
        message = text_or_none(problem.get("message")) or compact(problem)
        identifier = entry.get("tool_call_id")
        kind = text_or_none(problem.get("type"))
        result = entry.get("content") or message
        self.give_result(identifier, entry.get("name"), result, message, kind)
        tool_call_id = text_or_none(identifier)
        self.add(Message(role=role, content=result, tool_call_id=tool_call_id))


def sample_of(value: Any, header: Header, source: Source) -> Sample:
    """Return the sample of a record of a log, whose attachments are known by name.

    Raises:
        ValueError: The record has no id, or its messages are no list.
    """
    record, remarks = convert_record(value, _Record)
    attachments = _Attachments(record.attachments, remarks)
    resolved = attachments.resolved
    events = [as_map(event) for event in record.events or ()]
    requests = [event for event in events if event.get("event") == "model"]
    talk = _Talk()
    talk.read(map(_message, resolved(record.messages)))
    if record.invalidation:
        remarks["invalidated"] = 1
    impossible = impossible_amounts(record.total_time)
    if impossible:
        remarks[IMPOSSIBLE_AMOUNT] = impossible
    if not talk.questions:
        talk.questions = _questions(resolved(record.input))
    if header.task is None:
        facets = {}
    else:
        facets = {"task": header.task}
    identity = Identity(
        str(record.id), record.epoch, None, {}, facets | (record.metadata or {}), remarks
    )
    tools = None
    if requests:
        tools = _tools(resolved(requests[0].get("tools")))
    scores = record.scores or {}
    recorded = _recorded(scores, resolved)
    state = resolved(record.store) or None
    usage = _usage(record, len(requests))
    agent_usage = record.model_usage or None
    end = _end_of(record)
    sample = log_sample(
        identity,
        talk,
        source if isinstance(record.id, str) else replace(source, id=record.id),
        model=header.model,
        tools=tools,
        recorded=recorded,
        state=state,
        usage=usage,
        agent_usage=agent_usage,
        **end,
    )
    if isinstance(record.target, str):
        targets = [record.target]
    else:
        targets = record.target or []
    if len(targets) != 1 or not isinstance(targets[0], str):
        return sample
    text = resolved(targets[0])
    expectation = Expectation(text=text)
    return replace(sample, expected=expectation)


def _end_of(record: _Record) -> dict[str, Any]:
    """Return the end of a sample: by itself, at a limit, or in an error."""
    if record.error:
        return {**broken(record.error, "the sample ended in an error"), "ended": "error"}
    if record.limit is None:
        limit = None
    else:
        limit = record.limit.type
    return {"ended": "completed" if limit is None else f"limit:{limit}"}


def _questions(requests_made: Any) -> list[str]:
    if isinstance(requests_made, str):
        return [requests_made]
    messages = as_list(requests_made)
    return [text_of(as_map(message).get("content")) for message in messages]


class _Attachments:
    """Long texts of a sample in a place of their own, by their names."""

    def __init__(self, recorded_texts: Any, remarks: dict[str, int]) -> None:
        self._get: Callable[[str], Any] = getattr(recorded_texts, "get", lambda _: None)
        self._remarks = remarks

    def resolved(self, value: JSON) -> JSON:
        """Return a value with the texts that it names, and count a remark for missing ones."""
        if isinstance(value, str):
            return self._text(value) if value.startswith(ATTACHMENT) else value
        if isinstance(value, list):
            return [self.resolved(item) for item in value]
        if isinstance(value, dict):
            return {key: self.resolved(item) for key, item in value.items()}
        return value

    def _text(self, name: str) -> str:
        text = self._get(name.removeprefix(ATTACHMENT))
        if isinstance(text, str):
            return text
        attachment_missing = self._remarks.get("attachment_missing", 0)
        self._remarks["attachment_missing"] = attachment_missing + 1
        return name


def _message(entry: Any) -> Any:
    """Return a message in the form of OpenAI's API, calls of a server's tools as blocks."""
    if not isinstance(entry, dict):
        return entry
    changes: dict[str, Any] = {"usage": None}
    if isinstance(entry.get("tool_calls"), list):
        changes["tool_calls"] = list(map(_call, entry["tool_calls"]))
    if isinstance(entry.get("content"), list):
        parts = entry["content"]
        changes["content"] = [block for part in parts for block in _blocks(part)]
    if entry.get("role") == "tool":
        changes["name"] = entry.get("function")
    return {**entry, **changes}


def _call(call: Any) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("function"), str):
        return call
    arguments = call.get("arguments")
    problem = call.get("parse_error")
    if isinstance(problem, str):
        arguments = problem.removeprefix(_UNPARSED)
    function = {"name": call["function"], "arguments": arguments}
    return {"id": call.get("id"), "type": "function", "function": function}


def _blocks(block: Any) -> Iterable[Any]:
    """Yield a block of a message; the call of a server's tool with its result as two."""
    if word(block, "type") != "tool_use" or "tool_type" not in block:
        yield block
        return
    kind = "mcp_tool_use" if block["tool_type"] == "mcp_call" else "server_tool_use"
    context = block.get("context")
    yield {**block, "type": kind, "server_name": context}
    result = block.get("result")
    problem = block.get("error")
    if result is not None or problem:
        tool_use_id = block.get("id")
        entry = {"type": "tool_result", "tool_use_id": tool_use_id, "content": result}
        yield {**entry, "is_error": True, "content": problem} if problem else entry


def _tools(recorded: Any) -> tuple[ToolSpec, ...] | None:
    if not isinstance(recorded, list):
        return None
    specs = map(tool_spec, recorded)
    return tuple([spec for spec in specs if spec is not None])


def _recorded(scores: Mapping[str, _Score], resolved: Callable[[JSON], JSON]) -> dict[str, JSON]:
    """Return scores by the names of their scorers, and the explanations of scorers.

    The scores of several values have names ``SCORER.NAME``.
    """
    recorded: dict[str, JSON] = {}
    explanations: dict[str, JSON] = {}
    for name, score in scores.items():
        if isinstance(score.value, list):
            value = dict(enumerate(score.value))
        else:
            value = score.value
        values = {name: value}
        if isinstance(value, dict):
            values = {f"{name}.{key}": inner for key, inner in value.items()}
        explanation = text_or_none(resolved(score.explanation))
        for key, inner in values.items():
            number = _number(inner)
            if isinstance(number, float) and not math.isfinite(number):
                continue  # not scored
            recorded[key] = inner if number is None else number
            if explanation:
                explanations[key] = explanation
    return {**recorded, "explanations": explanations} if explanations else recorded


def _number(value: JSON) -> JSON:
    """Return a score as a number; None of a text that is no grade."""
    if isinstance(value, str):
        return VALUES.get(value)
    return float(value) if isinstance(value, bool) else value


def _usage(record: _Record, requests_made: int) -> Usage | None:
    """Return tokens, cost, requests and time of a sample, over all models, or None."""
    by_model = (record.model_usage or {}).values()
    costs = [as_number(model_usage.get("total_cost")) for model_usage in by_model]
    known_costs = [cost for cost in costs if cost is not None]
    usage = added(map(usage_of, by_model)) or Usage()
    cost = sum(known_costs) if known_costs else None
    seconds = as_number(record.total_time)
    requests = requests_made or None
    usage = replace(usage, requests=requests, cost_usd=cost, seconds=seconds)
    return None if usage == Usage() else usage
