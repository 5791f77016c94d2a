"""Reader ``mlflow``: traces of MLflow, as ``Trace.to_json`` and its lists write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import JSON, Expectation, ExpectedCall, RecordReader, Sample, Source, replace
from gradestack.jsonio import as_list, as_map, as_number, as_text, compact
from gradestack_plugins.otel.dialects import Answer, decoded, messages_of
from gradestack_plugins.otel.spans import Event, Span, hex_id, nanoseconds, time_range
from gradestack_plugins.otel.trace import EVALUATION, sample_of
from gradestack_plugins.readers.chat.conversation import kind_of, text_or_none
from gradestack_plugins.readers.chat.forms import forms_read
from gradestack_plugins.readers.chat.unread import unread_keys
from gradestack_plugins.readers.chat.usage import usage_of

_ANSWERS: Final = ("CHAT_MODEL", "LLM")
_HELD_BY: Final = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_COPY: Final = re.compile(
    r"_\d+\Z"
)  # what release 2 puts behind the names of spans that would have the same
_FAILED: Final = ("ERROR", "STATUS_CODE_ERROR")


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
        info, raws = as_map(record["info"]), as_map(record["data"]).get("spans")
        name = info.get("trace_id", info.get("request_id"))
        if not isinstance(name, str) or not name:
            raise ValueError(f"info.trace_id: expected text, found {compact(name)[:60]}")
        if not isinstance(raws, list):
            # what makes a bad record
            raise ValueError(f"data.spans: expected a list, found {compact(raws)[:60]}")
        spans = _spans([each for each in raws if isinstance(each, dict)], info)
        found = sample_of(name, spans, source)
        tags = {
            key: each
            for key, each in as_map(info.get("tags")).items()
            if not key.startswith("mlflow.")
        }
        called = text_or_none(as_map(info.get("tags")).get("mlflow.traceName"))
        facets = {**({"trace_name": called} if called else {}), **tags}
        expected, remarks = _expected(_assessments(info), found.remarks)
        return replace(found, facets=facets, expected=expected, remarks=remarks)


def _spans(raws: list[dict[str, Any]], info: Mapping[str, Any]) -> list[Span]:
    read = [
        ({key: decoded(each) for key, each in as_map(raw.get("attributes")).items()}, raw)
        for raw in raws
    ]
    kinds = [known.get("mlflow.spanType") for known, _ in read]
    names = Counter(_COPY.sub("", as_text(raw.get("name"))) for raw in raws if "context" in raw)
    answered = any(kind in _ANSWERS for kind in kinds)
    found = []
    for (known, raw), kind in zip(read, kinds, strict=True):
        of_root = raw.get("parent_span_id", raw.get("parent_id")) in (None, "")
        attributes: dict[str, Any] = {}
        is_answer = kind in _ANSWERS or (of_root and not answered)
        if is_answer:
            attributes = {"gen_ai.operation.name": "chat"}
        elif kind == "TOOL":
            attributes = _tool(known, as_text(raw.get("name")), names)
        held = map(as_map, as_list(raw.get("events")))
        events = [Event(as_text(each.get("name")), as_map(each.get("attributes"))) for each in held]
        if of_root:
            session = as_map(info.get("trace_metadata", info.get("request_metadata"))).get(
                "mlflow.trace.session"
            )
            attributes |= {} if session is None else {"session.id": session}
            events += [Event(EVALUATION, each) for each in _feedback(_assessments(info))]
        found.append(_span(raw, attributes, events, _answer(known) if is_answer else None))
    return found


def _span(
    raw: Mapping[str, Any], attributes: dict[str, Any], events: list[Event], answer: Answer | None
) -> Span:
    status, context = as_map(raw.get("status")), as_map(raw.get("context"))
    problem: Mapping[str, Any] = next(
        (event.attributes for event in events if event.name == "exception"), {}
    )
    failed = status.get("code") in _FAILED or raw.get("status_code") in _FAILED
    if failed and "exception.type" in problem:
        attributes["error.type"] = problem["exception.type"]
    said = status.get("message") or raw.get("status_message") or problem.get("exception.message")
    return Span(
        trace=_id(context.get("trace_id", raw.get("trace_id"))),
        id=_id(context.get("span_id", raw.get("span_id"))),
        parent=_id(raw.get("parent_span_id", raw.get("parent_id"))),
        name=as_text(raw.get("name")),
        **time_range(
            nanoseconds(raw.get("start_time_unix_nano", raw.get("start_time"))),
            nanoseconds(raw.get("end_time_unix_nano", raw.get("end_time"))),
        ),
        attributes=attributes,
        events=events,
        error=as_text(said) if failed else None,
        answer=answer,
    )


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


def _assessments(info: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what was assessed of a trace and still holds, the latest last."""
    given = [as_map(each) for each in as_list(info.get("assessments"))]
    return sorted((each for each in given if each.get("valid") is not False), key=_created)


def _created(assessment: Mapping[str, Any]) -> float:
    when = assessment.get("create_time", assessment.get("create_time_ms"))
    try:
        return (
            datetime.fromisoformat(when).timestamp()
            if isinstance(when, str)
            else as_number(when) or 0.0
        )
    except (ValueError, OverflowError):
        return 0.0


def _value(held: Mapping[str, Any]) -> JSON:
    serialized = as_map(held.get("serialized_value"))
    return decoded(serialized["value"]) if "value" in serialized else held.get("value")


def _feedback(assessments: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield feedback in the names of OpenTelemetry."""
    for each in assessments:
        value = _value(as_map(each.get("feedback")))
        yield {
            "gen_ai.evaluation.name": each.get("assessment_name", each.get("name")),
            "gen_ai.evaluation.score.value": value,
            "gen_ai.evaluation.score.label": value if isinstance(value, str) else None,
            "gen_ai.evaluation.explanation": each.get("rationale"),
        }


def _expected(
    assessments: Iterable[Mapping[str, Any]], known: Mapping[str, int]
) -> tuple[Expectation, Mapping[str, int]]:
    fields: dict[str, Any] = {}
    remarks = dict(known)
    for each in assessments:
        if not isinstance(each.get("expectation"), dict):
            continue
        name, value = each.get("assessment_name", each.get("name")), _value(each["expectation"])
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
