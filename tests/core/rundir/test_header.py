"""header.json: checksums, timings, memory."""

from pathlib import Path

import pytest

import gradestack


@pytest.fixture
def suite(write_lines, record, tmp_path):
    (tmp_path / "d").mkdir()
    one, two = write_lines([record("a", 1.0)], "d/one.jsonl"), write_lines([record("b", 1.0)], "d/two.jsonl")
    paths = [str(one), str(two)]
    return {"name": "x", "target": {"paths": paths}, "graders": {"q": "toy"}, "reader": "jsonl", "reports": []}


def test_an_input_that_is_gone_by_the_end_loses_no_run(suite, tmp_path, registry):
    def progress(found):
        if found.phase == "native files":
            Path(suite["target"]["paths"][1]).unlink()

    report = gradestack.run(suite, output=tmp_path / "out", registry=registry, progress=progress)
    assert report.metrics["total"] == 2
    assert [each["sha256"] is None for each in report.header["inputs"]] == [False, True]


def test_timings_and_memory(suite, tmp_path, registry):
    """Seconds in all and by part, per grader, and the most memory; none of it where bytes are promised."""
    found = gradestack.run(suite, output=tmp_path / "out", registry=registry).header
    assert set(found["timings"]) == {"seconds", "grading", "merging", "native", "graders"}
    assert 0 <= found["timings"]["merging"] <= found["timings"]["grading"] <= found["timings"]["seconds"]
    assert set(found["timings"]["graders"]) <= {"q"}
    assert found["peak_memory"]["main"] > 1_000_000
    assert found["rows"] is True
