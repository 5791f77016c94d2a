"""Recorded replies as the document reads them: what the model said, and the calls it made.

A reply is an object of one of five kinds (a bare one is recognised by its keys) or plain text:

- ``{"kind": "tool_call", "content", "tool_call": {"name", "arguments"} | null}``: a reply already reduced to one call
- ``{"kind": "chat", "content", "tool_calls": [{"name", "arguments"} or {"function": {...}}, ...]}``
- ``{"kind": "text", "text"}``: raw text the call is parsed out of
- ``{"kind": "exception", "message"}``: the inference itself failed
- ``{"kind": "turns", "turns": [REPLY, ...]}``: the replies of several turns, one after the other
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from gradestack import JSON, ToolCall, replace
from gradestack.jsonio import JsonProblem, compact
from gradestack_plugins.deepfabric.parsers import UnreadableText, blocks, call_of, first_object
from gradestack_plugins.readers import chat

_KINDS: Final = frozenset({"tool_call", "chat", "text", "exception", "turns"})


class ReplyProblem(ValueError):
    """A reply that makes its sample a processing error, while the ground truth is known."""


class Reply(NamedTuple):
    """A reply as graders see it."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    named: bool = True
    """False when the first call has no name at all (which is not the same as an empty one)."""


def kind_of(raw: Mapping[str, JSON]) -> str | None:
    """Return the kind of a reply object, by its ``kind`` or else its keys; None when it is no reply."""
    kind = raw.get("kind")
    if kind is not None:
        return kind if isinstance(kind, str) and kind in _KINDS else None
    if isinstance(raw.get("turns"), list):
        return "turns"
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


def unusable(what: str, value: JSON) -> NoReturn:
    """Refuse a reply, naming what it should hold and what it does."""
    msg = f"{what}, got {compact(value)[:80]}"
    raise ReplyProblem(msg)


def single_replies(raw: JSON) -> list[JSON]:
    """Return the replies of several turns one by one, or the only one; messages that others sent are left out.

    Raises:
        ReplyProblem: There is none.
    """
    if not isinstance(raw, dict) or kind_of(raw) != "turns":
        return [raw]
    turns = raw.get("turns")
    given = turns if isinstance(turns, list) else []
    made = [each for each in given if not isinstance(each, dict) or each.get("role", "assistant") == "assistant"]
    if not made:
        unusable("turns must be a list of at least one reply", turns)
    return made


def text_or_kind(raw: JSON) -> tuple[str | None, str | None]:
    """Return a reply's raw text, where it is one, else its kind.

    Raises:
        ReplyProblem: It is no reply, or the inference failed.
    """
    if isinstance(raw, str):
        return raw, None
    if not isinstance(raw, dict):
        unusable("a recorded reply must be an object or text", raw)
    kind = kind_of(raw)
    if kind == "text":
        if not isinstance(raw.get("text"), str):
            unusable("the text of a reply must be text", raw.get("text"))
        return raw["text"], None
    if kind == "exception":
        message = raw.get("message", raw.get("error"))
        raise ReplyProblem(message if isinstance(message, str) else "" if message is None else compact(message))
    if kind is None or kind == "turns":
        msg = f"not a recorded reply: {compact(raw)[:80]} (kinds are tool_call, chat, text, exception and turns)"
        raise ReplyProblem(msg)
    return None, kind


def read_replies(raw: JSON) -> tuple[Reply, ...]:
    """Return what a recorded reply says, turn by turn.

    Argument text is decoded, missing arguments are none, and a call that is not valid JSON is a processing error.

    Raises:
        ReplyProblem: The reply makes the sample a processing error.
    """
    return numbered(_reply(each) for each in single_replies(raw))


def numbered(replies: Iterable[Reply]) -> tuple[Reply, ...]:
    """Return replies; where there are several, each call says which of them it is from."""
    found = tuple(replies)
    if len(found) < 2:
        return found
    return tuple(
        each._replace(calls=tuple(replace(call, step=step) for call in each.calls)) for step, each in enumerate(found)
    )


def _reply(raw: Any) -> Reply:
    text, kind = text_or_kind(raw)
    if text is not None:
        return _from_text(text)
    if kind == "chat" and (raw.get("tool_calls") or not raw.get("tool_call")):
        return _chat(raw)
    content = raw.get("content")
    if not isinstance(content, str):
        if content is not None:
            unusable("the content of a reply must be text", content)
        content = ""
    return _one_call(content, raw.get("tool_call"))


def _one_call(content: str, call: JSON) -> Reply:
    if call is None or call == {}:
        return Reply(content)
    if not isinstance(call, dict):
        unusable("a tool call must be an object or null", call)
    function = call.get("function")
    inner = function if isinstance(function, dict) and "name" not in call else call
    name = inner.get("name")
    if name is not None and not isinstance(name, str):
        unusable("the name of a called tool must be text", name)
    arguments, raw = inner.get("arguments", {}), None
    if not isinstance(arguments, dict):
        arguments, raw = chat.parse_arguments(arguments)
        if arguments is None:
            msg = f"the arguments of the call are not a JSON object: {(raw or '')[:80]}"
            raise ReplyProblem(msg)
    return Reply(content, (ToolCall(name=name or "", arguments=arguments, raw_arguments=raw),), name is not None)


def _chat(raw: Mapping[str, Any]) -> Reply:
    """Read a structured reply: its first call decides, further calls are kept for graders that look at all."""
    content, calls = raw.get("content"), raw.get("tool_calls")
    if not isinstance(content, str):
        content = chat.text_of(content)
    if not calls:
        return Reply(content)
    if not isinstance(calls, list):
        unusable("tool_calls must be a list", calls)
    if calls[0] is None or calls[0] == {}:
        msg = "the first of the tool_calls names no tool"
        raise ReplyProblem(msg)
    first = _one_call(content, calls[0])
    return first._replace(calls=first.calls + chat.tool_calls(calls[1:]))


def _from_text(text: str) -> Reply:
    """Read raw text: its first block that is a call decides, further blocks are kept; else its first object."""
    tagged = [block.strip() for block in blocks(text)]
    braced = first_object(text)
    candidates = [*tagged[:1], *([] if braced is None else [braced])]
    broken = None
    for candidate in candidates:
        try:
            call = call_of(candidate)
        except UnreadableText as error:
            raise ReplyProblem(str(error)) from error
        except JsonProblem as error:
            broken = broken or error
            continue
        if call is not None:
            return Reply(text, (call, *_further(tagged[1:])))
    if broken is None and braced is None and (text.lstrip()[:1] == "{" or ("<tool_call>" in text and not tagged)):
        msg = "the reply's JSON is cut off"
        raise ReplyProblem(msg)
    if broken is not None and (tagged or text.lstrip().startswith("{")):
        msg = f"the reply is not valid JSON: {str(broken).removeprefix('not JSON: ')}"
        raise ReplyProblem(msg) from broken
    return Reply(text)


def _further(candidates: list[str]) -> list[ToolCall]:
    found = []
    for candidate in candidates:
        try:
            call = call_of(candidate)
        except ValueError:  # the first call is what decides
            continue
        found += [call] if call is not None else []
    return found
