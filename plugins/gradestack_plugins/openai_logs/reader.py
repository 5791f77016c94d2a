"""Reader ``openai``: logs of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack_plugins.readers.chat.identity import NOTHING
from gradestack_plugins.readers.chat.logs import Answer, ChatLogs, Exchange, body_of, failed_status

_ANSWERS: Final = ("response", "completion", "output", "items", "new_items")
_NAMES: Final = """
messages input instructions tools functions model tool_choice parallel_tool_calls function_call temperature top_p n
stream stream_options stop max_tokens max_completion_tokens presence_penalty frequency_penalty logit_bias logprobs
top_logprobs response_format seed user store service_tier reasoning_effort reasoning verbosity text prompt
prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier modalities audio prediction
web_search_options background include background_options max_output_tokens max_tool_calls previous_response_id
truncation conversation context_management moderation

object created created_at completed_at choices usage system_fingerprint status error incomplete_details output
output_text billing access_programs image input_transformations prompt_cache_diagnostics tool_usage

id custom_id task_id metadata run trial trace_id span_id session_id request response completion body method url
preferred_output non_preferred_output timestamp type items new_items
"""
KNOWN: Final = frozenset(_NAMES.split())
"""Keys of requests, of answers and of logs of both: what stands beside them in a record is remarked."""


def _entries(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return value if isinstance(value, list) else []


_PREFERENCES: Final = ("preferred_output", "non_preferred_output")


def _request(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if "messages" in record:
        return record
    for name in ("request", "body"):
        if found := body_of(record.get(name)):
            return found
    pair = record.get("input")
    return pair if isinstance(pair, dict) else record


def _response(record: Mapping[str, Any], request: Mapping[str, Any]) -> Mapping[str, Any]:
    if "choices" in record or record.get("object") == "response":
        return record
    for name in _ANSWERS:
        given = record.get(name)
        if found := body_of(given):
            return found if "choices" in found or "output" in found or "error" in found else _alone(found)
        if isinstance(given, list):
            return {"output": given}
        if isinstance(given, str) and "messages" in request:
            return _alone({"role": "assistant", "content": given})
    return NOTHING


def _alone(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"choices": [{"message": message}]} if message.get("role") == "assistant" else message


def _asked(request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Any]:
    entries = _entries(request.get("messages", request.get("input")))
    told = request.get("instructions") or response.get("instructions")
    if isinstance(told, str):
        return [{"role": "system", "content": told}, *entries]
    return [*told, *entries] if isinstance(told, list) else entries


def _answers(record: Mapping[str, Any], response: Mapping[str, Any]) -> Iterator[Answer]:
    if not response and "preferred_output" in record:
        yield from (Answer(name.removesuffix("_output"), _entries(record.get(name))) for name in _PREFERENCES)
        return
    output = response.get("output")
    if isinstance(output, list):
        yield Answer(None, output, response.get("status"))
        return
    choices = response.get("choices")
    choices = [each for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []
    for position, choice in enumerate(choices):
        index = choice.get("index")
        number = index if isinstance(index, int) and not isinstance(index, bool) else position
        yield Answer(number, [choice.get("message")], choice.get("finish_reason"))


def _error(record: Mapping[str, Any], response: Mapping[str, Any]) -> Any:
    for each in (response.get("error"), record.get("error")):
        if each:
            return each
    failed = "the answer failed" if response.get("status") == "failed" else None
    return failed_status(record.get("response")) or failed


_ENDED: Final = {"stop": "completed", "completed": "completed", "length": "limit:max_tokens", "cancelled": "cancelled"}


@attrs.frozen(kw_only=True)
class OpenAILogs(ChatLogs):
    """Reads OpenAI chat messages in all their wrappings, and Responses.

    A record is an object with ``messages`` (fine-tuning lines, requests), a list of messages, a request with its
    response (also as the ``body`` of either, as batches have it), an answer alone, or a Responses object; a file holds
    one a line, a list of them, or one. A list of messages or of items is one conversation. Results belong to the call
    of their id; one without id to the oldest unanswered call of its name. Several choices are runs of one task.
    """

    known = KNOWN
    dialect = "openai"

    @override
    def exchange_of(self, record: Any) -> Exchange:
        if isinstance(record, list):
            return Exchange(entries=record)
        if str(record.get("object", "")).endswith(".chunk"):
            raise ValueError("a piece of a streamed answer; log the whole answer")
        request = _request(record)
        response = _response(record, request)
        entries, error = _asked(request, response), _error(record, response)
        answers = tuple(_answers(record, response))
        if not entries and error is None and not any(answer.entries for answer in answers):
            raise ValueError(
                "no messages, no items and no answer: an object with messages, input, choices or output is expected"
            )
        return Exchange(request=request, response=response, entries=entries, answers=answers, error=error)

    @override
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        if reason == "failed" or exchange.error is not None:
            return "error"
        details = exchange.response.get("incomplete_details")
        if reason == "incomplete" and isinstance(details, dict) and isinstance(details.get("reason"), str):
            limit = details["reason"]
            return f"limit:{'max_tokens' if limit == 'max_output_tokens' else limit}"
        if reason == "content_filter":
            return "limit:content_filter"
        found = _ENDED.get(reason) if isinstance(reason, str) else None
        return None if found == "completed" and waiting else found
