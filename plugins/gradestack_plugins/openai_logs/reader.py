"""Reader ``openai``: logs of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import Sample, Source
from gradestack_plugins.openai_logs.records import (
    KNOWN,
    NO_ANSWER,
    Answer,
    Exchange,
    ended_of,
    exchange_of,
    tools_of,
    usage_of,
)
from gradestack_plugins.readers.chat.identity import NOTHING, Identity, identity
from gradestack_plugins.readers.chat.logs import ChatLogs, broken, log_sample
from gradestack_plugins.readers.chat.openai_messages import OpenAIConversation


@attrs.frozen(kw_only=True)
class OpenAILogs(ChatLogs):
    """Reads OpenAI chat messages in all their wrappings, and Responses.

    A record is an object with ``messages`` (fine-tuning lines, requests), a list of messages, a request with its
    response (also as the ``body`` of either, as batches have it), an answer alone, or a Responses object; a file holds
    one a line, a list of them, or one. A list of messages or of items is one conversation. Results belong to the call
    of their id; one without id to the oldest unanswered call of its name. Several choices are runs of one task.
    """

    version: ClassVar[str] = "1"
    dialect = "openai"

    @override
    def samples_of_record(self, record: Any, source: Source, made: str) -> Iterator[Sample]:
        exchange = exchange_of(record)
        whole = NOTHING if isinstance(record, list) else record
        known = identity(whole, exchange.request, exchange.response, made=made, known=KNOWN)
        answers = exchange.answers
        if len(answers) < 2:
            yield _sample(exchange, answers[0] if answers else NO_ANSWER, known, source)
            return
        for answer in answers:
            run = answer.run if known.run is None else f"{known.run}:{answer.run}"
            shared = known._replace(run=run, cluster=known.cluster or known.id)
            yield _sample(exchange, answer, shared, source)
            known = known._replace(remarks=NOTHING)  # those of the record are said once


def _sample(exchange: Exchange, answer: Answer, known: Identity, source: Source) -> Sample:
    talk = OpenAIConversation()
    talk.read([*exchange.entries, *answer.entries])
    several = len(exchange.answers) > 1
    request, response = exchange.request, exchange.response
    tools = tools_of(exchange, talk.listed, talk)
    model = response.get("model") or request.get("model")
    usage = response.get("usage") or request.get("usage")
    if several and usage is not None and answer is exchange.answers[0]:
        talk.remark("usage_of_several_choices")
    waiting = any(call.status is None for call in talk.calls)
    more: dict[str, Any] = {
        "model": model if isinstance(model, str) else None,
        "tools": tools,
        "usage": None if several else usage_of(usage),
        "agent_usage": usage,
        "ended": ended_of(answer.reason, response, waiting=waiting),
    }
    if exchange.error is not None:
        more |= {**broken(exchange.error, "the request failed"), "ended": "error"}
    return log_sample(known, talk, source, **more)
