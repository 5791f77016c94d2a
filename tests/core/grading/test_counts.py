"""The figures every run has: states are counted, never turned into zeros."""

import pytest

from gradestack import Fault, Grade, Key, Outcome, failed, skipped
from gradestack.gates.verdicts import grader_figures
from gradestack.grading.metrics import counts_by_model, in_all
from gradestack.table import Table, Wanted

SKIP, FAIL = skipped("x", "y"), failed(Fault(category="data", code="x"))
MISSING = Grade(outcome=Outcome.MISSING)


def of(*grades, gate=None, ran=None):
    keys = [Key(id=str(number)) for number, _ in enumerate(grades)]
    return in_all(
        counts_by_model(
            Table.of(Wanted(parts={"q": ()}), keys, {"q": grades}, ran), "q", gate
        ).values()
    )


@pytest.mark.parametrize(("profile", "nothing"), [("documented", None), ("upstream", 0.0)])
def test_nothing_attempted(profile, nothing):
    """Documented: the average of no score is undefined, but 0.0 over all of them; upstream says
    0.0 of both.
    """
    found = grader_figures(of(SKIP, FAIL), profile)
    assert (found["total"], found["total_attempted"]) == (2, 0 if profile == "documented" else 2)
    assert (found["avg_score_attempted"], found["pass_rate"]) == (nothing, nothing)
    assert found["avg_score_total"] == 0.0
    empty = grader_figures(of(), profile)
    assert (empty["total"], empty["avg_score_total"]) == (0, nothing)


def test_upstream_counts_runs_that_did_not_fail():
    """Era A: attempted and passed leave out failed runs, the average holds whatever was graded."""
    found = of(Grade(score=1.0), Grade(score=0.0), SKIP, ran=[True, False, True])
    upstream = grader_figures(found, "upstream")
    assert (upstream["total"], upstream["total_attempted"], upstream["avg_score_attempted"]) == (
        3,
        2,
        0.5,
    )
    assert (upstream["passed_attempts"], upstream["failed_attempts"], upstream["pass_rate"]) == (
        1,
        1,
        50.0,
    )
    documented = grader_figures(found, "documented")
    assert (documented["total_attempted"], documented["failed_attempts"]) == (2, 1)
