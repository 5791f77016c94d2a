"""A simulation's messages: what was said, which calls were made by whom, and how each was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from gradestack import Message, ToolCall, Usage, replace
from gradestack.jsonio import as_list
from gradestack_plugins.readers.chat import parse_arguments, text_of
from gradestack_plugins.tau2_bench.tasks import ASSISTANT

_ROLES = frozenset({"system", "user", ASSISTANT, "tool"})
_TOKENS = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


@attrs.define(eq=False)
class Conversation:
    """What the messages of one simulation come to."""

    messages: list[Message] = attrs.field(factory=list)
    calls: list[ToolCall] = attrs.field(factory=list)
    asked: str | None = None
    """What the user said first."""
    text: str | None = None
    """What the agent said last."""
    tokens: Counter[str] = attrs.field(factory=Counter)
    requests: int = 0
    remarks: Counter[str] = attrs.field(factory=Counter)
    """What could not be used, or has no counterpart, by kind."""
    _open: dict[tuple[str, str], list[int]] = attrs.field(factory=dict)
    """Calls not answered yet, by who made them and their id."""
    _answered: set[tuple[str, str]] = attrs.field(factory=set)
    _turn: int = 0
    _step: int = 0

    def usage(self, cost: float | None, seconds: float | None) -> Usage | None:
        """Return what the agent took; None where nothing is recorded of it."""
        if not self.requests and cost is None and seconds is None:
            return None
        return Usage(requests=self.requests or None, cost_usd=cost, seconds=seconds, **self.tokens)

    def add(self, entry: Any) -> None:
        """Take up one message; several results may stand in one."""
        if not isinstance(entry, dict):
            self.remarks["message_not_an_object"] += 1
            return
        role = entry.get("role")
        if role == "tool":
            grouped = entry.get("tool_messages")
            for each in grouped if isinstance(grouped, list) else (entry,):
                if isinstance(each, dict):
                    self._answer(each)
                else:
                    self.remarks["message_not_an_object"] += 1
            return
        role = role if isinstance(role, str) else ""
        if role not in _ROLES:
            self.remarks["message_of_unknown_role"] += 1
        self._speak(entry, role)

    def _speak(self, entry: dict[str, Any], role: str) -> None:
        content = entry.get("content")
        said = content if isinstance(content, str) else text_of(content)
        if role == "user" and said:
            self._turn += self.asked is not None
            self.asked = said if self.asked is None else self.asked
        made = entry.get("tool_calls")
        calls = tuple(self._calls(made, role)) if made else ()
        if role == ASSISTANT:
            self.text = said or self.text
            self._step += 1
            self._count(entry.get("usage"))
        self.messages.append(Message(role=role, content=content, tool_calls=calls))

    def _calls(self, made: Any, role: str) -> Iterator[ToolCall]:
        for raw in as_list(made):
            if not isinstance(raw, dict):
                self.remarks["call_not_an_object"] += 1
                continue
            name, identifier, requestor = raw.get("name"), raw.get("id"), raw.get("requestor")
            arguments, text = parse_arguments(raw.get("arguments"))
            if arguments is None:
                self.remarks["arguments_undecodable"] += 1
            if not isinstance(name, str):
                self.remarks["call_without_name"] += 1
            by = requestor if isinstance(requestor, str) else role
            call = ToolCall(
                name=name if isinstance(name, str) else "",
                arguments=arguments,
                raw_arguments=text,
                id=identifier if isinstance(identifier, str) and identifier else None,
                requestor=by,
                turn=self._turn,
                step=self._step if role == ASSISTANT else None,
            )
            self._open.setdefault((by, call.id or ""), []).append(len(self.calls))
            self.calls.append(call)
            yield call

    def _answer(self, entry: dict[str, Any]) -> None:
        """Give a result to its call: the one of its id, or without an id the oldest of its requestor that has none."""
        named, requestor, content = entry.get("id"), entry.get("requestor"), entry.get("content")
        key = (requestor if isinstance(requestor, str) else ASSISTANT, named if isinstance(named, str) else "")
        self.messages.append(Message(role="tool", content=content, tool_call_id=key[1] or None))
        waiting = self._open.get(key) or ([] if key[1] else self._oldest(key[0]))
        if not waiting:
            self.remarks["call_answered_twice" if key in self._answered else "result_without_call"] += 1
            return
        place = waiting.pop(0)
        self._answered.add(key)
        error = text_of(content) if entry.get("error") is True else None
        status = "error" if error is not None else "ok"
        self.calls[place] = replace(self.calls[place], result=content, error=error, status=status)

    def _oldest(self, requestor: str) -> list[int]:
        """Return the list of places that begins with the oldest call of somebody that has no result."""
        own = (places for (by, _), places in self._open.items() if by == requestor and places)
        return min(own, default=[])

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, Mapping):
            return
        self.requests += 1
        for name, field in _TOKENS.items():
            tokens = usage.get(name)
            if type(tokens) is int:
                self.tokens[field] += tokens

    def close(self) -> None:
        """Count what was never answered."""
        if left := sum(map(len, self._open.values())):
            self.remarks["call_without_result"] += left


def conversation_of(simulation: Mapping[str, Any]) -> Conversation | None:
    """Return what a simulation's messages, or without any its ticks, come to; None where it has neither."""
    entries = simulation.get("messages")
    if not isinstance(entries, list):
        ticks = simulation.get("ticks")
        if not isinstance(ticks, list):
            return None
        entries = _joined(message for tick in ticks for message in _of_tick(tick))
    found = Conversation()
    for entry in entries:
        found.add(entry)
    found.close()
    return found


def _of_tick(tick: Any) -> Iterator[Any]:
    """Yield what happened in one tick: the agent's words and calls, its results, then those of the user."""
    if not isinstance(tick, dict):
        yield tick
        return
    for role, side in ((ASSISTANT, "agent"), ("user", "user")):
        chunk, calls = tick.get(f"{side}_chunk"), tick.get(f"{side}_tool_calls")
        if isinstance(chunk, dict) or calls:
            yield {**(chunk if isinstance(chunk, dict) else {}), "role": role, "tool_calls": calls}
        for result in as_list(tick.get(f"{side}_tool_results")):
            yield {**result, "role": "tool"} if isinstance(result, dict) else result


def _joined(messages: Iterator[Any]) -> Iterator[Any]:
    """Yield messages with the chunks one side said in a row as one; silent chunks are no messages."""
    last: dict[str, Any] | None = None
    for message in messages:
        is_speech = isinstance(message, dict) and message.get("role") != "tool" and not message.get("tool_calls")
        if not is_speech:
            if last is not None:
                yield last
            last = None
            yield message
        elif message.get("content"):
            if last is not None and last["role"] == message["role"]:
                last = {**message, "content": f"{last['content']}{_between(last, message)}{message['content']}"}
            else:
                if last is not None:
                    yield last
                last = message
    if last is not None:
        yield last


def _between(last: dict[str, Any], following: dict[str, Any]) -> str:
    """Return a space between two utterances, nothing within one."""
    before, after = (set(map(str, as_list(each.get("utterance_ids")))) for each in (last, following))
    return " " if before and after and before.isdisjoint(after) else ""
