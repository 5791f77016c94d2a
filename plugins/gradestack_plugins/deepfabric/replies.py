"""Recorded replies.

What the model said and called, by the document's rules and as the program hears it.

A reply is an object of one of five kinds (a bare one is recognised by its keys) or plain text:

- ``{"kind": "tool_call", "content", "tool_call": {"name", "arguments"} | null}``: a reply already
  reduced to one call
- ``{"kind": "chat", "content", "tool_calls": [{"name", "arguments"} or {"function": {...}}, ...]}``
- ``{"kind": "text", "text"}``: raw text the call is parsed out of
- ``{"kind": "exception", "message"}``: the inference itself failed
- ``{"kind": "turns", "turns": [REPLY, ...]}``: the replies of several turns, one after the other

None of the ways through a text looks at a part of it more than a few times: the text is the
model's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple

from gradestack import JSON, ToolCall
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
_KINDS: Final = frozenset({"tool_call", "chat", "text", "exception", "turns"})


class ReplyProblem(ValueError):
    """A reply that makes its sample a processing error, while the ground truth is known."""


class Call(NamedTuple):
    """A call as it was recorded, whatever stands in it."""

    name: JSON = None  # none: it has no name
    arguments: JSON = None
    raw: str | None = None  # the text the arguments were decoded from
    call: ToolCall | None = None  # what was recorded besides

    @classmethod
    def of(cls, made: ToolCall) -> Call:
        """Return a call that was made."""
        return cls(made.name, made.arguments, made.raw_arguments, made)

    def made(self) -> ToolCall:
        """Return it as graders see it."""
        if self.call is not None:
            return self.call
        fine = isinstance(self.arguments, dict)
        return ToolCall(
            name=self.name if isinstance(self.name, str) else "",
            arguments=self.arguments if isinstance(self.arguments, dict) else None,
            raw_arguments=self.raw if fine or self.raw is not None else compact(self.arguments),
        )


class Response(NamedTuple):
    """One reply of the model."""

    content: str
    call: Call | None = None  # the call that is graded when one reply is asked for
    calls: tuple[Call, ...] = ()  # all calls, which several turns are graded by


def kind_of(raw: Mapping[str, JSON]) -> str | None:
    """Return the kind of a reply object, by its ``kind`` or else its keys.

    None when it is no reply.
    """
    kind = raw.get("kind")
    if kind is not None:
        return kind if isinstance(kind, str) and kind in _KINDS else None
    if isinstance(raw.get("turns"), list):
        return "turns"
    keys = {"tool_calls": "chat", "tool_call": "tool_call", "text": "text", "content": "chat"}
    keys |= {"message": "exception", "error": "exception"}
    return next((named for key, named in keys.items() if key in raw), None)


def heard(raw: JSON, reading: Reading, *, with_tools: bool) -> tuple[Response, ...]:
    """Return the replies that are looked at.

    All, or of the program the first, or those up to one without calls.
    """
    given = responses(raw, reading, with_tools=with_tools)
    if reading.version == "documented":
        return tuple(given)
    if not reading.most_turns:
        first = next(given)
        if first.call is not None:
            _check_name(first.call)
            _check_arguments(first.call)
        return (first,)
    found = []
    for each in islice(given, reading.most_turns):
        found.append(each)
        if not each.calls:
            break
    calls = [call for each in found for call in each.calls]
    for call in calls:
        if isinstance(call.name, list | dict):
            _check_name(call)
    if calls:
        _check_name(calls[0])
    return tuple(found)


def responses(raw: JSON, reading: Reading, *, with_tools: bool) -> Iterator[Response]:
    """Yield the replies of all turns, each read when it is asked for.

    Messages that others sent are left out.
    """
    replies = [raw]
    if isinstance(raw, dict) and kind_of(raw) == "turns":
        turns = raw.get("turns")
        given = turns if isinstance(turns, list) else []
        replies = [
            each
            for each in given
            if not isinstance(each, dict) or each.get("role", "assistant") == "assistant"
        ]
        _require(bool(replies), "turns must be a list of at least one reply", turns)
    for each in replies:
        yield _response(each, reading, with_tools=with_tools)


def _response(raw: JSON, reading: Reading, *, with_tools: bool) -> Response:
    kind = "text" if isinstance(raw, str) else kind_of(raw) if isinstance(raw, dict) else None
    if kind == "text":
        text: Any = raw.get("text") if isinstance(raw, dict) else raw
        _require(isinstance(text, str), "the text of a reply must be text", text)
        return (
            _parsed(text, reading)
            if with_tools or reading.version == "documented"
            else Response(text)
        )
    _require(isinstance(raw, dict), "a recorded reply must be an object or text", raw)
    if kind == "exception":
        message = raw.get("message", raw.get("error"))
        raise ReplyProblem(
            message if isinstance(message, str) else "" if message is None else compact(message)
        )
    if kind is None or kind == "turns":
        raise ReplyProblem(
            f"not a recorded reply: {compact(raw)[:80]} (kinds are tool_call, chat, text, "
            "exception and turns)"
        )
    return _structured(raw, kind, reading)


def _structured(raw: Mapping[str, Any], kind: str, reading: Reading) -> Response:
    documented = reading.version == "documented"
    content: Any = raw.get("content")
    call, calls = raw.get("tool_call"), raw.get("tool_calls")
    # A structured reply as a backend gives it, as opposed to one already reduced to one call.
    chatted = kind == "chat" and ((calls or not call) if documented else "tool_call" not in raw)
    if not isinstance(content, str):
        if documented and (chatted or content is None):
            content = chat.text_of(content)
        elif chatted and not content:
            content = ""
        else:
            _require(False, "the content of a reply must be text", content)
    if chatted:
        return _chat(content, calls, reading)
    if documented:
        made = None if call is None or call == {} else _decoded_call(call)
        return Response(content, made, () if made is None else (made,))
    _require(isinstance(call, dict | None), "a tool call must be an object or null", call)
    objects = isinstance(calls, list | None) and all(isinstance(each, dict) for each in calls or ())
    _require(objects, "tool_calls must be a list of objects or null", calls)
    return Response(content, _as_is(call) if call else None, tuple(map(_as_is, calls or ())))


def _chat(content: str, calls: Any, reading: Reading) -> Response:
    if not calls:
        return Response(content)
    _require(isinstance(calls, list), "tool_calls must be a list", calls)
    if reading.version != "documented":
        made = tuple(
            _backend_call(each, reading)
            for each in (calls[:1] if reading.version == OLD else calls)
        )
    elif calls[0] is None or calls[0] == {}:
        raise ReplyProblem("the first of the tool_calls names no tool")
    else:
        made = (_decoded_call(calls[0]), *map(Call.of, chat.tool_calls(calls[1:])))
    return Response(content, made[0], made)


def _function(call: JSON) -> tuple[Mapping[str, JSON], bool]:
    """Return what has the name and the arguments of a call, and whether it stood under
    ``function``.
    """
    _require(isinstance(call, dict), "a tool call must be an object or null", call)
    function = call.get("function")
    return (function, True) if isinstance(function, dict) and "name" not in call else (call, False)


def _decoded_call(call: JSON) -> Call:
    """Return a call by the document: argument text is decoded, missing arguments are none."""
    found = _as_is(_function(call)[0])
    _check_name(found)
    if isinstance(found.arguments, dict):
        return found
    arguments, raw = chat.parse_arguments(found.arguments)
    if arguments is None:
        raise ReplyProblem(f"the arguments of the call are not a JSON object: {(raw or '')[:80]}")
    return found._replace(arguments=arguments, raw=raw)


def _backend_call(call: JSON, reading: Reading) -> Call:
    if call == {} and reading.most_turns:  # over several turns it is a call of nothing
        return _as_is({})
    if call is None or call == {}:
        raise ReplyProblem("one of the tool_calls names no tool")
    function, inner = _function(call)
    found = _as_is(function)
    if not inner or reading.version == OLD or isinstance(found.arguments, dict):
        return found
    _require(
        isinstance(found.arguments, str),
        "the arguments of a call must be JSON text or an object",
        found.arguments,
    )
    try:
        return found._replace(arguments=_decoded(found.arguments), raw=found.arguments)
    except JsonProblem:
        return found._replace(arguments={}, raw=found.arguments)


def _as_is(call: Mapping[str, JSON]) -> Call:
    return Call(call.get("name"), call.get("arguments", {}))


def _check_name(call: Call) -> None:
    _require(isinstance(call.name, str | None), "the name of a called tool must be text", call.name)


def _check_arguments(call: Call) -> None:
    _require(
        isinstance(call.arguments, dict),
        "the arguments of a call must be an object",
        call.arguments,
    )


def _require(usable: bool, what: str, value: JSON) -> None:
    if not usable:
        raise ReplyProblem(f"{what}, got {compact(value)[:80]}")


def _decoded(text: str) -> JSON:
    """Return the value of a JSON text.

    One the program fails on, as opposed to no JSON, is a problem of the reply.
    """
    try:
        return loads(text)
    except JsonProblem as error:
        if not str(error).startswith("not JSON"):
            raise ReplyProblem(str(error)) from error
        raise


def _parsed(text: str, reading: Reading) -> Response:
    first = reading.version in ("documented", OLD)
    calls = (
        _first_call(text, documented=reading.version != OLD)
        if first
        else text_calls(text, reading.parser)
    )
    return Response(text, calls[0] if calls else None, tuple(calls))


def _first_call(text: str, *, documented: bool) -> list[Call]:
    """Return the call in the first block, else in the first balanced object of a text.

    Text that cannot be parsed is no call for 4.3. The document reports it where it was to be one,
    and adds the calls of further blocks.
    """
    tagged = [block.strip() for block in blocks(text)]
    braced, broken = first_object(text), None
    for candidate in (*tagged[:1], *([] if braced is None else [braced])):
        try:
            found = _object_call(_decoded(candidate))
        except JsonProblem as error:
            broken = broken or error
            continue
        if found:
            _check_arguments(found[0])
            for block in tagged[1:] if documented else ():
                with suppress(ReplyProblem):  # the first call is what decides
                    found += _calls([_value(block)])
            return found
    opened = text.lstrip().startswith("{")
    if (
        documented
        and broken is None
        and braced is None
        and (opened or ("<tool_call>" in text and not tagged))
    ):
        raise ReplyProblem("the reply's JSON is cut off")
    if documented and broken is not None and (tagged or opened):
        raise ReplyProblem(
            f"the reply is not valid JSON: {str(broken).removeprefix('not JSON: ')}"
        ) from broken
    return []


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
    """Return the first balanced ``{...}`` of a text (braces inside strings do not count), None when
    there is none.
    """
    start = text.find("{")
    depth, quoted = 0, False
    for token in _TOKENS.finditer(text, start) if start >= 0 else ():
        char = token[0]
        if char == '"':
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
            if not depth:
                return text[start : token.end()]
    return None


def text_calls(text: str, parser: Parser) -> list[Call]:
    """Return every call that a parser of version 4.13 finds in a text.

    What is no call is passed over.
    """
    found = (_calls(parse(text)) for parse in _PARSERS[parser])
    return next(filter(None, found), [])


def _calls(values: Iterable[JSON]) -> list[Call]:
    found = []
    for value in values:
        with suppress(JsonProblem):
            found += [call for call in _object_call(value) if isinstance(call.arguments, dict)]
    return found


def _object_call(value: JSON) -> list[Call]:
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("name"), str)
        or "arguments" not in value
    ):
        return []
    arguments = value["arguments"]
    raw = arguments if isinstance(arguments, str) else None
    arguments = arguments if raw is None else _decoded(raw)
    fits = isinstance(arguments, dict) or (raw is not None and isinstance(arguments, str))
    return [Call(value["name"], arguments, raw)] if fits else []


def _value(text: str) -> JSON:
    try:
        return _decoded(text)
    except JsonProblem:
        return None


def _either(text: str) -> JSON:
    """Return an object that may have ``parameters`` in place of ``arguments``."""
    value = _value(text)
    if isinstance(value, dict) and "arguments" not in value and "parameters" in value:
        return {**value, "arguments": value["parameters"]}
    return value


def _list(text: str) -> list[JSON]:
    values = _value(text)
    return values if isinstance(values, list) else []


def _tagged(text: str) -> list[JSON]:
    return [_value(block.strip()) for block in blocks(text)]


def _marked(text: str) -> list[JSON]:
    mark = _MARK.search(text)
    end = text.find("]", mark.end()) if mark is not None else -1
    return _list(text[mark.end() : end + 1]) if mark is not None and end >= 0 else []


def _listed(text: str) -> list[JSON]:
    found, at = list[JSON](), 0
    while (start := _LIST.search(text, at)) and (end := _LIST_END.search(text, start.end())):
        found += _list(text[start.start() : end.end()])
        at = end.end()
    return found


def _named(text: str) -> list[JSON]:
    return [{"name": head[1], "arguments": _value(part)} for head, part in _enclosed(_NAMED, text)]


def _wrapped(text: str) -> list[JSON]:
    values = [_value(part) for _, part in _enclosed(_WRAPPED, text)]
    return [{"name": "", "arguments": {}, **value} for value in values if isinstance(value, dict)]


def _flat(text: str) -> list[JSON]:
    return [_either(part[0]) for part in _FLAT.finditer(text)]


def _enclosed(head: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each head with the object after it, which ends at its first closing brace and is
    followed by another.
    """
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


def _outermost(text: str) -> list[JSON]:
    """Return what is in outermost pairs of braces.

    Those in strings count too, one too many hides what follows.
    """
    found: list[JSON] = []
    depth, start = 0, -1
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            start = start if depth else brace.start()
            depth += 1
            continue
        depth -= 1
        if not depth and start >= 0:
            found.append(_either(text[start : brace.end()]))
            start = -1
    return found


_Parse = Callable[[str], list[JSON]]
_LLAMA: Final[tuple[_Parse, ...]] = (_named, _wrapped, _flat)
_PARSERS: Final[dict[Parser, tuple[_Parse, ...]]] = {
    "generic": (_tagged, _marked, _listed, *_LLAMA, _outermost),
    "qwen": (_tagged,),
    "hermes": (_tagged,),
    "llama": _LLAMA,
    "mistral": (_marked, _listed),
}
"""Each tried where those before it find nothing."""
