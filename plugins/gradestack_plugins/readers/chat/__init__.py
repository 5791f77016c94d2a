"""Lenient reading of chat-completion shapes, shared by the readers.

Messages, tool calls and tool schemas.

Understood tool calls: ``{"id", "type", "function": {"name", "arguments"}}`` with arguments as JSON
text or object, and the flat ``{"name", "arguments"}`` form. Understood tools: OpenAI's form, the
function without its wrapper, and DeepFabric's own, whose parameters are a list. Nothing here raises
on odd data; what cannot be understood is left out or kept raw.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from gradestack import JSON, Message, ToolCall, ToolSpec, replace
from gradestack.jsonio import JsonProblem, as_list, as_text, compact, loads

OBJECT: Final = (dict, Mapping)
"""Types of objects: dicts, which JSON decodes to and which are checked fast, and mappings."""


def word(holder: Any, key: str) -> str:
    """Return a text of an object; "" for one of another type, or where there is none."""
    value = None
    if isinstance(holder, dict):
        value = holder.get(key)
    return value if isinstance(value, str) else ""


def parse_arguments(raw: Any) -> tuple[dict[str, Any] | None, str | None]:
    """Return the arguments of a call as an object, and their text.

    The object is None where there is none (then the text is the value as text); the text is None
    for an object. A missing or null value reads as no arguments.
    """
    if isinstance(raw, str):
        try:
            value = loads(raw)
        except JsonProblem:
            return None, raw
        return (value if type(value) is dict else None), raw
    if raw is None:
        return {}, None
    if isinstance(raw, OBJECT):
        return dict(raw), None
    return None, compact(raw)


def tool_call(raw: Any, *, default_requestor: str = "assistant") -> ToolCall | None:
    """Return the call of one ``tool_calls`` entry, None when it is not an object."""
    if not isinstance(raw, OBJECT):
        return None
    inner = _function_of(raw)
    arguments, text = parse_arguments(inner.get("arguments", inner.get("kwargs")))
    identifier = raw.get("id")
    requestor = raw.get("requestor")
    return ToolCall(
        name=as_text(inner.get("name")),
        arguments=arguments,
        raw_arguments=text,
        id=identifier if isinstance(identifier, str) else None,
        requestor=requestor if isinstance(requestor, str) else default_requestor,
    )


def _function_of(raw: Any) -> Any:
    """Return the object under ``function`` of a call or a tool, or itself."""
    function = raw.get("function")
    if function is not None and isinstance(function, OBJECT):
        return function
    return raw


def text_or_none(value: Any) -> str | None:
    """Return a text as it is, None for anything else."""
    return value if isinstance(value, str) else None


def tool_calls(raw: Any) -> tuple[ToolCall, ...]:
    """Return the calls of a ``tool_calls`` list; entries that are not objects are left out."""
    entries = as_list(raw)
    return tuple(call for entry in entries if (call := tool_call(entry)) is not None)


def message(raw: Any) -> Message | None:
    """Return one chat message, None when it is not an object."""
    if not isinstance(raw, OBJECT):
        return None
    reasoning = raw.get("reasoning_content", raw.get("reasoning"))
    role = raw.get("role")
    return Message(
        role=as_text(role),
        content=raw.get("content"),
        tool_calls=tool_calls(raw.get("tool_calls")),
        name=text_or_none(raw.get("name")),
        tool_call_id=text_or_none(raw.get("tool_call_id")),
        reasoning=text_or_none(reasoning),
    )


def messages(raw: Any) -> tuple[Message, ...]:
    """Return the chat messages of a list; entries that are not objects are left out."""
    entries = as_list(raw)
    return tuple(chat for entry in entries if (chat := message(entry)) is not None)


def with_content(call: ToolCall, message: Message) -> ToolCall:
    """Return a call with the content of the message that answers it as its result."""
    return replace(call, result=message.content)


def made_calls(
    conversation: Iterable[Message],
    with_result: Callable[[ToolCall, Message], ToolCall] = with_content,
) -> tuple[ToolCall, ...]:
    """Return every call of a conversation in order, each with the result in a ``tool`` message.

    A message answers the oldest of its calls that has no answer yet.
    """
    calls: list[ToolCall] = []
    waiting: list[int] = []
    for message in conversation:
        tool_call_count = len(message.tool_calls)
        waiting += range(len(calls), len(calls) + tool_call_count)
        calls += message.tool_calls
        index = next((index for index in waiting if answers(message, calls[index])), None)
        if index is not None:
            waiting.remove(index)
            calls[index] = with_result(calls[index], message)
    return tuple(calls)


def answers(message: Message, call: ToolCall) -> bool:
    """Return whether a message holds the result of a call, by its id or else the tool's name."""
    if message.role != "tool":
        return False
    if message.tool_call_id is not None:
        return message.tool_call_id == call.id
    return call.id is None and message.name in (None, call.name)


def text_of(content: Any) -> str:
    """Return message content as text.

    Text itself, the text parts of a list joined by a space, "" otherwise.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        texts: list[str] = []
        for part in content:
            if isinstance(part, OBJECT):
                text = part.get("text")
            else:
                text = part
            if isinstance(text, str):
                texts.append(text)
        return " ".join(texts)
    return ""


def tool_spec(raw: Any) -> ToolSpec | None:
    """Return a tool from its OpenAI form (with or without the ``function`` wrapper).

    None where it has no name. Without parameters, they are the ``input_schema`` of Anthropic's form
    and of MCP.
    """
    if not isinstance(raw, OBJECT):
        return None
    inner = _function_of(raw)
    name = inner.get("name")
    if not isinstance(name, str):
        return None
    parameters = parameters_of(inner.get("parameters"))
    description = inner.get("description")
    return ToolSpec(
        name=name,
        description=as_text(description),
        parameters=schema_of(raw.get("input_schema")) if parameters is None else parameters,
    )


def parameters_of(parameters: Any) -> Mapping[str, JSON] | None:
    """Return a tool's recorded parameters: lists, DeepFabric's own form, as JSON Schema.

    Else see ``schema_of``.
    """
    if parameters is None or isinstance(parameters, dict):
        return parameters
    if isinstance(parameters, list) and all(isinstance(entry, OBJECT) for entry in parameters):
        parameters = list_schema(parameters)
    return schema_of(parameters)


def schema_of(parameters: Any) -> Mapping[str, JSON] | None:
    """Return the schema of a tool's arguments, None where there is none.

    Anything but an object becomes one that is no schema: so it is kept, and whoever uses it says
    that it cannot be one.
    """
    is_schema = parameters is None or isinstance(parameters, OBJECT)
    return parameters if is_schema else {"properties": parameters}


_JSON_WORDS: Final = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}


def list_schema(parameters: Sequence[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a list of
    ``{"name", "type", "description", "required", "default"}``.

    Types map word by word (``str`` or ``string`` to ``string``); a type outside the six words
    (``Any``, ``list[str]``) is left undeclared. A parameter is required unless it says otherwise. A
    default is kept for parameters that are not required, converted to the type, and left out where
    it is empty or does not convert. Entries without a name are left out.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters:
        name = None
        if isinstance(parameter, Mapping):
            name = parameter.get("name")
        if not isinstance(name, str):
            continue
        kind = parameter.get("type")
        if isinstance(kind, str):
            kind = _JSON_WORDS.get(kind, kind)
        else:
            kind = None
        is_known = kind in _JSON_WORDS.values()
        declared = {"type": kind} if is_known else {}
        description = parameter.get("description")
        properties[name] = {**declared, "description": as_text(description)}
        default = parameter.get("default")
        if parameter.get("required", True):
            required.append(name)
        elif isinstance(default, str) and default:
            converts, value = _default(kind if kind and is_known else "string", default)
            if converts:
                properties[name]["default"] = value
    return {"type": "object", "properties": properties, "required": required}


def _default(kind: str, text: str) -> tuple[bool, JSON]:
    """Return whether a text converts to a type, and its value."""
    try:
        if kind == "integer":
            return True, int(text)
        if kind == "number":
            return True, float(text)
    except ValueError:
        return False, None
    if kind == "boolean":
        return True, text.lower() in {"true", "1", "yes"}
    if kind in {"array", "object"}:
        if text.lower() == "none":
            return (True, None)
        return literal(text)
    return True, text


def literal(text: str) -> tuple[bool, JSON]:
    """Return whether a text is JSON or a Python literal, and its value."""
    try:
        return True, loads(text)
    except JsonProblem:
        pass
    try:
        with warnings.catch_warnings(action="ignore"):  # odd escapes
            value = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False, None
    return True, value
