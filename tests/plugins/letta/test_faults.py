"""The recorded reason of a failure: in the sample, in the grade, in rows and on the page."""

from __future__ import annotations

import pytest

import gradestack
from gradestack_plugins.letta.records import grade_fault
from tests.core.outcomes import data

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


@pytest.mark.parametrize(
    ("rationale", "metadata", "category", "message", "kind"), data(__file__, "cases.yaml")["no_judgements"]
)
def test_what_a_grade_says_in_place_of_a_judgement(letta, rationale, metadata, category, message, kind):
    """Its rationale behind the prefix, what its metadata adds, and the type."""
    fault = grade_fault({"score": 0.0, "rationale": rationale, "metadata": metadata})
    assert (fault.category, fault.message, fault.type) == (category, message, kind)


@pytest.mark.parametrize("grade", [None, 3, {}, {"rationale": 3, "metadata": 3}, {"rationale": "An Error: none"}])
def test_a_judgement_is_no_fault(grade):
    assert grade_fault(grade) is None


def graded(letta, tmp_path, record, profile):
    """Grade a recording of one result; return its row and the page."""
    letta.write(tmp_path / "recorded/results.jsonl", [record])
    done = letta.run(["grade", "recorded", "--profile", profile, "-o", "out", "--allow-all-failed"], tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = gradestack.load_report(tmp_path / "out").rows()
    return row, (tmp_path / "out/report.html").read_text(encoding="utf-8")


@PROFILES
def test_a_failed_run_keeps_its_reason(letta, tmp_path, profile):
    broken = letta.grade(
        0.0, "Error during grading: Connection timeout", error="timed out", error_type="ConnectionError"
    )
    row, page = graded(letta, tmp_path, letta.failure(0, grade=broken), profile)
    reason = {
        "category": "grading",
        "code": "recorded_error",
        "component": "",
        "message": "Connection timeout (timed out)",
        "type": "ConnectionError",
    }
    assert (row["status"], row["error"], row["grade"]["fault"]) == ("failed", reason, reason)
    assert row["grade"]["rationale"] == "Error during grading: Connection timeout"
    assert row["grade"]["metadata"] == {"error": "timed out", "error_type": "ConnectionError"}
    assert "(ConnectionError): Connection timeout (timed out)" in page


def test_a_target_error_keeps_its_type(letta, tmp_path):
    """The results guide's failed sample: `Error: ...` with metadata."""
    broken = letta.grade(0.0, "Error: no answer", error="no answer", error_type="ReadTimeout")
    row, page = graded(letta, tmp_path, letta.failure(0, grade=broken), "documented")
    assert (row["error"]["category"], row["error"]["type"], row["error"]["message"]) == (
        "target",
        "ReadTimeout",
        "no answer",
    )
    assert row["grade"]["metadata"] == {"error": "no answer", "error_type": "ReadTimeout"}
    assert "(ReadTimeout): no answer" in page


def test_the_reason_of_another_metric_is_found(letta, tmp_path):
    """Where the gate's grade says nothing, another one's reason is the sample's."""
    grades = {"a": letta.grade(0.0), "b": letta.grade(0.0, "Error during grading: 429")}
    row, _ = graded(letta, tmp_path, letta.failure(0, grade=letta.grade(0.0), grades=grades), "documented")
    assert row["error"]["message"] == "429"


def test_a_judge_that_broke_down_keeps_its_words(letta, tmp_path):
    """The conversation is whole: the grade alone is failed, with rationale, message and type as recorded."""
    broken = letta.grade(0.0, "Error during grading: 429 Too Many", error="429 Too Many", error_type="RateLimitError")
    row, page = graded(letta, tmp_path, letta.result(0, grade=broken, grades={"q": broken}), "documented")
    grade = row["grade"]
    assert (row["status"], row["error"], grade["state"]) == ("ok", None, "failed")
    assert (grade["rationale"], grade["fault"]["message"]) == ("Error during grading: 429 Too Many", "429 Too Many")
    assert (grade["fault"]["type"], grade["metadata"]["error_type"]) == ("RateLimitError", "RateLimitError")
    assert "(RateLimitError): 429 Too Many" in page
