"""The sample of the spans of one trace, or of one session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import force_setattr

from gradestack import IMPOSSIBLE_AMOUNT, Fault, Sample, Source, Status, ToolCall, replace
from gradestack.jsonio import as_map, as_number, compact
from gradestack_plugins.otel.dialects import (
    Execution,
    ModelCall,
    execution_of,
    first_of,
    kind_of,
    model_call_of,
    specs_of,
)
from gradestack_plugins.otel.spans import Event, Log, Span
from gradestack_plugins.readers.chat import parse_arguments, text_or_none
from gradestack_plugins.readers.chat.conversation import Conversation, finish
from gradestack_plugins.readers.chat.identity import Identity
from gradestack_plugins.readers.chat.results import error_form, plain
from gradestack_plugins.readers.chat.samples import log_sample
from gradestack_plugins.readers.chat.usage import added
from gradestack_plugins.readers.rows import MessageKey, add_request, message_key

SpanId = tuple[str, str]
"""A trace, and the id of a span in it."""
EVALUATION: Final = "gen_ai.evaluation.result"
_VERDICTS: Final = {"pass": 1.0, "fail": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


def sample_of_trace(name: str, records: Iterable[Span | Log], source: Source) -> Sample:
    """Return the sample of a trace or session.

    Args:
        name: Its id.
        records: Its spans and log records, in the order of the files.
        source: The place of the first of them.
    """
    return _Trace(records).sample(name, source)


class _Trace:
    """The spans of a trace by their ids, and its log records."""

    def __init__(self, records: Iterable[Span | Log]) -> None:
        """Sort the records of a trace into spans by start, roots, kinds and logged events."""
        spans: list[Span] = []
        self.logs: dict[SpanId, list[Event]] = {}
        for record in records:
            if isinstance(record, Span):
                spans.append(record)
            else:
                self.logs.setdefault((record.trace, record.span), []).append(record.event)
        unique_spans = {(span.trace, span.id or number): span for number, span in enumerate(spans)}
        self.repeated = len(spans) - len(unique_spans)
        """Spans that were exported again, as after a failure."""
        self.spans = sorted(unique_spans.values(), key=lambda span: span.start)
        self.by_id = {(span.trace, span.id): span for span in self.spans}
        self.roots = [span for span in self.spans if (span.trace, span.parent) not in self.by_id]
        self.kinds = {id(span): kind_of(span.attributes) for span in self.spans}

    def sample(self, name: str, source: Source) -> Sample:
        """Return the sample of a trace under a name."""
        talk = Conversation()
        model_calls = self._model_calls()
        agents = [self._agent_of(span) for span, _ in model_calls]
        _read_model_calls(talk, [model_call for _, model_call in model_calls], agents)
        for _ in range(sum(model_call.bare for _, model_call in model_calls)):
            talk.remark("call_without_arguments")
        for span in self._of_kind("tool"):
            _add_execution(talk, execution_of(span), span, self._agent_of(span))
        recorded = recorded_of(self._events(), talk.remark)
        sessions = filter(None, (session_of(span.attributes) for span in self.spans))
        session = next(sessions, None)
        trace_id = self.spans[0].trace if self.spans else name
        trace = {"trace_id": trace_id}
        if self.roots:
            trace["span_id"] = self.roots[0].id
        if session is not None:
            trace["session_id"] = session
        service = self.spans[0].service if self.spans else None
        facets = {} if service is None else {"service": service}
        remarks = self._remarks()
        identity = Identity(name, None, session, trace, facets, remarks)
        models = (model_call.model for _, model_call in reversed(model_calls))
        tools = (specs_of(model_call.tools) for _, model_call in model_calls)
        usage = added(model_call.usage for _, model_call in model_calls)
        seconds = _seconds(self.spans)
        if usage is not None and seconds is not None:
            usage = replace(usage, seconds=seconds)
        model = next(filter(None, models), None)
        spec = next((specs for specs in tools if specs is not None), None)
        more: dict[str, Any] = {
            "model": model,
            "tools": spec,
            "usage": usage,
            "recorded": recorded,
        }
        failure = self._failure()
        return log_sample(identity, talk, source, **more, **failure)

    def _of_kind(self, kind: str) -> Iterator[Span]:
        return (span for span in self.spans if self.kinds[id(span)] == kind)

    def _events(self) -> Iterator[Event]:
        for span in self.spans:
            yield from span.events
        for events in self.logs.values():
            yield from events

    def _remarks(self) -> dict[str, int]:
        has_no_root = bool(self.roots) and all(span.parent for span in self.roots)
        total = sum(span.impossible_times for span in self.spans)
        counts = {
            "repeated_span": self.repeated,
            "trace_without_root": int(has_no_root),
            IMPOSSIBLE_AMOUNT: total,
        }
        return {kind: count for kind, count in counts.items() if count}

    def _failure(self) -> dict[str, Any]:
        """Return the status of a run whose root ended in an error."""
        for span in self.roots:
            is_call = self.kinds[id(span)] == "tool" and span.parent
            if span.error is not None and not is_call:
                error_type = span.attributes.get("error.type")
                kind = text_or_none(error_type) or ""
                message = span.error or kind or f"the span {span.name!r} ended in an error"
                fault = Fault(category="target", code="target_error", message=message, type=kind)
                return {"status": Status.FAILED, "error": fault, "ended": "error"}
        return {}

    def _above(self, span: Span) -> Iterator[Span]:
        """Yield the spans above one, nearest first; a circle ends."""
        visited = {span.id}
        above = self.by_id.get((span.trace, span.parent))
        while above is not None and above.id not in visited:
            visited.add(above.id)
            yield above
            above = self.by_id.get((above.trace, above.parent))

    def _agent_of(self, span: Span) -> str | None:
        """Return the name of the nearest agent that a span is, or stands below."""
        for other in (span, *self._above(span)):
            name = text_or_none(other.attributes.get("gen_ai.agent.name"))
            if name:
                return name
        return None

    def _model_calls(self) -> list[tuple[Span, ModelCall]]:
        """Pair each model call with its span; a call recorded on two nested spans counts once."""
        by_id: dict[SpanId, tuple[Span, ModelCall]] = {}
        for span in self._of_kind("answer"):
            key = (span.trace, span.id)
            logs = self.logs.get(key, ())
            model_call = model_call_of(span, logs)
            by_id[key] = (span, model_call)
        for key, (span, inner) in list(by_id.items()):
            others = self._above(span)
            above = ((other.trace, other.id) for other in others)
            outer = next((by_id[other][1] for other in above if other in by_id), None)
            if outer is None:
                continue
            if not outer.replies:
                outer.history = inner.history or outer.history
                outer.replies = inner.replies
            outer.usage = inner.usage or outer.usage
            if outer.tools is None:
                outer.tools = inner.tools
            outer.model = outer.model or inner.model
            del by_id[key]
        return list(by_id.values())


def session_of(attributes: Mapping[str, Any]) -> str | None:
    """Return the id of the session that the attributes of a span name; a number as text."""
    session = first_of(attributes, "session")
    if type(session) is int:
        return str(session)
    return text_or_none(session)


def _read_model_calls(
    talk: Conversation, model_calls: Sequence[ModelCall], agents: Sequence[str | None]
) -> None:
    """Read into the conversation the new messages of each request, and then the replies.

    Tool calls count in replies, and in the messages of a request only where no reply is recorded.
    """
    agent_count = len(set(agents))
    has_agents = agent_count > 1
    has_replies = any(model_call.replies for model_call in model_calls)
    keys: list[MessageKey] = []
    for model_call, agent in zip(model_calls, agents, strict=True):
        request_keys = [message_key(message) for message in model_call.history]
        entries: list[Any] = []
        for message in add_request(keys, model_call.history, request_keys):
            is_echo = has_replies and as_map(message).get("role") == "assistant"
            entries += [] if is_echo else [message]
        for message in model_call.replies:
            keys.append(message_key(message))
            entries.append({**message, "author": agent} if has_agents else message)
        talk.read(entries)


def _add_execution(talk: Conversation, execution: Execution, span: Span, agent: str | None) -> None:
    """Give the execution of a call to its call; an execution without one is a call of its own."""
    call = _call_of(talk, execution)
    if call is None:
        talk.step = max(talk.step, 0)
        arguments = parse_arguments(execution.arguments)
        call = talk.add_call("function", execution.id, execution.name, arguments, author=agent)
        if execution.arguments is None:
            talk.remark("call_without_arguments")
    if call.status is None:
        error, kind = execution.error, execution.error_type
        form = None
        if error is None:
            form = error_form(plain(execution.result))
        if form is not None:
            error, kind = form.message, form.type
        result = error if execution.result is None else execution.result
        finish(call, plain(result), error, kind)
    elif execution.error is not None and call.status != "denied":
        finish(
            call,
            call.result,
            call.error or execution.error,
            execution.error_type or call.error_type,
        )
    if span.start and span.end >= span.start:
        started = datetime.fromtimestamp(span.start / 1e9, UTC)
        force_setattr(call, "seconds", (span.end - span.start) / 1e9)
        force_setattr(call, "started", started.isoformat())


def _call_of(talk: Conversation, execution: Execution) -> ToolCall | None:
    """Return the call of an execution's id, else the first of its name, without an execution."""
    open_calls = [call for call in talk.calls if call.started is None]
    for call in open_calls:
        if execution.id is not None and call.id == execution.id:
            return call
    has_ids = execution.id is not None and any(call.id is not None for call in open_calls)
    for call in open_calls:
        if call.name == execution.name and not (has_ids and call.id is not None):
            return call
    return None


def _seconds(spans: Sequence[Span]) -> float | None:
    """Return the duration of a run: from its first start to its last end.

    None where a span has no start, or a time that cannot be one.
    """
    if not spans or any(span.impossible_times or not span.start for span in spans):
        return None
    largest_end = max(span.end for span in spans)
    seconds = (largest_end - spans[0].start) / 1e9
    return seconds if seconds > 0 else None


def recorded_of(
    events: Iterable[Event], remark: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Return the scores or labels in events by their names, and their explanations.

    The last of several events of a name counts.
    """
    scores: dict[str, Any] = {}
    explanations: dict[str, Any] = {}
    for event in events:
        known = {**as_map(event.body), **event.attributes}
        name = known.get("gen_ai.evaluation.name")
        if event.name != EVALUATION or not isinstance(name, str):
            continue
        value = known.get("gen_ai.evaluation.score.value")
        label = known.get("gen_ai.evaluation.score.label")
        score = as_number(value)
        if score is None:
            word = value if isinstance(value, bool) else label
            score = _VERDICTS.get(str(word).lower())
        if score is None and label is None:
            if value is not None:
                remark("unreadable_score")
            continue
        if name in scores:
            remark("repeated_score")
        scores[name] = label if score is None else score
        explanation = known.get("gen_ai.evaluation.explanation")
        if explanation:
            is_text = isinstance(explanation, str)
            explanations[name] = explanation if is_text else compact(explanation)
    return {**scores, "explanations": explanations} if explanations else scores
