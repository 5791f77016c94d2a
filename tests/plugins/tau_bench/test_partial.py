"""Grader ``tau_partial``: scores, special cases, reasons, samples of other readers."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Expectation, Fault, Outcome, Reason, Sample, Status, ToolCall
from gradestack_plugins.tau_bench.grader import TauPartial, _reasons
from gradestack_plugins.tau_bench.records import Call, TauRecord
from gradestack_plugins.tau_bench.similarity import MAX_REASONS, Budget, describe
from tests.conftest import examples

PROFILES = ["documented", "upstream"]
both = pytest.mark.parametrize("profile", PROFILES)


@pytest.fixture(params=PROFILES)
def graded(request, tau):
    """Return a function that grades a record in each profile."""
    return lambda record, **options: TauPartial(profile=request.param, **options).grade(tau.sample(record))


def test_worked_score(graded, tau):
    """One argument of two right gives 0.4 + 0.6 / 2, a tool never called 0; the record has their mean."""
    record = tau.record([("a", {"x": 1, "y": 2}), ("b", {})], [tau.call("a", {"x": 1, "y": 3})], reward=0.25)
    grade = graded(record)
    assert grade.score == (0.4 + 0.6 * 0.5 + 0.0) / 2
    assert grade.counts == {"expected_calls": 2, "called": 1, "made_calls": 1}
    assert grade.parts == {"reward": 0.25}
    first, second = grade.items
    assert (first.id, first.gold, first.label, first.score) == ("0", "a", "a", 0.4 + 0.6 * 0.5)
    assert (first.parts, first.metadata) == ({"argument_similarity": 0.5}, {"call": 0})
    assert (second.id, second.gold, second.label, second.score) == ("1", "b", None, 0.0)
    assert (second.parts, second.metadata) == ({}, {"call": None})
    assert [(r.code, r.subject, r.pointer) for r in grade.reasons] == [
        ("wrong_argument", "a", "/y"),
        ("missing_call", "b", ""),
    ]
    assert (first.reasons, second.reasons) == (grade.reasons[:1], grade.reasons[1:])
    assert grade.rationale == "a wrong_argument /y expected 2 got 3; b missing_call expected {}"


def test_best_call_counts_and_may_serve_twice(graded, tau):
    """The best call of a name is taken, for several expected calls if need be; order and extra calls cost nothing."""
    calls = [tau.call("z"), tau.call("a", {"x": 0}), tau.call("a", {"x": 1}), tau.call("a", {"x": 1})]
    grade = graded(tau.record([("a", {"x": 1}), ("a", {"x": 1})], calls))
    assert grade.score == 1.0
    assert [item.metadata for item in grade.items] == [{"call": 2}, {"call": 2}]
    assert grade.counts == {"expected_calls": 2, "called": 2, "made_calls": 4}


def test_calls_of_any_role_count(graded, tau):
    """Tool calls in a message of another role are calls as well."""
    message = tau.call("a", {"x": 1}) | {"role": "user"}
    assert graded(tau.record([("a", {"x": 1})], [message])).score == 1.0


@pytest.mark.parametrize("arguments", ["not json", "", "{'x': 1}"])
def test_undecodable_arguments_read_as_empty(graded, tau, arguments):
    """Arguments that are not JSON are no arguments: credit for the tool only."""
    assert graded(tau.record([("a", {"x": 1})], [tau.call("a", arguments)])).score == 0.4
    assert graded(tau.record([("a", {})], [tau.call("a", arguments)])).score == 1.0


def test_missing_and_null_arguments_read_as_empty(graded, tau):
    """A missing or null ``arguments`` reads as an empty object; a missing function as a nameless call."""
    for function in ({"name": "a"}, {"name": "a", "arguments": None}, {"name": "a", "arguments": 3}):
        message = {"role": "assistant", "tool_calls": [{"function": function}]}
        assert graded(tau.record([("a", {})], [message])).score == 1.0
    nameless = {"role": "assistant", "tool_calls": [{"name": "a", "arguments": {"x": 1}}]}
    assert graded(tau.record([("", {})], [nameless])).score == 1.0
    assert graded(tau.record([("a", {})], [nameless])).score == 0.0


def test_decoded_values_that_are_no_objects_are_kept(graded, tau):
    """Arguments that decode to a list or null are compared as such."""
    assert graded(tau.record([("a", [1])], [tau.call("a", "[1]")])).score == 1.0
    assert graded(tau.record([("a", {})], [tau.call("a", "null")])).score == 0.4
    assert graded(tau.record([("a", None)], [tau.call("a", "null")])).score == 1.0


def test_names_are_compared_by_equality(graded, tau):
    """Null equals null as a name, NaN does not equal NaN, and a missing name is the empty text."""
    actions = [{"name": None, "kwargs": {}}, {"kwargs": {}}, {"name": float("nan")}]
    grade = graded(tau.record(actions, [tau.call(None), tau.call(""), tau.call(float("nan"))]))
    assert [item.score for item in grade.items] == [1.0, 1.0, 0.0]
    assert [item.gold for item in grade.items] == [None, "", None]
    assert grade.reasons[0].subject == "NaN"


@pytest.mark.parametrize("actions", [[], None, {}, ""])
def test_nothing_expected(graded, tau, actions):
    """Nothing expected: 1 without any call, 0 with one, whatever it is."""
    right, wrong = graded(tau.record(actions, [])), graded(tau.record(actions, [tau.call("look_up", {"a": 1})]))
    assert (right.score, right.reasons) == (1.0, ())
    assert wrong.score == 0.0
    assert [(r.code, r.subject, r.actual) for r in wrong.reasons] == [("unexpected_call", "look_up", {"a": 1})]
    assert wrong.counts == {"expected_calls": 0, "called": 0, "made_calls": 1}


def test_ignored_calls(graded, tau):
    """Ignored tools do not count where nothing is expected, and change nothing elsewhere."""
    calls = [tau.call("look_up"), tau.call("think")]
    assert graded(tau.record([], calls), ignore_calls=("look_up", "think")).score == 1.0
    assert graded(tau.record([], calls), ignore_calls=("look_up",)).score == 0.0
    assert graded(tau.record([("look_up", {})], calls), ignore_calls=("look_up",)).score == 1.0


def test_no_expected_skip(graded, tau):
    """With ``no_expected: skip`` samples where nothing is expected are skipped, the others graded."""
    grade = graded(tau.record([], []), no_expected="skip")
    assert (grade.outcome, grade.score, grade.reasons[0].code) == (Outcome.SKIPPED, None, "nothing_expected")
    assert graded(tau.record([("a", {})], [tau.call("a")]), no_expected="skip").score == 1.0


@pytest.mark.parametrize("error", ["timeout", None])
def test_error_records_score_zero(graded, tau, error):
    """A record with an ``error`` key, even null, scores 0 whatever else it holds; the fault is told."""
    record = {"task_id": 1, "reward": 0.0, "info": {"error": error, "traceback": "x"}, "traj": [], "trial": 0}
    grade = graded(record)
    assert (grade.outcome, grade.score, grade.parts) == (Outcome.GRADED, 0.0, {"reward": 0.0})
    assert [(r.code, r.message) for r in grade.reasons] == [("run_error", error or "null")]


@pytest.mark.parametrize("info", [None, {}, {"task": {}}, {"task": {"user_id": "u"}}])
def test_missing_expectations_score_zero(graded, tau, info):
    """Where ``info``, ``task`` or ``actions`` is missing the score is 0, without looking at the conversation."""
    record = {"task_id": 1, "reward": 1.0} | ({} if info is None else {"info": info})
    grade = graded(record)
    assert (grade.score, grade.reasons[0].code) == (0.0, "no_expected_actions")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"info": None}, "info is not an object"),
        ({"info": 3}, "info is not an object"),
        ({"info": {"task": None}}, "info.task is not an object"),
        ({"traj": None}, "traj is not a list"),
        ({"traj": 7}, "traj is not a list"),
        ({"traj": ["hello"]}, "message 0 of traj"),
        ({"traj": [{}, None]}, "message 1 of traj"),
        ({"traj": [{"tool_calls": [{"function": None}]}]}, "message 0 of traj"),
        ({"traj": [{"tool_calls": ["x"]}]}, "message 0 of traj"),
        ({"traj": [{"tool_calls": 5}]}, "message 0 of traj"),
        ({"info": {"task": {"actions": ["x"]}}}, "info.task.actions"),
        ({"info": {"task": {"actions": 5}}}, "info.task.actions"),
    ],
)
def test_malformed_records_fail(graded, tau, changes, message):
    """Where the original stops the grade fails, names the place, and keeps the reward for the statistics."""
    grade = graded(tau.record([("a", {})], [tau.call("a")], reward=1.0) | changes)
    assert (grade.outcome, grade.score, grade.parts) == (Outcome.FAILED, None, {"reward": 1.0})
    assert (grade.fault.category, grade.fault.code) == ("data", "malformed_record")
    assert message in grade.fault.message


def test_missing_traj_fails_only_when_reached(graded, tau):
    """A missing conversation fails the grade, but not that of an error record."""
    record = tau.record([("a", {})])
    del record["traj"]
    assert graded(record).fault.message == "traj is missing"
    record["info"] = {"error": "x"}
    assert graded(record).score == 0.0


@pytest.mark.parametrize("reward", [None, "1", float("nan"), float("inf"), pytest.param(10**400, id="huge")])
def test_unusable_rewards_are_no_part(graded, tau, reward):
    """A reward that is no finite number is left out of the parts; the partial score stands."""
    grade = graded(tau.record([("a", {})], [tau.call("a")], reward=reward))
    assert (grade.score, grade.parts) == (1.0, {})


def test_object_arguments_by_profile(tau):
    """Arguments recorded as an object are understood by ``documented`` and read as empty by ``upstream``."""
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": {"x": 1}}}]}
    record = tau.record([("a", {"x": 1})], [message])
    assert TauPartial().grade(tau.sample(record)).score == 1.0
    assert TauPartial(profile="upstream").grade(tau.sample(record)).score == 0.4


def test_react_runs_by_profile(tau):
    """Actions of act/react runs are calls for ``documented`` and nothing for ``upstream``; ``respond`` is speech."""
    act = 'Thought: look.\nAction:\n{"name": "a", "arguments": {"x": 1}}'
    traj = [
        {"role": "assistant", "content": act},
        {"role": "user", "content": "API output: 5"},
        {"role": "assistant", "content": 'Action: {"name": "respond", "arguments": {"content": "Hi"}}'},
    ]
    record = tau.record([("a", {"x": 1})], traj)
    assert TauPartial().grade(tau.sample(record)).score == 1.0
    assert TauPartial(profile="upstream").grade(tau.sample(record)).score == 0.0
    quiet = tau.record([], traj[2:])
    assert TauPartial().grade(tau.sample(quiet)).score == 1.0


def test_weights_are_used(tau):
    """Other weights give other scores."""
    record = tau.record([("a", {"x": 1, "y": 2})], [tau.call("a", {"x": 1})])
    assert TauPartial(name_weight=0.75, argument_weight=0.25).grade(tau.sample(record)).score == 0.75 + 0.25 * 0.5


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((0.5, 0.6), "must sum to 1, got 1.1"),
        ((-0.1, 1.1), "name_weight must be"),
        ((1.1, -0.1), "argument_weight must be"),
        ((float("nan"), 1.0), "name_weight must be"),
        ((0.0, float("inf")), "argument_weight must be"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    """Weights must be finite, not negative, and sum to 1."""
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
    assert (grade.reasons[-1].code, grade.reasons[-1].message) == ("more_reasons", "26 more reasons were left out")
    assert grade.rationale.endswith(f"; {MAX_REASONS + 26 - 3} more")
    assert (len(grade.items[0].reasons), grade.items[1].reasons) == (MAX_REASONS, ())


def test_hostile_nesting_fails_the_grade(graded, tau):
    """Arguments nested too deeply to be compared give a failed grade, not an exception."""
    deep = {"x": json.loads("[" * 300 + "1" + "]" * 300)}
    other = {"x": json.loads("[" * 300 + "2" + "]" * 300)}
    grade = graded(tau.record([("a", deep)], [tau.call("a", other)]))
    assert (grade.outcome, grade.fault.code) == (Outcome.FAILED, "too_much_work")


def test_values_of_any_depth_fail_the_grade(tau):
    """Even a comparison that exhausts the interpreter's stack gives a failed grade; a reason is still described."""
    deep, twin = [], []
    for _ in range(100_000):
        deep, twin = [deep], [twin]
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": {"x": twin}}}]}
    grade = TauPartial().grade(tau.sample(tau.record([("a", {"x": deep})], [message])))
    assert (grade.outcome, grade.fault.code) == (Outcome.FAILED, "too_much_work")
    assert describe(Reason(code="missing_call", subject="a", expected=deep)) == "a missing_call expected …"


def test_differences_too_large_to_list_are_told_in_short():
    """Where listing the differences takes too long one reason says that there are some."""
    (reason,) = _reasons(Call("a", {"x": 1}), (Call("a", {"x": 2}),), 0, Budget(0))
    assert (reason.code, reason.subject) == ("arguments_differ", "a")


def test_long_values_are_clipped_in_the_rationale(graded, tau):
    """The rationale stays short, the reason keeps the value."""
    grade = graded(tau.record([("a", {"x": "y" * 500})], [tau.call("a", {"x": 1})]))
    assert len(grade.rationale) < 150
    assert grade.reasons[0].expected == "y" * 500


@both
def test_samples_of_other_readers(profile):
    """Calls and expected calls of any reader are graded; undecodable arguments read as the original reads them."""
    grader = TauPartial(profile=profile)
    wanted = Expectation(calls=(ToolCall(name="a", arguments={"x": 1}),))
    made = (ToolCall(name="a", arguments={"x": 1, "y": 2}),)
    assert grader.grade(Sample(id="s", expected=wanted, calls=made)).score == 1.0
    assert grader.grade(Sample(id="s", expected=wanted, calls=())).score == 0.0
    assert grader.grade(Sample(id="s", expected=Expectation(calls=()), calls=())).score == 1.0
    for raw in ("[1]", "oops", None):
        bad = (ToolCall(name="a", arguments=None, raw_arguments=raw),)
        assert grader.grade(Sample(id="s", expected=wanted, calls=bad)).score == 0.4
    listed = Expectation(calls=(ToolCall(name="a", arguments=None, raw_arguments="[1]"),))
    again = (ToolCall(name="a", arguments=None, raw_arguments="[1]"),)
    assert grader.grade(Sample(id="s", expected=listed, calls=again)).score == 1.0


@both
def test_other_samples_that_cannot_be_graded(profile):
    """No reference or no recorded calls: skipped, never 0; a failed run: 0."""
    grader = TauPartial(profile=profile)
    wanted = Expectation(calls=())
    assert grader.grade(Sample(id="s", calls=())).reasons[0].code == "no_reference"
    assert grader.grade(Sample(id="s", expected=wanted)).reasons[0].code == "no_calls_recorded"
    fault = Fault(category="target", code="timeout", message="too slow")
    broken = grader.grade(Sample(id="s", expected=wanted, status=Status.FAILED, error=fault))
    assert (broken.score, broken.reasons[0].code, broken.reasons[0].message) == (0.0, "run_error", "too slow")
    silent = grader.grade(Sample(id="s", status=Status.FAILED))
    assert silent.reasons[0].message == "the run ended in an error"


small = st.sampled_from([None, True, 0, 1, 1.0, "", "a", "1", float("nan")])
json_values = st.recursive(
    small,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("xyz"), json_values, max_size=3)
names = st.sampled_from(["a", "b", "", None, 1])
arguments = objects.map(json.dumps) | json_values.map(json.dumps) | objects | st.sampled_from(["{", "", None, 5, [1]])
functions = st.fixed_dictionaries({}, optional={"name": names, "arguments": arguments}) | st.sampled_from([None, "f"])
calls = st.fixed_dictionaries({}, optional={"function": functions, "id": st.just("c")}) | st.sampled_from([None, "c"])
contents = st.sampled_from(
    [
        None,
        "hello",
        "Action: hello",
        'Action: {"name": "a", "arguments": {"x": 1}}',
        'Action: nothing. Action: {"name": "b", "arguments": {}}',
        '{"name": "respond", "arguments": {"content": "hi"}}',
        'Action: {"name": "a", "arguments": [1]}',
        'Action: {"name": 1, "arguments": {}}',
        'Action: {"name": "a", "arguments": {}} and more',
        'Action: ["a"]',
    ]
)
roles = st.sampled_from(["assistant", "user", "tool"])
good_call = st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": names, "arguments": arguments})})
messages = st.fixed_dictionaries(
    {"role": roles, "content": contents},
    optional={"tool_calls": st.lists(good_call, max_size=2) | st.lists(calls, max_size=2) | st.none()},
)
actions = st.lists(st.fixed_dictionaries({}, optional={"name": names, "kwargs": json_values}), max_size=3)
odd_actions = st.sampled_from([None, 5, "x", ["x"], {"a": 1}])
tasks = st.fixed_dictionaries({}, optional={"actions": actions | actions | odd_actions}) | st.none()
infos = st.fixed_dictionaries({"task": st.fixed_dictionaries({"actions": actions})}) | st.one_of(
    st.fixed_dictionaries({}, optional={"task": tasks, "error": st.none()}), st.sampled_from([None, 5])
)
trajs = st.lists(messages, max_size=4) | st.lists(messages | st.sampled_from([None, "m"]), max_size=2) | st.none()
records = st.fixed_dictionaries({"task_id": st.just(0)}, optional={"info": infos, "traj": trajs})


@pytest.mark.parametrize("profile", PROFILES)
@given(record=records)
@settings(max_examples=examples(600), deadline=None)
def test_equals_the_independent_scorer(tau: SimpleNamespace, profile, record):
    """Scores of arbitrary records are the independent scorer's to the last bit; where it stops the grade fails."""
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
