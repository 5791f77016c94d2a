"""Recorded replies: what the model said and called, by the document's rules and as the program hears it.

A reply is an object of one of five kinds (a bare one is recognised by its keys) or plain text:

- ``{"kind": "tool_call", "content", "tool_call": {"name", "arguments"} | null}``: a reply already reduced to one call
- ``{"kind": "chat", "content", "tool_calls": [{"name", "arguments"} or {"function": {...}}, ...]}``
- ``{"kind": "text", "text"}``: raw text the call is parsed out of
- ``{"kind": "exception", "message"}``: the inference itself failed
- ``{"kind": "turns", "turns": [REPLY, ...]}``: the replies of several turns, one after the other

None of the ways through a text looks at a part of it more than a few times: the text is the model's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

from gradestack import JSON, ToolCall, replace
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.deepfabric.options import OLD, Parser, Reading
from gradestack_plugins.readers import chat

_TOKENS: Final = re.compile(r'\\.|["{}]', re.DOTALL)
_BRACE: Final = re.compile(r"[{}]")
_FLAT: Final = re.compile(r"\{[^{}]*\}")
_NAMED: Final = re.compile(r'\{\s*"name"\s*:\s*"([^"]+)"\s*,\s*"parameters"\s*:\s*(?=\{)')
_WRAPPED: Final = re.compile(r'\{\s*"type"\s*:\s*"function"\s*,\s*"function"\s*:\s*(?=\{)')
_CLOSED: Final = re.compile(r"\s*\}")
_MARK: Final = re.compile(r"\[TOOL_CALLS\]\s*(?=\[)")
_LIST: Final = re.compile(r"\[\s*\{")
_LIST_END: Final = re.compile(r"\}\s*\]")


class UnreadableText(ValueError):
    """Text the program fails on, as opposed to text it takes for no call."""


def decoded(text: str) -> JSON:
    """Return the value of a JSON text."""
    try:
        return loads(text)
    except JsonProblem as error:
        if not str(error).startswith("not JSON"):
            raise UnreadableText(str(error)) from error
        raise


def blocks(text: str) -> Iterator[str]:
    """Yield what stands between each ``<tool_call>`` and the next ``</tool_call>``."""
    at = 0
    while (start := text.find("<tool_call>", at)) >= 0:
        end = text.find("</tool_call>", start)
        if end < 0:
            return
        yield text[start + len("<tool_call>") : end]
        at = end


def first_object(text: str) -> str | None:
    """Return the first balanced ``{...}`` of a text (braces inside strings do not count), None when there is none."""
    start = text.find("{")
    if start < 0:
        return None
    depth, quoted = 0, False
    for token in _TOKENS.finditer(text, start):
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


def call_of(candidate: str) -> ToolCall | None:
    """Return the call a JSON text holds, None when the JSON is no call.

    A call is an object with a ``name`` that is text and ``arguments`` that are an object, or JSON text of one.
    """
    value = decoded(candidate)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "arguments" not in value:
        return None
    arguments, raw = value["arguments"], None
    if isinstance(arguments, str):
        raw = arguments
        arguments = decoded(raw)
        if isinstance(arguments, str):
            raise UnreadableText(f"the arguments of a call must be an object, got {compact(arguments)[:80]}")
    if not isinstance(arguments, dict):
        return None
    return ToolCall(name=value["name"], arguments=arguments, raw_arguments=raw)


def old_call(text: str) -> ToolCall | None:
    """Return the call that version 4.3 finds in a text: in the first block, else in the first balanced object."""
    block, braced = next(blocks(text), None), first_object(text)
    for candidate in (None if block is None else block.strip(), braced):
        try:
            call = call_of(candidate) if candidate is not None else None
        except JsonProblem:
            continue
        if call is not None:
            return call
    return None


def text_calls(text: str, parser: Parser) -> list[ToolCall]:
    """Return every call that a parser of version 4.13 finds in a text; what is no call is passed over."""
    return _PARSERS[parser](text)


def _value(text: str) -> JSON:
    """Return a JSON text's value, None when it is not JSON (null is no call either)."""
    try:
        return decoded(text)
    except JsonProblem:
        return None


def _call(name: JSON, arguments: JSON) -> list[ToolCall]:
    """Return a call as a list, empty when it is none."""
    raw = arguments if isinstance(arguments, str) else None
    value = _value(raw) if raw is not None else arguments
    if not isinstance(name, str) or not isinstance(value, dict):
        return []
    return [ToolCall(name=name, arguments=value, raw_arguments=raw)]


def _object_call(value: JSON) -> list[ToolCall]:
    if not isinstance(value, Mapping) or "arguments" not in value:
        return []
    return _call(value.get("name"), value["arguments"])


def _either_call(value: JSON) -> list[ToolCall]:
    """Return the call of an object that may say ``parameters`` in place of ``arguments``."""
    if isinstance(value, Mapping) and "arguments" not in value and "parameters" in value:
        return _call(value.get("name"), value["parameters"])
    return _object_call(value)


def _tagged(text: str) -> list[ToolCall]:
    return [call for block in blocks(text) for call in _object_call(_value(block.strip()))]


def _bracketed(text: str) -> list[ToolCall]:
    found: list[ToolCall] = []
    mark = _MARK.search(text)
    if mark is not None and (end := text.find("]", mark.end())) >= 0:
        found = _list_calls(text[mark.end() : end + 1])
    if not found:
        found = [call for part in _lists(text) for call in _list_calls(part)]
    return found


def _list_calls(text: str) -> list[ToolCall]:
    values = _value(text)
    return [call for value in values for call in _object_call(value)] if isinstance(values, list) else []


def _lists(text: str) -> Iterator[str]:
    """Yield each part of a text from ``[{`` to the next ``}]``."""
    at = 0
    while (start := _LIST.search(text, at)) and (end := _LIST_END.search(text, start.end())):
        yield text[start.start() : end.end()]
        at = end.end()


def _parameters(text: str) -> list[ToolCall]:
    found = [call for head, part in _enclosed(_NAMED, text) for call in _call(head[1], _value(part))]
    if not found:
        for _, part in _enclosed(_WRAPPED, text):
            function = _value(part)
            if isinstance(function, dict):
                found += _call(function.get("name", ""), function.get("arguments", {}))
    return found or [call for part in _FLAT.finditer(text) for call in _either_call(_value(part[0]))]


def _enclosed(head: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each head with the object after it, which ends at its first closing brace and is followed by another."""
    at, end = 0, -1
    while start := head.search(text, at):
        if end < start.end():
            end = text.find("}", start.end())
            if end < 0:
                return
        closed = _CLOSED.match(text, end + 1)
        if closed is not None:
            yield start, text[start.end() : end + 1]
        at = closed.end() if closed is not None else start.start() + 1


def _any(text: str) -> list[ToolCall]:
    for parse in (_tagged, _bracketed, _parameters):
        if found := parse(text):
            return found
    return [call for part in _outermost(text) for call in _either_call(_value(part))]


def _outermost(text: str) -> Iterator[str]:
    """Yield each outermost pair of braces; those inside strings count too, and one too many hides what follows."""
    depth, start = 0, -1
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            if not depth:
                start = brace.start()
            depth += 1
            continue
        depth -= 1
        if not depth and start >= 0:
            yield text[start : brace.end()]
            start = -1


_PARSERS: Final[dict[Parser, Callable[[str], list[ToolCall]]]] = {
    "generic": _any,
    "qwen": _tagged,
    "hermes": _tagged,
    "llama": _parameters,
    "mistral": _bracketed,
}


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
    raise ReplyProblem(f"{what}, got {compact(value)[:80]}")


def single_replies(raw: JSON) -> list[JSON]:
    """Return the replies of several turns one by one, or the only one; messages that others sent are left out."""
    if not isinstance(raw, dict) or kind_of(raw) != "turns":
        return [raw]
    turns = raw.get("turns")
    given = turns if isinstance(turns, list) else []
    made = [each for each in given if not isinstance(each, dict) or each.get("role", "assistant") == "assistant"]
    if not made:
        unusable("turns must be a list of at least one reply", turns)
    return made


def text_or_kind(raw: JSON) -> tuple[str | None, str | None]:
    """Return a reply's raw text, where it is one, else its kind."""
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
        raise ReplyProblem(
            f"not a recorded reply: {compact(raw)[:80]} (kinds are tool_call, chat, text, exception and turns)"
        )
    return None, kind


def read_replies(raw: JSON) -> tuple[Reply, ...]:
    """Return what a recorded reply says, turn by turn.

    Argument text is decoded, missing arguments are none, and a call that is not valid JSON is a processing error.
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
            raise ReplyProblem(f"the arguments of the call are not a JSON object: {(raw or '')[:80]}")
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
        raise ReplyProblem("the first of the tool_calls names no tool")
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
        raise ReplyProblem("the reply's JSON is cut off")
    if broken is not None and (tagged or text.lstrip().startswith("{")):
        raise ReplyProblem(f"the reply is not valid JSON: {str(broken).removeprefix('not JSON: ')}") from broken
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


class Call(NamedTuple):
    """A call as it was recorded, whatever stands in it."""

    name: JSON = None
    """None: it has no name."""
    arguments: JSON = None
    raw: str | None = None
    """The text the arguments were decoded from."""

    @classmethod
    def of(cls, made: ToolCall) -> Call:
        """Return the call that was made, as it was recorded."""
        return cls(made.name, made.arguments, made.raw_arguments)

    def made(self) -> ToolCall:
        """Return it as graders see it."""
        fine = isinstance(self.arguments, dict)
        raw = self.raw if fine or self.raw is not None else compact(self.arguments)
        return ToolCall(
            name=self.name if isinstance(self.name, str) else "",
            arguments=self.arguments if isinstance(self.arguments, dict) else None,
            raw_arguments=raw,
        )


class Response(NamedTuple):
    """One reply of the model."""

    content: str
    call: Call | None = None
    """The call that is graded when one reply is asked for."""
    calls: tuple[Call, ...] = ()
    """All calls, which several turns are graded by."""


def responses(raw: JSON, reading: Reading, *, with_tools: bool) -> Iterator[Response]:
    """Yield the replies of all turns, each read when it is asked for."""
    for each in single_replies(raw):
        yield _response(each, reading, with_tools=with_tools)


def heard(raw: JSON, reading: Reading, *, with_tools: bool) -> tuple[Response, ...]:
    """Return the replies that the program looks at: the first, or those up to the first one without calls."""
    given = responses(raw, reading, with_tools=with_tools)
    if not reading.most_turns:
        first = next(given)
        if first.call is not None:
            _check_name(first.call)
            if not isinstance(first.call.arguments, dict):
                unusable("the arguments of a call must be an object", first.call.arguments)
        return (first,)
    found = []
    for each in islice(given, reading.most_turns):
        found.append(each)
        if not each.calls:
            break
    calls = [call for each in found for call in each.calls]
    for call in calls:
        if isinstance(call.name, list | dict):
            unusable("the name of a called tool must be text", call.name)
    if calls:
        _check_name(calls[0])
    return tuple(found)


def _check_name(call: Call) -> None:
    if call.name is not None and not isinstance(call.name, str):
        unusable("the name of a called tool must be text", call.name)


def _response(raw: Any, reading: Reading, *, with_tools: bool) -> Response:
    text, kind = text_or_kind(raw)
    if text is not None:
        return _parsed_text(text, reading, with_tools=with_tools)
    content, calls = raw.get("content"), raw.get("tool_calls")
    if kind == "chat" and "tool_call" not in raw:
        return _from_backend(content, calls, reading)
    if not isinstance(content, str):
        unusable("the content of a reply must be text", content)
    call = raw.get("tool_call")
    if call is not None and not isinstance(call, dict):
        unusable("a tool call must be an object or null", call)
    if calls is not None and not (isinstance(calls, list) and all(isinstance(each, dict) for each in calls)):
        unusable("tool_calls must be a list of objects or null", calls)
    return Response(content, _as_is(call) if call else None, tuple(map(_as_is, calls or ())))


def _as_is(call: Mapping[str, JSON]) -> Call:
    return Call(call.get("name"), call.get("arguments", {}))


def _from_backend(content: JSON, calls: JSON, reading: Reading) -> Response:
    """Return a structured reply; one that says nothing but calls has no content."""
    content = content or ""
    if not isinstance(content, str):
        unusable("the content of a reply must be text", content)
    if not calls:
        return Response(content)
    if not isinstance(calls, list):
        unusable("tool_calls must be a list", calls)
    made = tuple(_structured(each, reading) for each in (calls[:1] if reading.version == OLD else calls))
    return Response(content, made[0], made)


def _structured(call: JSON, reading: Reading) -> Call:
    if call == {} and reading.most_turns:  # over several turns it is a call of nothing
        return _as_is({})
    if call is None or call == {}:
        raise ReplyProblem("one of the tool_calls names no tool")
    if not isinstance(call, dict):
        unusable("a tool call must be an object or null", call)
    function = call.get("function")
    if not isinstance(function, dict) or "name" in call:
        return _as_is(call)
    found = _as_is(function)
    if reading.version == OLD or isinstance(found.arguments, dict):
        return found
    if not isinstance(found.arguments, str):
        unusable("the arguments of a call must be JSON text or an object", found.arguments)
    try:
        return found._replace(arguments=decoded(found.arguments), raw=found.arguments)
    except JsonProblem:
        return found._replace(arguments={}, raw=found.arguments)
    except UnreadableText as error:
        raise ReplyProblem(str(error)) from error


def _parsed_text(text: str, reading: Reading, *, with_tools: bool) -> Response:
    if not with_tools:
        return Response(text)
    try:
        if reading.version == OLD:
            call = old_call(text)
            found = [] if call is None else [call]
        else:
            found = text_calls(text, reading.parser)
    except UnreadableText as error:
        raise ReplyProblem(str(error)) from error
    calls = tuple(map(Call.of, found))
    return Response(text, calls[0] if calls else None, calls)
