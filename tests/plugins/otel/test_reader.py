"""Reader ``otel``: what the spans of a trace are, and what is said of files that are damaged or of
something else.
"""

import json

import pytest

import gradestack
from gradestack.cli import main
from tests.core.outcomes import data
from tests.plugins import chat_files

DATA = data(__file__, "reader.yaml")

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
    found = {
        "traceId": trace * 16,
        "spanId": identifier * 8,
        "parentSpanId": parent * 8,
        "name": name,
    }
    found |= {"startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str((start + 1) * 10**9)}
    known = {key.replace("__", "."): value for key, value in known.items()}
    return found | {"attributes": attributes(known), "status": status or {}, "events": list(events)}


def chat(identifier, parent="01", start=2, asked=ASKED, said=SAYS, **known):
    of_chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "rail-1"}
    content = {"gen_ai.input.messages": asked, "gen_ai.output.messages": said}
    content = {key: value for key, value in content.items() if value is not None}
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 3}
    return span(identifier, parent, start, **{**of_chat, **content, **usage, **known})


def tool(identifier, parent="01", start=3, **known):
    usual = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find",
        "gen_ai.tool.call.id": "c1",
    }
    return span(identifier, parent, start, **{**usual, "gen_ai.tool.call.result": "IC 5", **known})


def document(*spans):
    return {
        "resourceSpans": [
            {"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}
        ]
    }


USUAL = (span("01"), chat("02", said=CALLS), tool("03"), chat("04", start=4))


def read(tmp_path, *documents, indent=None, **options):
    path = tmp_path / "traces.json"
    path.write_text(
        "\n".join(json.dumps(each, indent=indent) for each in documents), encoding="utf-8"
    )
    return chat_files.read("otel", path, **options)


def one(tmp_path, *spans, **options):
    (found,) = read(tmp_path, document(*spans), **options)
    return found


@pytest.mark.parametrize("indent", [None, 1])
def test_a_trace(tmp_path, indent):
    """Its calls with results, text, usage, model, ids: of JSON Lines and of one document."""
    (found,) = read(tmp_path, document(*USUAL), indent=indent)
    (call,) = found.calls
    assert (call.name, call.arguments, call.result, call.status, call.seconds) == (
        "find",
        {"to": "Ghent"},
        "IC 5",
        "ok",
        1.0,
    )
    assert (found.id, found.model, found.input, found.text) == (
        "ab" * 16,
        "rail-1",
        "To Ghent?",
        "Take IC 5.",
    )
    assert (
        found.usage.requests,
        found.usage.input_tokens,
        found.usage.output_tokens,
        found.usage.seconds,
    ) == (
        2,
        20,
        6,
        4.0,
    )
    assert found.trace == {"trace_id": "ab" * 16, "span_id": "01" * 8}


def test_spans_of_a_trace_stand_anywhere(tmp_path):
    """On several lines, of several traces in turns, in any order."""
    other = [{**each, "traceId": "cd" * 16} for each in USUAL]
    lines = [document(each) for pair in zip(reversed(USUAL), other, strict=True) for each in pair]
    found = read(tmp_path, *lines)
    assert [each.id[:2] for each in found] == ["ab", "cd"]
    assert [len(each.calls) for each in found] == [1, 1]


def test_history_makes_no_calls(tmp_path):
    """An answer repeats what was said before it.

    Calls count where they are made, without that where they stand.
    """
    history = DATA["history_makes_no_calls"]
    found = one(tmp_path, span("01"), chat("02", said=CALLS), chat("04", start=4, asked=history))
    assert [(call.name, call.result) for call in found.calls] == [("find", "IC 5")]
    assert [message.role for turn in found.turns for message in turn] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    found = one(tmp_path, span("01"), chat("04", asked=history, said=None))
    assert [(call.name, call.result) for call in found.calls] == [("find", "IC 5")]


def test_executions_alone_are_calls(tmp_path):
    """Where the content of answers was not recorded."""
    asked = tool("03", **{"gen_ai.tool.call.arguments": {"to": "Ghent"}})
    found = one(tmp_path, span("01"), chat("02", asked=None, said=None), asked)
    assert [(call.name, call.arguments, call.result) for call in found.calls] == [
        ("find", {"to": "Ghent"}, "IC 5")
    ]


def test_an_execution_without_id_is_of_the_oldest_call_of_its_name(tmp_path):
    said = [
        {
            "role": "assistant",
            "parts": [{**CALL, "id": None}, {**CALL, "id": None, "arguments": {"to": "Bruges"}}],
        }
    ]
    executions = [
        tool(
            f"1{at}",
            start=3 + at,
            **{"gen_ai.tool.call.id": "", "gen_ai.tool.call.result": f"IC {at}"},
        )
        for at in range(2)
    ]
    found = one(tmp_path, span("01"), chat("02", said=said), *executions)
    assert [(call.arguments["to"], call.result) for call in found.calls] == [
        ("Ghent", "IC 0"),
        ("Bruges", "IC 1"),
    ]


FAILED = {
    "status": ({"status": {"code": 2, "message": "no network"}}, "no network", None),
    "type": ({"error.type": "timeout"}, "timeout", "timeout"),
    "event": (
        {
            "status": {"code": "STATUS_CODE_ERROR"},
            "events": [
                {
                    "name": "exception",
                    "attributes": attributes({"exception.message": "late", "exception.type": "E"}),
                }
            ],
        },
        "late",
        "E",
    ),
    "result": (
        {"gen_ai.tool.call.result": '{"error": "no such place"}'},
        "no such place",
        "errors@1 json_error",
    ),
}


@pytest.mark.parametrize("form", FAILED)
def test_a_call_that_failed(tmp_path, form):
    known, message, kind = FAILED[form]
    found = one(tmp_path, span("01"), chat("02", said=CALLS), tool("03", **known))
    assert [(call.status, call.error, call.error_type) for call in found.calls] == [
        ("error", message, kind)
    ]


def test_an_answer_on_two_spans_counts_once(tmp_path):
    outer = chat("02", said=None, asked=None)
    found = one(tmp_path, span("01"), outer, chat("05", "02", start=2))
    assert (found.usage.requests, found.usage.input_tokens, found.text) == (1, 10, "Take IC 5.")


def test_a_run_that_broke(tmp_path):
    """Its root ended in an error; a request that failed and was made again is none."""
    failed = {"code": 2, "message": "out of memory"}
    found = one(tmp_path, span("01", status=failed), chat("02"))
    assert (found.status, found.error.message, found.ended) == (
        gradestack.Status.FAILED,
        "out of memory",
        "error",
    )
    assert (
        one(tmp_path, span("01"), chat("02", status=failed), chat("04", start=4)).status
        is gradestack.Status.OK
    )


def test_sessions(tmp_path):
    """Two traces of a session are two samples of one cluster, or one sample."""
    spans = [
        chat("02", **{"session.id": "s"}),
        {**chat("02", start=9, **{"session.id": "s"}), "traceId": "cd" * 16},
    ]
    assert [(each.id[:2], each.cluster) for each in read(tmp_path, document(*spans))] == [
        ("ab", "s"),
        ("cd", "s"),
    ]
    (found,) = read(tmp_path, document(*spans), unit="session")
    assert (found.id, found.usage.requests) == ("s", 2)


def test_agents_are_authors_of_calls(tmp_path):
    inner = span("05", "01", name="invoke_agent", **{"gen_ai.agent.name": "search"})
    root = span("01", **{"gen_ai.agent.name": "desk"})
    found = one(tmp_path, root, chat("02", said=SAYS), inner, chat("06", "05", start=3, said=CALLS))
    assert [call.author for call in found.calls] == ["search"]


def test_messages_in_events_and_log_records(tmp_path):
    """As up to version 1.36 of the conventions: their bodies, or their attributes."""
    choice = {"message": {"content": "Take IC 5."}, "index": 0}
    events = [
        {"name": "gen_ai.user.message", "attributes": attributes({"content": "To Ghent?"})},
        {"name": "gen_ai.choice", "attributes": attributes({"gen_ai.event.content": choice})},
    ]
    found = one(tmp_path, span("01"), chat("02", asked=None, said=None, events=events))
    assert (found.input, found.text) == ("To Ghent?", "Take IC 5.")


def test_a_trace_of_tempo_has_ids_in_base64(tmp_path):
    spans = [{**each, "traceId": "q6urq6urq6urq6urq6urqw=="} for each in USUAL]
    (found,) = read(tmp_path, {"batches": document(*spans)["resourceSpans"]})
    assert found.id == "ab" * 16


def test_spans_without_a_root_and_circles(tmp_path):
    assert one(tmp_path, chat("02", "09")).remarks["trace_without_root"] == 1
    failed = one(tmp_path, chat("02", "09", said=CALLS), tool("03", "09", status={"code": 2}))
    assert (failed.error, [call.status for call in failed.calls]) == (None, ["error"])
    assert one(tmp_path, chat("02", "03"), chat("03", "02", start=3)).usage.requests == 1


@pytest.mark.parametrize(
    "first", [json.dumps(document(chat("02", asked="x" * 70_000))), '{"resourceSpans": [{"res']
)
def test_lines_behind_a_long_or_a_damaged_first_one_are_read(tmp_path, first):
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{first}\n{json.dumps(document(chat('02', trace='cd')))}\n", encoding="utf-8")
    report = gradestack.grade_files(path, output=tmp_path / "out")
    assert report.summary["metrics"]["total"] == 1 + first.endswith("}")


def test_damaged_lines_and_other_traces(tmp_path, capsys):
    """Lines that are no JSON are bad records.

    Traces of nothing but requests, and scores of none, are counted.
    """
    path = tmp_path / "traces.jsonl"
    others = document(span("01", trace="cd", name="GET /"))
    score = {"gen_ai.evaluation.name": "kind", "gen_ai.evaluation.score.value": 0.5}
    log = {"traceId": "cd" * 16, "eventName": "gen_ai.evaluation.result", "attributes": score}
    scores = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log, {**log, "attributes": {}}]}]}]}
    lines = [json.dumps(document(*USUAL)), json.dumps(others), "{]", json.dumps(scores)]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SystemExit, match="0"):
        main(["grade", str(path), "-o", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert (
        "1 trace left out: no model's answer and no call of a tool in them" in said.err + said.out
    )
    assert (
        "scores not recorded: 1, of traces without a model call in the data" in said.err + said.out
    )
    assert json.loads((tmp_path / "out/summary.json").read_text())["metrics"]["total"] == 1
    assert "traces.jsonl:3: not JSON" in said.err + said.out


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
    broken = [
        {**span(f"1{at}"), "attributes": [{"key": key, "value": odd}]}
        for at, key in enumerate(kinds)
    ]
    of_mlflow = {
        "context": {"trace_id": "ab", "span_id": "c"},
        "attributes": {"mlflow.spanType": "{}"},
    }
    (tmp_path / "spans.jsonl").write_text(
        json.dumps({**of_mlflow, "name": "x", "start_time": 1, "status_code": []})
    )
    assert (
        one(tmp_path, *USUAL, *broken, {**span("20"), "status": {"code": {}}}).calls
        == one(tmp_path, *USUAL).calls
    )
    assert not [each for each in chat_files.read("otel", tmp_path / "spans.jsonl") if each.calls]


def test_a_file_without_an_agent_holds_no_record(tmp_path, capsys):
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(document(span("01"))), encoding="utf-8")
    with pytest.raises(SystemExit, match="3"):
        main(["grade", str(path), "-o", str(tmp_path / "out")])
    assert "no record could be read" in capsys.readouterr().err


def test_shards_are_whole_traces(tmp_path, monkeypatch):
    monkeypatch.setattr("gradestack_plugins.otel.reader.SHARD_BYTES", 5000)
    monkeypatch.setattr("gradestack_plugins.otel.reader._PIECE", 1000)
    lines = [document({**each, "traceId": f"{at:032x}"}) for each in USUAL for at in range(1, 10)]
    found = read(tmp_path, *lines)
    assert [(int(each.id, 16), len(each.calls)) for each in found] == [
        (at, 1) for at in range(1, 10)
    ]
