"""Our own rule: shares, matchings, options, verdicts, counts and reasons."""

import pytest

from gradestack import Expectation, ExpectedCall, Outcome, Rule, Sample, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.diff import ToolTerms
from gradestack_plugins.tool_calls.grader import ToolCalls


def wanted(*calls):
    """Return expected calls: names, (name, arguments), or what they are already."""
    return tuple(
        call if isinstance(call, ExpectedCall) else ExpectedCall(**_named(call)) for call in calls
    )


def done(*calls):
    return tuple(call if isinstance(call, ToolCall) else ToolCall(**_named(call)) for call in calls)


def _named(call):
    if isinstance(call, str):
        return {"name": call}
    return {"name": call[0], "arguments": call[1]}


def grade(expected, made, *, tools=None, alternatives=(), **options):
    expectation = Expectation(calls=expected, alternatives=alternatives)
    if tools is None:
        specs = None
    else:
        specs = tuple(ToolSpec(name=name) for name in tools)
    tool_calls = ToolCalls(**options)
    sample = Sample(id="s", expected=expectation, calls=made, tools=specs)
    return tool_calls.grade(sample)


def score(expected, made, **options):
    grade_found = grade(wanted(*expected), done(*made), **options)
    return grade_found.score, grade_found.passed


F, G = ("f", {"x": 1}), ("g", {"y": 2})


@pytest.mark.parametrize(
    "rule",
    [
        Rule(ignore=True, any_of=(1,)),
        Rule(tolerance=1, compare="regex", any_of=("a",)),
        Rule(tolerance=float("nan")),
        Rule(compare="regex", any_of=("(",)),
        Rule(compare="regex"),
    ],
)
def test_rules_that_contradict_themselves(rule):
    """They make the grade failed, and are named."""
    expected_call = ExpectedCall(name="f", rules={"day": rule})
    grade_found = grade((expected_call,), done("f"))
    assert grade_found.outcome == Outcome.FAILED
    assert grade_found.fault.code == "unusable_rule"
    assert "rule of day" in grade_found.fault.message


def test_terms_of_single_tools():
    """A tool's calls may be compared by other terms than the rest."""
    tool_terms = ToolTerms(ignore=("meta.*", "page"), defaults={"day": 1})
    terms = {
        "f": tool_terms,
        "g": ToolTerms(keys=("/a/b", "c")),
    }
    expected = [("f", {"x": 1, "meta": {"id": 1}}), ("g", {"a": {"b": 1, "z": 1}, "c": 2, "d": 3})]
    made = [
        ("f", {"x": 1, "meta": {"id": 2}, "page": 4, "day": 1}),
        ("g", {"a": {"b": 1, "z": 2}, "c": 2}),
    ]
    assert score(expected, made, per_tool=terms) == (1.0, True)
    assert score(expected, made)[1] is False
    assert score([F], [("f", {"x": 1, "day": 2})], per_tool=terms)[0] == 0.5
    per_tool = {"*": ToolTerms(arguments="ignore")}
    assert score([F, G], [("f", {}), ("g", {})], per_tool=per_tool) == (
        1.0,
        True,
    )


def test_undecodable_arguments():
    """They are right with no call, and count among those made."""
    broken = ToolCall(name="f", arguments=None, raw_arguments="[1]")
    expected = wanted("f", G)
    grade_found = grade(expected, (broken, *done(G)))
    assert grade_found.score == 0.5
    assert grade_found.counts["made"] == 2
    codes = [reason.code for reason in grade_found.reasons]
    assert codes == ["undecodable_arguments"]
    assert grade(wanted("f"), (ToolCall(name="f", arguments=None),)).score == 1.0


def test_too_many_calls():
    """Above the limit the grade is failed at once; equal calls do not count."""
    expected = [("f", {"x": number}) for number in range(12)]
    made = []
    for number in range(12):
        made.append(("f", {"x": -1 - number}))
    for options in (
        {},
        {"order": "in_order"},
        {"assignment": "first_fit"},
        {"preset": "deepeval/tool_correctness/default/arguments"},
    ):
        grade_found = grade(wanted(*expected), done(*made), max_pairs=100, **options)
        assert grade_found.outcome == Outcome.FAILED
        assert grade_found.fault.code == "too_many_calls"
    many = [("f", {"x": number}) for number in range(400)]
    assert score(many, many[::-1])[1] is True
    assert (
        score(many, [("f", {"x": 0})] * 400, arguments="ignore")[1] is True
    )  # by name alone all are equal


def test_odd_values_have_grades():
    """Names that are no text, NaN, and nesting beyond all measure fail nobody else's grade."""
    expected_call = ExpectedCall(name="5")
    tool_call = ToolCall(name=5)
    assert grade((expected_call,), (tool_call,)).score == 0.0
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for preset in (
        None,
        "adk/exact",
        "ragas/tool_call_f1",
        "promptfoo/trajectory:tool-args-match/exact",
    ):
        grade_found = grade(wanted(("f", {"x": deep})), done(("f", {"x": [deep]})), preset=preset)
        assert grade_found.outcome in {Outcome.GRADED, Outcome.FAILED}
    expected = wanted(("f", {"x": deep}))
    missing = grade(expected, done("g"))
    assert missing.outcome == Outcome.FAILED
    assert missing.fault.code == "nested_too_deeply"


def test_equal_calls_at_the_start_are_no_pairs_to_compare():
    calls = [("f", {"x": number}) for number in range(6)]
    for equality in ("json", "python", "text"):
        options = {"order": "in_order", "equality": equality, "max_pairs": 1}
        assert score(calls, [*calls, G, *[("h", {})] * 9], **options)[0] is not None
