"""Columns of evaluators' libraries, and data sets of expectations as tables."""

import json

import pytest

import gradestack
from tests.core.outcomes import data

CASES = data(__file__, "evaluators.yaml")
CALL = {"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_their_columns_are_recognised(tmp_path, case):
    log_path = tmp_path / "log.jsonl"
    text = json.dumps(case["record"])
    log_path.write_text(text + "\n")
    usage = gradestack.discover().load("grader", "usage")()
    graders = {"usage": usage}
    ((sample, _),) = gradestack.stream(tmp_path / "log.jsonl", graders)
    calls = []
    for call in sample.calls:
        calls.append([call.name, call.arguments, call.result])
    if sample.tools is None:
        tools = None
    else:
        tools = [tool.name for tool in sample.tools]
    assert [sample.input, calls, sample.text, tools] == case["read"]


def test_expectations_as_a_table_are_joined_by_id(tmp_path):
    """Ids are numbers here and texts there."""
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [CALL]}]
    records = [{"id": name, "messages": talk} for name in ("1", 2)]
    log_path = tmp_path / "log.jsonl"
    log_path.write_text("".join(json.dumps(record) + "\n" for record in records))
    right, wrong = (json.dumps([{"name": name}]).replace('"', '""') for name in "fg")
    gold_path = tmp_path / "gold.csv"
    gold_path.write_text(f'id,expected_calls\n1,"{right}"\n2,"{wrong}"\n')
    out = tmp_path / "out"
    paths = tmp_path / "log.jsonl"
    dataset = tmp_path / "gold.csv"
    report = gradestack.grade_files(paths, dataset=dataset, output=out)
    rows = report.rows()
    scores = [row["grade"]["score"] for row in rows]
    assert scores == [1.0, 0.0]
