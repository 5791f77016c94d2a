"""Policies: every rule by hand, rules that contradict each other, and the presets of three other tools."""

import pytest

import gradestack
from gradestack import Expectation, Message, Outcome, Sample, ToolCall, testing
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.trajectory.tool_policy import ToolPolicy
from tests.core.outcomes import data

DATA = data(__file__, "tool_policy.yaml")


def call(name, status=None, **arguments):
    return ToolCall(name=name, arguments=arguments, status=status)


def calls(names):
    return tuple(call(name) for name in names)


def graded(made, *, turns=(), forbidden=(), **options):
    made = calls(made) if isinstance(made, str) else tuple(made)
    sample = Sample(id="a", calls=made, turns=turns, expected=Expectation(forbidden=forbidden))
    return structure(options, ToolPolicy).grade(sample)


def codes(grade):
    return [each.code for each in grade.reasons]


@pytest.mark.parametrize(
    ("made", "options", "score", "broken"),
    [
        *DATA["each_rule_is_a_check"],
        ("ab", {"allow": []}, 0.0, ["not_allowed"] * 2),
        ("ab", {"deny": ["c"], "expect": ["c.*", "a"], "fatal": True}, 2 / 3, ["tool_not_called"]),
    ],
)
def test_each_rule_is_a_check(made, options, score, broken):
    """The score is the share of checks that are kept; a name is fitted whole, and calls in order may have gaps."""
    grade = graded(made, **options)
    assert (grade.score, codes(grade), grade.passed) == (score, broken, not broken)
    assert grade.counts["passed"] == sum(item.score == 1.0 for item in grade.items)


def test_arguments_are_told_by_pointer():
    """An expression occurs in a text, or in the JSON of what is none; a call without the argument does not fit."""
    made = [call("sh", command="rm -rf /"), call("sh", command=["rm"]), call("sh", opts={"a/b": 1}), call("sh")]
    pattern = {"tool": "sh", "arguments": {"/command": r"\brm\b"}}
    assert codes(graded(made, deny=[pattern])) == ["denied", "denied"]
    assert graded(made, deny=[{"tool": "sh", "arguments": {"/opts/a~1b": "^1$"}}]).score == 0.0
    assert graded(made, deny=[{"tool": "sh", "arguments": {"/command/0": "^rm$"}}]).score == 0.0
    assert graded(made, deny=[{"tool": "sh", "arguments": {"/command/1": ""}}]).score == 1.0
    assert graded([ToolCall(name="sh", arguments=None, raw_arguments="{")], deny=[pattern]).score == 1.0


def test_identical_calls_have_the_same_name_and_canonical_arguments():
    """The order of keys does not matter, nor 1 and 1.0; true is not 1; undecodable texts are compared as they are."""
    same = [call("f", a=1, b=[0.0]), call("f", b=[-0.0], a=1.0)]
    assert codes(graded(same, repeats={"in_a_row": 1})) == ["repeated_call"]
    assert codes(graded([call("f", a=1), call("f", a=True)], repeats={"in_a_row": 1})) == []
    raw = [ToolCall(name="f", arguments=None, raw_arguments=text) for text in "{{["]
    assert [each.actual for each in graded(raw, repeats={"in_all": 1}).reasons] == [2]


def test_no_call_may_follow_the_final_answer():
    """Until somebody else speaks; without a conversation nobody knows, and the check is left out."""
    ask, say = Message(role="user", content="?"), Message(role="assistant", content="done")
    act = Message(role="assistant", content="I call", tool_calls=calls("a"))
    result, nothing = Message(role="tool", content="ok"), Message(role="assistant", content=" ")
    for talk, kept in (
        ((ask, act, result, say), True),
        ((ask, say, act), False),
        ((ask, say, result, act), False),
        ((ask, say, ask, act), True),
        ((ask, nothing, act), True),
    ):
        grade = graded("a", turns=(talk,), after_final=False)
        assert (grade.score, grade.passed) == (float(kept), kept)
        assert codes(grade) == ([] if kept else ["call_after_final"])
    grade = graded("a", after_final=False)
    assert (grade.outcome, codes(grade)) == (Outcome.SKIPPED, ["no_checks"])


def test_what_the_reference_forbids_is_denied():
    """With the policy's own rules, or alone; an expression that is none fails the grade."""
    assert graded("ab", forbidden=("b",)).score == 0.0
    assert graded("ab", forbidden=("b",), deny=["b"], allow=[".*"]).counts["checks"] == 2
    grade = graded("ab", forbidden=("(",))
    assert (grade.outcome, grade.fault.code) == (Outcome.FAILED, "unusable_pattern")


def test_calls_may_be_counted_as_attempted_or_executed_and_by_requestor():
    """A denied call was attempted; where it is not known whether a call was executed, nothing is counted."""
    made = [call("a", "denied"), call("b", "ok")]
    assert graded(made, deny=["a"]).score == 0.0
    assert graded(made, deny=["a"], count="executed").score == 1.0
    assert codes(graded("a", deny=["a"], count="executed")) == ["execution_not_recorded"]
    assert graded([ToolCall(name="a", requestor="user")], deny=["a"]).score == 1.0
    assert graded([ToolCall(name="a", requestor="user")], deny=["a"], requestor=None).score == 0.0
    assert ToolPolicy(deny=("a",)).grade(Sample(id="a")).reasons[0].code == "calls_not_recorded"


@pytest.mark.parametrize(("options", "said"), DATA["rules_that_contradict_are_refused"])
def test_rules_that_contradict_are_refused(options, said):
    """Before any data is read, with what is wrong."""
    with pytest.raises(Problems, match=said):
        structure(options, ToolPolicy)


def test_deepeval_permission_is_the_share_of_allowed_calls():
    """A denial wins, names are compared exactly, nothing called is 1, and it passes at 1 alone."""
    preset = {"preset": "deepeval/tool_permission"}
    for made, options, score in (
        ("aab", {"allow": ["a"]}, 2 / 3),
        ("aab", {"deny": ["a"]}, 1 / 3),
        ("aab", {"allow": ["a", "b"], "deny": ["a"]}, 1 / 3),
        ("aab", {"allow": [".*"]}, 0.0),
        ("aab", {"allow": []}, 0.0),
        ("", {"allow": []}, 1.0),
        ("(((", {"allow": ["("]}, 1.0),
    ):
        grade = graded(made, **preset, **options)
        assert (grade.score, grade.passed) == (score, score == 1.0), (made, options)
        assert grade.metadata == {"preset": "deepeval/tool_permission@4.3.1"}
    grade = graded([ToolCall(name="a", arguments=None, raw_arguments="{")], **preset, allow=["a"])
    assert (grade.outcome, grade.fault.code) == (Outcome.FAILED, "undecodable_arguments")
    unknown = structure({**preset, "allow": ["a"]}, ToolPolicy).grade(Sample(id="a"))
    assert (unknown.outcome, unknown.metadata) == (Outcome.SKIPPED, {"preset": "deepeval/tool_permission@4.3.1"})


def test_waza_constraints_are_expressions_that_occur_case_ignored():
    """Each expected and each rejected tool is a check; an argument that is no text counts as empty."""
    made = [call("Bash", command="git push"), call("view", path=7)]
    for options, score in (
        ({"expect": ["bash"]}, 1.0),
        ({"expect": ["as", "edit"]}, 0.5),
        ({"deny": ["^b", "w$", "x"]}, 1 / 3),
        ({"expect": [{"tool": "bash", "arguments": {"/command": "PUSH"}}]}, 1.0),
        ({"expect": [{"tool": "bash", "arguments": {"/command": "^push"}}]}, 0.0),
        ({"expect": [{"tool": "view", "arguments": {"/path": "^$"}}]}, 1.0),
        ({"expect": [{"tool": "view", "arguments": {"/path": "7"}}]}, 0.0),
    ):
        grade = graded(made, preset="waza/tool_constraint@091a1f9", **options)
        assert (grade.score, grade.passed) == (score, score == 1.0), options
        assert grade.metadata == {"preset": "waza/tool_constraint@091a1f9"}
    assert graded("", preset="waza/tool_constraint", expect=["a"], deny=["b"]).score == 0.5


def test_promptfoo_counts_the_steps_that_fit_a_glob():
    """Anchored, case ignored, both bounds included; 1 or 0."""
    for made, options, score in (
        ("aab", {"calls": {"min": 3, "max": 3}}, 1.0),
        ("aab", {"calls": {"max": 2}}, 0.0),
        ("", {"calls": {"min": 0}}, 1.0),
        ("aab", {"per_tool": {"A": {"min": 2, "max": 2}}}, 1.0),
        ("aab", {"per_tool": {"?": {"min": 3}}}, 1.0),
        (calls([" get_x ", "get.y", "forget"]), {"per_tool": {"get*": {"min": 2, "max": 2}}}, 1.0),
        (calls(["get_x", "get.y"]), {"per_tool": {"get.?": {"max": 0}}}, 0.0),
    ):
        grade = graded(made, preset="promptfoo/step-count", **options)
        assert (grade.score, grade.passed) == (score, score == 1.0), (made, options)
        assert grade.metadata == {"preset": "promptfoo/step-count@0.121.20"}


def test_the_contract_holds_with_rules_and_with_presets():
    """Pure, deterministic, and never raising on odd samples."""
    for options in (
        {"allow": ["a"], "deny": [{"tool": ".*", "arguments": {"/q": "x"}}], "repeats": {"in_a_row": 1, "in_all": 1}},
        {"calls": {"max": 2}, "required_order": [["search", "x"]], "after_final": False, "requestor": None},
        {"preset": "deepeval/tool_permission", "allow": ["search"]},
        {"preset": "waza/tool_constraint", "deny": [{"tool": "s", "arguments": {"/path": "x"}}]},
        {"preset": "promptfoo/step-count", "per_tool": {"s*": {"max": 1}}},
    ):
        testing.check_grader(structure(options, ToolPolicy))


def test_figures_are_the_rate_of_runs_and_of_each_check():
    """With an interval clustered by task; without a verdict there is a reason."""
    runs = (("x", "a"), ("x", "ab"), ("y", "a"))
    rows = [(task, None, None, graded(made, deny=["b"], expect=["a"])) for task, made in runs]
    figures = gradestack.figures({"policy_checks": {}}, rows)["policy_checks"]
    assert (figures["n"], figures["clusters"], figures["kept_rate"]) == (3, 2, 2 / 3)
    checks = {
        name: {**each, "rate_interval": each["rate_interval"]["clusters"]} for name, each in figures["checks"].items()
    }
    assert checks == {
        "deny b": {"runs": 3, "kept": 2, "rate": 2 / 3, "rate_interval": 2},
        "expect a": {"runs": 3, "kept": 3, "rate": 1.0, "rate_interval": 2},
    }
    assert figures["kept_rate_interval"]["clusters"] == 2
    assert gradestack.figures({"policy_checks": {}}, [])["policy_checks"]["kept_rate_reason"] == "no run has a verdict"
