"""Grades without a reference: how calls went, the cost of a run, and a page from a file alone."""

import json

import pytest

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "trajectory.yaml")


@pytest.mark.parametrize("reader", ["openai", "anthropic"])
def test_a_log_alone_gives_a_page(tmp_path, reader):
    """No suite, no reference, no ids: one call, and what was made up or left out is said."""
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answers = {"openai": {"tool_calls": [call], "content": None}, "anthropic": {"content": [block]}}
    results = DATA["a_log_alone_gives_a_page"]
    picture = {
        "role": "user",
        "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {}}],
    }
    talk = [picture, {"role": "assistant", **answers[reader]}, results[reader]]
    path = tmp_path / "log.jsonl"
    text = json.dumps({"messages": talk})
    path.write_text(text + "\n" + json.dumps({"messages": talk}) + "\n")
    output = tmp_path / "out"
    report = gradestack.grade_files([path], output=output)
    assert (tmp_path / "out/report.html").is_file()
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == 0.0
    kind = "part:image" if reader == "openai" else "block:image"
    ignored = report.header["ignored"]
    assert ignored == {kind: 2}
    ids_made = report.header["ids_made"]
    assert ids_made == 2
    remarks = report.summary["remarks"]
    assert remarks[kind] == {"count": 2, "first": "log.jsonl:1"}
    expected = [
        "2 tasks: no task ids found: records were numbered, repeated runs are not grouped (--id)",
        f"not used: {kind.replace(':', ' ')} (2 times, first at log.jsonl:1)",
    ]
    warnings = report.summary["warnings"]
    assert warnings[:2] == expected
    rows = report.rows()
    assert [row["remarks"] for row in rows] == [{kind: 1, "id_made": 1}] * 2
