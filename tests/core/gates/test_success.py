"""Successes, counted while grading."""

import pytest

from gradestack import Grade, Key, skipped, testing
from gradestack.gates.rules import GateSpec, SimpleGate, WeightedGate
from gradestack.gates.success import SuccessCount, rule_text, verdict_text
from gradestack.rows.success import Success

GATE = GateSpec(op="gt", value=0.5)


@pytest.mark.parametrize("rule", [None, GATE])
def test_counts_merge_like_any_metric(rule):
    """However the samples are split."""
    testing.check_aggregator(SuccessCount(success=Success("quality", rule)))


def test_a_sample_is_a_success_by_the_verdict_it_was_given():
    """The grader's own, else a full score; by a gate's rule alone where that is the rule; per model."""
    grades = [
        Grade(score=0.25, passed=True),
        Grade(score=1.0, passed=False),
        Grade(score=1.0),
        Grade(score=0.75),
        skipped("x", ""),
    ]
    keyed = [(Key(id=str(n), model="m" if n % 2 else None, ordinal=n), each) for n, each in enumerate(grades)]

    def counted(success):
        aggregator = SuccessCount(success=success)
        return aggregator.finish(testing.fold(aggregator, keyed))

    models = {"": {"passed": 2, "failed": 0}, "m": {"passed": 0, "failed": 2}}
    assert counted(Success("q")) == {"passed": 2, "failed": 2, "own_verdicts": 2, "models": models}
    by_rule = counted(Success("q", GATE))
    assert (by_rule["passed"], by_rule["failed"]) == (3, 1)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (None, "q score >= 1"),
        (GATE, "q score > 0.5"),
        (GateSpec(op="gte", value=0.6, pass_value=0.123456789), "q score >= 0.123456789"),
        (GateSpec(op="gte", value=0.6, pass_op="eq"), "q score == 0.6"),  # noqa: S106 - nothing secret about it
        (GateSpec(op="gte", value=80, metric="accuracy"), "q score >= 1"),
        (GateSpec(op="lt", value=80, metric="accuracy", pass_value=0.5), "q score < 0.5"),
        (SimpleGate(metric_key="q", op="lt", value=0.5, pass_threshold=0.9), "q score >= 0.9"),
        (WeightedGate(weights={"q": 1.0}, aggregation="avg_score", op="lt", value=0.5), "q score >= 1"),
    ],
)
def test_a_rule_in_words(rule, text):
    """What is compared with what: the same comparison that the rule makes."""
    assert rule_text("q", rule) == text


def test_what_decided_in_words():
    """The grader's verdict where it gave one each time, the score where it never did."""
    assert verdict_text(Success("q"), 3, 3) == "verdict of q"
    assert verdict_text(Success("q"), 3, 0) == "q score >= 1"
    assert verdict_text(Success("q"), 3, 1) == "verdict of q, where it has none q score >= 1"
    assert verdict_text(Success("q", GATE), 3, 3) == "q score > 0.5"
