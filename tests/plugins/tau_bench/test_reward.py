"""Grader ``tau_reward``."""

import pytest

from gradestack import Fault, Outcome, Sample, Status, replace
from gradestack_plugins.stability.aggregators import Stability
from gradestack_plugins.statistics.reliability import PassHatK
from gradestack_plugins.tau_bench.aggregators import Binary, PartialStatistics
from gradestack_plugins.tau_bench.grader import TauPartial, TauReward


@pytest.mark.parametrize("reward", [1e150, -1.7e308])
def test_rewards_larger_than_any_score_fail(tau, reward):
    """And leave the partial score its figures: their sum would be beyond the range of floats."""
    record = tau.record(reward=reward)
    sample = tau.sample(record)
    grade = TauReward().grade(sample)
    assert grade.outcome == Outcome.FAILED
    expected_text = f"the reward is over 1e+100: {reward!r}"
    assert grade.fault.message == expected_text
    partial = TauPartial().grade(sample)
    assert partial.outcome == Outcome.GRADED
    assert partial.parts == {}
    figures = tau.fold(PartialStatistics(), [replace(partial, parts={"reward": reward})] * 2)
    assert figures["n"] == 2
    assert figures["binary"]["n"] == 0
    average = figures["binary"]["average"]
    assert average is None


@pytest.mark.parametrize("kind", [TauReward, PassHatK, Binary, Stability])
@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_what_a_score_is_held_against_is_a_finite_number(kind, number):
    name = "threshold" if kind in (Binary, Stability) else "tolerance"
    with pytest.raises(ValueError, match=name):
        kind(**{name: number})


def test_other_readers(tau):
    """Samples of other readers.

    A recorded reward is used, none is skipped, a failed run without one fails.
    """
    score = TauReward().grade(Sample(id="s", recorded={"reward": 1})).score
    assert score == 1.0
    outcome = TauReward().grade(Sample(id="s", recorded={"reward": None})).outcome
    assert outcome is Outcome.FAILED
    first_reason = TauReward().grade(Sample(id="s")).reasons[0]
    assert first_reason.code == "no_reward"
    fault = Fault(category="target", code="timeout")
    assert TauReward().grade(Sample(id="s", status=Status.FAILED, error=fault)).fault == fault


def test_reasons_of_the_record(tau):
    """Facts in the record about a missed reward become reasons.

    Error, step limit, database, unsaid outputs.
    """

    def reasons(info):
        return [
            (r.code, r.expected)
            for r in TauReward().grade(tau.sample(tau.record(info=info))).reasons
            if r.message
        ]

    first_reason = TauReward().grade(tau.sample(tau.record(info={"error": "x"}))).reasons[0]
    absent = first_reason.expected
    assert reasons({"error": "x"}) == [("run_error", absent)]
    assert reasons({"reward_info": None}) == [("not_judged", absent)]
    assert reasons({"reward_info": {"info": {"r_actions": 0.0}}}) == [("database_mismatch", absent)]
    outputs = {"r_outputs": 0.0, "outputs": {"10": True, "20": False}}
    assert reasons({"reward_info": {"info": outputs}}) == [("missing_output", "20")]
    assert reasons({"reward_info": {"info": {"r_actions": 1.0, "outputs": [1]}}}) == []
