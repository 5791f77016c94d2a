"""Reader ``mlflow``: traces of MLflow, as ``Trace.to_json`` and its lists write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

import attrs
from msgspec import Struct
from typing_extensions import override

from gradestack import JSON, Expectation, ExpectedCall, RecordReader, Sample, Source, replace
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.otel.dialects import Answer, decoded, messages_of
from gradestack_plugins.otel.spans import Event, Span, hex_id, nanoseconds, time_range
from gradestack_plugins.otel.trace import EVALUATION, sample_of
from gradestack_plugins.readers.chat.conversation import kind_of, text_or_none
from gradestack_plugins.readers.chat.forms import forms_read
from gradestack_plugins.readers.chat.unread import unread_keys
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.declared import Object, Text, convert_record

_ANSWERS: Final = ("CHAT_MODEL", "LLM")
_HELD_BY: Final = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_COPY: Final = re.compile(
    r"_\d+\Z"
)  # what release 2 puts behind the names of spans that would have the same
_FAILED: Final = ("ERROR", "STATUS_CODE_ERROR")


class _Held(Struct, frozen=True):
    """The value of feedback or of an expectation, as it is or as the text of JSON."""

    value: Any = None
    serialized_value: Object = None


class _Assessment(Struct):
    """Feedback on a trace, or an expectation of it; release 2 calls its name and time otherwise."""

    assessment_name: Text = None
    name: Text = None
    create_time: Any = None
    create_time_ms: Any = None
    valid: Any = None
    rationale: Any = None
    feedback: _Held = _Held()
    expectation: _Held | None = None


class _Info(Struct):
    """What is said of a trace; release 2 calls its id and metadata otherwise."""

    trace_id: Text = None
    request_id: Text = None
    trace_metadata: Object = None
    request_metadata: Object = None
    tags: Object = None
    assessments: list[_Assessment] | None = None


class _Event(Struct):
    """An event of a span."""

    name: str = ""
    attributes: Object = None


class _Span(Struct):
    """A span; release 2 holds its ids in a context, and calls its times and status otherwise."""

    name: str = ""
    context: Object = None
    trace_id: Any = None
    span_id: Any = None
    parent_span_id: Any = None
    parent_id: Any = None
    start_time_unix_nano: Any = None
    start_time: Any = None
    end_time_unix_nano: Any = None
    end_time: Any = None
    attributes: Object = None
    events: list[_Event] | None = None
    status: Object = None
    status_code: Any = None
    status_message: Any = None


class _Data(Struct):
    """The spans of a trace."""

    spans: list[_Span]


class _Trace(Struct):
    """A trace."""

    info: _Info
    data: _Data


@attrs.frozen(kw_only=True)
class MlflowTraces(RecordReader):
    """Reads traces of MLflow 2 and 3: JSON Lines of ``Trace.to_json``, or a list of traces.

    One sample per trace: ``id`` the trace's. Answers are the spans of type ``CHAT_MODEL`` or
    ``LLM``, without any the root; calls those in their outputs, executed by the spans of type
    ``TOOL``, matched in order by name. ``recorded`` holds feedback by its name (true and ``yes``
    are 1, false and ``no`` 0), the latest of several that is still valid, ``explanations`` what it
    says; ``expected`` the expectations ``expected_tool_calls`` and ``expected_response``, others
    are remarked. The session of a trace is its cluster; tags of the user and the trace's name are
    facets.
    """

    example_file = "traces.json"
    version: ClassVar[str] = "1"
    keys: ClassVar[frozenset[str]] = frozenset({"info", "data"})
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            "model",
            "input",
            "turns",
            "calls",
            "text",
            "tools",
            "expected",
            "recorded",
            "status",
            "error",
            "ended",
        }
        | {"usage", "facets", "remarks", "source", "trace", "cluster"}
    )
    stack: ClassVar[str | None] = "scores"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        info = as_map(as_map(record).get("info"))
        spans = as_map(as_map(record).get("data")).get("spans")
        return 0.95 if isinstance(spans, list) and {"trace_id", "request_id"} & info.keys() else 0.0

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        return 0.6 if b'"info"' in text and b'"mlflow.' in text else 0.0

    @override
    def sample_of(self, record: dict[str, Any], source: Source) -> Sample:
        trace, wrong = convert_record(record, _Trace)
        info = trace.info
        name = info.trace_id or info.request_id
        if not name:
            raise ValueError("info.trace_id is missing")
        assessments = _valid(info.assessments or [])
        sample = sample_of(name, _spans(trace, assessments), source)
        tags = info.tags or {}
        facets = {key: each for key, each in tags.items() if not key.startswith("mlflow.")}
        if called := text_or_none(tags.get("mlflow.traceName")):
            facets = {"trace_name": called, **facets}
        expected, remarks = _expected(assessments, {**wrong, **sample.remarks})
        return replace(sample, facets=facets, expected=expected, remarks=remarks)


def _spans(trace: _Trace, assessments: list[_Assessment]) -> list[Span]:
    spans = trace.data.spans
    read = [{key: decoded(each) for key, each in (span.attributes or {}).items()} for span in spans]
    kinds = [known.get("mlflow.spanType") for known in read]
    names = Counter(_COPY.sub("", span.name) for span in spans if span.context is not None)
    answered = any(kind in _ANSWERS for kind in kinds)
    metadata = trace.info.trace_metadata or trace.info.request_metadata or {}
    session = metadata.get("mlflow.trace.session")
    found = []
    for span, known, kind in zip(spans, read, kinds, strict=True):
        of_root = not (span.parent_span_id or span.parent_id)
        attributes: dict[str, Any] = {}
        is_answer = kind in _ANSWERS or (of_root and not answered)
        if is_answer:
            attributes = {"gen_ai.operation.name": "chat"}
        elif kind == "TOOL":
            attributes = _tool(known, span.name, names)
        events = [Event(event.name, event.attributes or {}) for event in span.events or ()]
        if of_root:
            attributes |= {} if session is None else {"session.id": session}
            events += [Event(EVALUATION, each) for each in _feedback(assessments)]
        found.append(_span(span, attributes, events, _answer(known) if is_answer else None))
    return found


def _span(
    span: _Span, attributes: dict[str, Any], events: list[Event], answer: Answer | None
) -> Span:
    status, context = span.status or {}, span.context or {}
    problem: Mapping[str, Any] = next(
        (event.attributes for event in events if event.name == "exception"), {}
    )
    failed = status.get("code") in _FAILED or span.status_code in _FAILED
    if failed and "exception.type" in problem:
        attributes["error.type"] = problem["exception.type"]
    said = status.get("message") or span.status_message or problem.get("exception.message")
    return Span(
        trace=_id(context.get("trace_id", span.trace_id)),
        id=_id(context.get("span_id", span.span_id)),
        parent=_id(span.parent_span_id or span.parent_id),
        name=span.name,
        **time_range(
            nanoseconds(_first(span.start_time_unix_nano, span.start_time)),
            nanoseconds(_first(span.end_time_unix_nano, span.end_time)),
        ),
        attributes=attributes,
        events=events,
        error=as_text(said) if failed else None,
        answer=answer,
    )


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value


def _id(value: Any) -> str:
    return hex_id(value.removeprefix("0x") if isinstance(value, str) else value)


def _tool(known: Mapping[str, Any], name: str, names: Mapping[str, int]) -> dict[str, Any]:
    plain = _COPY.sub("", name)
    called = text_or_none(known.get("mlflow.spanFunctionName")) or (
        plain if names.get(plain, 0) > 1 else name
    )
    found = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": called}
    given = {
        "gen_ai.tool.call.arguments": known.get("mlflow.spanInputs"),
        "gen_ai.tool.call.result": known.get("mlflow.spanOutputs"),
    }
    return {**found, **{key: each for key, each in given.items() if each is not None}}


def _answer(known: Mapping[str, Any]) -> Answer:
    asked, said = known.get("mlflow.spanInputs"), known.get("mlflow.spanOutputs")
    used = as_map(known.get("mlflow.chat.tokenUsage"))  # whose input holds what a cache has
    spent = {_HELD_BY.get(name, name): each for name, each in used.items()} or as_map(said).get(
        "usage"
    )
    models = (as_map(said).get("model"), known.get("mlflow.llm.model"), as_map(asked).get("model"))
    system = as_map(asked).get("system")
    told = [{"role": "system", "content": system}] if isinstance(system, str) else []
    return Answer(
        history=[*told, *messages_of(forms_read(_asked(asked)))],
        said=messages_of({"role": "assistant", **as_map(each)} for each in forms_read(_said(said))),
        model=next(filter(text_or_none, models), None),
        usage=usage_of(spent),
        tools=known.get("mlflow.chat.tools") or as_map(asked).get("tools"),
    )


def _asked(value: Any) -> list[Any]:
    for key in ("messages", "input", "contents", "prompt"):
        if as_map(value).get(key):
            return _asked(value[key])
    if isinstance(value, list):
        return _asked(value[0]) if len(value) == 1 and isinstance(value[0], list) else value
    texts = (
        [each for each in value.values() if isinstance(each, str)]
        if isinstance(value, dict)
        else [value]
    )
    return (
        [{"role": "user", "content": texts[0]}]
        if len(texts) == 1 and isinstance(texts[0], str)
        else []
    )


def _said(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}]
    known = as_map(value)
    for key in ("choices", "candidates", "generations"):
        first: Any = known.get(key)
        while isinstance(first, list):
            first = first[0] if first else None
        if isinstance(first, dict):
            return [
                first.get("message")
                or first.get("content")
                or {"role": "assistant", "content": first.get("text")}
            ]
    if isinstance(known.get("output"), list):
        return list(known["output"])
    if "content" in known:
        return [
            {
                key: each
                for key, each in known.items()
                if key in {"role", "content", "tool_calls", *unread_keys(known)}
            }
        ]
    return list(as_list(known.get("messages"))[-1:])


def _valid(assessments: list[_Assessment]) -> list[_Assessment]:
    """Return the assessments of a trace that still hold, the latest last."""
    return sorted((each for each in assessments if each.valid is not False), key=_created)


def _created(assessment: _Assessment) -> float:
    when = _first(assessment.create_time, assessment.create_time_ms)
    try:
        return (
            datetime.fromisoformat(when).timestamp()
            if isinstance(when, str)
            else as_number(when) or 0.0
        )
    except (ValueError, OverflowError):
        return 0.0


def _value(held: _Held) -> JSON:
    serialized = held.serialized_value or {}
    return decoded(serialized["value"]) if "value" in serialized else held.value


def _feedback(assessments: Iterable[_Assessment]) -> Iterator[dict[str, Any]]:
    """Yield feedback in the names of OpenTelemetry."""
    for each in assessments:
        value = _value(each.feedback)
        yield {
            "gen_ai.evaluation.name": each.assessment_name or each.name,
            "gen_ai.evaluation.score.value": value,
            "gen_ai.evaluation.score.label": value if isinstance(value, str) else None,
            "gen_ai.evaluation.explanation": each.rationale,
        }


def _expected(
    assessments: Iterable[_Assessment], known: Mapping[str, int]
) -> tuple[Expectation, Mapping[str, int]]:
    fields: dict[str, Any] = {}
    remarks = dict(known)
    for each in assessments:
        if each.expectation is None:
            continue
        name, value = each.assessment_name or each.name, _value(each.expectation)
        if name == "expected_response" and isinstance(value, str):
            fields["text"] = value
        elif name == "expected_tool_calls" and (calls := _calls(value)) is not None:
            fields["calls"] = calls
        else:
            kind = kind_of("expectation", name)
            remarks[kind] = remarks.get(kind, 0) + 1
    return Expectation(**fields), remarks


def _calls(value: Any) -> tuple[ExpectedCall, ...] | None:
    """Return expected calls, None where it is no list of them.

    Arguments are not compared where none are given.
    """
    given = [as_map(each) for each in value] if isinstance(value, list) else [{}]
    if not all(isinstance(each.get("name"), str) for each in given):
        return None
    made = [(each["name"], each.get("arguments", each.get("args"))) for each in given]
    return tuple(
        ExpectedCall(name=name, arguments=held if isinstance(held, dict) else None)
        for name, held in made
    )
