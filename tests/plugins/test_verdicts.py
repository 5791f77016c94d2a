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
            path = tmp_path / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path if len(files) == 1 else tmp_path / "data"

    return write


@pytest.mark.parametrize("reader", FORMATS)
def test_a_recorded_failure_is_the_outcome(recording, tmp_path, reader):
    """Never the share of runs without failed calls, beside runs that failed by their record."""
    path = recording(FORMATS[reader])
    report = gradestack.grade_files([path], output=tmp_path / "out")
    outcome = report.summary["outcome"]
    assert report.header["components"][0]["name"] == reader
    assert outcome["grader"] != "tool_success"
    assert (outcome["passed"], outcome["failed"]) == (1, 1), report.summary["warnings"]
    assert [row["passed"] for row in report.rows()] == [True, False]


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
    records = [{"task_id": f"t{n}", name: value, **EXPECTING[kind]} for n in range(2)]
    path = tmp_path / f"runs{suffix}"
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    path.write_text(json.dumps(records) if suffix == ".json" else lines)
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert report.summary["outcome"]["passed"] == 2
    (warning,) = (text for text in report.summary["warnings"] if "recorded as failed" in text)
    assert f"{name} is read by no grader of this run" in warning
    assert "--stack recorded (2 times, first at runs" in warning


@pytest.mark.parametrize("value", [True, 1, 0.5, None, "yes"])
def test_a_recorded_success_beside_expectations_is_not_named(tmp_path, value):
    record = {"task_id": "a", "success": value, **EXPECTING["text"]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(record))
    report = gradestack.grade_files([tmp_path / "runs.jsonl"], output=tmp_path / "out")
    assert not [text for text in report.summary["warnings"] if "recorded as failed" in text]
