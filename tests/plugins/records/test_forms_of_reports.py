"""Forms that public reports and repositories show: read right, or refused by what they are."""

import json

import pytest

from gradestack import grade_files

CALL = {"id": "c", "type": "function", "function": {"name": "refund", "arguments": '{"t": 1}'}}
TALK = [
    {"role": "user", "content": "Refund."},
    {"role": "assistant", "content": "Done.", "tool_calls": [CALL]},
]


def graded(tmp_path, records):
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    output = tmp_path / "out"
    report = grade_files([path], output=output)
    return list(report.rows())


def test_expectations_of_mlflow_are_compared(tmp_path):
    expected = [{"name": "refund", "arguments": {"t": 1}}, {"name": "weather"}]
    expectations = {"expected_tool_calls": expected, "expected_response": "Done."}
    record = {"inputs": {"q": "x"}, "outputs": {"messages": TALK}, "expectations": expectations}
    (row,) = graded(tmp_path, [record])
    calls = row["grades"]["calls"]
    score = calls["score"]
    assert score == pytest.approx(2 / 3)


def test_model_and_usage_of_clines_messages_are_read(tmp_path):
    tokens = {"prompt": 500, "completion": 20, "cached": 5}
    spent = {"modelInfo": {"modelId": "m"}, "metrics": {"tokens": tokens, "cost": 0.01}}
    messages = [TALK[0], {**TALK[1], **spent}]
    (row,) = graded(tmp_path, [{"messages": messages}])
    usage = row["grades"]["usage"]["parts"]
    assert row["model_name"] == "m"
    assert usage["input_tokens"] == 500
    assert usage["output_tokens"] == 20
    assert usage["cost_usd"] == 0.01
