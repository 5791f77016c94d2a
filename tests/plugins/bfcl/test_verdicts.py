"""Recorded verdicts of BFCL, and the default page of its files."""

import pytest

import gradestack
from gradestack import Fault, Outcome, Sample, Status
from gradestack_plugins.bfcl.grader import BfclValid
from gradestack_plugins.bfcl.records import BfclRun


def test_verdicts_are_scores():
    """Valid is 1, a failure 0 with BFCL's code, and nothing recorded is skipped."""
    grader = BfclValid()
    assert grader.grade(Sample(id="a", recorded={"valid": True})).passed is True
    assert grader.grade(Sample(id="a", recorded={"valid": "yes"})).outcome is Outcome.SKIPPED
    fault = Fault(category="target", code="inference_error")
    assert grader.grade(Sample(id="a", status=Status.FAILED, error=fault)).fault == fault


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        ({"error": ["one", "two"], "error_type": "a:b"}, "a:b", "one; two"),
        ({"error": {"error_message": "gone", "error_type": "m:t"}}, "m:t", "gone"),
        ({"error": [{"x": 1}]}, "invalid", '{"x": 1}'),
        (None, "invalid", "listed as a failure"),
    ],
)
def test_a_failure_says_why(failure, code, message):
    """Single turns say it in a list, several turns in an object."""
    grade = BfclValid().grade(Sample(id="a", recorded={"valid": False}, native=BfclRun(failure)))
    assert (grade.score, grade.passed) == (0.0, False)
    assert [(reason.code, reason.message) for reason in grade.reasons] == [(code, message)]


def test_scored_results_give_their_verdicts(bfcl, tmp_path):
    """The default stack of a tree with scores is the recorded verdict."""
    bfcl.questions(*(bfcl.question(f"parallel_{n}") for n in range(4)))
    bfcl.results(*(bfcl.result("x", f"parallel_{n}") for n in range(4)))
    bfcl.scores(bfcl.header(3, 4), {"id": "parallel_1", "model_name": "m", "valid": False, "error": ["no"]})
    report = gradestack.grade_files([bfcl.root], output=tmp_path / "out")
    assert list(report.aggregates) == ["valid"]
    assert report.summary["metrics"]["avg_score_attempted"] == 0.75
    assert (tmp_path / "out" / "report.html").exists()


def test_results_without_scores_get_partial_credit(bfcl, tmp_path):
    """What can be graded without BFCL's own verdict is."""
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X"]}}]))
    path = bfcl.results(bfcl.result([{"find.trains": '{"to": "X"}'}]))
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert list(report.aggregates) == ["partial"]
    assert report.summary["metrics"]["avg_score_attempted"] == 1.0
