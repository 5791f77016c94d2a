"""Readers ``openai`` and ``anthropic``.

Logs of the APIs of both, requests, answers, and batches of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
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
"""Keys of requests, of answers and of logs of both.

What stands beside them in a record is remarked.
"""
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
"""How a run ended, by the reason that its last answer names."""


def _request(record: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    if "messages" in record:
        return record
    return next((found for name in names if (found := body_of(record.get(name)))), record)


def _failed_status(response: Any) -> str | None:
    """Return that a request failed, where the status of its response says so."""
    code = response.get("status_code") if isinstance(response, dict) else None
    return (
        f"the request ended with status {code}"
        if isinstance(code, int) and code >= _HTTP_ERROR
        else None
    )


def _entries(value: Any) -> list[Any]:
    return [{"role": "user", "content": value}] if isinstance(value, str) else [*as_list(value)]


def _said(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


@attrs.frozen(kw_only=True)
class OpenAILogs(ChatLogs):
    """Reads OpenAI chat messages in all their wrappings, and Responses.

    A record is an object with ``messages`` (fine-tuning lines, requests), a list of messages, a
    request with its response (also as the ``body`` of either, as batches have it), an answer alone,
    or a Responses object; a file holds one a line, a list of them, or one. A list of messages or of
    items is one conversation. Results belong to the call of their id; one without id to the oldest
    unanswered call of its name. Several choices are runs of one task.
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
        request = _request(
            record, "request", "body", *["input"] * isinstance(record.get("input"), dict)
        )
        response = _response(record, request)
        entries = _entries(request.get("messages", request.get("input")))
        if told := request.get("instructions") or response.get("instructions"):
            entries = [
                *(
                    [{"role": "system", "content": told}]
                    if isinstance(told, str)
                    else as_list(told)
                ),
                *entries,
            ]
        error = (
            response.get("error") or record.get("error") or _failed_status(record.get("response"))
        )
        error = error or ("the answer failed" if response.get("status") == "failed" else None)
        answers = tuple(_answers(response))
        if not entries and error is None and not any(answer.entries for answer in answers):
            raise ValueError(
                "no messages, no items and no answer: an object with messages, input, choices or "
                "output is expected"
            )
        return Exchange(
            request=request, response=response, entries=entries, answers=answers, error=error
        )

    @override
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        if reason == "failed" or exchange.error is not None:
            return "error"
        details = exchange.response.get("incomplete_details")
        if (
            reason == "incomplete"
            and isinstance(details, dict)
            and isinstance(reason := details.get("reason"), str)
        ):
            return _ENDED.get(reason, f"limit:{reason}")
        found = _ENDED.get(reason) if isinstance(reason, str) else None
        return None if found == "completed" and waiting else found


def _response(record: Mapping[str, Any], request: Mapping[str, Any]) -> Mapping[str, Any]:
    if "choices" in record or record.get("object") == "response":
        return record
    for name in ("response", "completion", "output", "items", "new_items"):
        given = record.get(name)
        if found := body_of(given):
            return found if {"choices", "output", "error"} & found.keys() else _alone(found)
        if isinstance(given, list):
            are_choices = bool(given) and all(
                isinstance(each, dict) and isinstance(each.get("message"), dict) for each in given
            )
            return {"choices" if are_choices else "output": given}
        if isinstance(given, str) and {"messages", "input"} & request.keys():
            return _alone(_said(given))
    return NOTHING


def _alone(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"choices": [{"message": message}]} if message.get("role") == "assistant" else message


def _answers(response: Mapping[str, Any]) -> Iterator[Answer]:
    if isinstance(output := response.get("output"), list):
        yield Answer(None, output, response.get("status"))
    else:
        choices = [each for each in as_list(response.get("choices")) if isinstance(each, dict)]
        for position, choice in enumerate(choices):
            index = choice.get("index")
            number = index if isinstance(index, int) and not isinstance(index, bool) else position
            yield Answer(number, [choice.get("message")], choice.get("finish_reason"))


@attrs.frozen(kw_only=True)
class AnthropicLogs(ChatLogs):
    """Reads Anthropic messages.

    Requests with or without their answer, answers alone, batch requests and results.

    A record is an object with ``messages``, a list of messages, a request with its response, or an
    answer; a file holds one a line, a list of them, or one. Calls are the blocks ``tool_use``,
    ``server_tool_use`` and ``mcp_tool_use``; their results are found by ``tool_use_id``, and
    whether they are errors is said by the format.
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
        answer, error = _answer(record, request)
        entries = [*as_list(request.get("messages"))]
        if not entries and not answer and error is None:
            raise ValueError(
                "no messages and no answer: an object with messages, or with role and content, is "
                "expected"
            )
        if request.get("system"):
            entries.insert(0, {"role": "system", "content": request["system"]})
        reason = answer.get("stop_reason", request.get("stop_reason"))
        answers = (Answer(None, [answer] if answer else [], reason),)
        return Exchange(
            request=request, response=answer, entries=entries, answers=answers, error=error
        )

    @override
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        if exchange.error is not None:
            cancelled = isinstance(exchange.error, str) and exchange.error.endswith("canceled")
            return "cancelled" if cancelled else "error"
        return _ENDED.get(reason) if isinstance(reason, str) else None


def _answer(record: Mapping[str, Any], request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """Return the message that was answered, and the error that stands in its place."""
    result = record.get("result")
    if isinstance(result, dict) and isinstance(result.get("type"), str):
        found = body_of(result.get("message"))
        return found, None if found else result.get(
            "error"
        ) or f"the request ended as {result['type']}"
    if record.get("role") == "assistant" and "content" in record:
        return record, None
    error = record.get("error")
    for name in ("response", "completion", "output", "message"):
        given = record.get(name)
        found = body_of(given)
        if found.get("role") == "assistant":
            return found, None
        blocks = (
            isinstance(given, list) and given and isinstance(given[0], dict) and "type" in given[0]
        )
        if blocks or (isinstance(given, str) and name != "message" and "messages" in request):
            return _said(given), None
        error = error or found.get("error") or _failed_status(given)
    if isinstance(record.get("content"), list) and "stop_reason" in record:
        return {**record, "role": "assistant"}, None
    return NOTHING, error or None
