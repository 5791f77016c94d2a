"""The table of grades: what comes back of a shard, joined in order."""

import random
from collections import Counter
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack.exact_sums import ExactSums
from gradestack.grades import Grades
from gradestack.model import Fault, Grade, Item, Key, Outcome, Reason, failed, skipped
from gradestack.table import _VERDICT, Columns, Table, Wanted

ODD = "\ud800 lone"
GRADES = [
    Grade(
        score=1.0,
        passed=True,
        counts={"calls": 2},
        parts={"f1": 0.5, "none": None},
        label="a",
        gold=ODD,
    ),
    Grade(score=0.25, counts={"calls": 10**30}, items=(Item(id="i", score=0.5, counts={"n": 1}),)),
    Grade(
        score=0.0,
        reasons=(Reason(code="wrong", pointer="/x"),),
        metadata={"set": ["a"], "other": 1},
    ),
    skipped("no_calls", "nothing to grade"),
    failed(Fault(category="grading", code="raised", message=ODD)),
    Grade(outcome=Outcome.MISSING),
]
PARTS = {"g": (), "h": ("fault", "metadata:set")}


def samples(number, seed=0):
    """Draw the keys of samples, some with odd characters in every text."""
    rng = random.Random(seed)  # noqa: S311 - test data
    keys = []
    for _ in range(number):
        key = Key(
            id=f"t{rng.randrange(9)}{ODD if rng.random() < 0.1 else ''}",
            cluster=None if rng.random() < 0.7 else "c",
            model=rng.choice([None, "m", ODD]),
            run=rng.choice([None, 1, "1"]),
            facets={"domain": rng.choice(["x", ODD, None]), "unasked": 1},
        )
        keys.append(key)
    return keys


def table(keys, grades, cuts=()):
    """Fill a table with keys and grades, in parts cut at these positions."""
    wanted = Wanted(parts=PARTS, facets=("domain",))
    filled_table = Table(PARTS)
    for start, end in zip([0, *cuts], [*cuts, len(keys)], strict=True):
        columns = Columns(wanted)
        part = slice(start, end)
        key = keys[part]
        grade = grades[part]
        columns.add(key, dict.fromkeys(PARTS, grade), [True] * (end - start))
        filled_table.extend(columns.to_bytes())
    return filled_table


@pytest.mark.parametrize("cuts", [(), (7,), (0, 1, 30, 59), (60,)])
def test_keys_and_grades_come_back_in_order_however_the_input_was_cut(cuts):
    keys = samples(60)
    grades = []
    for number in range(60):
        grades.append(GRADES[number % len(GRADES)])
    filled_table = table(keys, grades, cuts)
    pairs = zip(Grades(filled_table, "h"), keys, grades, strict=True)
    for row, ((key, grade), given_key, made) in enumerate(pairs):
        assert key.id == given_key.id
        assert key.cluster == given_key.cluster
        assert key.model == given_key.model
        assert key.run == given_key.run
        assert type(key.run) is type(given_key.run)
        assert key.ordinal == row
        domain = given_key.facets["domain"]
        assert key.facets == {"domain": domain}
        metadata = made.metadata.items()
        expected_metadata = {name: value for name, value in metadata if name == "set"}
        assert grade.fault == made.fault
        assert grade.metadata == expected_metadata
        for name in ("outcome", "score", "passed", "label", "gold", "counts", "parts"):
            assert getattr(grade, name) == getattr(made, name)
    assert all(grade.fault is None for _, grade in Grades(filled_table, "g"))
    grade_count = len(filled_table.grades("g"))
    assert grade_count == len(GRADES)


@pytest.mark.parametrize(
    ("member", "kept", "times"),
    [
        *((name, (), 1) for name in (*_VERDICT, "label", "gold")),
        ("fault", ("fault",), 1),
        ("fault", (), 3),
    ],
)
def test_a_contribution_is_asked_once_a_verdict_unless_it_reads_more(member, kept, times):
    """Members that the verdict holds, those that are kept among them, are no more."""
    asked = []

    def contribution(grade):
        getattr(grade, member)
        asked.append(grade)
        return {"n": 1}

    wanted = Wanted(parts={"g": kept}, contributions={"g/m": ("g", contribution)})
    columns = Columns(wanted)
    for key in samples(3):
        columns.add([key], {"g": [Grade(score=1.0)]}, [False])
    assert len(asked) == times


READ = ("score", "label", "gold", "rationale")


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] + [st.sampled_from("abc")] * 3)),
    st.dictionaries(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from(READ)),
    st.integers(1, 5),
)
def test_what_a_metric_adds_is_what_it_makes_of_each_grade(drawn, member_by_score, size):
    """It is asked seldom, whenever it begins to read names, or what no verdict holds."""
    grades = [
        Grade(score=score, label=label, gold=gold, rationale=rationale)
        for score, label, gold, rationale in drawn
    ]

    def contribution(grade):
        member = member_by_score.get(grade.score)
        return {"n": 1} if member is None else {f"{getattr(grade, member)}": 1}

    wanted = Wanted(parts={"g": ()}, contributions={"g/m": ("g", contribution)})
    columns = Columns(wanted)
    for start in range(0, len(grades), size):
        block = grades[start : start + size]
        columns.add(samples(len(block)), {"g": block}, [False] * len(block))
    filled_table = Table("g")
    filled_table.extend(columns.to_bytes())
    values, codes = filled_table.contributions("g/m")
    assert [values[code] for code in codes] == list(map(contribution, grades))


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.integers() | st.floats(-1e300, 1e300)),
        min_size=1,
    ),
    st.data(),
)
def test_numbers_add_up_exactly(numbers, data):
    choices = data.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=3 * len(numbers)))
    adding = ExactSums(numbers)
    sums = [adding.contributions[at] for at in choices]
    cells = [0] * len(choices)
    (total,) = adding.add_by_cell(cells, choices, 1).kinds
    counts = Counter(sums)
    totals = adding.exact_totals(counts)
    assert adding.numbers_of("", [total]) == [len(choices)]
    for name in "abcd":
        fraction = Fraction(0)
        exact = sum((Fraction(numbers[at].get(name, 0)) for at in choices), fraction)
        (units,) = adding.units_of(name, [total])
        unit = adding.unit(name)
        assert Fraction(units, unit) == totals.get(name, 0) == exact
        with suppress(OverflowError):
            rounded = adding.numbers_of(name, [total])[0]
            assert rounded in (exact, float(exact))  # whole numbers are not rounded


def test_each_cell_has_the_sum_of_all_that_was_added_to_it():
    numbers = [{"a": 1.0}, {"a": 0.5}, None]
    cells = [0, 0, 1, 0, 2, 1, 2, 3]
    codes = [0, 0, 1, 1, 0, 1, 2, 2]
    adding = ExactSums(numbers)
    sums = adding.add_by_cell(cells, codes, 5)
    totals = [sums.kinds[kind] for kind in sums.places]
    assert adding.numbers_of("a", totals) == [2.5, 1.0, 1.0, 0.0, 0.0]
    units = adding.units_of("", totals)
    assert units == [3, 2, 1, 0, 0]
    joined = adding.join([0, 1, 0, 1, 1], sums, 2)
    totals = [joined.kinds[kind] for kind in joined.places]
    assert adding.numbers_of("a", totals) == [3.5, 1.0]
    assert joined.count(joined.places) == Counter(totals)
