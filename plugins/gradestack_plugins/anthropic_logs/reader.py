"""Reader ``anthropic``: logs of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import Sample, Source
from gradestack_plugins.anthropic_logs.records import KNOWN, ended_of, exchange_of, tools_of, usage_of
from gradestack_plugins.readers.chat.anthropic_messages import AnthropicConversation
from gradestack_plugins.readers.chat.identity import NOTHING, identity
from gradestack_plugins.readers.chat.logs import ChatLogs, broken, log_sample


@attrs.frozen(kw_only=True)
class AnthropicLogs(ChatLogs):
    """Reads Anthropic messages: requests with or without their answer, answers alone, batch requests and results.

    A record is an object with ``messages``, a list of messages, a request with its response, or an answer; a file holds
    one a line, a list of them, or one. Calls are the blocks ``tool_use``, ``server_tool_use`` and ``mcp_tool_use``;
    their results are found by ``tool_use_id``, and whether they are errors is said by the format.
    """

    version: ClassVar[str] = "1"
    dialect = "anthropic"

    @override
    def samples_of_record(self, record: Any, source: Source, made: str) -> Iterator[Sample]:
        exchange = exchange_of(record)
        request, answer = exchange.request, exchange.answer
        whole = NOTHING if isinstance(record, list) else record
        known = identity(whole, request, answer, made=made, known=KNOWN)
        talk = AnthropicConversation()
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
