"""Reader ``otel``: what the spans of a trace are, and what is said of files that are damaged or of
something else.
"""

import json

import pytest

import gradestack
from gradestack.cli import main
from tests.plugins import chat_files

ASKED = [{"role": "user", "parts": [{"type": "text", "content": "To Ghent?"}]}]
CALL = {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"to": "Ghent"}}
CALLS = [{"role": "assistant", "parts": [CALL]}]
SAYS = [{"role": "assistant", "parts": [{"type": "text", "content": "Take IC 5."}]}]


def wrapped(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def attributes(known):
    return [{"key": key, "value": wrapped(value)} for key, value in known.items()]


def span(identifier, parent="", start=1, trace="ab", name="span", status=None, events=(), **known):
    trace_id = trace * 16
    span_id = identifier * 8
    parent_span_id = parent * 8
    record = {
        "traceId": trace_id,
        "spanId": span_id,
        "parentSpanId": parent_span_id,
        "name": name,
    }
    end_time_unix_nano = str((start + 1) * 10**9)
    start_time_unix_nano = str(start * 10**9)
    record |= {"startTimeUnixNano": start_time_unix_nano, "endTimeUnixNano": end_time_unix_nano}
    known = {key.replace("__", "."): value for key, value in known.items()}
    return record | {
        "attributes": attributes(known),
        "status": status or {},
        "events": list(events),
    }


def chat(identifier, parent="01", start=2, inputs=ASKED, outputs=SAYS, **known):
    of_chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "rail-1"}
    content = {"gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}
    content = {key: value for key, value in content.items() if value is not None}
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 3}
    return span(identifier, parent, start, **{**of_chat, **content, **usage, **known})


def tool(identifier, parent="01", start=3, **known):
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find",
        "gen_ai.tool.call.id": "c1",
    }
    return span(
        identifier, parent, start, **{**attributes, "gen_ai.tool.call.result": "IC 5", **known}
    )


def document(*spans):
    scope_spans = [{"scope": {"name": "x"}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": scope_spans}]}


USUAL = (span("01"), chat("02", outputs=CALLS), tool("03"), chat("04", start=4))


def read(tmp_path, *documents, indent=None, **options):
    path = tmp_path / "traces.json"
    path.write_text(
        "\n".join(json.dumps(document, indent=indent) for document in documents), encoding="utf-8"
    )
    return chat_files.read("otel", path, **options)


def one(tmp_path, *spans, **options):
    (sample,) = read(tmp_path, document(*spans), **options)
    return sample


@pytest.mark.parametrize(
    "first", [json.dumps(document(chat("02", inputs="x" * 70_000))), '{"resourceSpans": [{"res']
)
def test_lines_behind_a_long_or_a_damaged_first_one_are_read(tmp_path, first):
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{first}\n{json.dumps(document(chat('02', trace='cd')))}\n", encoding="utf-8")
    output = tmp_path / "out"
    report = gradestack.grade_files(path, output=output, overrides=["reports=[]"])
    expected = 1 + first.endswith("}")
    metrics = report.summary["metrics"]
    assert metrics["total"] == expected


def test_damaged_lines_and_other_traces(tmp_path, capsys):
    """Lines that are no JSON are bad records.

    Traces of nothing but requests, and scores of none, are counted.
    """
    path = tmp_path / "traces.jsonl"
    others = document(span("01", trace="cd", name="GET /"))
    score = {"gen_ai.evaluation.name": "kind", "gen_ai.evaluation.score.value": 0.5}
    trace_id = "cd" * 16
    log = {"traceId": trace_id, "eventName": "gen_ai.evaluation.result", "attributes": score}
    scores = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log, {**log, "attributes": {}}]}]}]}
    text = json.dumps(document(*USUAL))
    lines = [text, json.dumps(others), "{]", json.dumps(scores)]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SystemExit, match="0"):
        main(["grade", str(path), "-o", str(tmp_path / "out")])
    output = capsys.readouterr()
    expected = output.err + output.out
    assert "1 trace left out: no model's answer and no call of a tool in them" in expected
    assert (
        "scores not recorded: 1, of traces without a model call in the data"
        in output.err + output.out
    )
    summary_path = tmp_path / "out/summary.json"
    metrics = json.loads(summary_path.read_text())["metrics"]
    total = metrics["total"]
    assert total == 1
    assert "traces.jsonl:3: not JSON" in output.err + output.out


@pytest.mark.parametrize(
    "odd", [{"kvlistValue": {"values": [{"key": "a", "value": {}}]}}, {"arrayValue": {}}]
)
def test_kinds_and_codes_that_are_no_text(tmp_path, odd):
    kinds = [
        "gen_ai.operation.name",
        "openinference.span.kind",
        "traceloop.span.kind",
        "gen_ai.tool.name",
    ]
    broken = []
    for at, key in enumerate(kinds):
        identifier = f"1{at}"
        broken.append({**span(identifier), "attributes": [{"key": key, "value": odd}]})
    of_mlflow = {
        "context": {"trace_id": "ab", "span_id": "c"},
        "attributes": {"mlflow.spanType": "{}"},
    }
    spans_path = tmp_path / "spans.jsonl"
    text = json.dumps({**of_mlflow, "name": "x", "start_time": 1, "status_code": []})
    spans_path.write_text(text)
    calls = one(tmp_path, *USUAL, *broken, {**span("20"), "status": {"code": {}}}).calls
    assert calls == one(tmp_path, *USUAL).calls
    records = chat_files.read("otel", tmp_path / "spans.jsonl")
    assert not [record for record in records if record.calls]


def test_a_file_without_an_agent_holds_no_record(tmp_path, capsys):
    path = tmp_path / "traces.jsonl"
    text = json.dumps(document(span("01")))
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="3"):
        main(["grade", str(path), "-o", str(tmp_path / "out")])
    assert "no record could be read" in capsys.readouterr().err


def test_shards_are_whole_traces(tmp_path, monkeypatch):
    monkeypatch.setattr("gradestack_plugins.otel.reader.SHARD_BYTES", 5000)
    monkeypatch.setattr("gradestack_plugins.otel.reader._PIECE", 1000)
    lines = [document({**span, "traceId": f"{at:032x}"}) for span in USUAL for at in range(1, 10)]
    samples = read(tmp_path, *lines)
    expected = [(at, 1) for at in range(1, 10)]
    assert [(int(span.id, 16), len(span.calls)) for span in samples] == expected


def test_a_session_may_be_named_by_a_number(tmp_path):
    spans = []
    for trace in ("ab", "cd"):
        identifier = f"{trace}"
        spans.append(chat(identifier, trace=trace, **{"session.id": 7}))
    (sample,) = read(tmp_path, document(*spans), unit="session")
    assert sample.id == "7"
    session_id = sample.trace["session_id"]
    assert session_id == "7"
