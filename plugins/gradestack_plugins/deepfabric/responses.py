"""Recorded replies as the program's backends hand them over to its evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from gradestack import JSON, ToolCall
from gradestack.jsonio import JsonProblem, compact
from gradestack_plugins.deepfabric.parsers import UnreadableText, decoded, old_call, text_calls
from gradestack_plugins.deepfabric.replies import ReplyProblem, single_replies, text_or_kind, unusable
from gradestack_plugins.deepfabric.versions import OLD, Reading


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
    """Yield the replies of all turns, each read when it is asked for.

    Args:
        raw: The recorded reply.
        reading: 4.3 takes arguments as they are recorded. 4.13 decodes argument text in OpenAI's form, where text that
            is no JSON is no argument. Each looks for calls in raw text in its own way, 4.13 with the parser named.
        with_tools: Whether the record has tools; calls are looked for in text only then.

    Raises:
        ReplyProblem: The program fails on a reply.
    """
    for each in single_replies(raw):
        yield _response(each, reading, with_tools=with_tools)


def heard(raw: JSON, reading: Reading, *, with_tools: bool) -> tuple[Response, ...]:
    """Return the replies that the program looks at: the first, or those up to the first one without calls.

    Raises:
        ReplyProblem: The program fails on one of them, or on a call in them.
    """
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
        return _from_text(text, reading, with_tools=with_tools)
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
        msg = "one of the tool_calls names no tool"
        raise ReplyProblem(msg)
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


def _from_text(text: str, reading: Reading, *, with_tools: bool) -> Response:
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
