"""Exporter ``otel_evaluation`` against OpenTelemetry's own messages, as which its lines
are parsed.
"""

import base64
import json

import pytest

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "otel_evaluation.yaml")

pytestmark = pytest.mark.oracles


def test_lines_are_requests_of_log_records(tmp_path, monkeypatch):
    """Every field is one of the protocol, and ids are those of the span.

    Ids are hexadecimal in OTLP's JSON alone.
    """
    why = "no opentelemetry-proto here; `make oracles` has it"
    pytest.importorskip("opentelemetry.proto", reason=why)
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

    monkeypatch.chdir(tmp_path)
    trace = {"trace_id": "252d370103c76a061aaf27547443fe62", "span_id": "1122334455667788"}
    run = {
        "id": "a",
        "run": 1,
        "predicted": {"text": "x"},
        "expected": {"text": "x"},
        "trace": trace,
    }
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(json.dumps(run))
    report = gradestack.grade_files(
        "runs.jsonl", graders=["exact_match"], exporters="otel_evaluation", output="out"
    )
    otel_evaluation_path = report.path / "native/otel_evaluation.jsonl"
    text = otel_evaluation_path.read_text("ascii")
    lines = text.splitlines()
    parsed = []
    for line in lines:
        document = json.loads(line, object_hook=with_bytes)
        parsed.append(ParseDict(document, LogsData()))
    records = [
        record
        for log_record in parsed
        for logs in log_record.resource_logs
        for record in logs.scope_logs[0].log_records
    ]
    (event,) = records
    assert event.event_name == "gen_ai.evaluation.result"
    assert event.trace_id.hex() == trace["trace_id"]
    assert event.span_id.hex() == trace["span_id"]
    attributes = {}
    for attribute in event.attributes:
        attributes[attribute.key] = getattr(attribute.value, attribute.value.WhichOneof("value"))
    assert attributes == DATA["lines_are_requests_of_log_records"]


def with_bytes(value):
    """Return an object with its ids as protobuf's own JSON has bytes."""
    ids = {}
    for key in ("traceId", "spanId"):
        if key in value:
            encoded = base64.b64encode(bytes.fromhex(value[key]))
            ids[key] = encoded.decode()
    return {**value, **ids}
