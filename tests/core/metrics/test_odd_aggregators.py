"""Aggregators that are written wrongly.

Each is refused, or loses its own figures, in a sentence.
"""

from decimal import Decimal

import pytest

from gradestack import Aggregator, Figure, Grade, Item, Outcome, Ratio, grade
from gradestack.gates.measures import Scores
from gradestack.grades import Grades
from gradestack.metrics.computed import compute_figures
from gradestack.model import Key
from gradestack.table import Table, Wanted
from gradestack.testing.components import make_grades
from gradestack.testing.declarations import find_flaw

ROWS = [(Key(id=f"t{task}", model="m"), Grade(score=task % 2)) for task in range(6)]


def made(**members):
    """Return figures of an aggregator with these members over six tasks, half of which have score
    1.
    """
    figure = Figure("w", "W")
    kind = type(
        "Mine",
        (Aggregator,),
        {"__doc__": "One of a test.", "figures": (figure,), **members},
    )
    return compute_figures(kind(), make_grades(kind(), [ROWS]))


def counted(_self, grade):
    return {"n": 1, "hits": grade.score}


def share(_self, totals):
    return {"w": totals["hits"] / totals["n"] if totals["n"] else None}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"compute": lambda _self, make_grades: {"w": float("nan")}}, "not JSON compliant"),
        ({"compute": lambda _self, make_grades: {"w": "many"}}, "the figure w is 'many'"),
        ({"compute": lambda _self, make_grades: {"w": True}}, "the figure w is True"),
        ({"compute": lambda _self, make_grades: None}, r"compute\(\) gave None, not a mapping"),
        (
            {"contribution": lambda _self, _grade: [1], "figures_of": share},
            r"contribution\(\) gave \[1\], not a mapping",
        ),
        (
            {"contribution": lambda _self, _grade: {"n": Decimal(1)}, "figures_of": share},
            "not a name and a number",
        ),
        (
            {"contribution": lambda _self, _grade: {"": 1}, "figures_of": share},
            "names are not empty",
        ),
        (
            {"contribution": counted, "figures_of": lambda _self, _totals: None},
            r"figures_of\(\) gave None",
        ),
        (
            {
                "contribution": counted,
                "task_contribution": lambda _self, sums: {"": 5},
                "figures_of": share,
            },
            "gave an empty name",
        ),
        (
            {
                "contribution": counted,
                "figures_of": share,
                "figures": (Figure("w", "W", divisor="m"),),
            },
            "which no task has",
        ),
        (
            {"compute": lambda _self, grades: {"w": len(grades.of("other"))}},
            "no grader has the key 'other'",
        ),
    ],
)
def test_what_it_gives_is_checked(members, message):
    with pytest.raises((ValueError, TypeError, KeyError), match=message):
        made(**members)


def test_a_task_has_all_numbers_also_those_that_are_zero():
    """So that ``task_contribution`` may look any of them up."""
    computed = made(
        contribution=counted,
        task_contribution=lambda _self, sums: {"n": 1, "hits": sums["hits"]},
        figures_of=share,
    )
    assert computed["w"] == 0.5
    clusters = computed["w_interval"]["clusters"]
    assert clusters == 6


def test_a_sum_that_no_grade_contributed_is_named_with_the_nearest():
    with pytest.raises(ValueError, match=r"'hit', which no grade contributed.*hits"):
        made(contribution=counted, figures_of=lambda _self, totals: {"w": totals["hit"]})


def test_figures_that_never_end_are_ended(monkeypatch):
    monkeypatch.setattr("gradestack.metrics.computed.SECONDS", 0.2)

    def endless(_self, _totals):
        while True:
            pass

    with pytest.raises(TimeoutError):
        made(contribution=counted, figures_of=endless)


def test_a_ratio_needs_no_method():
    """Counts of graded samples are added up by task; a count that no grade has is an error."""
    key = Key(id="a")
    rows = [
        (key, Grade(score=1.0, counts={"right": 1, "wanted": 2})),
        (Key(id="b"), Grade(score=0.0, counts={"right": 2, "wanted": 2})),
        (Key(id="c"), Grade(outcome=Outcome.SKIPPED, counts={"right": 9, "wanted": 9})),
    ]

    class Rate(Aggregator):
        """Arguments right."""

        figures = (Ratio("args", "Arguments right", right="right", of="wanted"),)

    class Misspelt(Aggregator):
        """A count that no grade has."""

        figures = (Ratio("args", "Arguments right", right="rigth", of="wanted"),)

    computed = compute_figures(Rate(), make_grades(Rate(), [rows]))
    assert computed["args"] == 0.75
    with pytest.raises(ValueError, match="'rigth', which no grade contributed"):
        compute_figures(Misspelt(), make_grades(Misspelt(), [rows]))


def test_equal_verdicts_with_other_items_are_told_apart():
    """A contribution that reads items is asked for each grade, of which it may ask the class."""
    odd = (Item(id="0", score=1.0),)
    even = (Item(id="0", score=0.0),)
    rows = [
        (Key(id=f"t{at}"), Grade(score=0.5, items=lambda at=at: odd if at % 2 else even))
        for at in range(4)
    ]

    class First(Aggregator):
        """Share of first items that are right."""

        figures = (Figure("w", "W", divisor="n"),)
        figures_of = share

        def contribution(self, grade):
            first_item = grade.items[0]
            return {"n": isinstance(grade, Grade), "hits": first_item.score}

    assert compute_figures(First(), make_grades(First(), [rows]))["w"] == 0.5


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"keeps": frozenset({"items"})}, "'items' among its keeps"),
        ({"keeps": "items"}, "has keeps = 'items': Expected `array`"),
        ({"figures": Figure("w", "W")}, "Expected `array`, got `object`"),
        ({"figures": ("w",)}, "Expected `object`, got `str` - at `$[0]`"),
        ({"figures": (Figure("w", "W", better="sideways"),)}, "'sideways' - at `$[0].better`"),
        ({"figures": (Figure("w", "W", unit="bananas"),)}, "'bananas' - at `$[0].unit`"),
    ],
)
def test_the_kit_checks_what_it_declares(members, message):
    mine = type("Mine", (Aggregator,), {"__doc__": "One of a test.", **members})
    flaw = find_flaw(mine)
    assert message in flaw


def test_groups_of_equal_names_stay_apart():
    """A model called none and samples without a model; 1 and "1" are one level."""
    key = Key(id="a", model="none", facets={"level": 1})
    keys = [
        key,
        Key(id="b", facets={"level": "1"}),
        Key(id="c", model="", facets={}),
    ]
    wanted = Wanted(parts={"g": ()}, facets=("level",))
    table = Table.of(wanted, keys, {"g": [Grade(score=1.0)] * 3})
    models = {}
    groups = Scores(table).groups("model")
    for name, group in groups.items():
        models[name] = list(group.rows)
    assert sorted(models.values()) == [[0], [1, 2]]
    scores = Scores(table)
    levels = {name: list(group.rows) for name, group in scores.groups("level").items()}
    assert sorted(levels.values()) == [[0, 1], [2]]
    grades = Grades(table, "g")
    by_task_count = len(grades.by_task)
    assert by_task_count == 3


@pytest.mark.parametrize("where", ["counts", "parts", "metadata"])
def test_what_a_metric_sees_it_cannot_change(where):
    """Several see the same grades, one after the other."""
    grade = Grade(score=1.0, counts={"n": 1}, parts={"p": 1.0}, metadata={"deep": {"n": 1}})

    class Changing(Aggregator):
        """Writes into what it was given."""

        figures = (Figure("w", "W"),)
        keeps = frozenset({"metadata"})

        def compute(self, grades):
            for _, seen_grade in grades:
                getattr(seen_grade, where)["n"] = 5
            return {"w": 1.0}

    grades = make_grades(Changing(), [[(Key(id="a"), grade)]])
    with pytest.raises(TypeError, match="does not support item assignment"):
        compute_figures(Changing(), grades)
    assert next(iter(grades))[1] == grade


LEAVING = """\
from gradestack import Aggregator, Figure


class Leaving(Aggregator):
    figures = (Figure("w", "W"),)

    def compute(self, grades):
        raise ERROR
"""


@pytest.mark.parametrize("error", ["GeneratorExit", "SystemExit(3)", "RecursionError"])
def test_whatever_a_metric_raises_costs_its_own_figures(tmp_path, monkeypatch, error):
    monkeypatch.chdir(tmp_path)
    leaving_path = tmp_path / "leaving.py"
    leaving_path.write_text(LEAVING.replace("ERROR", error))
    sample = {"id": "1", "expected": "x", "predicted": "x"}
    metrics = {"l": {"kind": "./leaving.py:Leaving", "of": "g"}}
    report = grade([sample], {"g": "exact_match"}, metrics=metrics, allow_code=True)
    expected = report.aggregates["g"]["l"]
    assert "error" in expected
    mean = report.aggregates["g"]["mean"]["mean"]
    assert mean == 1.0
