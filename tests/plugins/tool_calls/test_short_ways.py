"""The short ways to a grade say what the matching says, whatever was graded before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Expectation, ExpectedCall, Sample, ToolCall, ToolSpec
from gradestack_plugins.tool_calls import fates
from gradestack_plugins.tool_calls.grader import ToolCalls

TOOLS = ("book", "find", "x/y", "t~1", "")
SCALARS = st.sampled_from([0, 1, True, False, 1.0, -0.0, "1", "a", "", None, 2**70, float("nan")])
NESTED = st.sampled_from(["[", "{", "0", "k"]) | st.just([]) | st.just({}) | st.just({"0": 1}) | st.just([[1], "k"])
VALUES = (
    SCALARS
    | st.lists(SCALARS, max_size=3)
    | st.lists(SCALARS | NESTED, max_size=2)
    | st.dictionaries(st.sampled_from("kz/0{["), SCALARS | NESTED, max_size=2)
)
ARGUMENTS = st.dictionaries(st.sampled_from(["k", "a/b", "q~", "n", "\ud800"]), VALUES, max_size=4)
CALLS = st.lists(st.tuples(st.sampled_from(TOOLS), ARGUMENTS), max_size=4)
OPTIONS = [
    {},
    {"extra": "allow"},
    {"extra": "forbid", "missing": "forbid"},
    {"credit": "call"},
    {"credit": "none"},
    {"equality": "python"},
    {"arguments": "exact", "score": "recall"},
    {"assignment": "first_fit"},
    {"max_pairs": 2},
]


@st.composite
def samples(draw):
    """Return a sample whose run does what is expected, or nearly."""
    expected = draw(CALLS)
    made = []
    for name, arguments in expected:
        changed = dict(arguments)
        for key in draw(st.lists(st.sampled_from(["k", "n", "new"]), max_size=1)):
            changed[key] = draw(VALUES)
        for key in draw(st.lists(st.sampled_from(["k", "a/b"]), max_size=1)):
            changed.pop(key, None)
        if not draw(st.integers(0, 7)):
            made.append(ToolCall(name=name, arguments=None, raw_arguments=draw(st.sampled_from(["{", None]))))
        elif draw(st.integers(0, 7)):
            made.append(ToolCall(name=name, arguments=changed))
    made += [ToolCall(name=name, arguments=arguments) for name, arguments in draw(st.just([]) | CALLS)]
    known = draw(st.none() | st.lists(st.sampled_from(TOOLS), unique=True))
    return Sample(
        id="s",
        calls=tuple(made),
        expected=Expectation(calls=tuple(ExpectedCall(name=name, arguments=each) for name, each in expected)),
        tools=None if known is None else tuple(ToolSpec(name=name) for name in known),
    )


def closely(options):
    """Return a grader that takes no short way."""
    grader = ToolCalls(**options)
    object.__setattr__(grader, "_simple", False)
    return grader


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=60, deadline=None)
@given(st.lists(samples(), min_size=1, max_size=3))
def test_grades_are_those_of_the_matching(options, runs):
    """Grades are the same, for the first run and for one like it."""
    quick, thorough = ToolCalls(**options), closely(options)
    grades = [quick.grade(run) for run in (*runs, *runs)]
    wanted = [thorough.grade(run) for run in (*runs, *runs)]
    assert list(map(repr, grades)) == list(map(repr, wanted))


def test_few_fates_are_kept(monkeypatch: pytest.MonkeyPatch):
    """What is kept is forgotten when it is much; large arguments are not kept at all."""
    monkeypatch.setattr(fates, "_MOST", 20)
    grader = ToolCalls()
    for number in range(100):
        wanted = (ExpectedCall(name="f", arguments={f"key {number}": 1, "x" * (9 * number): 2}),)
        made = (ToolCall(name="f", arguments={"y" * (100 * number + 1): 1}),)
        run = Sample(id="s", calls=made, expected=Expectation(calls=wanted))
        assert grader.grade(run).counts["arguments_missing"] == 2
        assert max([len(str(each.arguments)) for each in fates._known], default=0) < 1000
        assert len(fates._known) <= 20
        assert len(fates._by_form) <= 20
    assert max(len("".join(keys)) for keys in fates._by_form) <= 256


def test_names_that_look_like_places_are_not_taken_for_them():
    """Nested arguments of different form have different pointers, whatever their names are."""
    grader, found = ToolCalls(), []
    for value in ({"/0/0": 1}, [[1]], {"{": {"0": 1}}, {"[": 1, "0": 1}, ["0"]):
        calls = (ToolCall(name="f", arguments={"k": value, "n": 2}),)
        wanted = (ExpectedCall(name="f", arguments={"k": value, "n": 1}),)
        grade = grader.grade(Sample(id="s", calls=calls, expected=Expectation(calls=wanted)))
        found.append(grade.items[0].metadata["arguments"]["right"])
    assert found == [["/k/~10~10"], ["/k/0/0"], ["/k/{/0"], ["/k/[", "/k/0"], ["/k/0"]]
