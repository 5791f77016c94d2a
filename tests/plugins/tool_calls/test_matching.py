"""Our own rule: shares, matchings, options, verdicts, counts and reasons."""

import pytest

from gradestack import Expectation, ExpectedCall, Outcome, Rule, Sample, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.diff import ToolTerms
from gradestack_plugins.tool_calls.grader import Empty, ToolCalls


def wanted(*calls):
    """Return expected calls: names, (name, arguments), or what they are already."""
    return tuple(each if isinstance(each, ExpectedCall) else ExpectedCall(**_named(each)) for each in calls)


def done(*calls):
    """Return calls that were made."""
    return tuple(each if isinstance(each, ToolCall) else ToolCall(**_named(each)) for each in calls)


def _named(call):
    return {"name": call} if isinstance(call, str) else {"name": call[0], "arguments": call[1]}


def grade(expected, made, *, tools=None, alternatives=(), **options):
    """Return the grade of calls."""
    expectation = Expectation(calls=expected, alternatives=alternatives)
    specs = None if tools is None else tuple(ToolSpec(name=name) for name in tools)
    return ToolCalls(**options).grade(Sample(id="s", expected=expectation, calls=made, tools=specs))


def score(expected, made, **options):
    """Return score and verdict."""
    found = grade(wanted(*expected), done(*made), **options)
    return found.score, found.passed


F, G = ("f", {"x": 1}), ("g", {"y": 2})
F2 = ("f", {"x": 1, "y": 2})


def share(left, right, **options):
    """Return how much of one pair of arguments is right."""
    return grade(wanted(("f", left)), done(("f", right)), **options).parts["credit"]


SHARES = [
    ({}, {}, 1),
    ({"x": 1}, {"x": 1.0}, 1),
    ({"x": 1}, {"x": True}, 0),
    ({"x": 0}, {"x": -0.0}, 1),
    ({"x": 2**53 + 1}, {"x": 2.0**53}, 0),
    ({"x": None}, {}, 0),
    ({"x": "a"}, {"x": "A"}, 0),
    ({"x": 1, "y": 2}, {"x": 1}, 1 / 2),
    ({"x": 1}, {"x": 1, "y": 2}, 1 / 2),
    ({"x": 1, "y": 2}, {"x": 1, "y": 3}, 1 / 2),
    ({"x": [1, 2]}, {"x": [1, 2]}, 1),
    ({"x": [1, 2]}, {"x": [2, 1]}, 0),
    ({"x": [1, 2]}, {"x": [1]}, 1 / 2),
    ({"x": []}, {"x": {}}, 0),
    ({"x": {}}, {}, 0),
    ({"q.x": 1}, {"q": {"x": 1}}, 0),
    ({"a/b": 1}, {"a": {"b": 1}}, 0),
    ({"a/b": 1, "a~b": 2}, {"a": {"b": 1}, "a~b": 2}, 1 / 3),
    ({"x": [5]}, {"x": {"0": 5}}, 0),
    ({"x": float("nan")}, {"x": float("nan")}, 0),
    ({"o": {"a": 1, "b": {"c": [1, {"d": None}]}}}, {"o": {"a": 1, "b": {"c": [1, {"d": 0}]}}}, 2 / 3),
]


def test_shares():
    """A share is equal leaves over leaves of either, by JSON's equality and pointers."""
    assert [share(left, right) for left, right, _ in SHARES] == [pytest.approx(each) for *_, each in SHARES]


def test_shares_go_both_ways():
    """What is missing on one side is unknown on the other: the share is the same."""
    assert [share(right, left) for left, right, _ in SHARES] == [pytest.approx(each) for *_, each in SHARES]


def test_other_equalities():
    """Python takes true for 1, text takes "1" for 1 and None for "None"."""
    assert share({"x": 1}, {"x": True}, equality="python") == 1
    assert share({"x": [{"y": 1}]}, {"x": [{"y": 1.0}]}, equality="python") == 1
    assert share({"x": 1}, {"x": "1"}, equality="python") == 0
    assert share({"x": 1, "y": None}, {"x": "1", "y": "None"}, equality="text") == 1
    assert share({"x": 1}, {"x": 1.0}, equality="text") == 0


def test_modes_of_arguments():
    """Subset takes nothing beyond what is expected, superset at least that, ignore the name alone."""
    assert [share({"x": 1, "y": 2}, {"x": 1}, arguments=mode) for mode in ("subset", "superset")] == [1, 0.5]
    assert [share({"x": 1}, {"x": 1, "y": 2}, arguments=mode) for mode in ("subset", "superset")] == [0.5, 1]
    assert share({"x": 1}, {"z": 9}, arguments="ignore") == 1


def test_the_score_is_f1():
    """Precision over the calls made, recall over those expected."""
    found = grade(wanted(F, G), done(F, ("f", {"x": 9}), G))
    assert (found.score, found.passed) == (pytest.approx(0.8), False)
    assert found.parts == {
        "precision": pytest.approx(2 / 3),
        "recall": 1.0,
        "f1": pytest.approx(0.8),
        "credit": 2.0,
        "required_credit": 2.0,
    }
    assert score([F, G], [F], score="precision") == (1.0, False)
    assert score([F, G], [F], score="recall") == (0.5, False)


def test_the_heaviest_matching_is_found():
    """The best partner of one call may be better used by another."""
    expected = [("f", {"x": 1, "y": 2}), ("f", {"x": 1, "y": 3})]
    made = [("f", {"x": 1, "y": 3, "z": 0}), ("f", {"x": 2, "y": 2})]
    assert grade(wanted(*expected), done(*made)).parts["credit"] == pytest.approx(1 / 2 + 2 / 3)
    assert grade(wanted(*expected), done(*made), assignment="first_fit").parts["credit"] == pytest.approx(1 / 3)


def test_ties_go_to_the_first():
    """Of several heaviest matchings, the one whose calls come first in order of the expected ones."""
    found = grade(wanted(F, F), done(F, F, F))
    assert [item.metadata["call"] for item in found.items] == [0, 1, 2]
    half = grade(wanted(F2), done(("f", {"x": 1, "y": 0}), ("f", {"x": 0, "y": 2})))
    assert half.items[0].metadata["call"] == 0
    both = grade(wanted(F2, ("f", {"y": 2})), done(F, F2))
    assert [(item.id, item.metadata["call"]) for item in both.items] == [("0", 0), ("1", 1)]


def test_order():
    """Any order, in order with others in between, and index by index."""
    assert score([F, G], [G, F]) == (1.0, True)
    assert score([F, G], [G, F], order="in_order") == (0.5, False)
    assert score([F, G], [F, ("h", {}), G], order="in_order", extra="allow") == (1.0, True)
    assert score([F, G], [("h", {}), F, G], order="strict") == (0.0, False)
    assert score([F, G], [F, G], order="strict") == (1.0, True)


def test_the_heaviest_alignment_is_found():
    """In order, too, the sum of shares is what counts, not the first that fits."""
    expected, made = [F2, G], [G, ("f", {"x": 1}), F2, G]
    found = grade(wanted(*expected), done(*made), order="in_order")
    assert [item.metadata["call"] for item in found.items[:2]] == [2, 3]
    first = grade(wanted(*expected), done(*made), order="in_order", assignment="first_fit")
    assert [item.metadata["call"] for item in first.items[:2]] == [1, 3]


def test_groups():
    """Calls of one group come in any order, groups in theirs."""
    expected = [ExpectedCall(name=name, group=group) for name, group in (("a", 0), ("b", 0), ("c", 1), ("d", 1))]
    expected.append(ExpectedCall(name="e"))
    assert score(expected, ["b", "a", "d", "c", "e"], order="in_order") == (1.0, True)
    assert score(expected, ["a", "c", "b", "d", "e"], order="in_order") == (pytest.approx(0.8), False)
    assert score(expected, ["e", "b", "a", "d", "c"], order="in_order") == (pytest.approx(0.8), False)
    assert score(expected, ["x", "b", "y", "a", "d", "c", "e"], order="in_order", extra="allow") == (1.0, True)
    assert grade(wanted(*expected), done(*"badce"), order="in_order", max_pairs=60).fault.code == "too_many_calls"


def test_extra_and_missing_calls():
    """They lower the score, make it nothing, or cost nothing."""
    assert score([F], [F, G], extra="allow") == (1.0, True)
    assert score([F], [F, G], extra="forbid") == (0.0, False)
    assert score([F, G], [F], missing="forbid") == (0.0, False)
    assert score([F, G], [F]) == (pytest.approx(2 / 3), False)


def test_credit():
    """A share for each pair, right or wrong pairs, or the verdict alone."""
    assert score([F2, G], [F, G]) == (0.75, False)
    assert score([F2, G], [F, G], credit="call") == (0.5, False)
    assert score([F2, G], [F, G], credit="none") == (0.0, False)
    assert score([F2, G], [G, F2], credit="none") == (1.0, True)


def test_equal_calls_may_be_one():
    """As a set, calls made twice are made once; 1 and 1.0 are equal, true is not."""
    assert score([F], [F, ("f", {"x": 1.0})], repeats="set") == (1.0, True)
    assert score([F, F], [F], repeats="set") == (1.0, True)
    assert score([F], [F, ("f", {"x": True})], repeats="set") == (pytest.approx(2 / 3), False)


def test_without_calls():
    """Both sides empty is right, one is wrong, unless the options say otherwise."""
    assert (score([], []), score([F], []), score([], [F])) == ((1.0, True), (0.0, False), (0.0, False))
    assert score([], [F], empty=Empty(made_only=1)) == (1.0, True)
    assert score([], [], empty=Empty(both=0)) == (0.0, False)
    for sides, empty in (
        (([], []), Empty(both="skip")),
        (([F], []), Empty(expected_only="skip")),
        (([], [F]), Empty(made_only="skip")),
    ):
        left_out = grade(wanted(*sides[0]), done(*sides[1]), empty=empty)
        assert (left_out.outcome, left_out.reasons[0].code) == (Outcome.SKIPPED, "nothing_to_match")
    assert [reason.code for reason in grade((), done(F)).reasons] == ["unexpected_call"]


def test_optional_calls():
    """They cost nothing when they are not made, and are no extra calls when they are."""
    maybe = ExpectedCall(name="g", arguments={"y": 2}, optional=True)
    assert score([F, maybe], [F]) == (1.0, True)
    assert score([F, maybe], [F, G]) == (1.0, True)
    assert score([F, maybe], [G]) == (0.0, False)
    assert score([maybe], []) == (1.0, True)
    half = grade(wanted(F, ExpectedCall(name="f", arguments={"x": 1, "y": 9}, optional=True)), done(F, F2))
    assert (half.parts["recall"], half.passed) == (1.0, False)


def test_several_names():
    """Any of an expected call's tools will do."""
    either = ExpectedCall(names=("f", "h"), arguments={"x": 1})
    assert score([either], [("h", {"x": 1})]) == (1.0, True)
    assert score([either, F], [F, ("h", {"x": 1})]) == (1.0, True)
    assert score([either], [("g", {"x": 1})]) == (0.0, False)


def test_arguments_that_are_not_compared():
    """An expected call without arguments takes any."""
    assert score([ExpectedCall(name="f", arguments=None)], [F2]) == (1.0, True)


def test_alternatives():
    """The best list counts, and is named."""
    lists = (wanted(F, G), wanted(("h", {})))
    found = grade(wanted(F), done(F, G), alternatives=lists)
    assert (found.score, found.metadata["alternative"]) == (1.0, 0)
    assert "alternative" not in grade(wanted(F), done(F), alternatives=lists).metadata
    assert grade(None, done(("h", {})), alternatives=lists).metadata["alternative"] == 1


def test_turns():
    """Turns are matched alone, the mean over them is the score, and reasons name theirs."""
    expected = (ExpectedCall(name="f", turn=0), ExpectedCall(name="g", turn=1))
    swapped = (ToolCall(name="g", turn=0), ToolCall(name="f", turn=1))
    assert grade(expected, swapped).score == 1.0
    by_turn = grade(expected, swapped, unit="turn")
    assert (by_turn.score, by_turn.counts["missing"], by_turn.counts["extra"]) == (0.0, 2, 2)
    assert {reason.message for reason in by_turn.reasons} == {"turn 0", "turn 1"}
    late = grade(expected, (ToolCall(name="f"), ToolCall(name="g", turn=2)), unit="turn")
    assert late.score == pytest.approx(1 / 3)
    skipped = grade(
        expected, (ToolCall(name="f"), ToolCall(name="x", turn=2)), unit="turn", empty=Empty(made_only="skip")
    )
    assert skipped.score == 0.5
    none = grade(wanted(F), done(F), unit="turn")
    assert (none.outcome, none.reasons[0].code) == (Outcome.SKIPPED, "no_turns")


def test_executed_calls():
    """Calls that were not run do not count, and without a status nobody knows."""
    made = (ToolCall(name="f", status="ok"), ToolCall(name="g", status="denied"))
    assert grade(wanted("f"), made, count="executed").score == 1.0
    assert grade(wanted("f"), made).score == pytest.approx(2 / 3)
    unknown = grade(wanted("f"), done("f"), count="executed")
    assert (unknown.outcome, unknown.reasons[0].code) == (Outcome.SKIPPED, "execution_not_recorded")


def test_requestors():
    """A call of the user is none of the assistant's, unless that does not matter."""
    expected = (ExpectedCall(name="f", requestor="user"),)
    made = (ToolCall(name="f"),)
    assert grade(expected, made).score == 0.0
    assert grade(expected, made, requestor="any").score == 1.0
    assert grade(expected, made, requestor="assistant", empty=Empty(made_only=1)).score == 1.0
    assert grade(expected, (ToolCall(name="f", requestor="user"), *made), requestor="user").score == 1.0


RULES = [
    (Rule(any_of=("a", "b")), {"x": "b"}, 1),
    (Rule(any_of=("a", "b")), {"x": "c"}, 0),
    (Rule(any_of=(1,)), {"x": True}, 0),
    (Rule(any_of=("a",), optional=True), {}, 1),
    (Rule(any_of=("a",), optional=True), {"x": "b"}, 0),
    (Rule(ignore=True), {"x": [1]}, 1),
    (Rule(tolerance=0.1), {"x": 0.95}, 1),
    (Rule(tolerance=0.1), {"x": 1.2}, 0),
    (Rule(compare="text"), {"x": "1"}, 1),
    (Rule(compare="number"), {"x": "1.0"}, 1),
    (Rule(compare="number"), {"x": "one"}, 0),
    (Rule(any_of=([1, 2],), compare="set"), {"x": [2, 1, 1]}, 1),
    (Rule(any_of=([1, 2],), compare="set"), {"x": [2]}, 0),
    (Rule(any_of=("^O", "^B"), compare="regex"), {"x": "Oslo"}, 1),
    (Rule(any_of=("^O$",), compare="regex"), {"x": "Oslo"}, 0),
    (Rule(any_of=({"type": "integer", "minimum": 2},), compare="schema"), {"x": 2}, 1),
    (Rule(any_of=({"type": "integer", "minimum": 2},), compare="schema"), {"x": 1}, 0),
]


def test_rules_of_arguments():
    """A rule alone decides its argument; without values of its own, those are the arguments'."""
    found = []
    for rule, made, _ in RULES:
        call = ExpectedCall(name="f", arguments={"x": 1}, rules={"x": rule})
        found.append(grade((call,), done(("f", made))).parts["credit"])
    assert found == [each for *_, each in RULES]
    beside = ExpectedCall(name="f", arguments={"y": 2}, rules={"x": Rule(any_of=(1, 2))})
    assert grade((beside,), done(("f", {"x": 2, "y": 3}))).score == 0.5
    assert grade((beside,), done(("f", {"y": 2}))).reasons[0].pointer == "/x"
    aside = ExpectedCall(name="f", arguments={"x": 1}, rules={"x": Rule(any_of=(2,))})
    assert grade((aside,), done(F), arguments="exact").score == 1.0


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
    found = grade((ExpectedCall(name="f", rules={"day": rule}),), done("f"))
    assert (found.outcome, found.fault.code) == (Outcome.FAILED, "unusable_rule")
    assert "rule of day" in found.fault.message


def test_terms_of_single_tools():
    """A tool's calls may be compared by other terms than the rest."""
    terms = {"f": ToolTerms(ignore=("meta.*", "page"), defaults={"day": 1}), "g": ToolTerms(keys=("/a/b", "c"))}
    expected = [("f", {"x": 1, "meta": {"id": 1}}), ("g", {"a": {"b": 1, "z": 1}, "c": 2, "d": 3})]
    made = [("f", {"x": 1, "meta": {"id": 2}, "page": 4, "day": 1}), ("g", {"a": {"b": 1, "z": 2}, "c": 2})]
    assert score(expected, made, per_tool=terms) == (1.0, True)
    assert score(expected, made)[1] is False
    assert score([F], [("f", {"x": 1, "day": 2})], per_tool=terms)[0] == 0.5
    assert score([F, G], [("f", {}), ("g", {})], per_tool={"*": ToolTerms(arguments="ignore")}) == (1.0, True)


def test_undecodable_arguments():
    """They are right with no call, and count among those made."""
    broken = ToolCall(name="f", arguments=None, raw_arguments="[1]")
    found = grade(wanted("f", G), (broken, *done(G)))
    assert (found.score, found.counts["made"]) == (0.5, 2)
    assert [reason.code for reason in found.reasons] == ["undecodable_arguments"]
    assert grade(wanted("f"), (ToolCall(name="f", arguments=None),)).score == 1.0


def test_reasons_name_codes_and_places():
    """Each thing that is wrong has a code, and arguments their pointer."""
    expected = wanted(("f", {"a": 1, "b": "x", "c": {"d": 1}}), "g", "h")
    made = done("g", ("f", {"a": 2, "b": 3, "e": 0}), "k")
    found = grade(expected, made, tools=("f", "g", "h"))
    assert {(each.code, each.subject, each.pointer) for each in found.reasons} == {
        ("wrong_value", "f", "/a"),
        ("wrong_type", "f", "/b"),
        ("missing_argument", "f", "/c/d"),
        ("unknown_argument", "f", "/e"),
        ("missing_call", "h", ""),
        ("unknown_tool", "k", ""),
        ("extra_call", "k", ""),
    }
    order = grade(wanted("f", "g"), done("g", "f"), order="in_order")
    assert [each.code for each in order.reasons] == ["wrong_order"]


def test_counts():
    """Calls and arguments are counted by how they fared."""
    expected = wanted("f", ("g", {"x": 1, "y": 2}), "h", ("i", {"z": 1}))
    found = grade(expected, done("h", ("g", {"x": 1, "y": 3}), "f", ("k", {"a": 1})), tools=("f", "g", "h", "i"))
    assert {name: found.counts[name] for name in found.counts if found.counts[name]} == {
        "expected": 4,
        "made": 4,
        "matched": 3,
        "exact": 2,
        "missing": 1,
        "extra": 1,
        "out_of_order": 2,
        "hallucinated_tool": 1,
        "required": 4,
        "weighed": 4,
        "arguments_right": 1,
        "arguments_wrong": 1,
        "arguments_missing": 1,
        "arguments_unknown": 1,
    }


def test_too_many_calls():
    """Above the limit the grade is failed at once; equal calls do not count."""
    expected = [("f", {"x": number}) for number in range(12)]
    made = [("f", {"x": -1 - number}) for number in range(12)]
    for options in (
        {},
        {"order": "in_order"},
        {"assignment": "first_fit"},
        {"preset": "deepeval/tool_correctness/default/arguments"},
    ):
        found = grade(wanted(*expected), done(*made), max_pairs=100, **options)
        assert (found.outcome, found.fault.code) == (Outcome.FAILED, "too_many_calls")
    many = [("f", {"x": number}) for number in range(400)]
    assert score(many, many[::-1])[1] is True
    assert score(many, [("f", {"x": 0})] * 400, arguments="ignore")[1] is True  # by name alone all are equal


def test_odd_values_have_grades():
    """Names that are no text, NaN, and nesting beyond all measure fail nobody else's grade."""
    assert grade((ExpectedCall(name="5"),), (ToolCall(name=5),)).score == 0.0
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for preset in (None, "adk/exact", "ragas/tool_call_f1", "promptfoo/trajectory:tool-args-match/exact"):
        found = grade(wanted(("f", {"x": deep})), done(("f", {"x": [deep]})), preset=preset)
        assert found.outcome in {Outcome.GRADED, Outcome.FAILED}
    missing = grade(wanted(("f", {"x": deep})), done("g"))
    assert (missing.outcome, missing.fault.code) == (Outcome.FAILED, "nested_too_deeply")


def test_what_is_not_recorded_is_skipped():
    """No reference, or no recorded answer."""
    assert grade(None, done(F)).reasons[0].code == "no_reference"
    assert grade(wanted(F), None).reasons[0].code == "calls_not_recorded"


def test_nan_equals_nothing():
    """NaN is wrong even where expected and made are one and the same object, alone or inside a list."""
    nan = float("nan")
    for value in (nan, [nan], {"y": [1, nan]}):
        found = grade(wanted(("f", {"x": value})), done(("f", {"x": value})))
        assert (found.passed, found.counts["arguments_wrong"]) == (False, 1)


def test_texts_of_zeros_differ():
    """As texts 0.0 and -0.0 are two things, as numbers they are one."""
    assert score([("f", {"x": 0.0})], [("f", {"x": -0.0})]) == (1.0, True)
    assert score([("f", {"x": 0.0})], [("f", {"x": -0.0})], equality="text") == (0.0, False)


def test_equal_calls_at_the_start_are_no_pairs_to_compare():
    """In order, calls that are made as expected take none of ``max_pairs``, as texts neither."""
    calls = [("f", {"x": number}) for number in range(6)]
    for equality in ("json", "python", "text"):
        options = {"order": "in_order", "equality": equality, "max_pairs": 1}
        assert score(calls, [*calls, G, *[("h", {})] * 9], **options)[0] is not None


def test_names_that_look_like_places_are_not_taken_for_them():
    """Nested arguments of different form have different pointers, whatever their names are."""
    pointers = []
    for value in ({"/0/0": 1}, [[1]], {"{": {"0": 1}}, {"[": 1, "0": 1}, ["0"]):
        found = grade(wanted(("f", {"k": value, "n": 1})), done(("f", {"k": value, "n": 2})))
        pointers.append(found.items[0].metadata["arguments"]["right"])
    assert pointers == [["/k/~10~10"], ["/k/0/0"], ["/k/{/0"], ["/k/[", "/k/0"], ["/k/0"]]


def test_ties_of_many_calls_go_to_the_first_too():
    """Whatever the arguments are that nobody looks at."""
    calls = [("f", {"x": number}) for number in range(4)]
    found = grade(wanted(*calls), done(*calls[::-1]), arguments="ignore")
    assert [item.metadata["call"] for item in found.items] == [0, 1, 2, 3]
