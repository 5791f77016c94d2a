"""Grader `recorded`: grades found in the file."""

from __future__ import annotations

import json

import pytest

from gradestack import Fault, Grade, Item, Reason, Sample, Status, grade_to_json, replace, testing
from gradestack_plugins.letta.grader import Recorded
from tests.core.outcomes import at, data

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


def sample(**recorded):
    return Sample(id="t", recorded=recorded)


def taken(grade, *, metric=None, profile="documented"):
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


@pytest.mark.parametrize("case", data(__file__, "grades.yaml"))
def test_a_grade_is_taken(case):
    given, profile = Sample(id="t", recorded=case["recorded"]), case.get("profile", "documented")
    if "status" in case:
        given = replace(given, status=Status(case["status"]), error=case.get("error") and Fault(**case["error"]))
    for each in ("documented", "upstream") if profile == "both" else (profile,):
        grade = Recorded(metric=case.get("metric"), profile=each).grade(given)
        assert {path: at(grade, path) for path in case["grade"]} == case["grade"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 10**400])
@PROFILES
def test_scores_that_are_no_number(score, profile):
    grade = taken({"score": score, "rationale": "", "metadata": {}}, profile=profile)
    assert (grade.outcome, grade.fault.category, grade.fault.code) == ("failed", "data", "bad_recorded_grade")


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
