"""Spans and log records of trace files: OTLP JSON, Tempo's and Jaeger's exports."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from gradestack.jsonio import as_list, as_map, as_text

_HEX: Final = re.compile(r"[0-9A-Fa-f]+")
_RECORDS: Final = ("resourceSpans", "batches", "resourceLogs")
KEYS: Final = (*_RECORDS, "data")
"""Keys of a document under which lists of spans or log records stand."""
_ERROR: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR")


class Event(msgspec.Struct):
    """A log record, or an event of a span."""

    name: str
    attributes: Mapping[str, Any]
    body: Any = None


class Span(msgspec.Struct, dict=True):
    """A span, as far as it is needed; its attributes are decoded when somebody asks for them."""

    trace: str
    id: str
    parent: str
    name: str
    scope: str
    start: int
    end: int
    listed: Any
    """Its attributes as recorded."""
    raw_events: Any
    error: str | None = None
    """What its status says went wrong; "" where it says no more."""
    service: str | None = None

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Its attributes by their keys."""
        return attributes_of(self.listed)

    @cached_property
    def events(self) -> list[Event]:
        """What happened while it went on."""
        return [_event(each) for each in as_list(self.raw_events) if isinstance(each, dict)]


class Log(msgspec.Struct):
    """A log record and the span it belongs to."""

    trace: str
    span: str
    event: Event


def hex_id(value: Any) -> str:
    """Return an id in hexadecimal digits, which some exports write in base64; "" where there is none."""
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
        return int(held) if isinstance(held, str) and held.lstrip("-").isdecimal() else held
    if kind == "arrayValue":
        return [value_of(each) for each in as_list(as_map(held).get("values"))]
    if kind == "kvlistValue":
        return attributes_of(as_map(held).get("values"))
    return held if kind in {"doubleValue", "boolValue", "bytesValue"} else value


def attributes_of(listed: Any) -> dict[str, Any]:
    """Return attributes by their keys."""
    if type(listed) is not list:
        return listed if isinstance(listed, dict) else {}
    return {str(each.get("key")): value_of(each.get("value")) for each in listed if type(each) is dict}


def _nanoseconds(value: Any) -> int:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def records_of(record: Any) -> Iterator[Span | Log]:
    """Yield the spans and log records of one element of a document, or of a whole document."""
    if not isinstance(record, dict):
        return
    for key in KEYS:
        for each in as_list(record.get(key)):
            yield from records_of(each)
    if isinstance(record.get("spans"), list) and "traceID" in record:
        yield from _of_jaeger(record)
    service = attributes_of(as_map(record.get("resource")).get("attributes")).get("service.name")
    for name in ("scopeSpans", "instrumentationLibrarySpans"):
        for scoped in as_list(record.get(name)):
            scope = as_map(as_map(scoped).get("scope", as_map(scoped).get("instrumentationLibrary")))
            for raw in as_list(as_map(scoped).get("spans")):
                if isinstance(raw, dict):
                    yield _span(raw, as_text(scope.get("name")), service)
    for scoped in as_list(record.get("scopeLogs")):
        for raw in as_list(as_map(scoped).get("logRecords")):
            if isinstance(raw, dict):
                yield Log(hex_id(raw.get("traceId")), hex_id(raw.get("spanId")), _event(raw))


def _event(raw: Mapping[str, Any]) -> Event:
    attributes = attributes_of(raw.get("attributes"))
    name = raw.get("eventName") or raw.get("name") or attributes.get("event.name")
    return Event(as_text(name), attributes, value_of(raw.get("body")))


def _span(raw: Mapping[str, Any], scope: str, service: Any) -> Span:
    status = as_map(raw.get("status"))
    failed = status.get("code") in _ERROR
    return Span(
        trace=hex_id(raw.get("traceId")),
        id=hex_id(raw.get("spanId")),
        parent=hex_id(raw.get("parentSpanId")),
        name=as_text(raw.get("name")),
        scope=scope,
        start=_nanoseconds(raw.get("startTimeUnixNano")),
        end=_nanoseconds(raw.get("endTimeUnixNano")),
        listed=raw.get("attributes"),
        raw_events=raw.get("events"),
        error=as_text(status.get("message")) if failed else None,
        service=service if isinstance(service, str) else None,
    )


def _of_jaeger(trace: Mapping[str, Any]) -> Iterator[Span]:
    for raw in trace["spans"]:
        if not isinstance(raw, dict):
            continue
        tags = {str(each.get("key")): each.get("value") for each in map(as_map, as_list(raw.get("tags")))}
        parents = [as_map(each) for each in as_list(raw.get("references"))]
        parent = next((each.get("spanID") for each in parents if each.get("refType") == "CHILD_OF"), None)
        process = as_map(as_map(trace.get("processes")).get(as_text(raw.get("processID"))))
        logs = [
            {str(each.get("key")): each.get("value") for each in map(as_map, as_list(as_map(log).get("fields")))}
            for log in as_list(raw.get("logs"))
        ]
        start, failed = _nanoseconds(raw.get("startTime")) * 1000, tags.get("otel.status_code") in _ERROR
        service = process.get("serviceName")
        yield Span(
            trace=hex_id(raw.get("traceID", trace["traceID"])),
            id=hex_id(raw.get("spanID")),
            parent=hex_id(parent),
            name=as_text(raw.get("operationName")),
            scope=as_text(tags.get("otel.scope.name")),
            start=start,
            end=start + _nanoseconds(raw.get("duration")) * 1000,
            listed=tags,
            raw_events=[{"name": each.get("event"), "attributes": each} for each in logs],
            error=as_text(tags.get("otel.status_description")) if failed or tags.get("error") is True else None,
            service=service if isinstance(service, str) else None,
        )
