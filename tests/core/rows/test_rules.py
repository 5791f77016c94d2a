"""Verdicts of grades without one of their own, in rows, tables and frames."""

import json

import pytest

from gradestack import grade, grade_files

GRADERS = ["exact_match", "contains", "tool_calls"]


@pytest.mark.parametrize("grader", GRADERS)
def test_a_grade_below_its_rule_is_not_passed(grader, tmp_path):
    calls = [{"name": "find", "arguments": {}}]
    expected = calls if grader == "tool_calls" else "yes"
    answers = (calls, []) if grader == "tool_calls" else ("yes", "no")
    name = "predicted" if grader == "tool_calls" else "output"
    lines = []
    for number, prediction in enumerate(answers):
        text = json.dumps(
            {"id": f"t{number}", "input": "x", "expected": expected, name: prediction}
        )
        lines.append(text)
    data_path = tmp_path / "data.jsonl"
    data_path.write_text("\n".join(lines), encoding="utf-8")
    output = tmp_path / "out"
    paths = [tmp_path / "data.jsonl"]
    report = grade_files(paths, graders=[grader], output=output)
    rows = list(report.rows())
    assert [grade["passed"] for row in rows for grade in row["grades"].values()] == [True, False]
    assert [row["grade"]["passed"] for row in rows] == [True, False]
    table = report.table("grades")
    assert table["passed"] == [True, False]
    failed = table.failed()
    assert failed["id"] == ["t1"]


def test_a_score_that_is_no_share_has_no_verdict(tmp_path):
    """Steps of a run pass nothing."""
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    line = json.dumps({"id": "a", "messages": messages})
    log_path = tmp_path / "log.jsonl"
    log_path.write_text(line, encoding="utf-8")
    output = tmp_path / "out"
    paths = [tmp_path / "log.jsonl"]
    report = grade_files(paths, output=output)
    (row,) = report.rows()
    usage = row["grades"]["usage"]
    assert "passed" not in usage


def test_a_grader_beside_that_of_the_outcome_has_its_rule_too():
    samples = [{"id": name, "expected": "x", "predicted": name} for name in "xy"]
    report = grade(samples, {"first": "exact_match", "second": "contains"})
    rows = report.rows()
    assert [row["grades"]["second"]["passed"] for row in rows] == [True, False]
