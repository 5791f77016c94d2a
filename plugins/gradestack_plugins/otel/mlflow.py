"""Reader ``mlflow``: traces of MLflow, in the form of ``Trace.to_json`` and of lists of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct
from typing_extensions import override

from gradestack import (
    JSON,
    Expectation,
    ExpectedCall,
    RecordReader,
    Sample,
    Source,
    compile_later,
    replace,
)
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.otel.dialects import ModelCall, decoded, messages_of
from gradestack_plugins.otel.spans import FAILED, Event, Span, hex_id, nanoseconds, time_range
from gradestack_plugins.otel.trace import EVALUATION, sample_of_trace
from gradestack_plugins.readers.bodies import answers_in, asked_in
from gradestack_plugins.readers.chat import text_or_none
from gradestack_plugins.readers.chat.conversation import kind_of
from gradestack_plugins.readers.chat.samples import PROVIDES
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.declared import Object, Text, convert_record

_ANSWERS: Final = ("CHAT_MODEL", "LLM")
_TOKENS: Final = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_COPY: Final = compile_later(r"_\d+\Z")
"""A number that release 2 puts behind the names of spans that would have the same."""


class _Held(Struct, frozen=True):
    """The value of feedback or of an expectation, as it is or as JSON text."""

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
    """The part of a trace about it; release 2 calls its id and metadata otherwise."""

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


class MlflowTraces(RecordReader):
    """Reads traces of MLflow 2 and 3: JSON Lines of ``Trace.to_json``, or a list of traces.

    One sample per trace: ``id`` the trace's. Answers are the spans of type ``CHAT_MODEL`` or
    ``LLM``, without any the root; calls those in their outputs, executed by the spans of type
    ``TOOL``, matched in order by name. ``recorded`` holds feedback by its name (true and ``yes``
    are 1, false and ``no`` 0), the latest of several that is still valid. ``explanations`` holds
    its texts. ``expected`` holds the expectations ``expected_tool_calls`` and
    ``expected_response``; others are remarked. The session of a trace is its cluster; tags of the
    user and the trace's name are facets.
    """

    example_file = "traces.json"
    version: ClassVar[str] = "1"
    keys: ClassVar[frozenset[str]] = frozenset({"info", "data"})
    provides = PROVIDES
    stack: ClassVar[str | None] = "scores"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        trace_info = as_map(as_map(record).get("info"))
        spans = as_map(as_map(record).get("data")).get("spans")
        if isinstance(spans, list) and {"trace_id", "request_id"} & trace_info.keys():
            return 0.95
        return 0.0

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        if b'"info"' in text and b'"mlflow.' in text:
            return 0.6
        return 0.0

    @override
    def sample_of(self, record: dict[str, Any], source: Source) -> Sample:
        trace, field_remarks = convert_record(record, _Trace)
        info = trace.info
        name = info.trace_id or info.request_id
        if not name:
            raise ValueError("info.trace_id is missing")
        assessments = _valid(info.assessments or [])
        spans = _spans(trace, assessments)
        sample = sample_of_trace(name, spans, source)
        tags = info.tags or {}
        facets = {key: tag for key, tag in tags.items() if not key.startswith("mlflow.")}
        trace_name = text_or_none(tags.get("mlflow.traceName"))
        if trace_name:
            facets = {"trace_name": trace_name, **facets}
        expected, remarks = _expected(assessments, {**field_remarks, **sample.remarks})
        return replace(sample, facets=facets, expected=expected, remarks=remarks)


def _spans(trace: _Trace, assessments: list[_Assessment]) -> list[Span]:
    """Return the spans of a trace, with attributes in the names of OpenTelemetry."""
    spans = trace.data.spans
    decoded_spans = [(span, _decoded_attributes(span)) for span in spans]
    names = Counter(_COPY.sub("", span.name) for span in spans if span.context is not None)
    has_answers = any(known.get("mlflow.spanType") in _ANSWERS for _, known in decoded_spans)
    metadata = trace.info.trace_metadata or trace.info.request_metadata or {}
    session = metadata.get("mlflow.trace.session")
    read_spans = []
    for span, known in decoded_spans:
        is_root = not (span.parent_span_id or span.parent_id)
        kind = known.get("mlflow.spanType")
        is_answer = kind in _ANSWERS or (is_root and not has_answers)
        converted = _span(span)
        if is_answer:
            converted.attributes["gen_ai.operation.name"] = "chat"
            converted.model_call = _model_call(known)
        elif kind == "TOOL":
            converted.attributes |= _tool(known, span.name, names)
        if is_root:
            converted.attributes |= {} if session is None else {"session.id": session}
            entries = _feedback(assessments)
            feedback = [Event(EVALUATION, entry) for entry in entries]
            converted.events = [*converted.events, *feedback]
        read_spans.append(converted)
    return read_spans


def _decoded_attributes(span: _Span) -> dict[str, Any]:
    return {key: decoded(value) for key, value in (span.attributes or {}).items()}


def _span(span: _Span) -> Span:
    """Return a span without its attributes but for the type of its error."""
    status = span.status or {}
    context = span.context or {}
    events = [Event(event.name, event.attributes or {}) for event in span.events or ()]
    exceptions = [event.attributes for event in events if event.name == "exception"]
    problem = exceptions[0] if exceptions else {}
    code = status.get("code")
    has_failed = code in FAILED or span.status_code in FAILED
    message = status.get("message") or span.status_message or problem.get("exception.message")
    attributes: dict[str, Any] = {}
    if has_failed and "exception.type" in problem:
        attributes["error.type"] = problem["exception.type"]
    first_known = _first_known(span.start_time_unix_nano, span.start_time)
    start = nanoseconds(first_known)
    end = nanoseconds(_first_known(span.end_time_unix_nano, span.end_time))
    trace_id = context.get("trace_id", span.trace_id)
    trace = hex_id(trace_id)
    span_id = context.get("span_id", span.span_id)
    return Span(
        trace=trace,
        id=hex_id(span_id),
        parent=hex_id(span.parent_span_id or span.parent_id),
        name=span.name,
        attributes=attributes,
        events=events,
        error=as_text(message) if has_failed else None,
        **time_range(start, end),
    )


def _first_known(value: Any, other: Any) -> Any:
    return other if value is None else value


def _tool(known: Mapping[str, Any], name: str, names: Mapping[str, int]) -> dict[str, Any]:
    """Return the GenAI attributes of a tool's span; MLflow's number of a copy is cut off."""
    plain = _COPY.sub("", name)
    if names.get(plain, 0) > 1:
        own_name = plain
    else:
        own_name = name
    gen_ai_tool_name = text_or_none(known.get("mlflow.spanFunctionName")) or own_name
    mlflow_span_inputs = known.get("mlflow.spanInputs")
    mlflow_span_outputs = known.get("mlflow.spanOutputs")
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": gen_ai_tool_name,
        "gen_ai.tool.call.arguments": mlflow_span_inputs,
        "gen_ai.tool.call.result": mlflow_span_outputs,
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _model_call(known: Mapping[str, Any]) -> ModelCall:
    """Read an MLflow span of a model call: history, answers, model, usage and tools."""
    request = known.get("mlflow.spanInputs")
    response = known.get("mlflow.spanOutputs")
    tokens = as_map(known.get("mlflow.chat.tokenUsage"))  # its input holds the tokens of a cache
    usage = {_TOKENS.get(name, name): count for name, count in tokens.items()}
    mlflow_llm_model = known.get("mlflow.llm.model")
    model = as_map(response).get("model")
    models = (
        model,
        mlflow_llm_model,
        as_map(request).get("model"),
    )
    answers = answers_in(response)
    replies = [{"role": "assistant", **as_map(message)} for message in answers]
    messages = messages_of(_request_messages(request))
    return ModelCall(
        history=messages,
        replies=messages_of(replies),
        model=next(filter(text_or_none, models), None),
        usage=usage_of(usage or as_map(response).get("usage")),
        tools=known.get("mlflow.chat.tools") or as_map(request).get("tools"),
    )


def _request_messages(inputs: Any) -> list[Any]:
    """Return the messages of a request; the only text of an object is a question of the user."""
    messages = asked_in(inputs)
    texts = [text for text in as_map(inputs).values() if isinstance(text, str)]
    return messages or (asked_in(texts[0]) if len(texts) == 1 else [])


def _valid(assessments: list[_Assessment]) -> list[_Assessment]:
    """Return the assessments of a trace that still hold, the latest last."""
    valid = [assessment for assessment in assessments if assessment.valid is not False]
    return sorted(valid, key=_created)


def _created(assessment: _Assessment) -> int:
    """Return when an assessment was made, in nanoseconds; 0 where that is not known."""
    first_known = _first_known(assessment.create_time, assessment.create_time_ms)
    return nanoseconds(first_known) or 0


def _value(recorded_value: _Held) -> JSON:
    serialized = recorded_value.serialized_value or {}
    if "value" in serialized:
        return decoded(serialized["value"])
    return recorded_value.value


def _feedback(assessments: Iterable[_Assessment]) -> Iterator[dict[str, Any]]:
    """Yield feedback in the names of OpenTelemetry."""
    for assessment in assessments:
        value = _value(assessment.feedback)
        gen_ai_evaluation_name = assessment.assessment_name or assessment.name
        yield {
            "gen_ai.evaluation.name": gen_ai_evaluation_name,
            "gen_ai.evaluation.score.value": value,
            "gen_ai.evaluation.score.label": value if isinstance(value, str) else None,
            "gen_ai.evaluation.explanation": assessment.rationale,
        }


def _expected(
    assessments: Iterable[_Assessment], known: Mapping[str, int]
) -> tuple[Expectation, Mapping[str, int]]:
    """Return the expectation, and the remarks with those on other expectations."""
    fields: dict[str, Any] = {}
    remarks = Counter(known)
    for assessment in assessments:
        if assessment.expectation is None:
            continue
        name = assessment.assessment_name or assessment.name
        value = _value(assessment.expectation)
        calls = _expected_calls(value) if name == "expected_tool_calls" else None
        if name == "expected_response" and isinstance(value, str):
            fields["text"] = value
        elif calls is not None:
            fields["calls"] = calls
        else:
            remarks[kind_of("expectation", name)] += 1
    return Expectation(**fields), dict(remarks)


def _expected_calls(value: Any) -> tuple[ExpectedCall, ...] | None:
    """Return expected calls, None where a value is no list of them.

    Arguments are not compared where none are given.
    """
    if not isinstance(value, list):
        return None
    calls = []
    for call in map(as_map, value):
        name = call.get("name")
        arguments = call.get("arguments", call.get("args"))
        if not isinstance(name, str):
            return None
        is_object = isinstance(arguments, dict)
        expected_call = ExpectedCall(name=name, arguments=arguments if is_object else None)
        calls.append(expected_call)
    return tuple(calls)
