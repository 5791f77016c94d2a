"""Readers ``openai`` and ``anthropic``: requests and answers of both APIs, and batches of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from gradestack.jsonio import as_list
from gradestack_plugins.readers.chat.identity import NOTHING
from gradestack_plugins.readers.chat.logs import Answer, ChatLogs, Exchange, body_of

_HTTP_ERROR: Final = 400
_SHARED: Final = """
messages model max_tokens system tools tool_choice temperature top_p stream metadata service_tier id
type usage error
input_transformations custom_id task_id run trial trace_id span_id session_id request response
completion output body
method url timestamp conversation
"""
"""Keys of requests, of answers and of logs of both. Other keys of a record are remarked."""
_OPENAI: Final = """
input instructions functions parallel_tool_calls function_call n stream_options stop
max_completion_tokens
presence_penalty frequency_penalty logit_bias logprobs top_logprobs response_format seed user store
reasoning_effort
reasoning verbosity text prompt prompt_cache_key prompt_cache_options prompt_cache_retention
safety_identifier
modalities audio prediction web_search_options background include background_options
max_output_tokens max_tool_calls
previous_response_id truncation context_management moderation

object created created_at completed_at choices system_fingerprint status incomplete_details
output_text billing
access_programs image prompt_cache_diagnostics tool_usage items new_items
"""
_ANTHROPIC: Final = """
top_k stop_sequences thinking container context_management mcp_servers cache_control inference_geo
output_config
output_format speed betas diagnostics user_profile_id workspace_id fallback_credit_token compaction
thread
billing_policy fallbacks role content stop_reason stop_sequence stop_details message params result
request_id
"""
_ENDED: Final = {
    **dict.fromkeys(("stop", "completed", "end_turn", "stop_sequence"), "completed"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens"), "limit:max_tokens"),
    "content_filter": "limit:content_filter",
    "model_context_window_exceeded": "limit:context_window",
    "refusal": "limit:refusal",
    "cancelled": "cancelled",
}
"""Reason that an answer names -> the end of its run."""


def _request(record: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the request of a record: itself, or the first body under some keys."""
    if "messages" in record:
        return record
    bodies = (body_of(record.get(name)) for name in names)
    return next(filter(None, bodies), record)


def _failed_status(response: Any) -> str | None:
    """Return a message where the status of a response says that its request failed."""
    code = None
    if isinstance(response, dict):
        code = response.get("status_code")
    is_error = isinstance(code, int) and code >= _HTTP_ERROR
    return f"the request ended with status {code}" if is_error else None


def _entries(value: Any, role: str = "user") -> list[Any]:
    """Return messages, or a text as the message of a role."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return [*as_list(value)]


def _reply_of(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def _has_all(entries: Any, key: str) -> bool:
    """Return whether a list holds objects that all have an object under a key."""
    if not isinstance(entries, list) or not entries:
        return False
    return all(isinstance(entry, dict) and isinstance(entry.get(key), dict) for entry in entries)


class OpenAILogs(ChatLogs):
    """Reads OpenAI chat messages in all their wrappings, and Responses.

    A record is an object with ``messages`` (fine-tuning lines, requests), a list of messages, a
    request with its response, an answer alone, or a Responses object. Request and response may be
    the ``body`` of either, as batches have it. A file holds one record a line, a list of them, or
    one. A list of messages or of items is one conversation. Results belong to the call of their id;
    one without id to the oldest unanswered call of its name. Several choices are runs of one task.
    """

    example_file = "log.jsonl"
    known = frozenset(f"{_SHARED} {_OPENAI}".split()) - {"system"}
    dialect = "openai"

    @override
    def exchange_of(self, record: Any) -> Exchange:
        if isinstance(record, list):
            return Exchange(entries=record)
        if str(record.get("object", "")).endswith(".chunk"):
            raise ValueError("a piece of a streamed answer; log the whole answer")
        inputs = ("input",) if isinstance(record.get("input"), dict) else ()
        request = _request(record, "request", "body", *inputs)
        response = _response(record, request)
        messages = request.get("messages", request.get("input"))
        entries = _entries(messages)
        instructions = request.get("instructions") or response.get("instructions")
        if instructions:
            entries = [*_entries(instructions, "system"), *entries]
        error = response.get("error") or record.get("error")
        error = error or _failed_status(record.get("response"))
        if not error and response.get("status") == "failed":
            error = "the answer failed"
        replies = tuple(_replies(response))
        if not entries and not error and not any(reply.entries for reply in replies):
            raise ValueError(
                "no messages, no items and no answer: an object with messages, input, choices or "
                "output is expected"
            )
        return Exchange(
            request=request,
            response=response,
            entries=entries,
            answers=replies,
            error=error or None,
        )

    @override
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        if reason == "failed" or exchange.error is not None:
            return "error"
        details = exchange.response.get("incomplete_details")
        if reason == "incomplete" and isinstance(details, dict):
            detail = details.get("reason")
            if isinstance(detail, str):
                return _ENDED.get(detail, f"limit:{detail}")
        ended = None
        if isinstance(reason, str):
            ended = _ENDED.get(reason)
        return None if ended == "completed" and waiting else ended


def _response(record: Mapping[str, Any], request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer to a request: an object with choices or output."""
    if "choices" in record or record.get("object") == "response":
        return record
    for name in ("response", "completion", "output", "items", "new_items"):
        value = record.get(name)
        body = body_of(value)
        if body:
            is_whole = {"choices", "output", "error"} & body.keys()
            return body if is_whole else _as_choice(body)
        if isinstance(value, list):
            return {"choices" if _has_all(value, "message") else "output": value}
        if isinstance(value, str) and {"messages", "input"} & request.keys():
            return _as_choice(_reply_of(value))
    return NOTHING


def _as_choice(message: Mapping[str, Any]) -> Mapping[str, Any]:
    is_reply = message.get("role") == "assistant"
    return {"choices": [{"message": message}]} if is_reply else message


def _replies(response: Mapping[str, Any]) -> Iterator[Answer]:
    """Yield the answers of a response: its output, or each of its choices."""
    output = response.get("output")
    if isinstance(output, list):
        status = response.get("status")
        yield Answer(None, output, status)
        return
    choices = [choice for choice in as_list(response.get("choices")) if isinstance(choice, dict)]
    for position, choice in enumerate(choices):
        index = choice.get("index")
        is_number = isinstance(index, int) and not isinstance(index, bool)
        number = index if is_number else position
        message = choice.get("message")
        finish_reason = choice.get("finish_reason")
        yield Answer(number, [message], finish_reason)


class AnthropicLogs(ChatLogs):
    """Reads Anthropic messages.

    Requests with or without their answer, answers alone, batch requests and results.

    A record is an object with ``messages``, a list of messages, a request with its response, or an
    answer. A file holds one record a line, a list of records, or a single record. Calls are the
    blocks ``tool_use``, ``server_tool_use`` and ``mcp_tool_use``; their results are found by
    ``tool_use_id``, and whether they are errors is said by the format.
    """

    example_file = "log.jsonl"
    known = frozenset(f"{_SHARED} {_ANTHROPIC}".split())
    dialect = "anthropic"
    part = "block"

    @override
    def exchange_of(self, record: Any) -> Exchange:
        if isinstance(record, list):
            return Exchange(entries=record)
        request = _request(record, "request", "params", "body", "input")
        reply, error = _reply_in(record, request)
        messages = request.get("messages")
        entries = [*as_list(messages)]
        if not entries and not reply and error is None:
            raise ValueError(
                "no messages and no answer: an object with messages, or with role and content, is "
                "expected"
            )
        if request.get("system"):
            entries.insert(0, {"role": "system", "content": request["system"]})
        stop_reason = request.get("stop_reason")
        reason = reply.get("stop_reason", stop_reason)
        replies = (Answer(None, [reply] if reply else [], reason),)
        return Exchange(
            request=request, response=reply, entries=entries, answers=replies, error=error
        )

    @override
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        error = exchange.error
        if error is not None:
            is_cancelled = isinstance(error, str) and error.endswith("canceled")
            return "cancelled" if is_cancelled else "error"
        return _ENDED.get(reason) if isinstance(reason, str) else None


def _reply_in(
    record: Mapping[str, Any], request: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Any]:
    """Return the message that was answered, and the error in its place."""
    result = record.get("result")
    if isinstance(result, dict) and isinstance(result.get("type"), str):
        body = body_of(result.get("message"))
        error = result.get("error") or f"the request ended as {result['type']}"
        return body, None if body else error
    role = record.get("role")
    if role == "assistant" and "content" in record:
        return record, None
    error = record.get("error")
    for name in ("response", "completion", "output", "message"):
        value = record.get(name)
        body = body_of(value)
        if body.get("role") == "assistant":
            return body, None
        is_text = isinstance(value, str) and name != "message" and "messages" in request
        if is_text or _are_blocks(value):
            return _reply_of(value), None
        error = error or body.get("error") or _failed_status(value)
    if isinstance(record.get("content"), list) and "stop_reason" in record:
        return {**record, "role": "assistant"}, None
    return NOTHING, error or None


def _are_blocks(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[0], dict) and "type" in value[0]
