"""Messages of other libraries and data sets, as the chat messages and items that they stand for.

Each message is recognised by its own keys: LangChain's (plain, ``messages_to_dict``, ``dumpd``),
ShareGPT's, items of the Agents SDK, Gemini's contents and ADK's events, OpenInference's, and those
of agents' libraries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from gradestack.jsonio import as_list, as_map
from gradestack_plugins.readers.chat import literal
from gradestack_plugins.readers.chat.libraries import (
    call_block,
    has_tags,
    library_reader,
    reader_of_parts,
    result_message,
    split_pieces,
    text_block,
    thought_block,
)
from gradestack_plugins.readers.chat.texts import undecodable

Entry = dict[str, Any]
_LANGCHAIN: Final = {
    **dict.fromkeys(("human", "humanmessage"), "user"),
    **dict.fromkeys(("ai", "aimessage"), "assistant"),
    **dict.fromkeys(("system", "systemmessage"), "system"),
    **dict.fromkeys(("tool", "toolmessage"), "tool"),
    **dict.fromkeys(("function", "functionmessage"), "function"),
    **dict.fromkeys(("chat", "chatmessage"), "chat"),
}
"""LangChain's type of a message -> its role."""
_SHAREGPT: Final = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "model"), "assistant"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(("observation", "tool", "function_response", "tool_response"), "tool"),
    "function": "tool",
}
"""ShareGPT's speaker -> its role."""
_GEMINI_PARTS: Final = frozenset(
    """
    text thought functionCall functionResponse inlineData fileData executableCode
    codeExecutionResult function_call function_response inline_data file_data executable_code
    code_execution_result
    """.split()  # noqa: SIM905
)
"""Keys by which a part of Gemini is recognised."""
in_snake: Final = lru_cache(maxsize=1024)(
    partial(re.sub, "[A-Z]", lambda capital: f"_{capital[0].lower()}")
)
"""Return a key in camel case as in snake case."""


def either(holder: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key in camel case, or in snake case."""
    return holder.get(key, holder.get(in_snake(key)))


def form_of(entry: Any) -> Callable[[Entry], Iterator[Any]] | None:
    """Return the function that reads a message of another form.

    None for anything else, and for the forms of the APIs.
    """
    if not isinstance(entry, dict):
        return None
    kind = entry.get("type")
    content = entry.get("content")
    has_parts = "parts" in entry
    is_chat = "role" in entry and kind is None and not has_parts
    if is_chat and not isinstance(content, dict):
        read = reader_of_parts(content)
        if read is None and ("toolInvocations" in entry or has_tags(entry)):
            read = library_reader(entry)
        return read
    if isinstance(kind, str) and (read := _form_by_type(entry, kind)) is not None:
        return read
    if isinstance(entry.get("from"), str) and "value" in entry:
        return _read_sharegpt
    if "role" not in entry or has_parts:
        read = library_reader(entry)
        if read is not None:
            return read
    if _has_gemini_parts(entry) or _has_gemini_parts(content):
        return _read_gemini
    return _openinference_form(entry)


def _form_by_type(entry: Entry, kind: str) -> Callable[[Entry], Iterator[Any]] | None:
    """Return the function that reads a message with a type of the Agents SDK or of LangChain."""
    if isinstance(entry.get("raw_item"), dict):
        return _read_agents_item
    if "lc" in entry and isinstance(entry.get("kwargs"), dict):
        return _read_dumped
    has_content = "content" in entry or isinstance(entry.get("data"), dict)
    return _read_langchain if has_content and _langchain_role(kind) else None


def _openinference_form(entry: Entry) -> Callable[[Entry], Iterator[Any]] | None:
    """Return the function that reads a message of OpenInference, dotted or nested."""
    if [key for key in entry if isinstance(key, str) and key.startswith("message.")]:
        return _read_dotted
    message = entry.get("message")
    is_own = isinstance(message, dict) and isinstance(message.get("role"), str)
    if is_own and len(entry) == 1:
        return _read_openinference
    return None


def forms_read(entries: Iterable[Any]) -> list[Any]:
    """Return the chat messages and items that messages of any forms stand for."""
    messages: list[Any] = []
    for entry in entries:
        form = form_of(entry)
        messages += (entry,) if form is None else form(entry)
    return messages


@lru_cache(maxsize=256)
def _langchain_role(kind: str) -> str | None:
    return _LANGCHAIN.get(kind.lower().removesuffix("chunk"))


def _read_dumped(entry: Entry) -> Iterator[Any]:
    """Yield a message as ``dumpd`` writes it: its class, and the arguments of its constructor."""
    path = entry.get("id")
    fields = entry["kwargs"]
    name = ""
    if isinstance(path, list) and path:
        name = path[-1]
    kind = fields.get("type", name if isinstance(name, str) else "")
    yield from forms_read([{**fields, "type": kind}])


def _read_langchain(entry: Entry) -> Iterator[Any]:
    """Yield a serialised LangChain message as a message with ``role`` and ``content``."""
    if isinstance(entry.get("data"), dict):
        fields = entry["data"]
    else:
        fields = entry
    role = _langchain_role(entry["type"])
    message: Entry = {"role": fields.get("role") if role == "chat" else role}
    for key in ("content", "name", "tool_call_id", "status"):
        if fields.get(key) is not None:
            message[key] = fields[key]
    if role == "assistant":
        message.pop("status", None)
        message |= _langchain_reply(fields)
    yield message


def _langchain_reply(fields: Entry) -> Entry:
    """Return the calls, the usage, the model and the thoughts of an answer."""
    more = as_map(fields.get("additional_kwargs"))
    about = as_map(fields.get("response_metadata"))
    tool_calls = fields.get("tool_calls")
    invalid_tool_calls = fields.get("invalid_tool_calls")
    calls = [*as_list(tool_calls), *as_list(invalid_tool_calls)]
    usage_metadata = fields.get("usage_metadata")
    usage = usage_metadata or about.get("token_usage")
    model_name = about.get("model_name")
    model = model_name or about.get("model")
    reasoning_content = more.get("reasoning_content")
    function_call = more.get("function_call")
    return {
        "tool_calls": calls or as_list(more.get("tool_calls")),
        "usage": usage or about.get("usage"),
        "model": model,
        "reasoning_content": reasoning_content,
        "function_call": function_call,
    }


def _read_agents_item(entry: Entry) -> Iterator[Any]:
    agent = entry.get("agent")
    if isinstance(agent, dict):
        author = agent.get("name")
    else:
        author = agent
    named = {"author": author} if isinstance(author, str) else {}
    entries = [{**entry["raw_item"], **named}]
    yield from forms_read(entries)


def _read_sharegpt(entry: Entry) -> Iterator[Any]:
    """Yield a turn of ShareGPT (``from`` and ``value``) as a message, possibly with calls."""
    value = entry["value"]
    speaker = entry["from"]
    role = _SHAREGPT.get(speaker.lower(), speaker)
    if role != "call":
        yield {"role": role, "content": value}
        return
    if isinstance(value, str):
        data = literal(value)[1]
    else:
        data = value
    calls = data if isinstance(data, list) else [data]
    if not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        calls = [undecodable(value)]
    yield {"role": "assistant", "content": None, "tool_calls": calls}


def _has_gemini_parts(entry: Any) -> bool:
    parts = None
    if isinstance(entry, dict):
        parts = entry.get("parts")
    if not isinstance(parts, list):
        return False
    return any(isinstance(part, dict) and not _GEMINI_PARTS.isdisjoint(part) for part in parts)


def _read_gemini(entry: Entry) -> Iterator[Any]:
    """Yield a content, or that of an event: results, and an answer with its calls or a question."""
    gemini_parts = _has_gemini_parts(entry)
    content = entry if gemini_parts else entry["content"]
    role = content.get("role") or ("user" if entry.get("author") == "user" else "model")
    blocks, results = split_pieces(map(_gemini_piece, content["parts"]))
    yield from results
    if blocks:
        usage = either(entry, "usageMetadata")
        model = either(entry, "modelVersion")
        author = entry.get("author")
        yield {
            "role": "assistant" if role == "model" else role,
            "content": blocks,
            "usage": usage,
            "model": model,
            "author": author,
        }


def _gemini_piece(recorded: Any) -> Entry:
    """Convert a part of Gemini's ``parts`` into a call, a result, a thought or a text."""
    part = as_map(recorded)
    call = either(part, "functionCall")
    result = either(part, "functionResponse")
    if isinstance(call, dict):
        identifier = call.get("id")
        arguments = call.get("args")
        return call_block(identifier, call.get("name"), arguments)
    if isinstance(result, dict):
        response = result.get("response")
        return result_message(result.get("id"), result.get("name"), response)
    if isinstance(part.get("text"), str):
        is_thought = part.get("thought") is True
        if is_thought:
            return thought_block(part["text"])
        return text_block(part["text"])
    filled = {key: value for key, value in part.items() if value is not None}
    return {"type": next(iter(filled), None), **filled}


def _read_dotted(entry: Entry) -> Iterator[Any]:
    yield from forms_read([nested(entry)])


def _read_openinference(entry: Entry) -> Iterator[Any]:
    message = entry["message"]
    calls = _unwrapped(message.get("tool_calls"), "tool_call")
    parts = _unwrapped(message.get("contents"), "message_content")
    yield {**message, "content": message.get("content", parts or None), "tool_calls": calls}


def _unwrapped(entries: Any, key: str) -> list[Any]:
    """Return the entries of a list, of objects that have the key its values."""
    return [
        entry.get(key, entry) if isinstance(entry, dict) else entry for entry in as_list(entries)
    ]


def nested(value: Any) -> Any:
    """Return a record whose keys are paths (``a.b.0.c``) as the objects and lists these lead to."""
    return _numbered(_spread(value))


def _spread(value: Any) -> Any:
    """Return objects whose keys are paths as nested objects."""
    if isinstance(value, list):
        return [_spread(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    spread: Entry = {}
    for path, entry in value.items():
        *before, name = str(path).split(".")
        holder = spread
        for step in before:
            if not isinstance(holder.get(step), dict):
                holder[step] = {}
            holder = holder[step]
        inner = _spread(entry)
        other = holder.get(name)
        if isinstance(other, dict) and isinstance(inner, dict):
            inner = {**other, **inner}
        holder[name] = inner
    return spread


def _numbered(value: Any) -> Any:
    """Return objects whose keys are 0, 1, 2, … as lists."""
    if isinstance(value, list):
        return [_numbered(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _numbered(entry) for key, entry in value.items()}
    numbers = [str(number) for number in range(len(inner))]
    is_list = bool(inner) and inner.keys() == set(numbers)
    return [inner[number] for number in numbers] if is_list else inner
