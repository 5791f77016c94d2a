"""The verdict on record comes first: a law of every reader that reads one."""

import json

import pytest

import gradestack
from tests.core.outcomes import data

FORMATS = data(__file__, "verdicts.yaml")


@pytest.fixture
def recording(tmp_path):
    """Write the files of a format, and return the folder or the only file."""

    def write(files):
        for name, records in files.items():
            data_folder = tmp_path / "data"
            path = data_folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
        if len(files) == 1:
            return path
        return tmp_path / "data"

    return write


@pytest.mark.parametrize("reader", FORMATS)
def test_a_recorded_failure_is_the_outcome(recording, tmp_path, reader):
    """Never the share of runs without failed calls, beside runs that failed by their record."""
    path = recording(FORMATS[reader])
    output = tmp_path / "out"
    report = gradestack.grade_files([path], output=output)
    outcome = report.summary["outcome"]
    components = report.header["components"]
    assert components[0]["name"] == reader
    assert outcome["grader"] != "tool_success"
    passed = outcome["passed"]
    assert (passed, outcome["failed"]) == (1, 1), report.summary["warnings"]
    rows = report.rows()
    assert [row["passed"] for row in rows] == [True, False]


EXPECTING = {
    "calls": {
        "expected_calls": [{"name": "f", "arguments": {"x": 1}}],
        "calls": [{"name": "f", "arguments": {"x": 1}}],
    },
    "text": {"expected": "yes", "output": "yes"},
}


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize("failure", [("success", False), ("passed", "no"), ("reward", 0)])
@pytest.mark.parametrize("kind", EXPECTING)
def test_a_recorded_failure_beside_expectations_is_named_with_how_to_grade_by_it(
    tmp_path, kind, failure, suffix
):
    name, value = failure
    records = []
    for n in range(2):
        task_id = f"t{n}"
        records.append({"task_id": task_id, name: value, **EXPECTING[kind]})
    path = tmp_path / f"runs{suffix}"
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    path.write_text(json.dumps(records) if suffix == ".json" else lines)
    output = tmp_path / "out"
    report = gradestack.grade_files([path], output=output)
    outcome = report.summary["outcome"]
    assert outcome["passed"] == 2
    texts = report.summary["warnings"]
    (warning,) = (text for text in texts if "recorded as failed" in text)
    assert f"{name} is read by no grader of this run" in warning
    assert "--stack recorded (2 times, first at runs" in warning


@pytest.mark.parametrize("value", [True, 1, 0.5, None, "yes"])
def test_a_recorded_success_beside_expectations_is_not_named(tmp_path, value):
    record = {"task_id": "a", "success": value, **EXPECTING["text"]}
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(json.dumps(record))
    output = tmp_path / "out"
    paths = [tmp_path / "runs.jsonl"]
    report = gradestack.grade_files(paths, output=output)
    texts = report.summary["warnings"]
    assert not [text for text in texts if "recorded as failed" in text]
