"""Grader ``tau_partial``: scores, special cases, reasons, samples of other readers."""

import re

import pytest

import gradestack
from gradestack import Grade
from gradestack.testing import explained_grade
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.tau_bench.similarity import MAX_REASONS
from tests.core.outcomes import data

DATA = data(__file__, "partial.yaml")


@pytest.fixture
def graded(tau):
    return lambda record: explained_grade(TauPartial(), tau.sample(record))


@pytest.mark.parametrize(
    ("weights", "message"),
    DATA["bad_weights_are_refused"],
)
def test_bad_weights_are_refused(weights, message):
    """Weights must not be negative, and sum to 1."""
    match = re.escape(message)
    with pytest.raises(ValueError, match=match):
        TauPartial(name_weight=weights[0], argument_weight=weights[1])


def test_weights_may_sum_to_one_nearly():
    """A sum within 1e-9 of 1 is accepted."""
    tau_partial = TauPartial(name_weight=0.1, argument_weight=0.9000000005)
    assert tau_partial.name_weight == 0.1


def test_reasons_are_bounded(graded, tau):
    """At most fifty reasons are kept; one more counts the others."""
    wanted = {}
    for number in range(MAX_REASONS + 25):
        wanted[f"k{number}"] = 1
    record = tau.record([("a", wanted), ("b", {})], [tau.call("a", {"other": 1})])
    grade = graded(record)
    reason_count = len(grade.reasons)
    assert reason_count == MAX_REASONS + 1
    last_reason = grade.reasons[-1]
    assert last_reason.code == "more_reasons"
    assert grade.reasons[-1].message == "26 more reasons were left out"
    assert grade.rationale.endswith(f"; {MAX_REASONS + 26 - 3} more")
    first_item = grade.items[0]
    assert len(first_item.reasons) == MAX_REASONS
    assert grade.items[1].reasons == ()


def test_long_values_are_clipped_in_the_rationale(graded, tau):
    """The rationale stays short, the reason keeps the value."""
    record = tau.record([("a", {"x": "y" * 500})], [tau.call("a", {"x": 1})])
    grade = graded(record)
    rationale_count = len(grade.rationale)
    assert rationale_count < 150
    first_reason = grade.reasons[0]
    assert first_reason.expected == "y" * 500


def test_rewards_beyond_one_say_nothing_of_partial_scores():
    """The interval of an average of scores stays within [0, 1], whatever the rewards are."""
    rows = []
    for task, score in enumerate((0.0, 0.2, 1.0)):
        reward = 2.0 + task
        rows.append((f"t{task}", 0, None, Grade(score=score, parts={"reward": reward})))
    figures = gradestack.figures({"partial": {"kind": "partial_statistics"}}, rows)
    partial_figures = figures["partial"]
    interval = partial_figures["average_interval"]
    low = interval["low"]
    assert 0 <= low <= partial_figures["average"] <= interval["high"] <= 1
    average_interval = partial_figures["binary"]["average_interval"]
    high = average_interval["high"]
    assert high > 1
