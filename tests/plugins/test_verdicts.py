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
            path.write_text("".join(json.dumps(each) + "\n" for each in records))
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
