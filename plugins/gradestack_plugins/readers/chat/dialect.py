"""Dialects of chat logs: recognised by messages, tools and the keys around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from gradestack.jsonio import as_list
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.forms import form_of
from gradestack_plugins.readers.chat.parts import row_kind

Name = Literal["openai", "anthropic", "other"]
"""``other``: messages of a library or of a data set, which belong to no API."""

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
BLOCKS: Final = frozenset(
    """
    tool_use tool_result server_tool_use mcp_tool_use mcp_tool_result thinking redacted_thinking
    """.split()  # noqa: SIM905
)
"""Types of content blocks that only Anthropic's messages have.

Results of server tools end in ``_tool_result``.
"""
ITEMS: Final = frozenset(
    """
    reasoning function_call function_call_output custom_tool_call mcp_list_tools
    mcp_approval_request mcp_approval_response item_reference compaction additional_tools
    configuration_update tool_search_output program program_output
    """.split()  # noqa: SIM905
)
"""Types of items of OpenAI's Responses, beside those that end in ``_call`` or ``_call_output``."""
_OPENAI_PARTS: Final = frozenset(
    {"image_url", "input_audio", "refusal", "input_text", "output_text", "input_image"}
)
_OPENAI_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
_OF_OTHERS: Final = frozenset(
    {"expected", "predicted", "turns", "recorded", "tool_context", "executions"}
)
"""Keys of other forms that hold messages, too."""
_OWN_KEYS: Final = frozenset({"id", "predicted"})
"""Keys of a record in gradestack's own form."""
_LOOKED_AT: Final = 40
_SURE, _CLEAR, _LIKELY, _PLAIN, PERHAPS = 0.95, 0.9, 0.7, 0.6, 0.4


class Dialect(msgspec.Struct, frozen=True):
    """The dialect of a record, and how sure that is."""

    name: Name
    certainty: float


def is_item(entry: Any) -> bool:
    """Return whether an entry is an item of Responses that is no message."""
    kind = word(entry, "type")
    return kind in ITEMS or kind.endswith(("_call", "_call_output"))


def is_message(entry: Any) -> bool:
    """Return whether an entry is one chat message, not a whole answer of Anthropic's."""
    if word(entry, "role") not in ROLES or "stop_reason" in entry:
        return False
    return "content" in entry or "tool_calls" in entry or "function_call" in entry


def is_entry(value: Any) -> bool:
    """Return whether a value is a message or an item of a conversation."""
    return is_item(value) or is_message(value) or form_of(value) is not None


def _of_message(message: Mapping[str, Any]) -> Name | None:
    """Return the dialect that a message shows by its fields, role or blocks, or None."""
    is_openai = "tool_calls" in message or "function_call" in message
    if is_openai or word(message, "role") in _OPENAI_ROLES:
        return "openai"
    content = message.get("content")
    for part in content[:_LOOKED_AT] if isinstance(content, list) else ():
        kind = word(part, "type")
        if kind in BLOCKS or kind.endswith("_tool_result"):
            return "anthropic"
        if kind in _OPENAI_PARTS:
            return "openai"
    return None


def of_entries(entries: Any) -> Dialect | None:
    """Return the dialect of a list of messages or items; None for anything else.

    Messages that could be either's are OpenAI's.
    """
    if not isinstance(entries, list) or not entries:
        return None
    first = entries[:_LOOKED_AT]
    if not all(isinstance(entry, dict) for entry in first):
        return None
    if any(form_of(entry) is not None for entry in first):
        return Dialect("other", _CLEAR)
    if any(map(is_item, first)):
        return Dialect("openai", _CLEAR)
    have_roles = all(isinstance(entry.get("role"), str) for entry in first)
    if not have_roles or not any(map(is_message, first)):
        return None
    names = set(map(_of_message, first))
    if "anthropic" in names:
        return Dialect("anthropic", _SURE)
    return Dialect("openai", _CLEAR if "openai" in names else _PLAIN)


def _of_tools(tools: Any) -> Name | None:
    for tool in as_list(tools):
        if isinstance(tool, dict):
            if "input_schema" in tool:
                return "anthropic"
            if "function" in tool or "parameters" in tool or tool.get("type") == "custom":
                return "openai"
    return None


def of_request(request: Any) -> Dialect | None:
    """Return the dialect of a request: of messages, or of the input of Responses."""
    if not isinstance(request, dict):
        return None
    log = of_entries(request.get("messages"))
    if log is None:
        return _of_input(request)
    if log.certainty > _PLAIN:
        return log
    tools = _of_tools(request.get("tools"))
    model = word(request, "model")
    if tools == "anthropic" or "stop_sequences" in request or "system" in request:
        return Dialect("anthropic", _CLEAR)
    if tools == "openai" or "functions" in request:
        return Dialect("openai", _CLEAR)
    return Dialect("anthropic", _LIKELY) if model.startswith("claude") else log


def _of_input(request: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect of a request with the input of Responses."""
    entries = request.get("input")
    log = of_entries(entries)
    if log is not None:
        return log if log.name == "openai" else None
    if not isinstance(entries, str):
        return None
    has_reply = any(isinstance(request.get(key), str) for key in _TEXT_REPLIES)
    is_request = "instructions" in request or "previous_response_id" in request
    is_request = is_request or ("model" in request and not has_reply)
    return Dialect("openai", _LIKELY) if is_request else None


_TEXT_REPLIES: Final = ("output", "response", "completion")


def of_response(response: Any) -> Dialect | None:
    """Return the dialect of an answer."""
    if not isinstance(response, dict):
        return None
    choices = response.get("choices")
    output = response.get("output")
    if isinstance(choices, list) and all(map(_is_choice, choices)):
        is_completion = response.get("object") == "chat.completion"
        return Dialect("openai", _SURE) if choices or is_completion else None
    if isinstance(output, list) and (response.get("object") == "response" or of_entries(output)):
        return Dialect("openai", _SURE)
    is_message = response.get("type") == "message" and response.get("role") == "assistant"
    is_whole = "stop_reason" in response or "model" in response
    has_blocks = isinstance(response.get("content"), list)
    if is_message and is_whole and has_blocks:
        return Dialect("anthropic", _SURE)
    return None


def _is_choice(choice: Any) -> bool:
    return isinstance(choice, dict) and "message" in choice


def _body(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("body", value)
    return value


def _of_batch(record: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect of a line of a batch, where its own keys tell it."""
    result = record.get("result")
    response = record.get("response")
    if word(result, "type") in {"succeeded", "errored", "canceled", "expired"}:
        return Dialect("anthropic", _SURE)
    if isinstance(record.get("params"), dict):
        request = of_request(record["params"])
        is_request = request is not None
        return Dialect("anthropic", _CLEAR) if is_request else None
    is_reply = isinstance(response, dict) and "status_code" in response and "body" in response
    is_error = response is None and isinstance(record.get("error"), dict)
    return Dialect("openai", _CLEAR) if is_reply or is_error else None


def of_record(record: Any) -> Dialect | None:
    """Return the dialect of a chat log's record and how sure that is; None for any other record."""
    if isinstance(record, list):
        return of_entries(record)
    if not isinstance(record, dict) or row_kind(record) is not None:
        return None
    if "custom_id" in record and (batch := _of_batch(record)):
        return batch
    dialects = _dialects_in(record)
    log = max(dialects, key=lambda log: log.certainty, default=None)
    if log is None and is_entry(record):
        return of_entries([record])
    if log is not None and of_others(record):
        if record.keys() >= _OWN_KEYS:
            return None  # read as a request, it would lose what `predicted` holds
        return Dialect(log.name, PERHAPS)
    return log


def _dialects_in(record: Mapping[str, Any]) -> Iterator[Dialect]:
    """Yield the dialects of the answers and the requests that a record may hold."""
    responses = [record[key] for key in ("response", "completion", "output") if key in record]
    for response in (*responses, record):
        if (log := of_response(_body(response))) is not None:
            yield log
    requests = [record[key] for key in ("request", "body") if key in record]
    for request in (*requests, record):
        if (log := of_request(_body(request))) is not None:
            yield log


def of_others(record: Any) -> bool:
    """Return whether a record with messages or an input has keys of another form."""
    if not isinstance(record, dict) or not record.keys() & {"messages", "input"}:
        return False
    has_text_reply = "messages" in record and isinstance(record.get("response"), str)
    return has_text_reply or bool(record.keys() & _OF_OTHERS)


def of_text(text: bytes) -> Dialect | None:
    """Return the dialect of the beginning of a record that breaks off; None where it tells none."""
    if b'"role"' not in text and b'"call_id"' not in text:
        return None
    if any(key in text for key in _ANTHROPIC_KEYS):
        return Dialect("anthropic", 0.55)
    if any(key in text for key in _OPENAI_KEYS):
        return Dialect("openai", 0.5)
    return None


_ANTHROPIC_KEYS: Final = (b'"input_schema"', *(f'"{block}"'.encode() for block in BLOCKS))
"""Keys and types by which a record of Anthropic's is recognised that breaks off."""
_OPENAI_KEYS: Final = (
    *(b'"messages"', b'"tool_calls"', b'"choices"'),
    *(b'"function_call"', b'"call_id"', b'"output_text"'),
)
"""Keys by which a record of OpenAI's is recognised that breaks off."""
