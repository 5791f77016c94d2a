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
from gradestack_plugins.readers.chat import text_of, tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, text_or_none
from gradestack_plugins.readers.chat.identity import Identity
from gradestack_plugins.readers.chat.logs import broken, log_sample
from gradestack_plugins.readers.chat.usage import added, usage_of
from gradestack_plugins.readers.declared import Items, Object, Text, convert_record

ATTACHMENT: Final = "attachment://"
VALUES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Grades that scorers give as letters: correct, incorrect, partial, no answer."""
_UNPARSED: Final = "Error parsing the following tool call arguments: "


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all samples of a log."""

    model: Text = None
    task: Text = None
    finished: bool = True  # whether it has a header, which is written when a task has ended


class _Limit(msgspec.Struct):
    """The limit that ended a sample."""

    type: Any = None


class _Score(msgspec.Struct):
    """What a scorer gave, and what it says of it."""

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
    """Return what a header says, or the beginning of an unfinished log."""
    of_task = as_map(as_map(value).get("eval"))
    model, task = text_or_none(of_task.get("model")), text_or_none(of_task.get("task"))
    return Header(model=model, task=task, finished=finished)


class _Talk(Conversation):
    """Reads messages whose results may stand beside an error."""

    @override
    def _result_message(self, role: str, entry: dict[str, Any]) -> None:
        problem = entry.get("error")
        if not isinstance(problem, dict):
            super()._result_message(role, entry)
            return
        said, identifier = (
            text_or_none(problem.get("message")) or compact(problem),
            entry.get("tool_call_id"),
        )
        result = entry.get("content") or said
        self.answered(
            identifier, entry.get("name"), result, said, text_or_none(problem.get("type"))
        )
        self.add(Message(role=role, content=result, tool_call_id=text_or_none(identifier)))


def sample_of(value: Any, header: Header, source: Source) -> Sample:
    """Return the sample of a record of a log, whose attachments are known by name.

    Raises:
        ValueError: It has no id, or its messages are no list.
    """
    record, remarks = convert_record(value, _Record)
    attachments = _Attachments(record.attachments, remarks)
    resolved = attachments.resolved
    models = [each for each in record.events or () if as_map(each).get("event") == "model"]
    talk = _Talk()
    talk.read(map(_message, resolved(record.messages)))
    if record.invalidation:
        remarks["invalidated"] = 1
    if impossible := impossible_amounts(record.total_time):
        remarks[IMPOSSIBLE_AMOUNT] = impossible
    more: dict[str, Any] = {
        "model": header.model,
        "tools": _tools(resolved(models[0].get("tools"))) if models else None,
        "recorded": _recorded(record.scores or {}, resolved),
        "state": resolved(record.store) or None,
        "usage": _usage(record, len(models)),
        "agent_usage": record.model_usage or None,
        "ended": "completed",
    }
    if record.limit is not None and record.limit.type is not None:
        more["ended"] = f"limit:{record.limit.type}"
    if record.error:
        more |= {**broken(record.error, "the sample ended in an error"), "ended": "error"}
    targets = [record.target] if isinstance(record.target, str) else record.target or []
    if len(targets) == 1 and isinstance(targets[0], str):
        more["expected"] = Expectation(text=resolved(targets[0]))
    if not talk.asked:
        asked = resolved(record.input)
        texts = [text_of(as_map(each).get("content")) for each in as_list(asked)]
        talk.asked = [asked] if isinstance(asked, str) else texts
    facets = {"task": header.task} if header.task is not None else {}
    facets |= record.metadata or {}
    known = Identity(str(record.id), record.epoch, None, {}, facets, remarks)
    place = source if isinstance(record.id, str) else replace(source, id=record.id)
    return log_sample(known, talk, place, **more)


class _Attachments:
    """Long texts of a sample that stand apart, by their names."""

    def __init__(self, held: Any, remarks: dict[str, int]) -> None:
        self._get: Callable[[str], Any] = getattr(held, "get", lambda _: None)
        self._remarks = remarks

    def resolved(self, value: JSON) -> JSON:
        """Return a value with the texts that it names; each that is missing is remarked."""
        if isinstance(value, str):
            return self._text(value) if value.startswith(ATTACHMENT) else value
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        if isinstance(value, dict):
            return {key: self.resolved(each) for key, each in value.items()}
        return value

    def _text(self, name: str) -> str:
        text = self._get(name.removeprefix(ATTACHMENT))
        if isinstance(text, str):
            return text
        self._remarks["attachment_missing"] = self._remarks.get("attachment_missing", 0) + 1
        return name


def _message(entry: Any) -> Any:
    """Return a message in the form of OpenAI's API, calls of a server's tools as blocks."""
    if not isinstance(entry, dict):
        return entry
    changes: dict[str, Any] = {"usage": None}
    if isinstance(entry.get("tool_calls"), list):
        changes["tool_calls"] = [_call(each) for each in entry["tool_calls"]]
    if isinstance(entry.get("content"), list):
        changes["content"] = [block for each in entry["content"] for block in _blocks(each)]
    if entry.get("role") == "tool":
        changes["name"] = entry.get("function")
    return {**entry, **changes}


def _call(call: Any) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("function"), str):
        return call
    arguments, problem = call.get("arguments"), call.get("parse_error")
    if isinstance(problem, str):
        arguments = problem.removeprefix(_UNPARSED)
    function = {"name": call["function"], "arguments": arguments}
    return {"id": call.get("id"), "type": "function", "function": function}


def _blocks(block: Any) -> Iterable[Any]:
    """Yield a block of a message.

    One that holds the call of a server's tool and its result as two.
    """
    if not isinstance(block, dict) or block.get("type") != "tool_use" or "tool_type" not in block:
        yield block
        return
    kind = "mcp_tool_use" if block["tool_type"] == "mcp_call" else "server_tool_use"
    yield {**block, "type": kind, "server_name": block.get("context")}
    problem = block.get("error")
    if block.get("result") is not None or problem:
        found = {
            "type": "tool_result",
            "tool_use_id": block.get("id"),
            "content": block.get("result"),
        }
        yield {**found, **({"is_error": True, "content": problem} if problem else {})}


def _tools(raws: Any) -> tuple[ToolSpec, ...] | None:
    if not isinstance(raws, list):
        return None
    return tuple(found for each in raws if (found := tool_spec(each)) is not None)


def _recorded(scores: Mapping[str, _Score], resolved: Callable[[JSON], JSON]) -> dict[str, JSON]:
    """Return scores by the names of their scorers, of several values by ``SCORER.NAME``, and what
    scorers say.
    """
    found: dict[str, JSON] = {}
    explained: dict[str, JSON] = {}
    for name, score in scores.items():
        several = dict(enumerate(score.value)) if isinstance(score.value, list) else score.value
        values = {name: several}
        if isinstance(several, dict):
            values = {f"{name}.{key}": each for key, each in several.items()}
        said = text_or_none(resolved(score.explanation))
        for key, each in values.items():
            number = _number(each)
            if isinstance(number, float) and not math.isfinite(number):
                continue  # not scored
            found[key] = each if number is None else number
            if said:
                explained[key] = said
    return {**found, "explanations": explained} if explained else found


def _number(value: JSON) -> JSON:
    """Return a score as a number; None of a text that is no grade."""
    if isinstance(value, str):
        return VALUES.get(value)
    return float(value) if isinstance(value, bool) else value


def _usage(record: _Record, asked: int) -> Usage | None:
    by_model = (record.model_usage or {}).values()
    costs = [as_number(each.get("total_cost")) for each in by_model]
    known_costs = [cost for cost in costs if cost is not None]
    more = {
        "cost_usd": sum(known_costs) if known_costs else None,
        "seconds": as_number(record.total_time),
    }
    found = replace(added(map(usage_of, by_model)) or Usage(), requests=asked or None, **more)
    return found if found != Usage() else None
