"""Reader ``openai``: logs of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import attrs
import msgspec
from typing_extensions import override

from gradestack import Sample, Source, ToolSpec
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, kind_of
from gradestack_plugins.readers.chat.decoder import ChatConversation
from gradestack_plugins.readers.chat.identity import NOTHING, Identity, identity
from gradestack_plugins.readers.chat.logs import ChatLogs, broken, failed_status, log_sample, type_of
from gradestack_plugins.readers.chat.names import decoded
from gradestack_plugins.readers.chat.usage import usage_of

_ANSWERS: Final = ("response", "completion", "output")
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
preferred_output non_preferred_output timestamp type
"""
KNOWN: Final = frozenset(_NAMES.split())
"""Keys of requests, of answers and of logs of both: what stands beside them in a record is remarked."""


class Answer(NamedTuple):
    """One answer to a request."""

    run: int | str | None
    """Which of several."""
    entries: list[Any]
    """Its messages or items."""
    reason: Any = None
    """Why it ended, as recorded."""


NO_ANSWER: Final = Answer(None, [])


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and what came of it."""

    request: Mapping[str, Any] = NOTHING
    response: Mapping[str, Any] = NOTHING
    entries: list[Any] = msgspec.field(default_factory=list)
    """Messages and items of the request."""
    answers: tuple[Answer, ...] = ()
    error: Any = None
    """What the log says in the place of an answer."""


def _body(value: Any) -> Mapping[str, Any]:
    value = decoded(value)
    if isinstance(value, dict) and "body" in value:
        value = decoded(value["body"])
    return value if isinstance(value, dict) else NOTHING


def _entries(value: Any) -> list[Any]:
    """Return messages and items of a request: those it lists, or one of the user for a text."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return value if isinstance(value, list) else []


def exchange_of(record: Any) -> Exchange:
    """Return what a record holds."""
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
    return Exchange(request=request, response=response, entries=_before(entries, answers), answers=answers, error=error)


_PREFERENCES: Final = ("preferred_output", "non_preferred_output")


def _request(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if "messages" in record:
        return record
    for name in ("request", "body"):
        if found := _body(record.get(name)):
            return found
    pair = record.get("input")
    return pair if isinstance(pair, dict) else record


def _response(record: Mapping[str, Any], request: Mapping[str, Any]) -> Mapping[str, Any]:
    if "choices" in record or record.get("object") == "response":
        return record
    for name in _ANSWERS:
        given = record.get(name)
        if found := _body(given):
            return found if "choices" in found or "output" in found or "error" in found else _alone(found)
        if isinstance(given, list):
            return {"output": given}
        if isinstance(given, str) and "messages" in request:
            return _alone({"role": "assistant", "content": given})
    return NOTHING


def _alone(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer that was logged as its message alone."""
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
    """Return what the log says went wrong with the request or the answer, None when nothing did."""
    for each in (response.get("error"), record.get("error")):
        if each:
            return each
    failed = "the answer failed" if response.get("status") == "failed" else None
    return failed_status(record.get("response")) or failed


def _before(entries: list[Any], answers: tuple[Answer, ...]) -> list[Any]:
    """Return the messages in front of the answer: a log may have added it to them already."""
    if not entries or len(answers) != 1:
        return entries
    made, last = answers[0].entries, entries[-1]
    if len(made) != 1 or not isinstance(last, dict) or not isinstance(made[0], dict):
        return entries
    same = all(last.get(key) == made[0].get(key) for key in ("role", "content", "tool_calls", "function_call"))
    return entries[:-1] if same else entries


def tools_of(exchange: Exchange, listed: list[Any], talk: Conversation) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a request, or those its answer names; what MCP servers listed is added."""
    for part in (exchange.request, exchange.response):
        if isinstance(part.get("functions"), list) and part["functions"]:
            talk.remark("functions")
        if isinstance(part.get("tools"), list):
            offered = [each for each in part["tools"] if not listed or type_of(each) != "mcp"]  # listed: it is known
            return tuple(_tools([*offered, *listed], talk))
    return tuple(_tools(listed, talk)) if listed else None


def _tools(raws: Iterable[Any], talk: Conversation) -> Iterator[ToolSpec]:
    for raw in raws:
        kind = type_of(raw)
        inside = raw.get("tools") if kind == "namespace" else None
        if isinstance(inside, list):
            yield from _tools(inside, talk)
            continue
        found = _tool(raw)
        if found is not None:
            yield found
        else:
            talk.remark(kind_of("tool", kind))


def _tool(raw: Any) -> ToolSpec | None:
    """Return one tool: a function (wrapped or flat), a custom one, one of an MCP server, or a built-in by its type."""
    if not isinstance(raw, dict):
        return None
    custom, kind = raw.get("custom"), raw.get("type")
    found = tool_spec(custom if isinstance(custom, dict) else raw)
    if found is None and isinstance(kind, str) and kind not in {"function", "custom", "mcp", "namespace"}:
        return ToolSpec(name=kind)
    return found


_ENDED: Final = {"stop": "completed", "completed": "completed", "length": "limit:max_tokens", "cancelled": "cancelled"}


def ended_of(reason: Any, response: Mapping[str, Any], *, waiting: bool) -> str | None:
    """Return how a run ended, by its last answer; None where it says nothing, or waits for results."""
    details = response.get("incomplete_details")
    if reason == "incomplete" and isinstance(details, dict) and isinstance(details.get("reason"), str):
        limit = details["reason"]
        return f"limit:{'max_tokens' if limit == 'max_output_tokens' else limit}"
    if reason == "failed":
        return "error"
    if reason == "content_filter":
        return "limit:content_filter"
    found = _ENDED.get(reason) if isinstance(reason, str) else None
    return None if found == "completed" and waiting else found


@attrs.frozen(kw_only=True)
class OpenAILogs(ChatLogs):
    """Reads OpenAI chat messages in all their wrappings, and Responses.

    A record is an object with ``messages`` (fine-tuning lines, requests), a list of messages, a request with its
    response (also as the ``body`` of either, as batches have it), an answer alone, or a Responses object; a file holds
    one a line, a list of them, or one. A list of messages or of items is one conversation. Results belong to the call
    of their id; one without id to the oldest unanswered call of its name. Several choices are runs of one task.
    """

    version: ClassVar[str] = "1"
    known = KNOWN
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
    talk = ChatConversation()
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
