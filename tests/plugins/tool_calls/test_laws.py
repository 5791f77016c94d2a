"""Laws of the matching, by generated calls; its parts against other programs' results."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Expectation, ExpectedCall, Sample, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.grader import ToolCalls
from gradestack_plugins.tool_calls.matching import heaviest, in_order
from tests.conftest import examples

SETTINGS = settings(max_examples=examples(320), deadline=None)
VALUES = st.sampled_from([0, 1, True, 1.0, "1", "a", None, [], {}, [1, 2], {"x": 1}])
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["f", "f", "g"]),
        st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3),
    ),
    max_size=5,
)
WEIGHTS = st.integers(1, 5).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(0, 4), min_size=columns, max_size=columns), max_size=5
    )
)


def grade(expected, made, **options):
    """Return the grade of calls given as (name, arguments)."""
    wanted = tuple(ExpectedCall(name=name, arguments=arguments) for name, arguments in expected)
    done = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in made)
    tool_calls = ToolCalls(**options)
    expectation = Expectation(calls=wanted)
    sample = Sample(id="s", expected=expectation, calls=done)
    return tool_calls.grade(sample)


def by_hand(weights, *, ordered):
    """Return the first of the heaviest assignments, by trying all."""
    columns = 0
    if weights:
        columns = len(weights[0])
    best = None
    for chosen in itertools.product([*range(columns), None], repeat=len(weights)):
        used = [number for number in chosen if number is not None]
        used_count = len(set(used))
        if used_count < len(used) or (ordered and used != sorted(used)):
            continue
        pairs = zip(weights, chosen, strict=True)
        if any(at is not None and not row[at] for row, at in pairs):
            continue
        total = sum(row[at] for row, at in zip(weights, chosen, strict=True) if at is not None)
        order = (-total, [columns if at is None else at for at in chosen])
        if best is None or order < best[0]:
            best = order, list(chosen)
    return best[1]


def leaves(value, pointer=""):
    """Return the leaves of arguments, written another way than the grader's."""
    if pointer and not (isinstance(value, dict | list) and value):
        if isinstance(value, bool):
            kind = "boolean"
        elif isinstance(value, int | float):
            kind = "number"
        else:
            kind = type(value)
        return {pointer: (kind, value)}
    if isinstance(value, dict):
        pairs = value.items()
    else:
        pairs = enumerate(value)
    leaf_values = {}
    for key, inner in pairs:
        leaf_values |= leaves(inner, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return leaf_values


def shares_by_hand(expected, made):
    shares = []
    for name, wanted in expected:
        row = []
        for other, arguments_made in made:
            left = leaves(wanted)
            right = leaves(arguments_made)
            keys = left.keys()
            either = keys | right.keys()
            equal = sum(left[key] == right[key] for key in left.keys() & right.keys())
            row.append(
                Fraction(0)
                if name != other
                else Fraction(equal, len(either))
                if either
                else Fraction(1)
            )
        shares.append(row)
    return shares


@SETTINGS
@given(WEIGHTS)
def test_assignments(weights):
    if weights:
        assert heaviest(weights) == by_hand(weights, ordered=False)
        assert in_order(weights) == by_hand(weights, ordered=True)


@SETTINGS
@given(CALLS, CALLS, st.data())
def test_laws(expected, made, data):
    """A copy is perfect, order does not matter, nothing wrong raises and nothing lost lowers, and
    sides may change.
    """
    grade_found = grade(expected, made)
    shares = shares_by_hand(expected, made)
    if expected:
        chosen = by_hand(shares, ordered=False)
    else:
        chosen = []
    pairs = zip(shares, chosen, strict=True)
    fraction = Fraction(0)
    credit = sum((row[at] for row, at in pairs if at is not None), fraction)
    score = 1.0
    if expected or made:
        score = float(2 * credit / (len(expected) + len(made)))
    assert grade_found.score == pytest.approx(score, abs=1e-12)
    assert [
        item.metadata["call"] if item.score else None for item in grade_found.items[: len(expected)]
    ] == chosen
    assert grade(expected, expected).score == grade(made, made).score == 1.0
    assert grade_found.passed is (grade_found.score == 1.0)
    parts = grade_found.parts
    assert all(0 <= parts[name] <= 1 for name in ("precision", "recall", "f1"))

    orders = st.permutations(made)
    shuffled = data.draw(orders)
    mixed = data.draw(st.permutations(expected))
    assert grade(mixed, shuffled).score == grade_found.score

    back = grade(made, expected)
    assert back.score == grade_found.score
    precision = back.parts["precision"]
    assert precision == parts["recall"]
    recall = back.parts["recall"]
    assert recall == parts["precision"]

    assert grade(expected, made, assignment="first_fit").parts["credit"] <= parts["credit"] + 1e-12
    ordered = grade(expected, made, order="in_order")
    strict = grade(expected, made, order="strict")
    assert strict.parts["credit"] <= ordered.parts["credit"] + 1e-12 <= parts["credit"] + 2e-12

    extra = grade(expected, [*made, ("nobody", {"asked": "for it"})])
    assert extra.parts["precision"] <= parts["precision"]
    for position in range(len(made)):
        fewer = grade(expected, made[:position] + made[position + 1 :])
        if expected:
            assert fewer.parts["recall"] <= parts["recall"] + 1e-12

    counts = grade_found.counts
    matched = counts["matched"]
    missing = counts["missing"]
    assert matched + missing == counts["expected"] == len(expected)
    assert counts["matched"] + counts["extra"] == counts["made"] == len(made)
    total = sum(item.counts.get("expected", 0) for item in grade_found.items)
    assert total == len(expected)


@SETTINGS
@given(st.integers(1, 30), st.integers(1, 30), st.randoms(use_true_random=False))
def test_larger_assignments(rows, columns, pick):
    optimize = pytest.importorskip("scipy.optimize")
    weights = []
    for _ in range(rows):
        choices = [pick.choice((0, 0, 1, 2, 7)) for _ in range(columns)]
        weights.append(choices)
    chosen = heaviest(weights)
    used = [number for number in chosen if number is not None]
    used_count = len(set(used))
    assert used_count == len(used)
    pairs = zip(weights, chosen, strict=True)
    total = sum(row[at] for row, at in pairs if at is not None)
    rows_at, columns_at = optimize.linear_sum_assignment(weights, maximize=True)
    expected = sum(weights[row][column] for row, column in zip(rows_at, columns_at, strict=True))
    assert total == expected


def test_keys_that_are_no_text():
    """Samples of one's own may have them.

    Each stands under its own pointer, in right runs and in wrong ones.
    """
    for key in (1, True, 1.0, None, 0, False):
        grade_found = grade([("f", {key: "a"})], [("f", {key: "a"})])
        assert grade_found.score == 1.0
        assert grade_found.passed is True
        first_item = grade_found.items[0]
        arguments = first_item.metadata["arguments"]
        right = [f"/{key}"]
        assert arguments == {"right": right}
        grade_found = grade([("f", {key: "a", "x": 1})], [("f", {key: "a", "x": 2})])
        expected = {"right": [f"/{key}"], "wrong": ["/x"]}
        assert grade_found.items[0].metadata["arguments"] == expected


@pytest.mark.parametrize("made", [{"x": 1}, {"x": 2}])
def test_a_tool_whose_name_is_no_text_is_none_of_those_called(made):
    """Whatever stands there: it may be what no set can hold."""
    wanted = (ExpectedCall(name="f", arguments={"x": 1}),)
    tools = (ToolSpec(name="f"), ToolSpec(name=["f"]))  # type: ignore[arg-type]
    expectation = Expectation(calls=wanted)
    tool_call = ToolCall(name="f", arguments=made)
    sample = Sample(
        id="s",
        expected=expectation,
        calls=(tool_call,),
        tools=tools,
    )
    grade_found = ToolCalls().grade(sample)
    hallucinated_tool = grade_found.counts["hallucinated_tool"]
    assert (grade_found.passed, hallucinated_tool) == (made == {"x": 1}, 0)
