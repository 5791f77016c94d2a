"""Calls in the text of a reply: what each parser of the program, in either version, takes for one.

None of the ways through a text looks at a part of it more than a few times: the text is the model's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gradestack import JSON, ToolCall
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.deepfabric.versions import Parser

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
    """Return the value of a JSON text.

    Raises:
        JsonProblem: It is not JSON.
        UnreadableText: It is nested too deeply, or holds a number with too many digits.
    """
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

    Raises:
        JsonProblem: The text, or the argument text in it, is not JSON.
        UnreadableText: The program fails on this text.
    """
    value = decoded(candidate)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or "arguments" not in value:
        return None
    arguments, raw = value["arguments"], None
    if isinstance(arguments, str):
        raw = arguments
        arguments = decoded(raw)
        if isinstance(arguments, str):
            msg = f"the arguments of a call must be an object, got {compact(arguments)[:80]}"
            raise UnreadableText(msg)
    if not isinstance(arguments, dict):
        return None
    return ToolCall(name=value["name"], arguments=arguments, raw_arguments=raw)


def old_call(text: str) -> ToolCall | None:
    """Return the call that version 4.3 finds in a text: in the first block, else in the first balanced object.

    Raises:
        UnreadableText: The program fails on this text.
    """
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
    """Return every call that a parser of version 4.13 finds in a text; what is no call is passed over.

    Raises:
        UnreadableText: The program fails on this text.
    """
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
