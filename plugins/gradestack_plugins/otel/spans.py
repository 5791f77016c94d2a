"""Spans and log records of trace files: OTLP JSON, Tempo's and Jaeger's exports."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from gradestack.jsonio import as_list, as_map, as_text, is_number

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")
_WHOLE: Final = re.compile(r"-?[0-9]{1,400}")
_DIGITS: Final = re.compile(r"-?[0-9]+")
_LATEST: Final = 253_402_300_799 * 10**9  # nanoseconds until the year 10000
_RECORDS: Final = ("resourceSpans", "batches", "resourceLogs")
KEYS: Final = (
    *_RECORDS,
    "data",
)  # keys of a document under which lists of spans or log records stand
_ERROR: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR")


class Event(msgspec.Struct, gc=False):
    """A log record, or an event of a span."""

    name: str
    attributes: Mapping[str, Any]
    body: Any = None


class Span(msgspec.Struct, gc=False):
    """A span, as far as it is needed."""

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: Sequence[Event]
    error: str | None = None  # what its status says went wrong; "" where it says no more
    service: str | None = None
    impossible_times: int = 0  # how many of start and end cannot be times; they are 0
    answer: Any = None  # what a model answered in it, where its attributes do not say so


class Log(msgspec.Struct, gc=False):
    """A log record and the span it belongs to."""

    trace: str
    span: str
    event: Event


def hex_id(value: Any) -> str:
    """Return an id in hexadecimal digits, which some exports write in base64.

    "" where there is none.
    """
    if not value or not isinstance(value, str):
        return ""
    if _HEX.fullmatch(value) and len(value) % 2 == 0:
        return value.lower()
    try:
        return base64.b64decode(value, validate=True).hex()
    except (binascii.Error, ValueError):
        return value


def value_of(value: Any) -> Any:
    """Return an attribute's value, which OTLP wraps with the name of its type."""
    if type(value) is not dict or len(value) != 1:
        return None if value == {} else value
    if "stringValue" in value:
        return value["stringValue"]
    ((kind, held),) = value.items()
    if kind == "intValue":
        number = whole_number(held) if isinstance(held, str) else None
        return held if number is None else number
    if kind == "arrayValue":
        return [value_of(each) for each in as_list(as_map(held).get("values"))]
    if kind == "kvlistValue":
        return attributes_of(as_map(held).get("values"))
    return held if kind in {"doubleValue", "boolValue", "bytesValue"} else value


def attributes_of(listed: Any) -> dict[str, Any]:
    """Return attributes by their keys."""
    if type(listed) is not list:
        return listed if isinstance(listed, dict) else {}
    return {
        str(each.get("key")): value_of(each.get("value")) for each in listed if type(each) is dict
    }


def whole_number(text: str) -> int | None:
    """Return the whole number that a text is, None where it is none or has too many digits."""
    return int(text) if _WHOLE.fullmatch(text) else None


def nanoseconds(value: Any, unit: int = 1) -> int | None:
    """Return a recorded time: 0 where none is recorded, None where it cannot be a time.

    Args:
        value: A number, or a text of digits, counted in units.
        unit: Nanoseconds of a unit.
    """
    number = value
    if isinstance(value, str):
        if not _DIGITS.fullmatch(value):
            return 0
        number = whole_number(value)
    if number is not None and not is_number(number):
        return 0
    if number is None or not 0 <= number <= _LATEST / unit:
        return None
    return int(number) * unit


def time_range(start: int | None, end: int | None) -> dict[str, Any]:
    """Return the fields of a span that hold its times, and how many of them cannot be times."""
    impossible = (start is None) + (end is None)
    return {"start": start or 0, "end": end or 0, "impossible_times": impossible}


class Record(NamedTuple):
    """A span or log record as it stands in a document."""

    trace: str
    raw: Mapping[str, Any]
    service: Any  # name of the service that the document says it is of
    form: Callable[[Record], Span | Log]  # what makes a span or log record of it

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes."""
        return attributes_of(self.raw.get("attributes", self.raw.get("tags")))


def records_of(record: Any) -> Iterator[Record]:
    """Yield the spans and log records of one element of a document, or of a whole document."""
    if not isinstance(record, dict):
        return
    for key in KEYS:
        for each in as_list(record[key]) if key in record else ():
            yield from records_of(each)
    if "traceID" in record and isinstance(record.get("spans"), list):
        yield from _jaeger_records(record)
    service = attributes_of(as_map(record.get("resource")).get("attributes")).get("service.name")
    if is_console_span(record):
        trace = _console_id(record["context"].get("trace_id"))
        yield Record(trace, record, service, _console_span)
    for name, key, form in _SCOPED:
        if scopes := as_list(record[name]) if name in record else ():
            for raw in (each for scoped in scopes for each in as_list(as_map(scoped).get(key))):
                if type(raw) is dict:
                    yield Record(hex_id(raw.get("traceId")), raw, service, form)


def _jaeger_records(trace: Mapping[str, Any]) -> Iterator[Record]:
    processes = as_map(trace.get("processes"))
    for raw in trace["spans"]:
        if isinstance(raw, dict):
            process = as_map(processes.get(as_text(raw.get("processID"))))
            identifier = hex_id(raw.get("traceID", trace["traceID"]))
            yield Record(identifier, raw, process.get("serviceName"), _jaeger_span)


def _event(raw: Mapping[str, Any]) -> Event:
    attributes = attributes_of(raw.get("attributes"))
    name = raw.get("eventName") or raw.get("name") or attributes.get("event.name")
    return Event(as_text(name), attributes, value_of(raw.get("body")))


def log_of(given: Record) -> Log:
    """Return a log record."""
    return Log(given.trace, hex_id(given.raw.get("spanId")), _event(given.raw))


def _span(given: Record) -> Span:
    raw = given.raw
    status, events = as_map(raw.get("status")), raw.get("events")
    return Span(
        trace=given.trace,
        id=hex_id(raw.get("spanId")),
        parent=hex_id(raw.get("parentSpanId")),
        name=as_text(raw.get("name")),
        **time_range(
            nanoseconds(raw.get("startTimeUnixNano")), nanoseconds(raw.get("endTimeUnixNano"))
        ),
        attributes=attributes_of(raw.get("attributes")),
        events=[_event(each) for each in as_list(events) if isinstance(each, dict)]
        if events
        else (),
        error=as_text(status.get("message")) if status.get("code") in _ERROR else None,
        service=given.service if isinstance(given.service, str) else None,
    )


def _jaeger_span(given: Record) -> Span:
    raw, tags = given.raw, given.attributes
    parents = [as_map(each) for each in as_list(raw.get("references"))]
    logs = [attributes_of(as_map(log).get("fields")) for log in as_list(raw.get("logs"))]
    start = nanoseconds(raw.get("startTime"), unit=1000)
    duration = nanoseconds(raw.get("duration"), unit=1000)
    end = None if start is None or duration is None else start + duration
    failed = tags.get("otel.status_code") in _ERROR
    return Span(
        trace=given.trace,
        id=hex_id(raw.get("spanID")),
        parent=hex_id(
            next(
                (each.get("spanID") for each in parents if each.get("refType") == "CHILD_OF"), None
            )
        ),
        name=as_text(raw.get("operationName")),
        **time_range(start, end),
        attributes=tags,
        events=[Event(as_text(each.get("event")), each) for each in logs],
        error=as_text(tags.get("otel.status_description"))
        if failed or tags.get("error") is True
        else None,
        service=given.service if isinstance(given.service, str) else None,
    )


def is_console_span(record: Mapping[str, Any]) -> bool:
    """Return whether an object is a span as OpenTelemetry's console exporter prints it."""
    context = record.get("context")
    return isinstance(context, dict) and "span_id" in context and "parent_id" in record


def _console_id(value: Any) -> str:
    return hex_id(as_text(value).removeprefix("0x"))


def _console_span(given: Record) -> Span:
    raw, context = given.raw, as_map(given.raw.get("context"))
    status = as_map(raw.get("status"))
    events = [_event(each) for each in as_list(raw.get("events")) if isinstance(each, dict)]
    return Span(
        trace=given.trace,
        id=_console_id(context.get("span_id")),
        parent=_console_id(raw.get("parent_id")),
        name=as_text(raw.get("name")),
        **time_range(_moment(raw.get("start_time")), _moment(raw.get("end_time"))),
        attributes=given.attributes,
        events=events,
        error=as_text(status.get("description")) if status.get("status_code") in _ERROR else None,
        service=given.service if isinstance(given.service, str) else None,
    )


def _moment(text: Any) -> int | None:
    """Return a time in nanoseconds that is written as text; 0 where none is."""
    if not isinstance(text, str):
        return 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    return nanoseconds(seconds * 1_000_000, unit=1000)


_SCOPED: Final = (
    ("scopeSpans", "spans", _span),
    ("instrumentationLibrarySpans", "spans", _span),
    ("scopeLogs", "logRecords", log_of),
)
"""Where spans and log records of a resource stand, and what makes one."""
