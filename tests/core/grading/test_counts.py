"""The figures every run has: states are counted, never turned into zeros."""

import pytest

from gradestack import Fault, Grade, Key, Outcome, failed, skipped
from gradestack.gates.rules import GateSpec
from gradestack.gates.scores import grader_figures
from gradestack.grading.counts import counted
from gradestack.table import Table, Wanted

SKIP, FAIL = skipped("x", "y"), failed(Fault(category="data", code="x"))
MISSING = Grade(outcome=Outcome.MISSING)


def of(*grades, gate=None, ran=None):
    keys = [Key(id=str(number)) for number, _ in enumerate(grades)]
    return counted(Table.of(Wanted(parts={"q": ()}), keys, {"q": grades}, ran), "q", gate)


def test_averages_over_attempted_and_over_total():
    """1.0 and 0.5 graded, one skipped, one failed, one missing: 1.5/2 and 1.5/4; one of two passes."""
    found = grader_figures(of(Grade(score=1.0), SKIP, Grade(score=0.5), FAIL, MISSING), "documented")
    assert found == {
        "total": 5,
        "total_attempted": 2,
        "avg_score_attempted": 0.75,
        "avg_score_total": 0.375,
        "passed_attempts": 1,
        "failed_attempts": 1,
        "pass_rate": 50.0,
    }


def test_states_are_counted_one_by_one():
    states = of(Grade(score=0.0), SKIP, SKIP, FAIL).states
    assert states == {"graded": 1, "skipped": 2, "failed": 1, "missing": 0}


@pytest.mark.parametrize(("profile", "nothing"), [("documented", None), ("upstream", 0.0)])
def test_nothing_attempted(profile, nothing):
    """Documented: the average of no score is undefined, over the total too; upstream says 0.0."""
    found = grader_figures(of(SKIP, FAIL), profile)
    assert (found["total"], found["total_attempted"]) == (2, 0 if profile == "documented" else 2)
    assert (found["avg_score_attempted"], found["pass_rate"]) == (nothing, nothing)
    assert found["avg_score_total"] == nothing
    empty = grader_figures(of(), profile)
    assert (empty["total"], empty["avg_score_total"]) == (0, nothing)


def test_upstream_counts_runs_that_did_not_fail():
    """Era A: attempted and passed leave out failed runs, the average holds whatever was graded."""
    found = of(Grade(score=1.0), Grade(score=0.0), SKIP, ran=[True, False, True])
    upstream = grader_figures(found, "upstream")
    assert (upstream["total"], upstream["total_attempted"], upstream["avg_score_attempted"]) == (3, 2, 0.5)
    assert (upstream["passed_attempts"], upstream["failed_attempts"], upstream["pass_rate"]) == (1, 1, 50.0)
    documented = grader_figures(found, "documented")
    assert (documented["total_attempted"], documented["failed_attempts"]) == (2, 1)


def test_passing_follows_the_gate():
    """Its per-sample rule decides, with a gate at 0.5 both pass."""
    grades = Grade(score=1.0), Grade(score=0.5), SKIP
    assert of(*grades, gate=GateSpec(op="gte", value=0.5)).passed == 2
    assert of(*grades, gate=GateSpec(op="gt", value=0.5)).passed == 1
