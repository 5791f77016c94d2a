"""Whose chat log a record is: told by what stands in its messages, tools and wrapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from gradestack.jsonio import as_list
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.forms import form_of
from gradestack_plugins.readers.chat.parts import row_kind

Name = Literal["openai", "anthropic", "other"]
"""``other``: messages of a library or of a data set, which belong to no API."""

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
BLOCKS: Final = frozenset(
    {
        "tool_use",
        "tool_result",
        "server_tool_use",
        "mcp_tool_use",
        "mcp_tool_result",
        "thinking",
        "redacted_thinking",
    }
)
"""Types of content blocks that only Anthropic's messages have.

Results of server tools end in ``_tool_result``.
"""
_ITEM_TYPES: Final = """
reasoning function_call function_call_output custom_tool_call mcp_list_tools mcp_approval_request
mcp_approval_response
item_reference compaction additional_tools configuration_update tool_search_output program
program_output
"""
ITEMS: Final = frozenset(_ITEM_TYPES.split())
"""Types of items of OpenAI's Responses.

Beside them whatever ends in ``_call`` or ``_call_output``.
"""
_OPENAI_PARTS: Final = frozenset(
    {"image_url", "input_audio", "refusal", "input_text", "output_text", "input_image"}
)
_OPENAI_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
_OF_OTHERS: Final = frozenset(
    {"expected", "predicted", "turns", "recorded", "tool_context", "executions"}
)
"""Keys of other forms that hold messages too."""
_LOOKED_AT: Final = 40
_SURE, _CLEAR, _LIKELY, _PLAIN, PERHAPS = 0.95, 0.9, 0.7, 0.6, 0.4


class Dialect(NamedTuple):
    """Whose form a record has, and how sure that is."""

    name: Name
    certainty: float


def is_item(entry: Any) -> bool:
    """Return whether something is an item of Responses that is no message."""
    kind = word(entry, "type")
    return kind in ITEMS or kind.endswith(("_call", "_call_output"))


def is_message(entry: Any) -> bool:
    """Return whether something is one chat message, not a whole answer of Anthropic's."""
    if word(entry, "role") not in ROLES or "stop_reason" in entry:
        return False
    return "content" in entry or "tool_calls" in entry or "function_call" in entry


def is_entry(value: Any) -> bool:
    """Return whether something is a piece of a conversation: a message or an item."""
    return is_item(value) or is_message(value) or form_of(value) is not None


def _of_message(message: Mapping[str, Any]) -> Name | None:
    if (
        "tool_calls" in message
        or "function_call" in message
        or word(message, "role") in _OPENAI_ROLES
    ):
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
    """Return whose a list of messages or items is; None when it is none.

    What could be either's is OpenAI's.
    """
    if not isinstance(entries, list) or not entries:
        return None
    looked_at = entries[:_LOOKED_AT]
    if not all(isinstance(each, dict) for each in looked_at):
        return None
    if any(form_of(each) is not None for each in looked_at):
        return Dialect("other", _CLEAR)
    if any(map(is_item, looked_at)):
        return Dialect("openai", _CLEAR)
    if not all(isinstance(each.get("role"), str) for each in looked_at) or not any(
        map(is_message, looked_at)
    ):
        return None
    names = [name for each in looked_at if (name := _of_message(each)) is not None]
    if "anthropic" in names:
        return Dialect("anthropic", _SURE)
    return Dialect("openai", _CLEAR if names else _PLAIN)


def _of_tools(tools: Any) -> Name | None:
    for tool in as_list(tools):
        if isinstance(tool, dict):
            if "input_schema" in tool:
                return "anthropic"
            if "function" in tool or "parameters" in tool or tool.get("type") == "custom":
                return "openai"
    return None


def of_request(request: Any) -> Dialect | None:
    """Return whose request an object is.

    Messages, or Responses' input, with what stands beside them.
    """
    if not isinstance(request, dict):
        return None
    found = of_entries(request.get("messages"))
    if found is None:
        entries = request.get("input")
        responses = "instructions" in request or "previous_response_id" in request
        answered = any(
            isinstance(request.get(key), str) for key in ("output", "response", "completion")
        )
        named = isinstance(entries, str) and (responses or ("model" in request and not answered))
        found = of_entries(entries) or (Dialect("openai", _LIKELY) if named else None)
        return found if found is not None and found.name == "openai" else None
    if found.certainty > _PLAIN:
        return found
    tools, model = _of_tools(request.get("tools")), request.get("model")
    if tools == "anthropic" or "stop_sequences" in request or "system" in request:
        return Dialect("anthropic", _CLEAR)
    if tools == "openai" or "functions" in request:
        return Dialect("openai", _CLEAR)
    if isinstance(model, str) and model.startswith("claude"):
        return Dialect("anthropic", _LIKELY)
    return found


def of_response(response: Any) -> Dialect | None:
    """Return whose answer an object is."""
    if not isinstance(response, dict):
        return None
    choices, output = response.get("choices"), response.get("output")
    if isinstance(choices, list) and all(
        isinstance(each, dict) and "message" in each for each in choices
    ):
        return (
            Dialect("openai", _SURE)
            if choices or response.get("object") == "chat.completion"
            else None
        )
    if isinstance(output, list) and (response.get("object") == "response" or of_entries(output)):
        return Dialect("openai", _SURE)
    whole = response.get("type") == "message" and ("stop_reason" in response or "model" in response)
    if whole and response.get("role") == "assistant" and isinstance(response.get("content"), list):
        return Dialect("anthropic", _SURE)
    return None


def _body(value: Any) -> Any:
    return value.get("body", value) if isinstance(value, dict) else value


def _of_batch(record: Mapping[str, Any]) -> Dialect | None:
    """Return whose line of a batch a record is, where it says so itself."""
    result, response = record.get("result"), record.get("response")
    if word(result, "type") in {"succeeded", "errored", "canceled", "expired"}:
        return Dialect("anthropic", _SURE)
    if isinstance(record.get("params"), dict):
        found = of_request(record["params"])
        return None if found is None else Dialect("anthropic", _CLEAR)
    failed = isinstance(response, dict) and "status_code" in response and "body" in response
    if failed or (response is None and isinstance(record.get("error"), dict)):
        return Dialect("openai", _CLEAR)
    return None


def of_record(record: Any) -> Dialect | None:
    """Return whose chat log a record is and how sure that is; None when it is no chat log."""
    if isinstance(record, list):
        return of_entries(record)
    if not isinstance(record, dict) or row_kind(record) is not None:
        return None
    if "custom_id" in record and (found := _of_batch(record)):
        return found
    answers = (record.get("response"), record.get("completion"), record.get("output"), record)
    looks: list[tuple[Callable[[Any], Dialect | None], Any]] = [
        (of_response, _body(each)) for each in answers
    ]
    looks += [
        (of_request, _body(each)) for each in (record.get("request"), record.get("body"), record)
    ]
    found = max(
        (each for look, what in looks if (each := look(what))),
        key=lambda each: each.certainty,
        default=None,
    )
    if found is None and is_entry(record):
        return of_entries([record])
    return Dialect(found.name, PERHAPS) if found is not None and of_others(record) else found


def of_others(record: Any) -> bool:
    """Return whether a record with messages, or an input, has keys of another form, such as
    gradestack's own.
    """
    if not isinstance(record, dict) or not record.keys() & {"messages", "input"}:
        return False
    return bool(record.keys() & _OF_OTHERS) or (
        "messages" in record and isinstance(record.get("response"), str)
    )


def of_text(text: bytes) -> Dialect | None:
    """Return whose log the beginning of a record is that is broken off.

    None when it tells nothing.
    """
    if b'"role"' not in text and b'"call_id"' not in text:
        return None
    if any(f'"{block}"'.encode() in text for block in BLOCKS) or b'"input_schema"' in text:
        return Dialect("anthropic", 0.55)
    named = (
        b'"messages"',
        b'"tool_calls"',
        b'"choices"',
        b'"function_call"',
        b'"call_id"',
        b'"output_text"',
    )
    return Dialect("openai", 0.5) if any(each in text for each in named) else None
