"""A grader that changes its sample: rows show what was recorded all the same."""

import json

import pytest

import gradestack
from gradestack import PluginError
from tests.core.outcomes import write_records

CHANGES = """\
def invents(sample):
    sample.calls[0].arguments["city"] = "Rome"
    return 1.0
"""
RECORD = {"id": "a", "predicted": [{"name": "book", "arguments": {"city": "Oslo"}}]}


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.jsonl").write_text(json.dumps(RECORD) + "\n")
    (tmp_path / "changes.py").write_text(CHANGES)
    return {
        "name": "x",
        "target": {"paths": ["runs.jsonl"], "reader": "jsonl"},
        "graders": {"g": "changes.py:invents"},
        "reports": [],
    }


@pytest.mark.parametrize("rows", ["full", "slim"])
def test_a_row_shows_the_calls_that_were_recorded(suite, rows):
    """Not what a grader made of them: the sample's part is written before graders see it."""
    report = gradestack.run({**suite, "rows": rows}, output="out", allow_code=True)
    row = next(iter(report.rows()))
    assert row["predicted"]["calls"] == [{"name": "book", "arguments": {"city": "Oslo"}}]
    assert row["grade"]["fault"]["code"] == "changed_sample"


def test_a_strict_run_refuses_a_changed_sample(suite):
    with pytest.raises(
        PluginError, match=r"grader 'g' \(changes\.py:invents\) changes samples"
    ) as caught:
        gradestack.run(suite, output="out", allow_code=True, strict=True)
    assert caught.value.problems[0].startswith("runs.jsonl:1: ")


LATE = """\
def late(sample):
    if sample.id in ("400", "900"):
        sample.calls[0].arguments["city"] = "Rome"
    return 1.0
"""


@pytest.mark.slow
def test_beyond_the_first_samples_only_a_strict_run_looks(suite, tmp_path):
    (tmp_path / "changes.py").write_text(LATE)
    write_records(tmp_path / "runs.jsonl", [{**RECORD, "id": str(n)} for n in range(1000)])
    suite = {**suite, "graders": {"g": "changes.py:late"}}
    assert gradestack.run(suite, output="out", allow_code=True).summary["warnings"] == []
    with pytest.raises(PluginError, match="changes samples") as caught:
        gradestack.run(suite, output="out", allow_code=True, strict=True)
    assert caught.value.problems[0].startswith("runs.jsonl:401: ")
