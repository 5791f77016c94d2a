"""The figures every run has: states are counted, never turned into zeros."""

import json
import random

import pytest

from gradestack import Fault, Grade, Outcome, failed, skipped
from gradestack.gates.figures import count_grades, grader_figures, overall
from gradestack.gates.rules import GateSpec
from gradestack.grading.counts import Tally, merge_tallies

SKIP, FAIL = skipped("x", "y"), failed(Fault(category="data", code="x"))
MISSING = Grade(outcome=Outcome.MISSING)


def of(*grades, gate=None, model=""):
    found = {}
    for grade in grades:
        count_grades(found, model, {"q": grade}, gate)
    return found


def figures(found, profile="documented"):
    return grader_figures(overall(found, ["q"])["q"], profile)


def test_averages_over_attempted_and_over_total():
    """1.0 and 0.5 graded, one skipped, one failed, one missing: 1.5/2 and 1.5/4; one of two passes."""
    found = figures(of(Grade(score=1.0), SKIP, Grade(score=0.5), FAIL, MISSING))
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
    """Every outcome has its own number, also those that did not happen."""
    states = overall(of(Grade(score=0.0), SKIP, SKIP, FAIL), ["q"])["q"]["states"]
    assert states == {"graded": 1, "skipped": 2, "failed": 1, "missing": 0}


@pytest.mark.parametrize(("profile", "nothing"), [("documented", None), ("upstream", 0.0)])
def test_nothing_attempted(profile, nothing):
    """Documented: the average of no score is undefined, over the total too; upstream says 0.0."""
    found = figures(of(SKIP, FAIL), profile)
    assert (found["total"], found["total_attempted"]) == (2, 0 if profile == "documented" else 2)
    assert (found["avg_score_attempted"], found["pass_rate"]) == (nothing, nothing)
    assert found["avg_score_total"] == nothing
    empty = figures({}, profile)
    assert (empty["total"], empty["avg_score_total"]) == (0, nothing)


def test_upstream_counts_runs_that_did_not_fail():
    """Era A: attempted and passed leave out failed runs, the average holds whatever was graded."""
    found: Tally = {}
    count_grades(found, "", {"q": Grade(score=1.0)}, None)
    count_grades(found, "", {"q": Grade(score=0.0)}, None, ran=False)
    count_grades(found, "", {"q": SKIP}, None)
    upstream = grader_figures(found[""]["q"], "upstream")
    assert (upstream["total"], upstream["total_attempted"], upstream["avg_score_attempted"]) == (3, 2, 0.5)
    assert (upstream["passed_attempts"], upstream["failed_attempts"], upstream["pass_rate"]) == (1, 1, 50.0)
    documented = grader_figures(found[""]["q"], "documented")
    assert (documented["total_attempted"], documented["failed_attempts"]) == (2, 1)


def test_passing_follows_the_gate():
    """Its per-sample rule decides, with a gate at 0.5 both pass."""
    grades = Grade(score=1.0), Grade(score=0.5), SKIP
    assert figures(of(*grades, gate=GateSpec(op="gte", value=0.5)))["passed_attempts"] == 2
    assert figures(of(*grades, gate=GateSpec(op="gt", value=0.5)))["passed_attempts"] == 1


def test_models_keep_the_order_of_their_first_sample_and_merge_by_name():
    """Overall figures are over all models together."""
    left = of(Grade(score=1.0), model="b")
    right = of(Grade(score=0.0), model="a") | of(Grade(score=0.5), model="b")
    merged = merge_tallies(left, right)
    assert merged is left
    assert list(merged) == ["b", "a"]
    assert figures({"": merged["b"]})["avg_score_attempted"] == 0.75
    assert figures(merged)["avg_score_attempted"] == 0.5


def test_any_split_gives_the_same_figures():
    """Shards merged in order equal the whole, exactly, through JSON."""
    rng = random.Random(3)  # noqa: S311 - test data
    grades = [rng.choice([Grade(score=rng.random()), Grade(score=1e-17), SKIP, FAIL]) for _ in range(200)]
    whole = of(*grades)
    for _ in range(10):
        cut = rng.randrange(200)
        left, right = (json.loads(json.dumps(of(*part))) for part in (grades[:cut], grades[cut:]))
        before = json.dumps(right)
        assert figures(merge_tallies(left, right)) == figures(whole)
        assert json.dumps(right) == before
