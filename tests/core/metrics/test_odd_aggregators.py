"""Aggregators that are written wrongly.

Each is refused, or loses its own figures, in a sentence.
"""

from decimal import Decimal

import pytest

from gradestack import Aggregator, Figure, Grade, Item, grade
from gradestack.estimates import Grades
from gradestack.gates.verdicts import Scores
from gradestack.grading.metrics import figures_of
from gradestack.model import Key
from gradestack.registry import flaw
from gradestack.table import Table, Wanted
from gradestack.testing import _grades, check_aggregator

ROWS = [(Key(id=f"t{task}", model="m"), Grade(score=task % 2)) for task in range(6)]


def made(**members):
    """Return figures of an aggregator with these members over six tasks, half of which have score
    1.
    """
    kind = type(
        "Mine",
        (Aggregator,),
        {"__doc__": "One of a test.", "figures": (Figure("w", "W"),), **members},
    )
    return figures_of(kind(), _grades(kind(), [ROWS]))


def counted(_self, grade):
    return {"n": 1, "hits": grade.score}


def share(_self, n, hits):
    return {"w": hits / n if n else None}


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"compute": lambda _self, _grades: {"w": float("nan")}}, "not JSON compliant"),
        ({"compute": lambda _self, _grades: {"w": "many"}}, "the figure w is 'many'"),
        ({"compute": lambda _self, _grades: {"w": True}}, "the figure w is True"),
        ({"compute": lambda _self, _grades: None}, r"compute\(\) gave None, not a mapping"),
        (
            {"numbers": lambda _self, _grade: [1], "estimate": share},
            r"numbers\(\) gave \[1\], not a mapping",
        ),
        (
            {"numbers": lambda _self, _grade: {"n": Decimal(1)}, "estimate": share},
            "not a name and a number",
        ),
        ({"numbers": lambda _self, _grade: {"": 1}, "estimate": share}, "names are not empty"),
        ({"numbers": counted, "estimate": lambda _self, n: None}, r"estimate\(\) gave None"),
        (
            {"numbers": counted, "of_task": lambda _self, sums: {"": 5}, "estimate": share},
            "gave an empty name",
        ),
        (
            {"numbers": counted, "estimate": share, "figures": (Figure("w", "W", divisor="m"),)},
            "which no task has",
        ),
        (
            {"compute": lambda _self, grades: {"w": len(grades.of("other"))}},
            "no grader has the key 'other'",
        ),
    ],
)
def test_what_it_gives_is_checked(members, said):
    with pytest.raises((ValueError, TypeError, KeyError), match=said):
        made(**members)


def test_a_task_has_all_numbers_also_those_that_are_zero():
    """So that ``of_task`` may look any of them up."""
    found = made(
        numbers=counted, of_task=lambda _self, sums: {"n": 1, "hits": sums["hits"]}, estimate=share
    )
    assert (found["w"], found["w_interval"]["clusters"]) == (0.5, 6)


def test_numbers_that_never_end_are_ended(monkeypatch):
    monkeypatch.setattr("gradestack.grading.metrics.SECONDS", 0.2)

    def endless(_self, _grade):
        while True:
            pass

    with pytest.raises(TimeoutError):
        made(numbers=endless, estimate=share)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"needs": frozenset({"nonsense"})}, "'nonsense' among its needs"),
        ({"keeps": "items"}, "keeps = 'items'"),
        ({"figures": Figure("w", "W")}, "write a tuple of gradestack.Figure"),
        ({"figures": ("w",)}, "write a tuple of gradestack.Figure"),
        ({"figures": (Figure("w", "W", better="sideways"),)}, "better='sideways'"),
        ({"figures": (Figure("w", "W", unit="bananas"),)}, "unit='bananas'"),
    ],
)
def test_what_it_declares_is_checked_when_it_is_loaded(members, said):
    assert said in flaw(
        type("Mine", (Aggregator,), {"__doc__": "One of a test.", **members}), "aggregator"
    )


def test_groups_of_equal_names_stay_apart():
    """A model called none and samples without a model; 1 and "1"."""
    keys = [
        Key(id="a", model="none", facets={"level": 1}),
        Key(id="b", facets={"level": "1"}),
        Key(id="c", model="", facets={}),
    ]
    table = Table.of(
        Wanted(parts={"g": ()}, facets=("level",)), keys, {"g": [Grade(score=1.0)] * 3}
    )
    models = {name: list(each.rows) for name, each in Scores(table).groups("model").items()}
    assert sorted(models.values()) == [[0], [1, 2]]
    levels = {name: list(each.rows) for name, each in Scores(table).groups("level").items()}
    assert sorted(levels.values()) == [[0], [1], [2]]
    assert len(Grades(table, "g").by_task) == 3


@pytest.mark.parametrize("where", ["counts", "parts", "metadata", "items"])
def test_what_a_metric_sees_it_cannot_change(where):
    """Several see the same grades, one after the other."""
    item = Item(id="0", score=1.0, counts={"n": 1}, metadata={"deep": {"n": 1}})
    grade = Grade(
        score=1.0, counts={"n": 1}, parts={"p": 1.0}, metadata={"deep": {"n": 1}}, items=(item,)
    )

    class Changing(Aggregator):
        """Writes into what it was given."""

        figures = (Figure("w", "W"),)
        keeps = frozenset({"items", "metadata"})

        def compute(self, grades):
            for _, each in grades:
                held = each.items[0].metadata["deep"] if where == "items" else getattr(each, where)
                held["n"] = 5
            return {"w": 1.0}

    grades = _grades(Changing(), [[(Key(id="a"), grade)]])
    with pytest.raises(TypeError, match="does not support item assignment"):
        figures_of(Changing(), grades)
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
    (tmp_path / "leaving.py").write_text(LEAVING.replace("ERROR", error))
    sample = {"id": "1", "expected": "x", "predicted": "x"}
    metrics = {"l": {"kind": "./leaving.py:Leaving", "of": "g"}}
    report = grade([sample], {"g": "exact_match"}, metrics=metrics, allow_code=True)
    assert "error" in report.aggregates["g"]["l"]
    assert report.aggregates["g"]["mean"]["mean"] == 1.0


class Labelled(Aggregator):
    figures, reads_labels, estimate = (Figure("w", "W"),), False, share
    numbers = lambda _self, grade: {"n": 1, "hits": int(grade.label is not None)}  # noqa: E731


def test_a_metric_that_says_it_reads_no_label_reads_none():
    with pytest.raises(AssertionError, match="say so, reads_labels = True"):
        check_aggregator(Labelled())
