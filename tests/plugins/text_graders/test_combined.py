"""The grader `combined`: a weighted mean of other graders of the suite."""

import pytest

import gradestack
from gradestack import Expectation, ExpectedCall, Grade, Outcome, Sample, ToolCall
from gradestack_plugins.text_graders.combined import Combined
from tests.core.outcomes import data

SAMPLES = [
    Sample(
        id=str(at),
        run=run,
        calls=(ToolCall(name="a" if at % 2 else "b", arguments={}),),
        text="yes" if at % 3 else "no",
        expected=Expectation(calls=(ExpectedCall(name="a", arguments={}),), text="yes"),
    )
    for at in range(12)
    for run in range(2)
]
DATA = data(__file__, "combined.yaml")
PARTS = {"calls": "tool_calls", "success": "exact_match"}


def _grade(score=None, outcome="graded"):
    return Grade(score=score, outcome=Outcome(outcome))


@pytest.mark.parametrize(("calls", "success", "options", "expected"), DATA["grades"])
def test_a_combination(calls, success, options, expected):
    """A missing grade is no zero: the combination has no grade either, or leaves it out."""
    combined = Combined(of={"calls": 2, "success": 1}, **options)
    grade = combined.combine({"calls": _grade(**calls), "success": _grade(**success)})
    codes = []
    for reason in grade.reasons:
        if grade.outcome in ("graded", "skipped"):
            codes.append(reason.code)
    assert [grade.outcome, grade.score, grade.passed, codes] == expected


def test_a_suite_combines_its_graders():
    """Each part is an item with its reasons.

    Whatever the order of graders, the combination comes after them.
    """
    combined = {"kind": "combined", "of": {"calls": 2, "success": 1}}
    report = gradestack.grade(SAMPLES, graders={"both": combined, **PARTS})
    scores = {}
    for key in ("both", *PARTS):
        scores[key] = [row["grades"][key]["score"] for row in report.rows()]
    pairs = zip(scores["calls"], scores["success"], strict=True)
    assert scores["both"] == [(2 * a + b) / 3 for a, b in pairs]
    expected = set(scores["both"])
    assert {0.0, 1.0} < expected
    rows = report.rows()
    row = next(row for row in rows if row["grades"]["calls"]["score"] < 1)
    item, *_ = row["grades"]["both"]["items"]
    assert item["id"] == "calls"
    calls = row["grades"]["calls"]
    assert item["reasons"] == calls["reasons"]
    mean = report.aggregates["both"]["mean"]
    clusters = mean["mean_interval"]["clusters"]
    assert clusters == 12
    comparison = gradestack.compare(report, report)
    metrics = comparison.data["metrics"]
    difference = metrics["both"]["difference"]
    assert difference == 0
