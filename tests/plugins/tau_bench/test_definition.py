"""A slow reference, written from the definition, agrees with the grader."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Expectation, Outcome, Sample, ToolCall, replace
from gradestack.testing import explained_grade
from gradestack_plugins.tau_bench.grader import TauPartial
from tests.conftest import examples
from tests.plugins.tau_bench.conftest import ref_similarity


def decoded(call):
    """Return arguments as one decoder returns them, whose NaN is one object."""
    if call.arguments is not None:
        arguments = dict(call.arguments)
        text = json.dumps(arguments)
        return json.loads(text)
    try:
        return {} if call.raw_arguments is None else json.loads(call.raw_arguments)
    except ValueError:
        return {}


def reference(expected, made, name_weight=0.4, argument_weight=0.6):
    """Return score, counts, and of every expected call.

    Score, place of the best call, similarity.
    """
    rows, total = [], 0.0
    for wanted in expected:
        named = [
            (number, decoded(one)) for number, one in enumerate(made) if one.name == wanted.name
        ]
        rated = [
            (ref_similarity(decoded(wanted), arguments), -number) for number, arguments in named
        ]
        similarity, number = max(rated) if rated else (None, None)
        if similarity is None:
            score = 0.0
        else:
            score = name_weight + argument_weight * similarity
        rows.append((wanted.name, score, None if number is None else -number, similarity))
        total += score
    called = sum(number is not None for _, _, number, _ in rows)
    counts = {"expected_calls": len(expected), "called": called, "made_calls": len(made)}
    return total / len(expected), counts, rows


def rows_of(grade):
    rows = []
    for item in grade.items:
        argument_similarity = item.parts.get("argument_similarity")
        rows.append((item.gold, item.score, item.metadata["call"], argument_similarity))
    return rows


def agrees(grader, sample, **weights):
    grade = explained_grade(grader, sample)
    score, counts, rows = reference(sample.expected.calls, sample.calls, **weights)
    assert grade.outcome == Outcome.GRADED
    assert grade.score == score
    assert dict(grade.counts) == counts
    assert rows_of(grade) == rows
    expected = [None if position is None else name for name, _, position, _ in rows]
    labels = [item.label for item in grade.items]
    assert labels == expected
    numbers = [str(number) for number in range(len(rows))]
    ids = [item.id for item in grade.items]
    assert ids == numbers
    rewarded = explained_grade(grader, replace(sample, recorded={"reward": 0.5}))
    assert rewarded.parts == {"reward": 0.5}
    shown = repr(replace(rewarded, parts={}))
    assert shown == repr(grade)
    perfect = all(similarity == 1.0 for *_, similarity in rows)
    assert (grade.reasons == ()) is perfect
    assert [bool(item.reasons) for item in grade.items] == [
        similarity != 1.0 for *_, similarity in rows
    ]


NAN = float("nan")
NAMES = st.sampled_from(["f", "g", "h"])
LEAVES = st.sampled_from(
    [None, True, False, 0, 1, 1.0, 2, "1", "x", "", NAN, float("nan"), 10**30, 0.1]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
RAW = ["{", "[1, 2]", '{"a": 1}', '{"a": 1, "b": [2]}', "1", "null", '{"a": NaN}', '"{}"', "\ud800"]
TOLD = st.builds(ToolCall, name=NAMES, arguments=ARGUMENTS, id=st.sampled_from([None, "c1"]))
UNTOLD = st.builds(ToolCall, name=NAMES, arguments=st.none(), raw_arguments=st.sampled_from(RAW))
CALLS = st.one_of(TOLD, TOLD, TOLD, UNTOLD)


def _changed(call, data):
    kind = data.draw(st.sampled_from(["same", "copy", "extra", "less", "other", "raw", "name"]))
    arguments = dict(call.arguments or {})
    if kind == "copy":
        return replace(
            call, arguments=None if call.arguments is None else json.loads(json.dumps(arguments))
        )
    if kind == "extra":
        return replace(call, arguments=arguments | {"z": 1}, raw_arguments=None)
    if kind == "less" and arguments:
        argument = next(iter(arguments))
        arguments.pop(argument)
        return replace(call, arguments=arguments)
    if kind == "other" and arguments:
        return replace(call, arguments=arguments | {next(iter(arguments)): data.draw(VALUES)})
    if kind == "raw":
        text = json.dumps(arguments)
        return replace(call, arguments=None, raw_arguments=text)
    if kind == "name":
        return replace(call, name=data.draw(NAMES))
    return call


@settings(max_examples=examples(150), deadline=None)
@given(expected=st.lists(CALLS, min_size=1, max_size=4).map(tuple), data=st.data())
def test_runs_of_a_task_agree_with_the_definition(expected, data):
    """Several runs of one task, in one grader.

    Right, nearly right, in another order, longer and shorter.
    """
    grader = TauPartial()
    runs = [expected]
    for _ in range(data.draw(st.integers(1, 3))):
        made = tuple(_changed(call, data) for call in expected)
        if data.draw(st.booleans()):
            orders = st.permutations(made)
            made = tuple(data.draw(orders))
        more = data.draw(st.lists(CALLS, max_size=2).map(tuple))
        variants = [made, made + more, more + made, made[1:], made[:-1]]
        runs.append(data.draw(st.sampled_from(variants)))
    expectation = Expectation(calls=expected)
    for calls in runs:
        sample = Sample(id="t", expected=expectation, calls=calls)
        agrees(grader, sample)


@pytest.mark.parametrize("deep", ["expected", "made", "both"])
def test_deep_arguments_fail_only_where_both_sides_are_deep(deep):
    """Nested beyond what is compared.

    A failed grade where there is something to compare, else a usual one.
    """
    value = {}
    for _ in range(400):
        value = {"a": value}
    other = {"a": 1}
    for _ in range(400 if deep == "both" else 0):
        other = {"a": other}
    sides = {
        "expected": (value, {"a": {"a": 1}}),
        "made": ({"a": {"a": 1}}, value),
        "both": (value, other),
    }[deep]
    wanted, made = ((ToolCall(name="f", arguments=side),) for side in sides)
    expectation = Expectation(calls=wanted)
    sample = Sample(id="t", expected=expectation, calls=made)
    grade = explained_grade(TauPartial(), sample)
    if deep == "both":
        expected = Outcome.FAILED
    else:
        expected = Outcome.GRADED
    assert grade.outcome is expected
    rewarded = explained_grade(TauPartial(), replace(sample, recorded={"reward": 1}))
    assert rewarded.parts == {"reward": 1.0}
    shown = repr(replace(rewarded, parts={}))
    assert shown == repr(grade)


# the statistics
