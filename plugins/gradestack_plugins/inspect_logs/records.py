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

ATTACHMENT: Final = "attachment://"
VALUES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Grades that scorers give as letters: correct, incorrect, partial, no answer."""
_UNPARSED: Final = "Error parsing the following tool call arguments: "


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all samples of a log."""

    model: str | None = None
    task: str | None = None
    finished: bool = True  # whether it has a header, which is written when a task has ended


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


def sample_of(record: Any, header: Header, source: Source) -> Sample:  # noqa: C901
    """Return the sample of a record of a log, whose attachments are known by name.

    Raises:
        ValueError: It has no id, or its messages are no list.
    """
    if not isinstance(record, dict):
        raise ValueError(f"expected a sample (an object), found {compact(record)[:60]}")
    identifier, epoch = record.get("id"), record.get("epoch")
    if not isinstance(identifier, str | int) or isinstance(identifier, bool):
        raise ValueError(f"id: expected text or a whole number, found {compact(identifier)[:60]}")
    if not isinstance(record.get("messages"), list):
        raise ValueError(f"messages: expected a list, found {compact(record.get('messages'))[:60]}")
    attachment: Callable[[str], Any] = getattr(record.get("attachments"), "get", lambda _: None)
    lost = dict[str, int]()

    def resolved(value: JSON) -> JSON:
        if isinstance(value, str):
            if not value.startswith(ATTACHMENT):
                return value
            found = attachment(value.removeprefix(ATTACHMENT))
            if isinstance(found, str):
                return found
            lost["attachment_missing"] = lost.get("attachment_missing", 0) + 1
            return value
        if isinstance(value, list):
            return [resolved(each) for each in value]
        return (
            {key: resolved(each) for key, each in value.items()}
            if isinstance(value, dict)
            else value
        )

    models = [
        each for each in map(as_map, as_list(record.get("events"))) if each.get("event") == "model"
    ]
    talk = _Talk()
    talk.read(map(_message, resolved(record["messages"])))
    recorded = _recorded(as_map(record.get("scores")), resolved)
    facets = {"task": header.task} if header.task is not None else {}
    more: dict[str, Any] = {
        "model": header.model,
        "tools": _tools(resolved(models[0].get("tools"))) if models else None,
        "recorded": recorded,
        "state": resolved(record.get("store")) or None,
        "usage": _usage(record, len(models)),
        "agent_usage": record.get("model_usage") or None,
        "ended": "completed",
    }
    if record.get("invalidation"):
        lost["invalidated"] = 1
    if impossible := impossible_amounts(record.get("total_time")):
        lost[IMPOSSIBLE_AMOUNT] = impossible
    limit = as_map(record.get("limit")).get("type")
    if limit is not None:
        more["ended"] = f"limit:{limit}"
    if record.get("error"):
        more |= {**broken(record["error"], "the sample ended in an error"), "ended": "error"}
    target = record.get("target")
    targets = [target] if isinstance(target, str) else as_list(target)
    if len(targets) == 1 and isinstance(targets[0], str):
        more["expected"] = Expectation(text=resolved(targets[0]))
    if not talk.asked:
        asked = resolved(record.get("input"))
        talk.asked = (
            [asked]
            if isinstance(asked, str)
            else [text_of(as_map(each).get("content")) for each in as_list(asked)]
        )
    run = epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None
    known = Identity(
        str(identifier), run, None, {}, {**facets, **as_map(record.get("metadata"))}, lost
    )
    place = source if isinstance(identifier, str) else replace(source, id=identifier)
    return log_sample(known, talk, place, **more)


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


def _recorded(scores: Mapping[str, Any], resolved: Callable[[JSON], JSON]) -> dict[str, JSON]:
    """Return scores by the names of their scorers, of several values by ``SCORER.NAME``, and what
    scorers say.
    """
    found: dict[str, JSON] = {}
    explained: dict[str, JSON] = {}
    for name, score in scores.items():
        value = as_map(score).get("value")
        several = (
            value
            if isinstance(value, dict)
            else dict(enumerate(value))
            if isinstance(value, list)
            else None
        )
        values = (
            {name: value}
            if several is None
            else {f"{name}.{key}": each for key, each in several.items()}
        )
        said = text_or_none(resolved(as_map(score).get("explanation")))
        for key, each in values.items():
            number = (
                VALUES.get(each)
                if isinstance(each, str)
                else float(each)
                if isinstance(each, bool)
                else each
            )
            if isinstance(number, float) and not math.isfinite(number):
                continue  # not scored
            found[key] = each if number is None else number
            if said:
                explained[key] = said
    return {**found, "explanations": explained} if explained else found


def _usage(record: Mapping[str, Any], asked: int) -> Usage | None:
    by_model = [
        each for each in as_map(record.get("model_usage")).values() if isinstance(each, dict)
    ]
    costs = [cost for each in by_model if (cost := as_number(each.get("total_cost"))) is not None]
    more = {
        "cost_usd": sum(costs) if costs else None,
        "seconds": as_number(record.get("total_time")),
    }
    found = replace(added(map(usage_of, by_model)) or Usage(), requests=asked or None, **more)
    return found if found != Usage() else None
