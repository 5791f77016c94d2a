"""Columns of evaluators' libraries, and data sets of expectations as tables."""

import json

import pytest

import gradestack
from tests.core.outcomes import data

CASES = data(__file__, "evaluators.yaml")
CALL = {"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_their_columns_are_recognised(tmp_path, case):
    (tmp_path / "log.jsonl").write_text(json.dumps(case["record"]) + "\n")
    graders = {"usage": gradestack.discover().load("grader", "usage")()}
    ((sample, _),) = gradestack.stream(tmp_path / "log.jsonl", graders)
    calls = [[call.name, call.arguments, call.result] for call in sample.calls]
    if sample.tools is None:
        tools = None
    else:
        tools = [tool.name for tool in sample.tools]
    assert [sample.input, calls, sample.text, tools] == case["read"]


def test_expectations_as_a_table_are_joined_by_id(tmp_path):
    """Ids are numbers here and texts there."""
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [CALL]}]
    records = [{"id": name, "messages": talk} for name in ("1", 2)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    right, wrong = (json.dumps([{"name": name}]).replace('"', '""') for name in "fg")
    (tmp_path / "gold.csv").write_text(f'id,expected_calls\n1,"{right}"\n2,"{wrong}"\n')
    out = tmp_path / "out"
    report = gradestack.grade_files(
        tmp_path / "log.jsonl", dataset=tmp_path / "gold.csv", output=out
    )
    assert [row["grade"]["score"] for row in report.rows()] == [1.0, 0.0]
