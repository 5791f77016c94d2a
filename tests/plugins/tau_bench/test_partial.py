"""Grader ``tau_partial``: scores, special cases, reasons, samples of other readers."""

import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradestack
from gradestack import Grade, Outcome
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.tau_bench.reader import TauRecord
from gradestack_plugins.tau_bench.similarity import MAX_REASONS
from tests.conftest import examples
from tests.core.outcomes import data

DATA = data(__file__, "partial.yaml")


PROFILES = ["documented", "upstream"]


@pytest.fixture(params=PROFILES)
def graded(request, tau):
    return lambda record, **options: TauPartial(profile=request.param, **options).grade(
        tau.sample(record)
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    DATA["bad_weights_are_refused"],
)
def test_bad_weights_are_refused(weights, message):
    """Weights must not be negative, and sum to 1."""
    with pytest.raises(ValueError, match=re.escape(message)):
        TauPartial(name_weight=weights[0], argument_weight=weights[1])


def test_weights_may_sum_to_one_nearly():
    """A sum within 1e-9 of 1 is accepted."""
    assert TauPartial(name_weight=0.1, argument_weight=0.9000000005).name_weight == 0.1


def test_reasons_are_bounded(graded, tau):
    """At most fifty reasons are kept; one more counts the others."""
    wanted = {f"k{number}": 1 for number in range(MAX_REASONS + 25)}
    grade = graded(tau.record([("a", wanted), ("b", {})], [tau.call("a", {"other": 1})]))
    assert len(grade.reasons) == MAX_REASONS + 1
    assert (grade.reasons[-1].code, grade.reasons[-1].message) == (
        "more_reasons",
        "26 more reasons were left out",
    )
    assert grade.rationale.endswith(f"; {MAX_REASONS + 26 - 3} more")
    assert (len(grade.items[0].reasons), grade.items[1].reasons) == (MAX_REASONS, ())


def test_long_values_are_clipped_in_the_rationale(graded, tau):
    """The rationale stays short, the reason keeps the value."""
    grade = graded(tau.record([("a", {"x": "y" * 500})], [tau.call("a", {"x": 1})]))
    assert len(grade.rationale) < 150
    assert grade.reasons[0].expected == "y" * 500


small = st.sampled_from([None, True, 0, 1, 1.0, "", "a", "1", float("nan")])
json_values = st.recursive(
    small,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("xyz"), json_values, max_size=3)
names = st.sampled_from(["a", "b", "", None, 1])
arguments = (
    objects.map(json.dumps)
    | json_values.map(json.dumps)
    | objects
    | st.sampled_from(["{", "", None, 5, [1]])
)
functions = st.fixed_dictionaries(
    {}, optional={"name": names, "arguments": arguments}
) | st.sampled_from([None, "f"])
calls = st.fixed_dictionaries(
    {}, optional={"function": functions, "id": st.just("c")}
) | st.sampled_from([None, "c"])
contents = st.sampled_from(DATA["contents"])
roles = st.sampled_from(["assistant", "user", "tool"])
good_call = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": names, "arguments": arguments})}
)
messages = st.fixed_dictionaries(
    {"role": roles, "content": contents},
    optional={
        "tool_calls": st.lists(good_call, max_size=2) | st.lists(calls, max_size=2) | st.none()
    },
)
actions = st.lists(
    st.fixed_dictionaries({}, optional={"name": names, "kwargs": json_values}), max_size=3
)
odd_actions = st.sampled_from([None, 5, "x", ["x"], {"a": 1}])
tasks = st.fixed_dictionaries({}, optional={"actions": actions | actions | odd_actions}) | st.none()
infos = st.fixed_dictionaries({"task": st.fixed_dictionaries({"actions": actions})}) | st.one_of(
    st.fixed_dictionaries({}, optional={"task": tasks, "error": st.none()}),
    st.sampled_from([None, 5]),
)
trajs = (
    st.lists(messages, max_size=4)
    | st.lists(messages | st.sampled_from([None, "m"]), max_size=2)
    | st.none()
)
records = st.fixed_dictionaries({"task_id": st.just(0)}, optional={"info": infos, "traj": trajs})


@pytest.mark.parametrize("profile", PROFILES)
@given(record=records)
@settings(max_examples=examples(600), deadline=None)
def test_equals_the_independent_scorer(tau: SimpleNamespace, profile, record):
    """Scores of arbitrary records are the independent scorer's to the last bit.

    Where it stops the grade fails.
    """
    record = json.loads(json.dumps(record))
    try:
        expected = tau.ref_score(record, documented=profile == "documented")
    except (TypeError, AttributeError, KeyError):
        expected = None
    sample = tau.sample(record)
    assert isinstance(sample.native, TauRecord)
    before = json.dumps(record)
    grade = TauPartial(profile=profile).grade(sample)
    assert grade.score == expected
    assert (grade.outcome is Outcome.FAILED) == (expected is None)
    assert (bool(grade.reasons) or grade.outcome is Outcome.FAILED) == (expected != 1.0)
    assert json.dumps(record) == before


def test_rewards_beyond_one_say_nothing_of_partial_scores():
    """The interval of an average of scores stays within [0, 1], whatever the rewards are."""
    rows = []
    for task, score in enumerate((0.0, 0.2, 1.0)):
        rows.append((f"t{task}", 0, None, Grade(score=score, parts={"reward": 2.0 + task})))
    found = gradestack.figures({"partial": {"kind": "partial_statistics"}}, rows)["partial"]
    interval = found["average_interval"]
    assert 0 <= interval["low"] <= found["average"] <= interval["high"] <= 1
    assert found["binary"]["average_interval"]["high"] > 1
