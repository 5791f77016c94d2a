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
    (tmp_path / "runs.jsonl").write_text(json.dumps(run))
    report = gradestack.grade_files(
        "runs.jsonl", graders=["exact_match"], exporters="otel_evaluation", output="out"
    )
    lines = (report.path / "native/otel_evaluation.jsonl").read_text("ascii").splitlines()
    parsed = [ParseDict(json.loads(line, object_hook=with_bytes), LogsData()) for line in lines]
    records = [
        record
        for log_record in parsed
        for logs in log_record.resource_logs
        for record in logs.scope_logs[0].log_records
    ]
    (event,) = records
    assert (event.event_name, event.trace_id.hex(), event.span_id.hex()) == (
        "gen_ai.evaluation.result",
        trace["trace_id"],
        trace["span_id"],
    )
    attributes = {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in event.attributes
    }
    assert attributes == DATA["lines_are_requests_of_log_records"]


def with_bytes(value):
    """Return an object with its ids as protobuf's own JSON has bytes."""
    ids = {
        key: base64.b64encode(bytes.fromhex(value[key])).decode()
        for key in ("traceId", "spanId")
        if key in value
    }
    return {**value, **ids}
