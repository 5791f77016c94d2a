"""Reader ``anthropic``: logs of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import Sample, Source, ToolSpec
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, kind_of
from gradestack_plugins.readers.chat.decoder import ChatConversation
from gradestack_plugins.readers.chat.identity import NOTHING, identity
from gradestack_plugins.readers.chat.logs import ChatLogs, broken, failed_status, log_sample, type_of
from gradestack_plugins.readers.chat.names import decoded
from gradestack_plugins.readers.chat.usage import usage_of

_ANSWERS: Final = ("response", "completion", "output", "message")
_NAMES: Final = """
messages model max_tokens system tools tool_choice temperature top_p top_k stop_sequences stream metadata service_tier
thinking container context_management mcp_servers cache_control inference_geo output_config output_format speed betas
diagnostics user_profile_id workspace_id fallback_credit_token compaction thread billing_policy fallbacks

id type role content stop_reason stop_sequence stop_details usage error input_transformations

custom_id task_id run trial trace_id span_id session_id request response completion output message params result body
method url request_id timestamp conversation
"""
KNOWN: Final = frozenset(_NAMES.split())
"""Keys of requests, of answers and of logs of both: what stands beside them in a record is remarked."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and what came of it."""

    request: Mapping[str, Any] = NOTHING
    answer: Mapping[str, Any] = NOTHING
    """The message that was answered."""
    messages: tuple[Any, ...] = ()
    """All messages, the answer last."""
    error: Any = None
    """What the log says in the place of an answer."""


def _body(value: Any) -> Mapping[str, Any]:
    for _ in range(2):
        value = decoded(value)
        if isinstance(value, dict) and "body" in value:
            value = value["body"]
    return value if isinstance(value, dict) else NOTHING


def exchange_of(record: Any) -> Exchange:
    """Return what a record holds."""
    if isinstance(record, list):
        return Exchange(messages=tuple(record))
    request, (answer, error) = _request(record), _answer(record)
    asked = request.get("messages")
    messages = [*asked] if isinstance(asked, list) else []
    if answer:
        if messages and _same(messages[-1], answer):
            messages.pop()
        messages.append(answer)
    if not messages and error is None:
        raise ValueError("no messages and no answer: an object with messages, or with role and content, is expected")
    return Exchange(request=request, answer=answer, messages=tuple(messages), error=error)


def _request(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if "messages" in record:
        return record
    for name in ("request", "params", "body", "input"):
        if found := _body(record.get(name)):
            return found
    return record


def _answer(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """Return the message that was answered, and the error that stands in its place."""
    result = record.get("result")
    if isinstance(result, dict) and isinstance(result.get("type"), str):
        found = _body(result.get("message"))
        return found, None if found else result.get("error") or f"the request ended as {result['type']}"
    if record.get("role") == "assistant" and "content" in record:
        return record, None
    error = record.get("error")
    for name in _ANSWERS:
        given = record.get(name)
        found = _body(given)
        if found.get("role") == "assistant":
            return found, None
        if isinstance(given, list) and given and isinstance(given[0], dict) and "type" in given[0]:
            return {"role": "assistant", "content": given}, None
        if isinstance(given, str) and name != "message" and "messages" in _request(record):
            return {"role": "assistant", "content": given}, None
        error = error or found.get("error") or failed_status(given)
    if isinstance(record.get("content"), list) and "stop_reason" in record:
        return {**record, "role": "assistant"}, None
    return NOTHING, error or None


def _same(last: Any, answer: Mapping[str, Any]) -> bool:
    return isinstance(last, dict) and all(last.get(key) == answer.get(key) for key in ("role", "content"))


def tools_of(exchange: Exchange, listed: list[Any], talk: Conversation) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a request, None when it does not say; what MCP servers listed is added."""
    tools = exchange.request.get("tools")
    if not isinstance(tools, list):
        return tuple(_tools(listed, talk)) if listed else None
    offered = [each for each in tools if not listed or type_of(each) != "mcp_toolset"]  # what a server lists is known
    return tuple(_tools([*offered, *listed], talk))


def _tools(raws: list[Any], talk: Conversation) -> Iterator[ToolSpec]:
    for raw in raws:
        found = tool_spec(raw)
        if found is None:
            talk.remark(kind_of("tool", type_of(raw)))
        else:
            yield found


_ENDED: Final = {
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "limit:max_tokens",
    "model_context_window_exceeded": "limit:context_window",
    "refusal": "limit:refusal",
}


def ended_of(exchange: Exchange) -> str | None:
    """Return how a run ended, by why its answer stopped; None where it says nothing, or waits for results."""
    if exchange.error is not None:
        cancelled = isinstance(exchange.error, str) and exchange.error.endswith("canceled")
        return "cancelled" if cancelled else "error"
    reason = exchange.answer.get("stop_reason", exchange.request.get("stop_reason"))
    return _ENDED.get(reason) if isinstance(reason, str) else None


@attrs.frozen(kw_only=True)
class AnthropicLogs(ChatLogs):
    """Reads Anthropic messages: requests with or without their answer, answers alone, batch requests and results.

    A record is an object with ``messages``, a list of messages, a request with its response, or an answer; a file holds
    one a line, a list of them, or one. Calls are the blocks ``tool_use``, ``server_tool_use`` and ``mcp_tool_use``;
    their results are found by ``tool_use_id``, and whether they are errors is said by the format.
    """

    version: ClassVar[str] = "1"
    known = KNOWN
    dialect = "anthropic"

    @override
    def samples_of_record(self, record: Any, source: Source, made: str) -> Iterator[Sample]:
        exchange = exchange_of(record)
        request, answer = exchange.request, exchange.answer
        whole = NOTHING if isinstance(record, list) else record
        known = identity(whole, request, answer, made=made, known=KNOWN)
        talk = ChatConversation("block")
        talk.system(request.get("system"))
        talk.read(exchange.messages)
        model = answer.get("model") or request.get("model")
        usage = answer.get("usage") or request.get("usage")
        more: dict[str, Any] = {
            "model": model if isinstance(model, str) else None,
            "tools": tools_of(exchange, talk.listed, talk),
            "usage": usage_of(usage),
            "agent_usage": usage,
            "ended": ended_of(exchange),
        }
        if exchange.error is not None:
            more |= broken(exchange.error, "the request failed")
        yield log_sample(known, talk, source, **more)
