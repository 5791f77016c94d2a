"""Reader ``anthropic``: logs of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack_plugins.readers.chat.identity import NOTHING
from gradestack_plugins.readers.chat.logs import Answer, ChatLogs, Exchange, body_of, failed_status

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


def _request(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if "messages" in record:
        return record
    for name in ("request", "params", "body", "input"):
        if found := body_of(record.get(name)):
            return found
    return record


def _answer(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """Return the message that was answered, and the error that stands in its place."""
    result = record.get("result")
    if isinstance(result, dict) and isinstance(result.get("type"), str):
        found = body_of(result.get("message"))
        return found, None if found else result.get("error") or f"the request ended as {result['type']}"
    if record.get("role") == "assistant" and "content" in record:
        return record, None
    error = record.get("error")
    for name in _ANSWERS:
        given = record.get(name)
        found = body_of(given)
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


_ENDED: Final = {
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "limit:max_tokens",
    "model_context_window_exceeded": "limit:context_window",
    "refusal": "limit:refusal",
}


@attrs.frozen(kw_only=True)
class AnthropicLogs(ChatLogs):
    """Reads Anthropic messages: requests with or without their answer, answers alone, batch requests and results.

    A record is an object with ``messages``, a list of messages, a request with its response, or an answer; a file holds
    one a line, a list of them, or one. Calls are the blocks ``tool_use``, ``server_tool_use`` and ``mcp_tool_use``;
    their results are found by ``tool_use_id``, and whether they are errors is said by the format.
    """

    known = KNOWN
    dialect = "anthropic"
    part = "block"

    @override
    def exchange_of(self, record: Any) -> Exchange:
        if isinstance(record, list):
            return Exchange(entries=record)
        request, (answer, error) = _request(record), _answer(record)
        asked = request.get("messages")
        entries = [*asked] if isinstance(asked, list) else []
        if not entries and not answer and error is None:
            raise ValueError(
                "no messages and no answer: an object with messages, or with role and content, is expected"
            )
        if request.get("system"):
            entries.insert(0, {"role": "system", "content": request["system"]})
        reason = answer.get("stop_reason", request.get("stop_reason"))
        answers = (Answer(None, [answer] if answer else [], reason),)
        return Exchange(request=request, response=answer, entries=entries, answers=answers, error=error)

    @override
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        if exchange.error is not None:
            cancelled = isinstance(exchange.error, str) and exchange.error.endswith("canceled")
            return "cancelled" if cancelled else "error"
        return _ENDED.get(reason) if isinstance(reason, str) else None
