"""Spans and log records of trace files: OTLP JSON, Tempo's, Jaeger's and the console's exports."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from gradestack import compile_later
from gradestack.jsonio import as_list, as_map, as_text, is_number
from gradestack_plugins.readers.declared import Text, convert_record

_HEX: Final = compile_later(r"[0-9A-Fa-f]+")
_WHOLE: Final = compile_later(r"-?[0-9]{1,400}")
_DIGITS: Final = compile_later(r"-?[0-9]+")
_LATEST: Final = 253_402_300_799 * 10**9
"""Nanoseconds until the year 10000."""
KEYS: Final = ("resourceSpans", "batches", "resourceLogs", "data")
"""Keys of a document under which lists of spans or log records stand."""
FAILED: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR")
"""Codes of a status that is an error."""
_UNWRAPPED: Final = frozenset({"doubleValue", "boolValue", "bytesValue"})


class Event(msgspec.Struct, gc=False):
    """A log record, or an event of a span."""

    name: str
    attributes: Mapping[str, Any]
    body: Any = None


class Span(msgspec.Struct, gc=False):
    """A span, as far as it is needed.

    Attributes:
        start: Start in nanoseconds, 0 where it is not known; so is the end.
        error: The message of a status that is an error; None of another status.
        impossible_times: How many of start and end cannot be times.
        model_call: The call of a model, where the attributes do not hold it.
    """

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: Sequence[Event]
    error: str | None = None
    service: str | None = None
    impossible_times: int = 0
    model_call: Any = None


class Log(msgspec.Struct, gc=False):
    """A log record and the span it belongs to."""

    trace: str
    span: str
    event: Event


def hex_id(value: Any) -> str:
    """Return an id in hexadecimal digits, also of base64; "" where there is none."""
    return _id_in_hex(value) if isinstance(value, str) else ""


@lru_cache(maxsize=4096)
def _id_in_hex(value: str) -> str:
    """Return the id that a text is: spans name their trace and their parent again and again."""
    text = value.removeprefix("0x")
    match = _HEX.fullmatch(text)
    if match and len(text) % 2 == 0:
        return text.lower()
    try:
        return base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def value_of(wrapped: Any) -> Any:
    """Return an attribute's value, which OTLP wraps with the name of its type."""
    if type(wrapped) is not dict or len(wrapped) != 1:
        return None if wrapped == {} else wrapped
    if "stringValue" in wrapped:
        return wrapped["stringValue"]
    ((kind, value),) = wrapped.items()
    if kind == "intValue":
        number = whole_number(value) if isinstance(value, str) else None
        return value if number is None else number
    if kind == "arrayValue":
        return [value_of(item) for item in as_list(as_map(value).get("values"))]
    if kind == "kvlistValue":
        return attributes_of(as_map(value).get("values"))
    return value if kind in _UNWRAPPED else wrapped


def attributes_of(listed: Any) -> dict[str, Any]:
    """Return attributes by their keys."""
    if type(listed) is not list:
        return listed if isinstance(listed, dict) else {}
    attributes: dict[str, Any] = {}
    for pair in listed:
        if type(pair) is dict:
            value = pair.get("value")
            attributes[str(pair.get("key"))] = value_of(value)
    return attributes


def whole_number(text: str) -> int | None:
    """Return the whole number that a text is, None where it is none or has too many digits."""
    match = _WHOLE.fullmatch(text)
    return int(text) if match else None


def nanoseconds(value: Any, unit: int = 1) -> int | None:
    """Return a recorded time: 0 where none is recorded, None where it cannot be a time.

    Args:
        value: A number, or a text of digits, counted in units; or a text in ISO form.
        unit: Nanoseconds of a unit.
    """
    number = value
    if isinstance(value, str):
        number = whole_number(value)
        if number is None and not _DIGITS.fullmatch(value):
            return _moment(value)
    if number is not None and not is_number(number):
        return 0
    if number is None or not 0 <= number <= _LATEST / unit:
        return None
    return int(number) * unit


def _moment(text: str) -> int | None:
    """Return a time in ISO form in nanoseconds; 0 of no text, None of another one."""
    if not text:
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    tzinfo = moment.tzinfo or UTC
    seconds = moment.replace(tzinfo=tzinfo).timestamp()
    return nanoseconds(seconds * 1_000_000, unit=1000)


def time_range(start: int | None, end: int | None) -> dict[str, Any]:
    """Return the fields of a span that hold its times, and how many of them cannot be times."""
    impossible = (start is None) + (end is None)
    return {"start": start or 0, "end": end or 0, "impossible_times": impossible}


class Record(NamedTuple):
    """A span or log record as it stands in a document.

    Attributes:
        service: The name of the service, as the document records it.
        form: The function that makes a span or log record of it.
    """

    trace: str
    raw: Mapping[str, Any]
    service: Any
    form: Callable[[Record], Span | Log]

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes."""
        tags = self.raw.get("tags")
        return attributes_of(self.raw.get("attributes", tags))


def records_of(document: Any) -> Iterator[Record]:
    """Yield the spans and log records of one element of a document, or of a whole document."""
    if not isinstance(document, dict):
        return
    for key in KEYS:
        for element in as_list(document[key]) if key in document else ():
            yield from records_of(element)
    if "traceID" in document:
        yield from _jaeger_records(document)
    resource = as_map(document.get("resource"))
    service = attributes_of(resource.get("attributes")).get("service.name")
    if is_console_span(document):
        trace_id = document["context"].get("trace_id")
        trace = hex_id(trace_id)
        yield Record(trace, document, service, _console_span)
    for scopes, key, form in _SCOPED:
        for scope in as_list(document[scopes]) if scopes in document else ():
            for raw in as_list(as_map(scope).get(key)):
                if type(raw) is dict:
                    yield Record(hex_id(raw.get("traceId")), raw, service, form)


def _jaeger_records(trace: Mapping[str, Any]) -> Iterator[Record]:
    processes = as_map(trace.get("processes"))
    for raw in as_list(trace.get("spans")):
        if isinstance(raw, dict):
            process_id = raw.get("processID")
            process = as_map(processes.get(as_text(process_id)))
            trace_id = raw.get("traceID", trace["traceID"])
            identifier = hex_id(trace_id)
            service_name = process.get("serviceName")
            yield Record(identifier, raw, service_name, _jaeger_span)


class _Status(msgspec.Struct, frozen=True):
    """The status of a span; the console's exporter calls its parts otherwise."""

    code: Any = None
    message: Any = None
    status_code: Any = None
    description: Any = None

    @property
    def error(self) -> str | None:
        """The message of an error; None of another status."""
        if self.code in FAILED or self.status_code in FAILED:
            return as_text(self.message or self.description)
        return None


class _Otlp(msgspec.Struct, rename="camel"):
    """A span in OTLP."""

    span_id: Text = None
    parent_span_id: Text = None
    name: str = ""
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    status: _Status = _Status()
    events: list[dict[str, Any]] = []


class _Context(msgspec.Struct, frozen=True):
    """The ids of a span as the console's exporter prints it."""

    span_id: Text = None


class _Console(msgspec.Struct):
    """A span as the console's exporter prints it."""

    context: _Context = _Context()
    parent_id: Text = None
    name: str = ""
    start_time: Any = None
    end_time: Any = None
    status: _Status = _Status()
    events: list[dict[str, Any]] = []


class _Reference(msgspec.Struct):
    """A reference of one of Jaeger's spans to another one."""

    refType: Text = None  # noqa: N815
    spanID: Text = None  # noqa: N815


class _Jaeger(msgspec.Struct, rename="camel"):
    """A span of Jaeger."""

    span_id: Text = msgspec.field(default=None, name="spanID")
    operation_name: str = ""
    start_time: Any = None
    duration: Any = None
    references: list[_Reference] = []
    logs: list[dict[str, Any]] = []


def _event(raw: Mapping[str, Any]) -> Event:
    attributes = attributes_of(raw.get("attributes"))
    event_name = raw.get("eventName")
    name = event_name or raw.get("name") or attributes.get("event.name")
    wrapped = raw.get("body")
    return Event(as_text(name), attributes, value_of(wrapped))


def log_of(record: Record) -> Log:
    """Return a log record."""
    span_id = record.raw.get("spanId")
    return Log(record.trace, hex_id(span_id), _event(record.raw))


def _span_of(
    record: Record,
    ids: tuple[Any, Any],
    name: str,
    times: tuple[int | None, int | None],
    error: str | None,
    events: Iterable[Event],
) -> Span:
    """Build a span from a record; ``ids`` are its own and its parent's, ``times`` start and end."""
    identifier, parent = ids
    service = record.service if isinstance(record.service, str) else None
    return Span(
        trace=record.trace,
        id=hex_id(identifier),
        parent=hex_id(parent),
        name=name,
        attributes=record.attributes,
        events=[*events],
        error=error,
        service=service,
        **time_range(*times),
    )


def _otlp_span(record: Record) -> Span:
    span, _ = convert_record(record.raw, _Otlp)
    ids = span.span_id, span.parent_span_id
    times = nanoseconds(span.start_time_unix_nano), nanoseconds(span.end_time_unix_nano)
    return _span_of(record, ids, span.name, times, span.status.error, map(_event, span.events))


def _jaeger_span(record: Record) -> Span:
    """Convert a span of Jaeger.

    Jaeger has microseconds for nanoseconds, references for parents, logs for events and tags for
    attributes.
    """
    span, _ = convert_record(record.raw, _Jaeger)
    parents = [entry.spanID for entry in span.references if entry.refType == "CHILD_OF"]
    start = nanoseconds(span.start_time, unit=1000)
    duration = nanoseconds(span.duration, unit=1000)
    if start is None or duration is None:
        end = None
    else:
        end = start + duration
    fields = [attributes_of(log.get("fields")) for log in span.logs]
    events = [Event(as_text(entry.get("event")), entry) for entry in fields]
    tags = record.attributes
    otel_status_code = tags.get("otel.status_code")
    has_failed = otel_status_code in FAILED or tags.get("error") is True
    error = as_text(tags.get("otel.status_description")) if has_failed else None
    parent = next(iter(parents), None)
    ids = span.span_id, parent
    return _span_of(record, ids, span.operation_name, (start, end), error, events)


def is_console_span(document: Mapping[str, Any]) -> bool:
    """Return whether an object is a span as OpenTelemetry's console exporter prints it."""
    context = document.get("context")
    return isinstance(context, dict) and "span_id" in context and "parent_id" in document


def _console_span(record: Record) -> Span:
    span, _ = convert_record(record.raw, _Console)
    ids = span.context.span_id, span.parent_id
    times = nanoseconds(span.start_time), nanoseconds(span.end_time)
    return _span_of(record, ids, span.name, times, span.status.error, map(_event, span.events))


_SCOPED: Final = (
    ("scopeSpans", "spans", _otlp_span),
    ("instrumentationLibrarySpans", "spans", _otlp_span),
    ("scopeLogs", "logRecords", log_of),
)
"""Lists of scopes in a resource, the list in each scope, and the function that makes a record."""
