"""The recorded reward of tau2-bench, and pass^k over the trials of each task."""

import pytest

import gradestack
from gradestack import Outcome, Sample, Status
from gradestack_plugins.tau2_bench.grader import Tau2Reward
from gradestack_plugins.tau2_bench.reader import Tau2
from tests.plugins.described_samples import read


def graded(tau2, **about):
    (sample,) = read(Tau2(), tau2.write(tau2.simulation(**about)))
    return Tau2Reward().grade(sample)


@pytest.mark.parametrize(("reward", "passed"), [(1.0, True), (1 - 1e-7, True), (0.99, False), (0.0, False)])
def test_the_reward_is_the_score(tau2, reward, passed):
    """It passes within a millionth of 1."""
    grade = graded(tau2, reward=reward)
    assert (grade.score, grade.passed) == (reward, passed)


def test_a_missed_reward_says_what_was_missing(tau2):
    """The database, each action without a call, each unmet statement, and an end that is never a success."""
    about = {
        "reward": 0.0,
        "db_check": {"db_match": False, "db_reward": 0.0},
        "action_checks": [
            {"action": tau2.action("find"), "action_match": True, "tool_type": "read"},
            {"action": tau2.action("book", seat=1), "action_match": False, "tool_type": "write"},
        ],
        "communicate_checks": [{"info": "42", "met": False, "justification": ""}],
        "reward_breakdown": {"DB": 0.0, "COMMUNICATE": 0.0},
    }
    grade = graded(tau2, reward_info=about, ended="max_steps")
    assert [reason.code for reason in grade.reasons] == [
        "not_judged",
        "database_mismatch",
        "action_missing",
        "communicate_checks_unmet",
    ]
    assert grade.parts == {"DB": 0.0, "COMMUNICATE": 0.0}
    assert grade.counts == {
        "actions": 2,
        "actions_matched": 1,
        "read_actions": 1,
        "read_actions_matched": 1,
        "write_actions": 1,
        "write_actions_matched": 0,
    }


def test_states_are_told_apart(tau2):
    """Infrastructure errors count nowhere, no reward is a failure without a score, other samples are skipped."""
    assert graded(tau2, ended="infrastructure_error", reward=None).outcome is Outcome.SKIPPED
    assert graded(tau2, ended="infrastructure_error", reward=0.0).outcome is Outcome.SKIPPED
    assert graded(tau2, ended="unexpected_error", reward=0.0).score == 0.0
    assert graded(tau2, reward=None).fault.code == "no_reward"
    assert graded(tau2, reward="much").fault.code == "unusable_reward"
    assert Tau2Reward().grade(Sample(id="x")).outcome is Outcome.SKIPPED
    assert Tau2Reward().grade(Sample(id="x", recorded={"reward": 1})).passed is True
    fault = gradestack.Fault(category="target", code="broken")
    assert Tau2Reward().grade(Sample(id="x", status=Status.FAILED, error=fault)).fault == fault
    with pytest.raises(ValueError, match="tolerance"):
        Tau2Reward(tolerance=-1)


def test_pass_hat_k_divides_by_the_trials_of_each_task(tau2, tmp_path):
    """A simulation lost to the infrastructure is no trial; one without a reward is a failed one."""
    path = tau2.write(
        tau2.simulation("a", 0),
        tau2.simulation("a", 1),
        tau2.simulation("a", 2, reward=None, ended="infrastructure_error"),
        tau2.simulation("b", 0),
        tau2.simulation("b", 1, reward=None),
        tau2.simulation("b", 2, reward=0.0),
        tasks=[tau2.task("a"), tau2.task("b")],
    )
    report = gradestack.grade_files([path], output=tmp_path / "out")
    figures = report.aggregates["reward"]
    assert figures["pass_hat_k"]["pass_hat_k"] == {"1": pytest.approx((1 + 1 / 3) / 2), "2": 0.5}
    assert figures["pass_hat_k"]["rule"] == "task"
    assert report.summary["metrics"]["avg_score_attempted"] == pytest.approx(3 / 4)
    assert (tmp_path / "out" / "report.html").exists()


def test_simulations_are_solved_by_their_reward(tau2, tmp_path):
    """The stack's own headline: the average reward, pass^k of the tasks' own trials, and pass@k."""
    path = tau2.write(tau2.simulation("a", 0), tau2.simulation("a", 1, reward=0.0), tasks=[tau2.task("a")])
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert (report.summary["outcome"]["grader"], report.summary["outcome"]["words"]["passed"]) == ("reward", "solved")
    figures = {each["label"]: each["value"] for each in report.summary["headline"]["figures"]}
    assert figures == {"Average reward": 0.5, "pass^k": {"1": 0.5, "2": 0.0}, "pass@k": {"1": 0.5, "2": 1.0}}
