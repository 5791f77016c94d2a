"""Exporter ``otel_evaluation``: what of a run's grades stands in its log records."""

import json

import yaml

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "evaluation.yaml")


def attributes(of):
    values_by_key = {}
    for attribute in of["attributes"]:
        values_by_key[attribute["key"]] = next(iter(attribute["value"].values()))
    return values_by_key


def test_a_grade_is_an_event_of_its_span(tmp_path, monkeypatch):
    """Graders by key, also two of one component.

    No event of what was not graded, which the first line counts.
    """
    monkeypatch.chdir(tmp_path)
    runs_path = tmp_path / "runs.jsonl"
    runs = DATA["runs"]
    runs_path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    suite_path = tmp_path / "suite.yaml"
    suite_path.write_text(yaml.safe_dump(DATA["suite"], sort_keys=False))
    report = gradestack.run("suite.yaml", output="out")
    otel_evaluation_path = report.path / "native/otel_evaluation.jsonl"
    text = otel_evaluation_path.read_text("ascii")
    first, *lines = text.splitlines()
    document = json.loads(first)
    ((counts, *none),) = (document["resourceLogs"],)
    assert attributes(counts["resource"]) == DATA["counts"]
    assert none == []
    records = [
        record
        for line in lines
        for logs in json.loads(line)["resourceLogs"]
        for scope in logs["scopeLogs"]
        for record in scope["logRecords"]
    ]
    events = []
    for record in records:
        events.append(
            {**{key: record[key] for key in record if key != "attributes"}, **attributes(record)}
        )
    assert events == DATA["events"]


def test_events_that_are_read_with_their_traces_are_recorded_scores(tmp_path, monkeypatch):
    """Events written for traces give the same scores again when they are read.

    By name, in the trace it is of.
    """
    monkeypatch.chdir(tmp_path)
    traces_path = tmp_path / "traces.jsonl"
    traces = DATA["traces"]
    traces_path.write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    written = gradestack.grade_files("traces.jsonl", output="first")
    events = "first/native/otel_evaluation.jsonl"
    second_report = gradestack.grade_files(["traces.jsonl", events], output="again")
    for report in (written, second_report):
        scores = {}
        for row in report.rows():
            tool_success = row["grades"]["tool_success"]
            scores[row["sample"]["id"]] = tool_success["score"]
        assert scores == DATA["scores"]
    rows = second_report.rows()
    tool_successes = [row["recorded"]["tool_success"] for row in rows]
    expected = [*DATA["scores"].values()]
    assert tool_successes == expected
