"""Exporter ``otel_evaluation``: what of a run's grades stands in its log records."""

import json

import yaml

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "evaluation.yaml")


def attributes(of):
    return {
        attribute["key"]: next(iter(attribute["value"].values())) for attribute in of["attributes"]
    }


def test_a_grade_is_an_event_of_its_span(tmp_path, monkeypatch):
    """Graders by key, also two of one component.

    No event of what was not graded, which the first line counts.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in DATA["runs"]))
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(DATA["suite"], sort_keys=False))
    report = gradestack.run("suite.yaml", output="out")
    first, *lines = (report.path / "native/otel_evaluation.jsonl").read_text("ascii").splitlines()
    ((counts, *none),) = (json.loads(first)["resourceLogs"],)
    assert (attributes(counts["resource"]), none) == (DATA["counts"], [])
    records = [
        record
        for line in lines
        for logs in json.loads(line)["resourceLogs"]
        for scope in logs["scopeLogs"]
        for record in scope["logRecords"]
    ]
    events = [
        {**{key: record[key] for key in record if key != "attributes"}, **attributes(record)}
        for record in records
    ]
    assert events == DATA["events"]


def test_events_that_are_read_with_their_traces_are_recorded_scores(tmp_path, monkeypatch):
    """Events written for traces give the same scores again when they are read.

    By name, in the trace it is of.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces.jsonl").write_text(
        "".join(json.dumps(trace) + "\n" for trace in DATA["traces"])
    )
    written = gradestack.grade_files("traces.jsonl", output="first")
    events = "first/native/otel_evaluation.jsonl"
    second_report = gradestack.grade_files(["traces.jsonl", events], output="again")
    for report in (written, second_report):
        scores = {
            row["sample"]["id"]: row["grades"]["tool_success"]["score"] for row in report.rows()
        }
        assert scores == DATA["scores"]
    assert [row["recorded"]["tool_success"] for row in second_report.rows()] == [
        *DATA["scores"].values()
    ]
