"""Texts that hold calls and results: Hermes, and the transcripts of glaive."""

from __future__ import annotations

import re
from typing import Any, Final

from gradestack import compile_later
from gradestack_plugins.readers.chat import literal

Entry = dict[str, Any]
_TAGGED: Final = compile_later(r"```.*?(?:```|\Z)|<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
"""A fenced block, or a call in a text."""
_RESPONSE: Final = compile_later(r"\s*<tool_response>(.*?)</tool_response>\s*", re.DOTALL)
_RESPONSES: Final = compile_later(rf"(?:{_RESPONSE.pattern})+", re.DOTALL)
_SPEAKERS: Final = compile_later(r"^\s*(SYSTEM|USER|ASSISTANT|FUNCTION RESPONSE):", re.MULTILINE)
_ROLES: Final = {
    "SYSTEM": "system",
    "USER": "user",
    "ASSISTANT": "assistant",
    "FUNCTION RESPONSE": "tool",
}
_FUNCTIONCALL: Final = compile_later(r"<functioncall>")
_QUOTED: Final = compile_later(
    r"""\{\s*"name"\s*:\s*"([^"]*)"\s*,\s*"arguments"\s*:\s*'(.*)'\s*\}""", re.DOTALL
)
"""A call whose arguments are JSON in single quotes, which is no JSON itself."""


def calls_in(text: str) -> tuple[str, list[Any]]:
    """Return a text without its calls ``<tool_call>…</tool_call>``, and the calls.

    Fenced blocks are text, and so is a call that is not JSON.
    """
    matches = _TAGGED.finditer(text)
    calls = [_call_of(match[1].strip()) for match in matches if _is_json_call(match)]
    if not calls:
        return text, []
    rest = _TAGGED.sub(lambda match: "" if _is_json_call(match) else match[0], text)
    return rest.strip(), calls


def _is_json_call(match: re.Match[str]) -> bool:
    """Return whether a tag holds a call as JSON, not one in a form that is not decoded."""
    return match[1] is not None and not match[1].lstrip().startswith("<")


def _call_of(text: str) -> Entry:
    """Return the call that a text is as JSON or as a Python literal."""
    call = literal(text)[1]
    return call if isinstance(call, dict) else undecodable(text)


def undecodable(text: Any) -> Entry:
    """Return a call that cannot be decoded: its text stands for its arguments."""
    return {"function": {"name": "", "arguments": text}}


def results_in(text: Any) -> list[Entry]:
    """Return the results that a text consists of, as ``<tool_response>…</tool_response>``.

    None for any other text.
    """
    if not isinstance(text, str) or "<tool_response>" not in text:
        return []
    if not _RESPONSES.fullmatch(text):
        return []
    matches = _RESPONSE.finditer(text)
    return [_result_of(match[1].strip()) for match in matches]


def _result_of(text: str) -> Entry:
    result = None
    if text.startswith("{"):
        result = literal(text)[1]
    if not isinstance(result, dict) or "content" not in result:
        return {"content": text}
    is_message = result.keys() <= {"name", "content", "tool_call_id"}
    return result if is_message else {"content": text}


def glaive(text: Any) -> list[Entry] | None:
    """Return the messages of a text whose lines begin with a speaker; None for any other text."""
    if not isinstance(text, str) or "ASSISTANT:" not in text:
        return None
    first = _SPEAKERS.match(text)
    if first is None:
        return None
    pieces = _SPEAKERS.split(text[first.start() :])[1:]
    return [_message_of(*pair) for pair in zip(pieces[::2], pieces[1::2], strict=True)]


def _message_of(speaker: str, text: str) -> Entry:
    """Return the message of a speaker, with the calls in its text."""
    speech, *calls = _FUNCTIONCALL.split(text.replace("<|endoftext|>", "").strip())
    role = _ROLES[speaker]
    message: Entry = {
        "role": role,
        "content": speech.strip() or ("" if not calls else None),
    }
    if calls:
        message["tool_calls"] = [_functioncall(call.strip()) for call in calls]
    return message


def _functioncall(text: str) -> Entry:
    quoted = _QUOTED.match(text)
    if quoted:
        return {"name": quoted[1], "arguments": quoted[2]}
    return _call_of(text)
