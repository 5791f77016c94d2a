"""The When2Call grader in both profiles."""

from __future__ import annotations

import pytest

from gradestack import Fault, Outcome, Status, testing
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.when2call.grader import When2Call
from tests.plugins.when2call.when2call_records import PROFILES, sample


def test_a_failed_run_fails_in_documented_and_is_missing_upstream():
    """The recorded error is kept in documented; upstream knows only that there is no label."""
    fault = Fault(category="target", code="timeout", message="no answer")
    broken = sample("direct", None, status=Status.FAILED, error=fault)
    grade = When2Call().grade(broken)
    assert (grade.outcome, grade.fault, grade.gold) == (Outcome.FAILED, fault, "direct")
    coerced = When2Call(profile="upstream").grade(broken)
    assert (coerced.label, coerced.counts["missing"]) == ("cannot_answer", 1)


@pytest.mark.parametrize(
    ("aliases", "said"),
    [({"x": "maybe"}, "x must stand for one of"), ({"direct": "tool_call"}, "direct is a label of its own")],
)
def test_senseless_aliases_are_refused(aliases, said):
    """An alias stands for one of the four labels and is none itself."""
    with pytest.raises(Problems, match=said):
        structure({"aliases": aliases}, When2Call)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_grader_keeps_its_promises_on_odd_samples(profile):
    """It never raises, is deterministic, and reads only what it needs."""
    grader = When2Call(profile=profile)
    for each in testing.nasty_samples():
        first = grader.grade(each)
        assert first == grader.grade(testing.masked(each, grader.needs))
        assert (first.score is None) == (first.outcome is not Outcome.GRADED)
        if first.outcome is Outcome.MISSING:
            assert each.status is Status.MISSING
