"""Answers of models and executions of tools, in each dialect of a span's attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from gradestack import ToolSpec, Usage, compile_later
from gradestack.jsonio import JsonProblem, as_list, as_map, as_number, as_text, loads
from gradestack_plugins.otel.spans import Event, Span, whole_number
from gradestack_plugins.readers.chat import text_or_none, tool_spec
from gradestack_plugins.readers.chat.forms import forms_read, nested
from gradestack_plugins.readers.chat.unread import unread_keys
from gradestack_plugins.readers.chat.usage import count_of, usage_of

_NUMBER: Final = compile_later(r"[0-9]{1,9}")
Kind = Literal["answer", "tool"]
_ADK: Final = "gcp.vertex.agent."
_REQUEST, _RESPONSE, _RESULT = f"{_ADK}llm_request", f"{_ADK}llm_response", f"{_ADK}tool_response"
_ANSWERS: Final = ("chat", "generate_content", "text_completion")
_MERGED: Final = "(merged tools)"
"""The name of ADK's span over calls made at once, which have spans of their own."""
_TABLE: Final = """
input_tokens: gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.token_count.prompt
output_tokens: gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.token_count.completion
cached_input_tokens: gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens
  llm.token_count.prompt_details.cache_read
cache_write_tokens: gen_ai.usage.cache_creation.input_tokens
  gen_ai.usage.cache_creation_input_tokens
  llm.token_count.prompt_details.cache_write
reasoning_tokens: gen_ai.usage.reasoning.output_tokens gen_ai.usage.reasoning_tokens
  llm.usage.reasoning_tokens
  llm.token_count.completion_details.reasoning
cost_usd: llm.cost.total gen_ai.usage.cost gen_ai.usage.total_cost
session: gen_ai.conversation.id session.id gcp.vertex.agent.session_id
  traceloop.association.properties.session_id
tool: gen_ai.tool.name tool.name traceloop.entity.name
call: gen_ai.tool.call.id tool.id tool_call.id
arguments: gcp.vertex.agent.tool_call_args gen_ai.tool.call.arguments tool.parameters input.value
result: gcp.vertex.agent.tool_response gen_ai.tool.call.result output.value
"""
_NAMES: Final = {
    field: names.split()
    for field, _, names in (
        line.partition(":") for line in _TABLE.replace("\n  ", " ").strip().split("\n")
    )
}
"""Field -> the attributes that hold it, the first of which counts: GenAI's, older ones, others'."""
_COUNTS: Final = [name for name in _NAMES if name.endswith("_tokens")]
_ROLES: Final = {"model": "assistant", "ai": "assistant", "human": "user"}


class ModelCall(msgspec.Struct, gc=False):
    """One call of a model.

    Attributes:
        history: The messages of the request.
        replies: The messages of the model.
        tools: The tools on offer, as recorded: most answers repeat those of the first one.
        bare: The number of tool calls without recorded arguments: content may not be captured.
    """

    history: list[Any]
    replies: list[Any]
    model: str | None = None
    usage: Usage | None = None
    tools: Any = None
    bare: int = 0


class Execution(msgspec.Struct, gc=False):
    """The execution of one call."""

    name: str
    id: str | None
    arguments: Any = None
    result: Any = None
    error: str | None = None
    error_type: str | None = None


def kind_of(attributes: Mapping[str, Any]) -> Kind | None:
    """Return the kind of a span with these attributes; None where it is neither."""
    operation = attributes.get("gen_ai.operation.name")
    if operation == "execute_tool":
        gen_ai_tool_name = attributes.get("gen_ai.tool.name")
        return None if gen_ai_tool_name == _MERGED else "tool"
    if operation in _ANSWERS or as_map(decoded(attributes.get(_REQUEST))):
        return "answer"
    kind = attributes.get("openinference.span.kind")
    if kind is not None:
        return _OPENINFERENCE.get(kind) if isinstance(kind, str) else None
    if attributes.get("traceloop.span.kind") == "tool":
        return "tool"
    has_model = "gen_ai.request.model" in attributes or "llm.request.type" in attributes
    return "answer" if operation is None and has_model else None


_OPENINFERENCE: Final[dict[str, Kind]] = {"LLM": "answer", "TOOL": "tool"}


def decoded(value: Any) -> Any:
    """Return the value of a JSON text, also of a scalar; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except JsonProblem:
        return value


def first_of(attributes: Mapping[str, Any], field: str) -> Any:
    """Return the first value that attributes hold of a field, None where they hold none."""
    for name in _NAMES[field]:
        value = attributes.get(name)
        if value is not None:
            return value
    return None


def _usage(attributes: Mapping[str, Any]) -> Usage | None:
    """Return tokens and cost that attributes of a span record for one request, or None."""
    counts: dict[str, int] = {}
    for name in _COUNTS:
        value = first_of(attributes, name)
        count = count_of(whole_number(value) if isinstance(value, str) else value)
        if count is not None:
            counts[name] = count
    cost = as_number(first_of(attributes, "cost_usd"))
    if not counts and cost is None:
        return None
    return Usage(**counts, cost_usd=cost, requests=1)


def model_call_of(span: Span, logs: Iterable[Event]) -> ModelCall:
    """Read the model call of a span from its attributes, its events and its log records."""
    events = [*span.events, *logs]
    attributes = _with_details(span.attributes, events)
    model_call: ModelCall | None = span.model_call
    if model_call is None:
        models = ("gen_ai.response.model", "llm.model_name", "gen_ai.request.model")
        names = [text_or_none(attributes.get(name)) for name in models]
        model_call = ModelCall([], [], next(filter(None, names), None), _usage(attributes))
        for read in (_read_adk, _read_genai, _read_events, _read_numbered):
            if read(model_call, attributes, events):
                break
    model_call.history = forms_read(model_call.history)
    model_call.replies = forms_read(model_call.replies)
    if "openinference.span.kind" not in attributes:  # OpenInference leaves out empty arguments
        model_call.bare = sum(map(_count_bare_calls, model_call.replies))
    return model_call


def _with_details(attributes: Mapping[str, Any], events: Iterable[Event]) -> Mapping[str, Any]:
    """Return attributes with those of the event that has the details of an answer."""
    for event in events:
        if event.name == "gen_ai.client.inference.operation.details":
            attributes = {**as_map(event.body), **event.attributes, **attributes}
    return attributes


def _count_bare_calls(message: Any) -> int:
    tool_calls = as_list(as_map(message).get("tool_calls"))
    calls = [as_map(call) for call in tool_calls]
    functions = [as_map(call.get("function", call)) for call in calls]
    return sum(function.get("arguments") is None for function in functions)


def specs_of(tools: Any) -> tuple[ToolSpec, ...] | None:
    """Return the tools that an answer was offered; None where none are recorded."""
    listed = decoded(tools)
    if not isinstance(listed, list):
        return None
    specs = [tool_spec(decoded(tool)) for tool in listed]
    return tuple([spec for spec in specs if spec is not None])


def _read_adk(model_call: ModelCall, attributes: Mapping[str, Any], _: Iterable[Event]) -> bool:
    """Read the request and the response of a span of ADK."""
    request = as_map(decoded(attributes.get(_REQUEST)))
    if not request:
        return False
    response = as_map(decoded(attributes.get(_RESPONSE)))
    config = as_map(request.get("config"))
    system = config.get("system_instruction")
    if isinstance(system, str):
        model_call.history.append({"role": "system", "content": system})
    model_call.history += as_list(request.get("contents"))
    if isinstance(response.get("content"), dict):
        model_call.replies = [response["content"]]
    model_version = response.get("model_version")
    model = request.get("model")
    models = (model_version, model, model_call.model)
    model_call.model = next(filter(text_or_none, models), None)
    usage_metadata = response.get("usage_metadata")
    usage = usage_of(usage_metadata)
    model_call.usage = usage or model_call.usage
    tools = as_list(config.get("tools"))
    declared = [declaration for tool in tools for declaration in _declarations(as_map(tool))]
    model_call.tools = declared or model_call.tools
    return True


def _declarations(tool: Mapping[str, Any]) -> Iterator[Any]:
    function_declarations = tool.get("functionDeclarations")
    declared = tool.get("function_declarations", function_declarations)
    for declaration in as_list(declared):
        about = as_map(declaration)
        parameters_json_schema = about.get("parametersJsonSchema")
        schema = about.get("parameters_json_schema", parameters_json_schema)
        yield declaration if schema is None else {**about, "parameters": schema}


def _read_genai(model_call: ModelCall, attributes: Mapping[str, Any], _: Iterable[Event]) -> bool:
    """Read the messages in attributes of the current conventions."""
    request_messages = decoded(attributes.get("gen_ai.input.messages"))
    output_messages = decoded(attributes.get("gen_ai.output.messages"))
    if model_call.tools is None:
        model_call.tools = attributes.get("gen_ai.tool.definitions")
    if not isinstance(request_messages, list) and not isinstance(output_messages, list):
        return False
    system = decoded(attributes.get("gen_ai.system_instructions"))
    if system:
        parts = system if isinstance(system, list) else [system]
        texts = [as_text(as_map(part).get("content", part)) for part in parts if part]
        model_call.history.append({"role": "system", "content": "\n".join(texts)})
    model_call.history += messages_of(as_list(request_messages))
    messages = as_list(output_messages)
    replies = [{"role": "assistant", **as_map(message)} for message in messages]
    model_call.replies = messages_of(replies)
    return True


def messages_of(recorded: Iterable[Any]) -> list[Any]:
    """Return the chat messages of GenAI's messages, which are made of parts."""
    return [entry for message in recorded for entry in _genai_message(message)]


def _genai_message(message: Any) -> Iterator[Any]:
    """Yield a message of GenAI's ``parts`` as a chat message, and then its tool results."""
    parts = as_map(message).get("parts")
    if not isinstance(parts, list):
        yield message
        return
    role = as_text(message.get("role"))
    blocks: list[Any] = []
    calls: list[Any] = []
    results: list[Any] = []
    for part in map(as_map, parts):
        kind = part.get("type")
        if kind in _CALLS:
            arguments = part.get("arguments")
            function = {"name": part.get("name"), "arguments": arguments}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
        elif kind in _RESULTS:
            result = part.get("response", part.get("result"))
            tool_call_id = part.get("id")
            results.append({"role": "tool", "tool_call_id": tool_call_id, "content": result})
        else:
            blocks.append(_block_of(part))
    if blocks or calls or not results:
        is_text = len(blocks) == 1 and blocks[0].get("type") == "text"
        if is_text:
            content = blocks[0]["text"]
        else:
            content = blocks or None
        entry = {"role": _ROLES.get(role, role), "content": content}
        if calls:
            entry["tool_calls"] = calls
        unread = unread_keys(message, ("tool_calls", "parts"))
        yield {**entry, **{key: message[key] for key in unread}}
    yield from results


_CALLS: Final = ("tool_call", "server_tool_call")
_RESULTS: Final = ("tool_call_response", "server_tool_call_response")


def _block_of(part: Mapping[str, Any]) -> Any:
    """Return a part that is text or reasoning as a block; another one as it is."""
    kind = part.get("type")
    if kind == "reasoning":
        return {"type": "reasoning", "reasoning": part.get("content")}
    has_text = "content" in part or "text" in part
    if kind == "text" or (has_text and not isinstance(kind, str)):
        text = part.get("text")
        return {"type": "text", "text": part.get("content", text)}
    return part


def _read_events(model_call: ModelCall, _: Mapping[str, Any], events: Iterable[Event]) -> bool:
    """Read the messages in events or log records, as up to version 1.36 of the conventions."""
    for event in events:
        kind = event.name.removeprefix("gen_ai.")
        content = decoded(event.attributes.get("gen_ai.event.content"))
        body = as_map(event.body) or as_map(content) or event.attributes
        if kind == "choice":
            message = as_map(decoded(body.get("message"))) or body
            openai_message = _openai_message(message)
            model_call.replies.append({"role": "assistant", **openai_message})
        elif kind in _MESSAGES:
            message = {**_openai_message(body), "role": kind.removesuffix(".message")}
            if kind == "tool.message":
                tool_call_id = body.get("tool_call_id")
                message["tool_call_id"] = body.get("id", tool_call_id)
            model_call.history.append(message)
    return bool(model_call.replies or model_call.history)


_MESSAGES: Final = ("system.message", "user.message", "assistant.message", "tool.message")


def _openai_message(body: Mapping[str, Any]) -> dict[str, Any]:
    names = ("role", "content", "name", *unread_keys(body, ("tool_calls",)))
    message = {name: body[name] for name in names if body.get(name) is not None}
    calls = decoded(body.get("tool_calls"))
    return {**message, "tool_calls": calls} if isinstance(calls, list) else message


def _listed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the objects that attributes with numbered keys spell out.

    ``PREFIX.0.role``, ``PREFIX.1.content``, ….
    """
    by_number: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            number, _, rest = key.removeprefix(prefix).partition(".")
            if _NUMBER.fullmatch(number):
                name = rest.removeprefix("message.")
                by_number.setdefault(int(number), {})[name] = value
    objects = [by_number[number] for number in sorted(by_number)]
    return [nested(fields) if any("." in key for key in fields) else fields for fields in objects]


def _read_numbered(
    model_call: ModelCall, attributes: Mapping[str, Any], _: Iterable[Event]
) -> bool:
    """Read the messages in attributes with numbered keys, of OpenInference and Traceloop."""
    request_messages = _listed(attributes, "llm.input_messages.")
    output_messages = _one_message(_listed(attributes, "llm.output_messages."))
    tools = _listed(attributes, "llm.tools.")
    schemas = [as_map(tool.get("tool", tool)).get("json_schema") for tool in tools]
    for function in _listed(attributes, "llm.request.functions."):
        parameters = function.get("parameters")
        schemas.append({**function, "parameters": decoded(parameters)})
    model_call.tools = schemas or model_call.tools
    model_call.history = [{"message": message} for message in request_messages]
    model_call.replies = [{"message": message} for message in output_messages]
    if not request_messages and not output_messages:
        model_call.history = [*_listed(attributes, "gen_ai.prompt.")]
        completions = _listed(attributes, "gen_ai.completion.")
        model_call.replies = [
            {"role": "assistant", **as_map(completion)} for completion in completions
        ]
    return bool(model_call.history or model_call.replies)


def _one_message(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an answer of Responses, whose items are recorded as messages, as one message.

    Several messages with a content may be choices: they are returned as they are.
    """
    if len(messages) < 2 or any("content" in message for message in messages):
        return messages
    calls = [call for message in messages for call in as_list(message.get("tool_calls"))]
    parts = [part for message in messages for part in as_list(message.get("contents"))]
    return [{**messages[0], "contents": parts, "tool_calls": calls}]


def execution_of(span: Span) -> Execution:
    """Read the execution of a tool call from a span of kind ``tool``."""
    attributes = span.attributes
    name = first_of(attributes, "tool") or span.name
    identifier = first_of(attributes, "call")
    execution = Execution(as_text(name), text_or_none(identifier))
    execution.arguments = first_of(attributes, "arguments")
    execution.result = first_of(attributes, "result")
    traceloop_span_kind = attributes.get("traceloop.span.kind")
    if traceloop_span_kind == "tool" and execution.arguments is None:
        traceloop_entity_input = attributes.get("traceloop.entity.input")
        entity = as_map(decoded(traceloop_entity_input))
        execution.arguments = entity.get("kwargs") or entity.get("inputs") or entity
        execution.result = decoded(attributes.get("traceloop.entity.output"))
    if _RESULT in attributes:
        execution.result = decoded(execution.result)
        result = as_map(execution.result)
        if result.keys() == {"result"}:
            execution.result = execution.result["result"]
    kind = text_or_none(attributes.get("error.type"))
    error = kind if span.error is None else span.error
    if error is not None:
        thrown = next((event for event in span.events if event.name == "exception"), None)
        about = {} if thrown is None else thrown.attributes
        message = text_or_none(about.get("exception.message"))
        execution.error = error or message or kind or "failed"
        execution.error_type = kind or text_or_none(about.get("exception.type"))
    return execution
