"""Recorded replies: what the model said, and the calls it made.

A reply is an object of one of four kinds (a bare one is recognised by its keys) or plain text:

- ``{"kind": "tool_call", "content", "tool_call": {"name", "arguments"} | null}``: a reply already reduced to one call
- ``{"kind": "chat", "content", "tool_calls": [{"name", "arguments"} or {"function": {...}}, ...]}``
- ``{"kind": "text", "text"}``: raw text the call is parsed out of
- ``{"kind": "exception", "message"}``: the inference itself failed
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gradestack import JSON, Profile, ToolCall
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers import chat

_BLOCK: Final = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_BRACES: Final = re.compile(r'\\.|["{}]', re.DOTALL)
_KINDS: Final = frozenset({"tool_call", "chat", "text", "exception"})


class ReplyProblem(ValueError):
    """A reply that makes its sample a processing error, while the ground truth is known."""


class Reply(NamedTuple):
    """A reply as graders see it."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    named: bool = True
    """False when the first call has no name at all (which is not the same as an empty one)."""


NO_CALL: Final = Reply("")


def kind_of(raw: Mapping[str, JSON]) -> str | None:
    """Return the kind of a reply object, by its ``kind`` or else its keys; None when it is no reply."""
    kind = raw.get("kind")
    if kind is not None:
        return kind if isinstance(kind, str) and kind in _KINDS else None
    if "tool_calls" in raw:
        return "chat"
    if "tool_call" in raw:
        return "tool_call"
    if "text" in raw:
        return "text"
    if "content" in raw:
        return "chat"
    if "message" in raw or "error" in raw:
        return "exception"
    return None


def read_reply(raw: JSON, profile: Profile, *, with_tools: bool) -> Reply:
    """Return what a recorded reply says.

    Args:
        raw: The reply, an object or plain text.
        profile: ``upstream`` takes arguments as they are recorded, so that JSON text in a structured reply is an error;
            it reads a call out of raw text only for samples with tools, and reads text it cannot parse as "no call".
            ``documented`` decodes argument text, reads missing arguments as none, and reports a call that is not valid
            JSON as a processing error.
        with_tools: Whether the sample has tools.

    Raises:
        ReplyProblem: The reply makes the sample a processing error.
    """
    if isinstance(raw, str):
        return _from_text(raw, profile, with_tools=with_tools)
    if not isinstance(raw, dict):
        msg = f"a recorded reply must be an object or text, got {compact(raw)[:80]}"
        raise ReplyProblem(msg)
    kind = kind_of(raw)
    if kind == "tool_call":
        return _structured(raw, raw.get("tool_call"), profile)
    if kind == "chat":
        return _chat(raw, profile)
    if kind == "text":
        text = raw.get("text")
        if not isinstance(text, str):
            msg = f"the text of a reply must be text, got {compact(text)[:80]}"
            raise ReplyProblem(msg)
        return _from_text(text, profile, with_tools=with_tools)
    if kind == "exception":
        message = raw.get("message", raw.get("error"))
        raise ReplyProblem(message if isinstance(message, str) else "" if message is None else compact(message))
    msg = f"not a recorded reply: {compact(raw)[:80]} (kinds are tool_call, chat, text and exception)"
    raise ReplyProblem(msg)


def _structured(raw: Mapping[str, Any], call: JSON, profile: Profile) -> Reply:
    content = raw.get("content")
    if not isinstance(content, str):
        if profile == "upstream" or content is not None:
            msg = f"the content of a reply must be text, got {compact(content)[:80]}"
            raise ReplyProblem(msg)
        content = ""
    return _one_call(content, call, profile, unwrap=profile == "documented")


def _one_call(content: str, call: JSON, profile: Profile, *, unwrap: bool) -> Reply:
    if call is None or call == {}:
        return NO_CALL if not content else Reply(content)
    if not isinstance(call, dict):
        msg = f"a tool call must be an object or null, got {compact(call)[:80]}"
        raise ReplyProblem(msg)
    function = call.get("function")
    inner = function if unwrap and isinstance(function, dict) and "name" not in call else call
    name = inner.get("name")
    if name is not None and not isinstance(name, str):
        msg = f"the name of a called tool must be text, got {compact(name)[:80]}"
        raise ReplyProblem(msg)
    made = _arguments(inner, profile)
    return Reply(content, (ToolCall(name=name or "", arguments=made[0], raw_arguments=made[1]),), name is not None)


def _arguments(call: Mapping[str, Any], profile: Profile) -> tuple[dict[str, JSON], str | None]:
    arguments, raw = call.get("arguments", {}), None
    if profile == "documented" and not isinstance(arguments, dict):
        arguments, raw = chat.parse_arguments(arguments)
        if arguments is None and raw is not None:
            msg = f"the arguments of the call are not a JSON object: {raw[:80]}"
            raise ReplyProblem(msg)
    if not isinstance(arguments, dict):
        msg = f"the arguments of a call must be an object, got {compact(call.get('arguments'))[:80]}"
        raise ReplyProblem(msg)
    return arguments, raw


def _chat(raw: Mapping[str, Any], profile: Profile) -> Reply:
    """Read a structured reply: its first call decides, further calls are kept for graders that look at all."""
    content, calls = raw.get("content"), raw.get("tool_calls")
    if not content and not isinstance(content, str):
        content = ""
    if not isinstance(content, str):
        if profile == "upstream":
            msg = f"the content of a reply must be text, got {compact(content)[:80]}"
            raise ReplyProblem(msg)
        content = chat.text_of(content)
    if not calls:
        return Reply(content)
    if not isinstance(calls, list):
        msg = f"tool_calls must be a list, got {compact(calls)[:80]}"
        raise ReplyProblem(msg)
    if calls[0] is None or calls[0] == {}:
        msg = "the first of the tool_calls names no tool"
        raise ReplyProblem(msg)
    first = _one_call(content, calls[0], profile, unwrap=True)
    if len(calls) == 1:
        return first
    return first._replace(calls=first.calls + chat.tool_calls(calls[1:]))


def _from_text(text: str, profile: Profile, *, with_tools: bool) -> Reply:
    if profile == "upstream" and not with_tools:
        return Reply(text)
    block = _BLOCK.search(text)
    candidates = [block[1].strip()] if block else []
    braced = first_object(text)
    if braced is not None:
        candidates.append(braced)
    broken = None
    for candidate in candidates:
        try:
            call = _call_of(candidate)
        except _Fatal as error:
            raise ReplyProblem(str(error)) from error
        except JsonProblem as error:
            broken = broken or error
            continue
        if call is not None:
            return Reply(text, (call,))
    if profile == "documented":
        if broken is None and braced is None and (text.lstrip()[:1] == "{" or ("<tool_call>" in text and not block)):
            msg = "the reply's JSON is cut off"
            raise ReplyProblem(msg)
        if broken is not None and (block or text.lstrip().startswith("{")):
            msg = f"the reply is not valid JSON: {str(broken).removeprefix('not JSON: ')}"
            raise ReplyProblem(msg) from broken
    return Reply(text)


class _Fatal(ValueError):
    """Text the original fails on, as opposed to text it does not take for a call."""


def _call_of(candidate: str) -> ToolCall | None:
    """Return the call a JSON text holds, None when the JSON is no call.

    A call is an object with a ``name`` that is text and ``arguments`` that are an object, or JSON text of one.

    Raises:
        JsonProblem: The text, or the argument text in it, is not JSON.
        _Fatal: The original fails on this text.
    """
    value = _decoded(candidate)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "arguments" not in value:
        return None
    arguments, raw = value["arguments"], None
    if isinstance(arguments, str):
        raw = arguments
        arguments = _decoded(raw)
        if isinstance(arguments, str):
            msg = f"the arguments of a call must be an object, got {compact(arguments)[:80]}"
            raise _Fatal(msg)
    if not isinstance(arguments, dict):
        return None
    return ToolCall(name=value["name"], arguments=arguments, raw_arguments=raw)


def _decoded(text: str) -> JSON:
    try:
        return loads(text)
    except JsonProblem as error:
        if not str(error).startswith("not JSON"):
            raise _Fatal(str(error)) from error
        raise


def first_object(text: str) -> str | None:
    """Return the first balanced ``{...}`` of a text (braces inside strings do not count), None when there is none."""
    start = text.find("{")
    if start < 0:
        return None
    depth, quoted = 0, False
    for token in _BRACES.finditer(text, start):
        char = token[0]
        if char == '"':
            quoted = not quoted
        elif not quoted and char == "{":
            depth += 1
        elif not quoted and char == "}":
            depth -= 1
            if not depth:
                return text[start : token.end()]
    return None
