"""Verdicts of several graders side by side, as the index of a run keeps them."""

import json

from gradestack.jsonio import loads
from gradestack_plugins.pages.index import RowIndex
from gradestack_plugins.pages.tallies import compared
from tests.core.outcomes import data

DATA = data(__file__, "verdicts.yaml")


def index_of(*rows, keys=("a", "b"), outcome="a"):
    lines = ((number, 0, json.dumps(row).encode()) for number, row in enumerate(rows))
    return RowIndex.of(lines, lambda _, line: loads(line), outcome, keys)


def row(**grades):
    first = next(iter(grades.values()))
    return {"sample": {"id": "s"}, "state": "graded", "grade": first, "grades": grades}


def marks(index, key):
    verdicts = index.verdicts
    positions = verdicts.by_grader[key]
    return [verdicts.marks[position] for position in positions]


def test_the_mark_of_a_grade():
    grades = DATA["the_mark_of_a_grade"]
    rows = []
    for grade in grades:
        rows.append(row(a=grades[0], b=grade))
    index = index_of(*rows, row(a=grades[0]))
    names = ["passed", "part", "lost", "lost", "failed", "skipped", "missing"]
    codes = ["", "", "", "", "boom", "no_reference", ""]
    assert marks(index, "b") == list(zip(names, codes, strict=True))
    assert marks(index, "a") == [("passed", "")] * 7


def test_graders_with_a_preset_are_compared_and_else_all():
    grader = {"kind": "grader", "key": "a", "options": {"preset": "x@1"}}
    other = {"kind": "grader", "key": "b", "options": {"preset": "y"}}
    plain = {"kind": "grader", "key": "c", "options": {}}
    metric = {"kind": "aggregator", "key": "d", "options": {"preset": "z"}}
    counts = {**plain, "bounds": [0, None]}
    assert compared({"components": [grader, plain, metric]}) == ("a", "c")
    assert (
        compared({"components": [grader, counts, metric]})
        == compared({"components": [plain]})
        == ()
    )
    assert compared({"components": [grader, plain, metric, other]}) == ("a", "b")
    assert compared({"components": "odd"}) == ()
    index = index_of(row(a={"state": "graded", "score": 1.0}), keys=())
    assert index.verdicts.by_grader == {}
