"""The When2Call grader in both profiles."""

from __future__ import annotations

import pytest

from gradestack import Fault, Outcome, Status, ToolCall, testing
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.when2call.grader import When2Call
from tests.plugins.when2call.when2call_records import PROFILES, judge, sample


@pytest.mark.parametrize("profile", PROFILES)
def test_a_right_label_scores_one_and_a_wrong_one_nothing(profile):
    """The score is the equality of the labels; a wrong one says what was expected."""
    right, wrong = (When2Call(profile=profile).grade(sample("direct", label)) for label in ("direct", "tool_call"))
    assert (right.score, right.label, right.gold, right.reasons) == (1.0, "direct", "direct", ())
    assert (wrong.score, wrong.reasons[0].code) == (0.0, "wrong_label")
    assert (wrong.reasons[0].expected, wrong.reasons[0].actual) == ("direct", "tool_call")


def test_an_invalid_prediction_is_a_class_of_its_own_in_documented():
    """It is wrong even where the gold label is cannot_answer, and keeps what was recorded."""
    grade = When2Call().grade(sample("cannot_answer", "Cannot_Answer"))
    assert (grade.outcome, grade.score, grade.label) == (Outcome.GRADED, 0.0, "invalid")
    assert grade.metadata["recorded_label"] == "Cannot_Answer"
    assert grade.reasons[0].code == "invalid_label"


def test_an_invalid_prediction_becomes_cannot_answer_upstream():
    """Which is right where the gold label is cannot_answer."""
    grade = When2Call(profile="upstream").grade(sample("cannot_answer", "???"))
    assert (grade.score, grade.label, grade.counts["converted"]) == (1.0, "cannot_answer", 1)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_invalid_policy_can_be_chosen_in_either_profile(profile):
    """own_class, coerce_cannot_answer and drop do the same in both."""
    outcomes = {}
    for policy in ("own_class", "coerce_cannot_answer", "drop"):
        grade = When2Call(profile=profile, invalid_policy=policy).grade(sample("direct", "?"))
        outcomes[policy] = (str(grade.outcome), grade.label, grade.counts.get("converted"), grade.counts.get("dropped"))
    assert outcomes == {
        "own_class": ("graded", "invalid", None, None),
        "coerce_cannot_answer": ("graded", "cannot_answer", 1, None),
        "drop": ("skipped", None, None, 1),
    }


def test_a_missing_prediction_is_counted_apart_in_documented(evaluate, row):
    """N is the rows with a prediction; the missing ones stand beside it."""
    found = evaluate([judge("a", "tool_call")], [row("a"), row("b", "cannot_answer")])
    assert [grade.outcome for grade in found.grades] == [Outcome.GRADED, Outcome.MISSING]
    assert (found.classes["n"], found.classes["n_missing"], found.classes["accuracy"]) == (1, 1, 1.0)
    assert found.classes["n_invalid"] == 0


def test_a_missing_prediction_is_an_invalid_one_upstream(evaluate, row):
    """N is all rows; the missing one became cannot_answer, and "invalid" includes it."""
    found = evaluate([judge("a", "tool_call")], [row("a"), row("b", "cannot_answer")], profile="upstream")
    names = ("n", "n_missing", "n_invalid", "n_converted")
    assert [found.classes[name] for name in names] == [2, 1, 1, 1]
    assert found.classes["accuracy"] == 1.0


def test_without_any_prediction_upstream_accuracy_is_the_share_of_cannot_answer(evaluate, row):
    """An empty prediction file scores a third here; documented has nothing to score."""
    dataset = [row("a"), row("b", "cannot_answer"), row("c", "request_for_info")]
    assert evaluate([], dataset, profile="upstream").classes["accuracy"] == 1 / 3
    assert evaluate([], dataset).classes["accuracy"] is None
    assert evaluate([], dataset).classes["n_missing"] == 3


@pytest.mark.parametrize(
    ("policy", "label", "n"),
    [("own_class", "invalid", 1), ("coerce_cannot_answer", "cannot_answer", 1), ("drop", None, 0)],
)
def test_missing_may_be_treated_as_invalid_by_option(evaluate, row, policy, label, n):
    """missing: as_invalid applies the invalid policy to rows without a prediction."""
    options = {"missing": "as_invalid", "invalid_policy": policy}
    found = evaluate([], [row("a")], grader=options)
    assert (found.grades[0].label, found.classes["n"], found.classes["n_missing"]) == (label, n, 1)


def test_missing_may_stand_apart_upstream_by_option(evaluate, row):
    """missing: apart takes the row out of N in the upstream profile as well."""
    found = evaluate([], [row("a")], profile="upstream", grader={"missing": "apart"})
    assert (found.classes["n"], found.classes["n_missing"], found.classes["n_converted"]) == (0, 1, 0)


def test_a_failed_run_fails_in_documented_and_is_missing_upstream():
    """The recorded error is kept in documented; upstream knows only that there is no label."""
    fault = Fault(category="target", code="timeout", message="no answer")
    broken = sample("direct", None, status=Status.FAILED, error=fault)
    grade = When2Call().grade(broken)
    assert (grade.outcome, grade.fault, grade.gold) == (Outcome.FAILED, fault, "direct")
    coerced = When2Call(profile="upstream").grade(broken)
    assert (coerced.label, coerced.counts["missing"]) == ("cannot_answer", 1)


def test_direct_answer_is_an_alias_in_documented_only():
    """NVIDIA's name counts as direct; upstream it is invalid and becomes cannot_answer."""
    assert When2Call().grade(sample("direct", "direct_answer")).score == 1.0
    upstream = When2Call(profile="upstream").grade(sample("direct", "direct_answer"))
    assert (upstream.score, upstream.label) == (0.0, "cannot_answer")
    aliased = When2Call(profile="upstream", aliases={"direct_answer": "direct"}).grade(
        sample("direct", "direct_answer")
    )
    assert aliased.score == 1.0
    assert When2Call(aliases={}).grade(sample("direct", "direct_answer")).label == "invalid"


@pytest.mark.parametrize(
    ("aliases", "said"),
    [({"x": "maybe"}, "x must stand for one of"), ({"direct": "tool_call"}, "direct is a label of its own")],
)
def test_senseless_aliases_are_refused(aliases, said):
    """An alias stands for one of the four labels and is none itself."""
    with pytest.raises(Problems, match=said):
        structure({"aliases": aliases}, When2Call)


@pytest.mark.parametrize("profile", PROFILES)
def test_labels_are_not_normalised(profile):
    """Case and blanks make a label invalid."""
    grade = When2Call(profile=profile, invalid_policy="own_class").grade(sample("direct", " direct"))
    assert grade.label == "invalid"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_call_in_the_trajectory_is_a_tool_call(profile):
    """Without a recorded label a call decides; without one nothing is guessed."""
    grader = When2Call(profile=profile)
    called = grader.grade(sample("tool_call", None, calls=(ToolCall(name="f"),)))
    assert (called.score, called.label) == (1.0, "tool_call")
    for calls in ((), None):
        silent = grader.grade(sample("direct", None, calls=calls))
        assert (silent.outcome, silent.reasons[0].code) == (Outcome.SKIPPED, "needs_judge")


@pytest.mark.parametrize("profile", PROFILES)
def test_free_text_without_a_judge_is_skipped(evaluate, row, profile):
    """A target response waits for a judge; it is not counted as missing."""
    found = evaluate([{"uuid": "a", "raw_text": "hello"}], [row("a")], profile=profile)
    assert (found.grades[0].outcome, found.grades[0].reasons[0].code) == (Outcome.SKIPPED, "needs_judge")


@pytest.mark.parametrize("profile", PROFILES)
def test_without_a_gold_label_nothing_is_graded(evaluate, profile):
    """The message says what is missing; labels of another kind are said to be such."""
    found = evaluate([judge("a", "direct")], profile=profile)
    assert found.grades[0].reasons[0].code == "no_gold_label"
    assert "--dataset" in found.grades[0].rationale
    other = When2Call(profile=profile).grade(sample("positive", "negative"))
    assert other.reasons[0].code == "other_labels"


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
