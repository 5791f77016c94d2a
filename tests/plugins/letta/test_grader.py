"""Grader `recorded`: grades found in the file."""

from __future__ import annotations

import json

import pytest

from gradestack import Fault, Grade, Item, Reason, Sample, Status, grade_to_json, testing
from gradestack_plugins.letta.grader import Recorded

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


def sample(**recorded):
    return Sample(id="t", recorded=recorded)


def taken(grade, *, metric=None, profile="documented"):
    """Return the grade taken from a recorded one."""
    return Recorded(metric=metric, profile=profile).grade(sample(grade=grade, grades={"a": grade, "b": grade}))


@PROFILES
def test_grader_keeps_the_contract(letta, profile):
    odd = [
        sample(grade=value, grades={"a": value})
        for value in (None, 3, "x", [], {}, {"score": "1"}, {"score": None}, {"score": float("nan")}, {"state": "?"})
    ]
    odd += [
        sample(grade={"state": "graded", "score": 1.0, "metadata": 3}),
        sample(grade={"state": "graded", "score": 1.0, "items": 3}),
        sample(grade={"state": "graded", "score": 1.0, "parts": {"a": "NaN"}}),
        sample(grade={"state": "failed", "fault": {"nonsense": 1}}),
        sample(grade=letta.grade(0.5), error={"category": 3}),
        sample(grades=[1]),
    ]
    for metric in (None, "a"):
        testing.check_grader(Recorded(metric=metric, profile=profile), odd)


@PROFILES
def test_the_gate_grade_is_the_default(letta, profile):
    recorded = sample(
        grade=letta.grade(0.25, "so so", k=1), grades={"a": letta.grade(0.25), "b": letta.grade(1, "yes")}
    )
    gate = Recorded(profile=profile).grade(recorded)
    assert (gate.outcome, gate.score, gate.rationale, gate.metadata) == ("graded", 0.25, "so so", {"k": 1})
    other = Recorded(metric="b", profile=profile).grade(recorded)
    assert (other.score, other.rationale) == (1.0, "yes")


@PROFILES
def test_a_missing_grade_is_skipped(letta, profile):
    grade = Recorded(metric="c", profile=profile).grade(sample(grades={"a": letta.grade(1.0)}))
    assert (grade.outcome, grade.score, grade.reasons[0].code) == ("skipped", None, "no_recorded_grade")
    assert "no grade of 'c'; metrics: a" in grade.rationale
    assert Recorded(profile=profile).grade(sample()).outcome == "skipped"
    assert Recorded(profile=profile).grade(sample(grades=None, grade=None)).outcome == "skipped"


def test_without_a_gate_grade(letta):
    """A recording without gate grade gives its reward, else its only metric; several metrics must be named."""
    two = {"a": letta.grade(0.25), "b": letta.grade(0.75)}
    assert Recorded().grade(sample(reward=0.5, grades=two)).score == 0.5
    assert Recorded().grade(sample(grades={"a": letta.grade(0.25)})).score == 0.25
    assert Recorded().grade(sample(grades=two)).outcome == "skipped"


def test_scores_recorded_under_a_name():
    assert Recorded(metric="accuracy").grade(sample(accuracy=0.5)).score == 0.5
    assert Recorded(metric="accuracy").grade(sample(accuracy=True)).score == 1.0


@pytest.mark.parametrize("score", [None, "1", float("nan"), float("inf"), 10**400, [1]])
@PROFILES
def test_scores_that_are_no_number(score, profile):
    grade = taken({"score": score, "rationale": "", "metadata": {}}, profile=profile)
    assert (grade.outcome, grade.fault.category, grade.fault.code) == ("failed", "data", "bad_recorded_grade")


def test_a_judge_that_broke_down(letta):
    """metadata.error is a failed grading in documented; upstream counts the 0.0 as attempted."""
    broken = letta.grade(0.0, "Error during grading: 429", error="429", error_type="RateLimitError")
    documented = taken(broken)
    assert (documented.outcome, documented.fault.category) == ("failed", "grading")
    assert (documented.fault.message, documented.fault.type) == ("429", "RateLimitError")
    upstream = taken(broken, profile="upstream")
    assert (upstream.outcome, upstream.score, upstream.metadata["error"]) == ("graded", 0.0, "429")


def test_an_error_record(letta):
    """A sample whose recording has an error record has no grade in documented; upstream takes what stands there."""
    error = {"category": "extraction", "exception_type": "KeyError", "message": "no"}
    recorded = sample(grade=letta.grade(0.0), error=error)
    grade = Recorded().grade(recorded)
    assert (grade.outcome, grade.fault.category, grade.fault.type) == ("failed", "extraction", "KeyError")
    assert Recorded(profile="upstream").grade(recorded).score == 0.0


def test_grades_per_turn_become_items(letta):
    turns = [
        {"turn": 0, "score": 1.0, "rationale": "ok", "submission": "a", "ground_truth": "a"},
        {"turn": 1, "score": None},
        "odd",
    ]
    grade = taken(letta.grade(0.5) | {"per_turn_grades": turns})
    assert [(item.id, item.outcome, item.score) for item in grade.items] == [
        ("turn 1", "graded", 1.0),
        ("turn 2", "failed", None),
    ]
    assert grade.items[0].metadata == {"submission": "a", "ground_truth": "a", "rationale": "ok"}


@pytest.mark.parametrize(
    "grade",
    [
        Grade(
            score=0.5,
            passed=False,
            counts={"n": 2},
            parts={"p": 0.25, "q": None},
            label="a",
            gold="b",
            items=(Item(id="0", score=0.5, reasons=(Reason(code="c", pointer="/x", expected=None),)),),
            reasons=(Reason(code="d", actual=[1]),),
            rationale="so so",
            metadata={"k": 1},
        ),
        Grade(outcome="skipped", reasons=(Reason(code="s", message="m"),), rationale="m"),
        Grade(outcome="failed", fault=Fault(category="grading", code="raised", message="m", type="E"), rationale="m"),
    ],
)
def test_grades_of_gradestack_come_back_whole(grade):
    written = json.loads(json.dumps(grade_to_json(grade)))
    found = taken(written, metric="a")
    assert grade_to_json(found) == written
    assert found.outcome == grade.outcome


def test_a_failed_run_is_failed(letta):
    """The 0.0 that stands beside a failed run is not taken for a grade; what gradestack said of it is."""
    error = Fault(category="target", code="target_error", message="ReadTimeout")
    recorded = {"grade": letta.grade(0.0, "Error: ReadTimeout")}
    grade = Recorded().grade(Sample(id="t", status=Status.FAILED, error=error, recorded=recorded))
    assert (grade.outcome, grade.score, grade.fault) == ("failed", None, error)
    assert Recorded().grade(Sample(id="t", status=Status.FAILED)).fault.category == "target"
    own = {"grade": grade_to_json(Grade(score=0.0, rationale="run_error"))}
    assert Recorded().grade(Sample(id="t", status=Status.FAILED, error=error, recorded=own)).score == 0.0


@pytest.mark.parametrize("metric", [None, "a"])
def test_a_failed_run_that_was_graded_all_the_same(letta, metric):
    """Upstream takes every grade there is, also of a run that failed; not beside an error record, nor of no metric."""
    error = Fault(category="target", code="target_error", message="ReadTimeout")
    graded = {"grade": letta.grade(0.5), "grades": {"a": letta.grade(0.5), "b": None}}

    def outcome(profile, recorded, metric=metric):
        failure = Sample(id="t", status=Status.FAILED, error=error, recorded=recorded)
        grade = Recorded(metric=metric, profile=profile).grade(failure)
        return grade.outcome, grade.score

    assert outcome("upstream", graded) == ("graded", 0.5)
    assert outcome("documented", graded) == ("failed", None)
    assert outcome("upstream", graded | {"error": {"category": "target"}}) == ("failed", None)
    assert outcome("upstream", {"grade": letta.grade(0.0), "grades": None}) == ("failed", None)
    assert outcome("upstream", {"reward": 0.5}, "reward") == ("failed", None)
    assert outcome("upstream", graded, "b") == ("failed", None)


def test_a_missing_row_of_gradestack_is_skipped():
    assert taken({"state": "missing", "score": 0.0, "rationale": "", "metadata": {}}).outcome == "skipped"
