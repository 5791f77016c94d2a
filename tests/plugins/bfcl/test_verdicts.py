"""Recorded verdicts of BFCL, and the default page of its files."""

import pytest

import gradestack
from gradestack import Fault, Outcome, Sample, Status
from gradestack.cli.commands import main
from gradestack_plugins.bfcl.grader import BfclValid
from gradestack_plugins.bfcl.records import BfclRun
from tests.core.outcomes import data

DATA = data(__file__, "verdicts.yaml")


def test_verdicts_are_scores():
    """Valid is 1, a failure 0 with BFCL's code, and nothing recorded is skipped."""
    grader = BfclValid()
    sample = Sample(id="a", recorded={"valid": True})
    assert grader.grade(sample).passed is True
    outcome = grader.grade(Sample(id="a", recorded={"valid": "yes"})).outcome
    assert outcome is Outcome.SKIPPED


def test_a_run_that_ended_in_an_error_is_not_valid():
    """BFCL divides by all its entries."""
    fault = Fault(category="target", code="inference_error", message="Error during inference: 429")
    grade = BfclValid().grade(Sample(id="a", status=Status.FAILED, error=fault))
    assert grade.score == 0.0
    assert grade.passed is False
    expected = [("run_error", fault.message)]
    assert [(reason.code, reason.message) for reason in grade.reasons] == expected


@pytest.mark.parametrize(("failure", "code", "message"), DATA["a_failure_says_why"])
def test_a_failure_says_why(failure, code, message):
    """Single turns say it in a list, several turns in an object."""
    grade = BfclValid().grade(Sample(id="a", recorded={"valid": False}, native=BfclRun(failure)))
    assert grade.score == 0.0
    assert grade.passed is False
    assert [(reason.code, reason.message) for reason in grade.reasons] == [(code, message)]


@pytest.mark.parametrize(
    "truth", [7, ["find.trains(to='X')"], [{"find.trains": {"to": "X"}}], [["f()"]], []]
)
def test_ground_truth_of_no_valid_form_fails_as_the_checker_stops_at_it(bfcl, tmp_path, truth):
    """Neither wrong nor skipped; calls that cannot be decoded are wrong before it is looked at."""
    names = [f"simple_python_{number}" for number in range(3)]
    bfcl.questions(*map(bfcl.question, names), category="simple_python")
    right = bfcl.answer([{"find.trains": {"to": ["X"]}}], names[2])
    bfcl.answers(*(bfcl.answer(truth, name) for name in names[:2]), right, category="simple_python")
    replies = ['{"to": "X"}', "no JSON", '{"to": "X"}']
    pairs = zip(replies, names, strict=True)
    made = (bfcl.result([{"find.trains": reply}], name) for reply, name in pairs)
    bfcl.results(*made, category="simple_python")
    with pytest.raises(SystemExit):
        main(["grade", str(bfcl.root), "-o", str(tmp_path / "out")])
    path = tmp_path / "out"
    report = gradestack.load_report(path)
    rows = report.rows()
    failed, wrong, valid = (row["grades"]["ast"] for row in rows)
    assert failed["state"] == "failed"
    code = failed["fault"]["code"]
    assert code == "ground_truth_unusable"
    assert wrong["score"] == 0.0
    error_type = wrong["metadata"]["error_type"]
    assert error_type == "ast_decoder:decoder_failed"
    assert valid["score"] == 1.0
