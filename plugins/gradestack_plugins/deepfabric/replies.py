"""Recorded replies: what the model said and called.

A reply is an object of one of five kinds (a bare one is recognised by its keys) or plain text:

- ``{"kind": "tool_call", "content", "tool_call": {"name", "arguments"} | null}``: a reply already
  reduced to one call
- ``{"kind": "chat", "content", "tool_calls": [{"name", "arguments"} or {"function": {...}}, ...]}``
- ``{"kind": "text", "text"}``: raw text the call is parsed out of
- ``{"kind": "exception", "message"}``: the inference itself failed
- ``{"kind": "turns", "turns": [REPLY, ...]}``: the replies of several turns, one after the other

No part of a text is looked at more than a few times: the text is the model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from gradestack import JSON, ToolCall
from gradestack.jsonio import JsonProblem, as_map, compact, loads
from gradestack_plugins.readers import chat

KINDS: Final = ("tool_call", "chat", "text", "exception", "turns")
KIND_OF_KEY: Final = {
    "tool_calls": "chat",
    "tool_call": "tool_call",
    "text": "text",
    "content": "chat",
    "message": "exception",
    "error": "exception",
}
"""Kind of a reply that does not name it, by the first of these keys that it has."""
NO_TOOL: Final[tuple[Any, ...]] = (None, {})
OPENED: Final = "<tool_call>"
CLOSED: Final = "</tool_call>"
TOKENS: Final = re.compile(r'\\.|["{}]', re.DOTALL)


class ReplyProblem(ValueError):
    """A reply that makes its sample a processing error, while the ground truth is known."""


class Response(msgspec.Struct, frozen=True):
    """One reply of the model."""

    content: str
    calls: tuple[ToolCall, ...] = ()


def kind_of(reply: Mapping[str, JSON]) -> str | None:
    """Return the kind of a reply object, None when it is no reply."""
    kind = reply.get("kind")
    if kind is not None:
        if isinstance(kind, str) and kind in KINDS:
            return kind
        return None
    if isinstance(reply.get("turns"), list):
        return "turns"
    return next((KIND_OF_KEY[key] for key in KIND_OF_KEY if key in reply), None)


def replies_of(recorded: JSON) -> list[JSON]:
    """Return the replies of all turns; messages that others sent are left out."""
    if not isinstance(recorded, dict) or kind_of(recorded) != "turns":
        return [recorded]
    turns = recorded.get("turns")
    replies = [
        turn
        for turn in (turns if isinstance(turns, list) else ())
        if not isinstance(turn, dict) or turn.get("role", "assistant") == "assistant"
    ]
    require(bool(replies), "turns must be a list of at least one reply", turns)
    return replies


def split_kind(reply: JSON) -> tuple[str, Any]:
    """Return ``text`` and the text of a reply, else ``chat`` or ``tool_call`` and the object.

    Raises:
        ReplyProblem: The inference failed, or this is no reply.
    """
    if isinstance(reply, str):
        return "text", reply
    require(isinstance(reply, dict), "a recorded reply must be an object or text", reply)
    kind = kind_of(reply)
    if kind == "text":
        text = reply.get("text")
        require(isinstance(text, str), "the text of a reply must be text", text)
        return kind, text
    if kind == "exception":
        error = reply.get("error")
        message = reply.get("message", error)
        if message is not None and not isinstance(message, str):
            message = compact(message)
        raise ReplyProblem(message or "")
    if kind is None or kind == "turns":
        kinds = "tool_call, chat, text, exception and turns"
        raise ReplyProblem(f"not a recorded reply: {compact(reply)[:80]} (kinds are {kinds})")
    return kind, reply


def read_reply(reply: JSON) -> Response:
    """Return the text and the calls of one reply.

    Raises:
        ReplyProblem: It cannot be processed.
    """
    kind, parts = split_kind(reply)
    if kind == "text":
        return Response(parts, tuple(parse_text(parts)))
    content = parts.get("content")
    call = parts.get("tool_call")
    calls = parts.get("tool_calls")
    is_chat = kind == "chat" and bool(calls or not call)
    if not isinstance(content, str):
        usable = is_chat or content is None
        require(usable, "the content of a reply must be text", content)
        content = chat.text_of(content)
    if not is_chat:
        if call in NO_TOOL:
            return Response(content)
        return _with_call(content, call)
    if not calls:
        return Response(content)
    require(isinstance(calls, list), "tool_calls must be a list", calls)
    if calls[0] in NO_TOOL:
        raise ReplyProblem("the first of the tool_calls names no tool")
    others = calls[1:]
    return _with_call(content, calls[0], others)


def _with_call(content: str, call: JSON, others: list[Any] | tuple[()] = ()) -> Response:
    """Return a reply whose first call is decoded: missing arguments are none."""
    function, _ = function_of(call)
    name = function.get("name")
    arguments = function.get("arguments", {})
    raw = None
    usable = isinstance(name, str | None)
    require(usable, "the name of a called tool must be text", name)
    if not isinstance(arguments, dict):
        arguments, raw = chat.parse_arguments(arguments)
    if arguments is None:
        raise ReplyProblem(f"the arguments of the call are not a JSON object: {(raw or '')[:80]}")
    first = ToolCall(name=name or "", arguments=arguments, raw_arguments=raw)
    tool_calls = chat.tool_calls(others)
    return Response(content, (first, *tool_calls))


def function_of(call: JSON) -> tuple[Mapping[str, JSON], bool]:
    """Return the object with name and arguments of a call, and whether it is its ``function``."""
    require(isinstance(call, dict), "a tool call must be an object or null", call)
    function = call.get("function")
    is_inner = isinstance(function, dict) and "name" not in call
    return (function if is_inner else call), is_inner


def require(usable: bool, requirement: str, value: JSON) -> None:
    """Raise ReplyProblem with the requirement and the value, unless the value is usable."""
    if not usable:
        raise ReplyProblem(f"{requirement}, got {compact(value)[:80]}")


def parse_text(text: str) -> list[ToolCall]:
    """Return the call in the first block, else in the first balanced object of a text.

    Calls of further blocks follow it. Text that was to be a call but is no JSON is a problem.
    """
    tagged = [block.strip() for block in blocks(text)]
    balanced = first_object(text)
    broken = None
    for candidate in (*tagged[:1], balanced):
        try:
            call = None if candidate is None else parse_call(candidate)
        except JsonProblem as error:
            broken = broken or error
            continue
        if call is not None:
            further_calls = _further_calls(tagged[1:])
            return [call, *further_calls]
    is_object = text.lstrip().startswith("{")
    if broken is not None and (tagged or is_object):
        problem = str(broken).removeprefix("not JSON: ")
        raise ReplyProblem(f"the reply is not valid JSON: {problem}") from broken
    if balanced is None and (is_object or (OPENED in text and not tagged)):
        raise ReplyProblem("the reply's JSON is cut off")
    return []


def _further_calls(blocks: list[str]) -> list[ToolCall]:
    calls = []
    for block in blocks:
        with suppress(JsonProblem):  # the first call is what decides
            calls.append(parse_call(block))
    return [call for call in calls if call is not None]


def parse_call(text: str) -> ToolCall | None:
    """Return the call that a JSON text is; None where it is another value.

    Raises:
        JsonProblem: It, or the text of its arguments, is no JSON.
    """
    value = as_map(loads(text))
    name = value.get("name")
    arguments = value.get("arguments")
    raw = None
    if not isinstance(name, str):
        return None
    if isinstance(arguments, str):
        raw, arguments = arguments, loads(arguments)
    if not isinstance(arguments, dict):
        return None
    return ToolCall(name=name, arguments=arguments, raw_arguments=raw)


def blocks(text: str) -> Iterator[str]:
    """Yield the text between each ``<tool_call>`` and the next ``</tool_call>``."""
    end = 0
    while (start := text.find(OPENED, end)) >= 0:
        end = text.find(CLOSED, start)
        if end < 0:
            return
        yield text[start + len(OPENED) : end]


def first_object(text: str) -> str | None:
    """Return the first balanced ``{...}`` of a text; braces inside strings do not count."""
    start = text.find("{")
    if start >= 0:
        return next(balanced(text[start:], TOKENS), None)
    return None


def balanced(text: str, tokens: re.Pattern[str]) -> Iterator[str]:
    """Yield the text in outermost braces; quotes hide them where they are among the tokens."""
    depth = 0
    start = -1
    is_quoted = False
    for token in tokens.finditer(text):
        if token[0] == '"':
            is_quoted = not is_quoted
        elif token[0] == "{" and not is_quoted:
            start = start if depth else token.start()
            depth += 1
        elif token[0] == "}" and not is_quoted:
            depth -= 1
            if not depth and start >= 0:
                yield text[start : token.end()]
                start = -1
