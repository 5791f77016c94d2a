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
    assert grader.grade(Sample(id="a", recorded={"valid": True})).passed is True
    assert grader.grade(Sample(id="a", recorded={"valid": "yes"})).outcome is Outcome.SKIPPED
    fault = Fault(category="target", code="inference_error")
    assert grader.grade(Sample(id="a", status=Status.FAILED, error=fault)).fault == fault


@pytest.mark.parametrize(("failure", "code", "message"), DATA["a_failure_says_why"])
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


def test_results_without_scores_get_the_rules(bfcl, tmp_path):
    """Without BFCL's own verdict its rules are applied, several allowed values and all; without questions only F1."""
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X", "Y"], "price": [1.5, ""]}}]))
    path = bfcl.results(bfcl.result([{"find.trains": '{"to": "y"}'}]))
    report = gradestack.grade_files([path], output=tmp_path / "bare")
    assert list(report.aggregates) == ["calls"]
    bfcl.questions(bfcl.question())
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert list(report.aggregates) == ["ast", "calls"]
    assert report.summary["metrics"]["avg_score_attempted"] == 1.0


def test_results_of_turns_have_no_rules(bfcl, tmp_path):
    """What would have to be executed has F1 over calls alone."""
    bfcl.questions(bfcl.question("multi_turn_base_0", "a", "b"), category="multi_turn_base")
    bfcl.answers({"id": "multi_turn_base_0", "ground_truth": [["f(a=1)"], ["g()"]]}, category="multi_turn_base")
    path = bfcl.results(bfcl.result([["f(a=1)"], ["g()"]], "multi_turn_base_0"), category="multi_turn_base")
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert list(report.aggregates) == ["calls"]
    assert report.summary["metrics"]["avg_score_attempted"] == 1.0


def test_the_headline_is_of_what_could_be_graded(bfcl, tmp_path):
    """Verdicts where there are scores, else BFCL's rules and F1, else what needs no reference."""
    bfcl.questions(bfcl.question(), bfcl.question("parallel_1"))
    bfcl.results(bfcl.result([{"find.trains": "{}"}]), bfcl.result("x", "parallel_1"))

    def said(name):
        report = gradestack.grade_files([bfcl.root], output=tmp_path / name)
        labels = [each["label"] for each in report.summary["headline"]["figures"]]
        return report.summary["outcome"]["words"]["passed"], list(report.aggregates), labels

    free = ["Schema-valid calls", "Successful calls", "Runs in a loop"]
    assert said("free") == ("without invalid calls", ["repeats", "tool_schema", "tool_success", "usage"], free)
    bfcl.answers(bfcl.answer([{"find.trains": {"to": ["X"]}}]))
    figures = ["Valid by BFCL's rules", "F1 over calls", "F1 over arguments"]
    assert said("ruled") == ("valid", ["ast", "calls"], figures)
    bfcl.scores(bfcl.header(2, 2))
    assert said("scored") == ("valid", ["valid"], ["Accuracy"])


@pytest.mark.parametrize("truth", [7, ["find.trains(to='X')"], [{"find.trains": {"to": "X"}}], [["f()"]], []])
def test_ground_truth_of_no_valid_form_fails_as_the_checker_stops_at_it(bfcl, tmp_path, truth):
    """Neither wrong nor skipped; calls that cannot be decoded are wrong before it is looked at."""
    names = [f"simple_python_{number}" for number in range(3)]
    bfcl.questions(*map(bfcl.question, names), category="simple_python")
    right = bfcl.answer([{"find.trains": {"to": ["X"]}}], names[2])
    bfcl.answers(*(bfcl.answer(truth, name) for name in names[:2]), right, category="simple_python")
    said = ['{"to": "X"}', "no JSON", '{"to": "X"}']
    made = (bfcl.result([{"find.trains": each}], name) for each, name in zip(said, names, strict=True))
    bfcl.results(*made, category="simple_python")
    with pytest.raises(SystemExit):
        main(["grade", str(bfcl.root), "-o", str(tmp_path / "out")])
    failed, wrong, valid = (row["grades"]["ast"] for row in gradestack.load_report(tmp_path / "out").rows())
    assert (failed["state"], failed["fault"]["code"]) == ("failed", "ground_truth_unusable")
    assert (wrong["score"], wrong["metadata"]["error_type"]) == (0.0, "ast_decoder:decoder_failed")
    assert valid["score"] == 1.0


def test_results_of_irrelevance_have_a_reference(bfcl, tmp_path):
    """Calling nothing is right, without any possible answers; of relevance calling anything is."""
    call = [{"f": "{}"}]
    for category, scores in (("irrelevance", [1.0, 0.0]), ("live_relevance", [0.0, 1.0])):
        path = bfcl.results(bfcl.result("no", f"{category}_0"), bfcl.result(call, f"{category}_1"), category=category)
        report = gradestack.grade_files([path], output=tmp_path / category)
        assert [row["grades"]["ast"]["score"] for row in report.rows()] == scores
