"""What a span says of an agent.

An answer of a model, or the execution of a tool, in each dialect of attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from gradestack import ToolSpec, Usage
from gradestack.jsonio import JsonProblem, as_list, as_map, as_number, as_text, loads
from gradestack_plugins.otel.spans import Event, Span, whole_number
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.conversation import text_or_none
from gradestack_plugins.readers.chat.forms import forms_read, nested
from gradestack_plugins.readers.chat.unread import unread_keys
from gradestack_plugins.readers.chat.usage import count_of, usage_of

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
Kind = Literal["answer", "tool"]
_ADK: Final = "gcp.vertex.agent."
_REQUEST, _RESPONSE, _RESULT = f"{_ADK}llm_request", f"{_ADK}llm_response", f"{_ADK}tool_response"
_ANSWERS: Final = ("chat", "generate_content", "text_completion")
# the name of ADK's span over calls made at once, which have spans of their own
_MERGED: Final = "(merged tools)"
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
"""What is said of a span -> its attributes, the first that is there wins.

GenAI's, older ones, other libraries'.
"""
_COUNTS: Final = [name for name in _NAMES if name.endswith("_tokens")]
_ROLES: Final = {"model": "assistant", "ai": "assistant", "human": "user"}


class Answer(msgspec.Struct, gc=False):
    """One answer of a model: what it was asked with, and what it says."""

    history: list[Any]
    said: list[Any]
    model: str | None = None
    usage: Usage | None = None
    tools: Any = (
        None  # what it was offered, as recorded: most answers repeat what the first one says
    )
    bare: int = (
        0  # how many of its calls have no arguments recorded, as where content is not captured
    )


class Execution(msgspec.Struct, gc=False):
    """The execution of one call."""

    name: str
    id: str | None
    arguments: Any = None
    result: Any = None
    error: str | None = None
    error_type: str | None = None


def kind_of(known: Mapping[str, Any]) -> Kind | None:
    """Return what a span of these attributes is: an answer, the execution of a tool, or neither."""
    operation = known.get("gen_ai.operation.name")
    if operation == "execute_tool":
        return None if known.get("gen_ai.tool.name") == _MERGED else "tool"
    if operation in _ANSWERS or as_map(decoded(known.get(_REQUEST))):
        return "answer"
    kind = known.get("openinference.span.kind")
    if kind is not None:
        return "answer" if kind == "LLM" else "tool" if kind == "TOOL" else None
    if known.get("traceloop.span.kind") == "tool":
        return "tool"
    if operation is None and ("gen_ai.request.model" in known or "llm.request.type" in known):
        return "answer"
    return None


def decoded(value: Any) -> Any:
    """Return what a text of JSON holds; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except JsonProblem:
        return value


def first_of(known: Mapping[str, Any], what: str) -> Any:
    """Return what a span's attributes say of something, None where they say nothing."""
    for name in _NAMES[what]:
        if (found := known.get(name)) is not None:
            return found
    return None


def _usage(known: Mapping[str, Any]) -> Usage | None:
    found = {name: each for name in _COUNTS if (each := first_of(known, name)) is not None}
    texts = {
        name: number
        for name, each in found.items()
        if isinstance(each, str) and (number := whole_number(each)) is not None
    }
    given = {
        name: each
        for name, value in {**found, **texts}.items()
        if (each := count_of(value)) is not None
    }
    cost = as_number(first_of(known, "cost_usd"))
    return Usage(**given, cost_usd=cost, requests=1) if given or cost is not None else None


def answer_of(span: Span, logs: Iterable[Event]) -> Answer:
    """Return the answer that a span is."""
    events = [*span.events, *logs]
    known: Mapping[str, Any] = span.attributes
    for event in events:
        if event.name == "gen_ai.client.inference.operation.details":
            known = {
                **as_map(event.body),
                **event.attributes,
                **known,
            }  # where lists of mixed values are lost
    model = text_or_none(known.get("gen_ai.response.model")) or text_or_none(
        known.get("llm.model_name")
    )
    made = Answer([], [], model or text_or_none(known.get("gen_ai.request.model")), _usage(known))
    found = span.answer or made
    for read in (_of_adk, _of_genai, _of_events, _of_numbered) if found is made else ():
        if read(found, known, events):
            break
    found.history, found.said = forms_read(found.history), forms_read(found.said)
    if "openinference.span.kind" not in known:  # which leaves out those that are empty
        for entry in map(as_map, found.said):
            calls = map(as_map, as_list(entry.get("tool_calls")))
            found.bare += sum(
                as_map(call.get("function", call)).get("arguments") is None for call in calls
            )
    return found


def specs_of(raws: Any) -> tuple[ToolSpec, ...] | None:
    """Return the tools that an answer was offered; None where none are recorded."""
    listed = decoded(raws)
    if not isinstance(listed, list):
        return None
    return tuple(spec for each in listed if (spec := tool_spec(decoded(each))) is not None)


def _of_adk(found: Answer, known: Mapping[str, Any], _: Iterable[Event]) -> bool:
    request = as_map(decoded(known.get(_REQUEST)))
    if not request:
        return False
    response = as_map(decoded(known.get(_RESPONSE)))
    config = as_map(request.get("config"))
    system = config.get("system_instruction")
    found.history = [{"role": "system", "content": system}] if isinstance(system, str) else []
    found.history += as_list(request.get("contents"))
    if isinstance(response.get("content"), dict):
        found.said = [response["content"]]
    found.model = (
        text_or_none(response.get("model_version"))
        or text_or_none(request.get("model"))
        or found.model
    )
    found.usage = usage_of(response.get("usage_metadata")) or found.usage
    declared = [
        each for tool in as_list(config.get("tools")) for each in _declarations(as_map(tool))
    ]
    if declared:
        found.tools = declared
    return True


def _declarations(tool: Mapping[str, Any]) -> Iterator[Any]:
    for each in as_list(tool.get("function_declarations", tool.get("functionDeclarations"))):
        schema = as_map(each).get(
            "parameters_json_schema", as_map(each).get("parametersJsonSchema")
        )
        yield {**as_map(each), "parameters": schema} if schema is not None else each


def _of_genai(found: Answer, known: Mapping[str, Any], _: Iterable[Event]) -> bool:
    asked, said = (
        decoded(known.get("gen_ai.input.messages")),
        decoded(known.get("gen_ai.output.messages")),
    )
    if found.tools is None:
        found.tools = known.get("gen_ai.tool.definitions")
    if not isinstance(asked, list) and not isinstance(said, list):
        return False
    told = decoded(known.get("gen_ai.system_instructions"))
    if told:
        parts = told if isinstance(told, list) else [told]
        text = "\n".join(as_text(as_map(each).get("content", each)) for each in parts if each)
        found.history.append({"role": "system", "content": text})
    found.history += messages_of(as_list(asked))
    found.said = messages_of({"role": "assistant", **as_map(each)} for each in as_list(said))
    return True


def messages_of(recorded: Iterable[Any]) -> list[Any]:
    """Return the chat messages that GenAI's messages, made of parts, stand for."""
    return [entry for each in recorded for entry in _genai_message(each)]


def _genai_message(message: Any) -> Iterator[Any]:
    parts = as_map(message).get("parts")
    if not isinstance(parts, list):
        yield message
        return
    role = as_text(message.get("role"))
    blocks: list[Any] = []
    calls: list[Any] = []
    results: list[Any] = []
    for part in map(as_map, parts):
        kind = text_or_none(part.get("type"))
        if kind in {"tool_call", "server_tool_call"}:
            function = {"name": part.get("name"), "arguments": part.get("arguments")}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
        elif kind in {"tool_call_response", "server_tool_call_response"}:
            result = part.get("response", part.get("result"))
            results.append({"role": "tool", "tool_call_id": part.get("id"), "content": result})
        elif kind == "reasoning":
            blocks.append({"type": "reasoning", "reasoning": part.get("content")})
        elif kind == "text" or (kind is None and ("content" in part or "text" in part)):
            blocks.append({"type": "text", "text": part.get("content", part.get("text"))})
        else:
            blocks.append(part)
    if blocks or calls or not results:
        alone = (
            blocks[0]["text"]
            if len(blocks) == 1 and blocks[0].get("type") == "text"
            else blocks or None
        )
        yield {
            "role": _ROLES.get(role, role),
            "content": alone,
            **({"tool_calls": calls} if calls else {}),
            **{key: message[key] for key in unread_keys(message, ("tool_calls", "parts"))},
        }
    yield from results


def _of_events(found: Answer, _: Mapping[str, Any], events: Iterable[Event]) -> bool:
    """Read the messages that stand in events or log records, as up to version 1.36 of the
    conventions.
    """
    for event in events:
        kind = event.name.removeprefix("gen_ai.")
        held = decoded(event.attributes.get("gen_ai.event.content"))
        body = as_map(event.body) or as_map(held) or event.attributes
        if kind == "choice":
            message = as_map(decoded(body.get("message"))) or body
            found.said.append({"role": "assistant", **_openai_message(message)})
        elif kind in {"system.message", "user.message", "assistant.message", "tool.message"}:
            role = kind.removesuffix(".message")
            message = {**_openai_message(body), "role": role}
            if role == "tool":
                message["tool_call_id"] = body.get("id", body.get("tool_call_id"))
            found.history.append(message)
    return bool(found.said or found.history)


def _openai_message(body: Mapping[str, Any]) -> dict[str, Any]:
    names = ("role", "content", "name", *unread_keys(body, ("tool_calls",)))
    known = {key: body[key] for key in names if body.get(key) is not None}
    calls = decoded(body.get("tool_calls"))
    return {**known, "tool_calls": calls} if isinstance(calls, list) else known


def _listed(known: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the objects that attributes with numbered keys spell out.

    ``PREFIX.0.role``, ``PREFIX.1.content``, ….
    """
    found: dict[int, dict[str, Any]] = {}
    for key, value in known.items():
        if key.startswith(prefix):
            number, _, rest = key.removeprefix(prefix).partition(".")
            if _NUMBER.fullmatch(number):
                found.setdefault(int(number), {})[rest.removeprefix("message.")] = value
    whole = (found[number] for number in sorted(found))
    return [nested(each) if any("." in key for key in each) else each for each in whole]


def _of_numbered(found: Answer, known: Mapping[str, Any], _: Iterable[Event]) -> bool:
    """Read the messages that attributes with numbered keys spell out.

    OpenInference's and Traceloop's.
    """
    asked, said = (
        _listed(known, "llm.input_messages."),
        _whole(_listed(known, "llm.output_messages.")),
    )
    tools = [
        as_map(each.get("tool", each)).get("json_schema") for each in _listed(known, "llm.tools.")
    ]
    functions = _listed(known, "llm.request.functions.")
    tools += [{**each, "parameters": decoded(each.get("parameters"))} for each in functions]
    found.tools = tools or found.tools
    found.history, found.said = (
        [{"message": each} for each in asked],
        [{"message": each} for each in said],
    )
    if not asked and not said:
        found.history = [*_listed(known, "gen_ai.prompt.")]
        found.said = [
            {"role": "assistant", **as_map(each)} for each in _listed(known, "gen_ai.completion.")
        ]
    return bool(found.history or found.said)


def _whole(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the one message that an answer of Responses is, whose items are recorded
    as messages.
    """
    if len(messages) < 2 or any("content" in each for each in messages):  # choices, it may be
        return messages
    calls = [call for each in messages for call in as_list(each.get("tool_calls"))]
    parts = [part for each in messages for part in as_list(each.get("contents"))]
    return [{**messages[0], "contents": parts, "tool_calls": calls}]


def execution_of(span: Span) -> Execution:
    """Return the execution of a call that a span is."""
    known = span.attributes
    name, identifier = first_of(known, "tool") or span.name, first_of(known, "call")
    asked, result = first_of(known, "arguments"), first_of(known, "result")
    if known.get("traceloop.span.kind") == "tool" and asked is None:
        given = as_map(decoded(known.get("traceloop.entity.input")))
        asked = given.get("kwargs") or given.get("inputs") or given
        result = decoded(known.get("traceloop.entity.output"))
    if _RESULT in known:
        result = decoded(result)
        result = (
            result["result"] if isinstance(result, dict) and result.keys() == {"result"} else result
        )
    kind = text_or_none(known.get("error.type"))
    thrown = next((each.attributes for each in span.events if each.name == "exception"), {})
    error = kind if span.error is None else span.error
    if error is not None:
        error = error or text_or_none(thrown.get("exception.message")) or kind or "failed"
        kind = kind or text_or_none(thrown.get("exception.type"))
    return Execution(as_text(name), text_or_none(identifier), asked, result, error, kind)
