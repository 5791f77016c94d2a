"""Grades whose items and reasons are made where somebody wants them."""

import sys
import time

import attrs
import pytest

import gradestack
from gradestack import Aggregator, Figure, Grade, Grader, Item, PluginError, Reason, Sample, ratio
from tests.core.block_samples import SHARD
from tests.core.workers import grader_stage, merged, metric, singly

SAMPLES = [
    Sample(id=f"t{number % 4}", run=number // 4, text=str(number % 3)) for number in range(12)
]
REASONS = (Reason(code="wrong", expected=1, actual=2),)
asked = []


@attrs.frozen(kw_only=True)
class Brief(Grader):
    """Says how many of two items are right, and which when it is asked."""

    needs = frozenset({"text"})
    aggregators = ("mean",)
    sums = frozenset({"right"})

    how: str = "well"

    def grade(self, sample):
        right = int(sample.text)
        return Grade(score=right / 2, counts={"items": 2}, numbers={"right": right})

    def explain(self, sample, grade):
        asked.append(sample.id)
        right = int(sample.text)
        items = tuple(Item(id=str(at), score=float(at < right)) for at in range(2))
        whole = Grade(
            score=grade.score,
            counts=grade.counts,
            items=items,
            reasons=REASONS,
            rationale="explained",
        )
        return {"well": lambda: whole, **ODD}[self.how]()


def _raise():
    msg = "cannot say"
    raise ValueError(msg)


ODD = {
    "raises": _raise,
    "ends": lambda: sys.exit(3),
    "another score": lambda: Grade(score=0.125, rationale="another"),
    "nothing": lambda: None,
    "text": lambda: "because",
}


@attrs.frozen(kw_only=True)
class AtOnce(Brief):
    """The same with its items at once.

    No call of explain is needed, and the sums stand beside them.
    """

    def grade(self, sample):
        brief = Brief.grade(self, sample)
        return gradestack.replace(Brief.explain(self, sample, brief), numbers=brief.numbers)

    def explain(self, sample, grade):
        return grade


@attrs.frozen(kw_only=True)
class FirstItems(Aggregator):
    """Share of right first items: two grades of one score may differ in that."""

    figures = (Figure("share", "Right first items", divisor="all"),)
    needs = frozenset({"items"})

    def numbers(self, grade):
        return {"right": grade.items[-1].score, "all": 1}

    def estimate(self, right, all):  # noqa: A002 - the name of a number
        return {"share": ratio(right, all)}


@attrs.frozen(kw_only=True)
class Twins(Grader):
    """Gives grades whose verdicts are equal and whose items are not."""

    needs = frozenset({"run"})
    sums = frozenset({"right"})

    def grade(self, sample):
        odd = sample.run % 2
        items = (Item(id="0", score=float(odd)), Item(id="1", score=float(not odd)))
        return Grade(score=0.5, items=items, numbers={"right": 1})


@pytest.fixture(autouse=True)
def nobody_asked():
    asked.clear()


def run(grader, **options):
    return gradestack.grade(SAMPLES, {"g": grader}, **options)


def grades(report):
    return [row["grade"] for row in report.rows()]


@pytest.mark.parametrize("grader", [Brief(), AtOnce()])
def test_rows_hold_what_is_explained(grader):
    """Whether a grader gives it at once or when it is asked; its sums stand in no row."""
    for text, grade in zip([sample.text for sample in SAMPLES], grades(run(grader)), strict=True):
        assert [item["score"] for item in grade["items"]] == [
            float(at < int(text)) for at in range(2)
        ]
        assert grade["rationale"] == "explained"
        assert "numbers" not in grade


@pytest.mark.parametrize("how", list(ODD))
def test_a_grade_that_cannot_be_explained_stays_and_says_so(how):
    report = run(Brief(how=how))
    assert [grade["score"] for grade in grades(report)] == [
        int(sample.text) / 2 for sample in SAMPLES
    ]
    for grade in grades(report):
        assert grade["rationale"].startswith("could not be explained: ")
        assert "items" not in grade
    assert report.summary["metrics"]["aggregates"]["g"]["mean"]["n"] == len(SAMPLES)


def test_a_strict_run_ends_at_a_grade_that_cannot_be_explained():
    with pytest.raises(PluginError, match=r"'g' .* did not explain its grade of t0"):
        run(Brief(how="raises"), strict=True)


def test_equal_verdicts_with_other_items_are_told_apart(make_worker):
    """A metric of items looks at the items of every grade, also where grades have sums it does not
    read.
    """
    made = make_worker(
        graders=(grader_stage(key="quality", component="twins", grader=Twins()),),
        metrics=(metric(key="m", of="quality", aggregator=FirstItems()),),
    )
    figures = merged(made, made.process(SHARD, singly(SAMPLES))).figures()
    assert figures["quality"]["m"]["share"] == 8 / 12


@pytest.mark.slow
def test_time_runs_while_a_grade_is_explained(monkeypatch):
    monkeypatch.setitem(ODD, "well", lambda: time.sleep(5))
    report = run(Brief(how="well"), limits={"seconds_per_grade": 0.2})
    assert {
        grade["rationale"].partition(": ")[2].partition(":")[0] for grade in grades(report)
    } == {"TimedOut"}
    assert report.header["timed_out"] == len(SAMPLES)
