"""Counts over all rows: expected calls by tool and argument, scores by outcome."""

import pytest

from gradestack import argument_at
from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages.index import RowIndex


def item(tool, score, call, *pointers, **more):
    reasons = [
        {"code": "wrong_argument", "subject": tool, "pointer": pointer} for pointer in pointers
    ]
    return {
        "id": "0",
        "gold": tool,
        "score": score,
        "metadata": {"call": call},
        "reasons": reasons,
        **more,
    }


def row(*items, key="calls", passed=None, score=1.0, **more):
    grade = {"state": "graded", "score": score, "items": list(items)}
    return {
        "sample": {"id": "a"},
        "grade": grade,
        "grades": {key: grade},
        "passed": passed,
        "state": "graded",
        **more,
    }


def index_of(*rows):
    return RowIndex.of(((0, 0, dumps(each).encode()) for each in rows), lambda _, line: loads(line))


def test_calls_are_counted_by_tool():
    index = index_of(
        row(item("find", 1.0, 0), item("book", 0.5, 1, "/day"), item("book", 0.0, None))
    )
    counts = {
        tool: (each.expected, each.called, each.right) for tool, each in index.calls.tools.items()
    }
    assert counts == {"find": (1, 1, 1), "book": (2, 1, 0)}
    assert index.calls.grader == "calls"


@pytest.mark.parametrize(
    ("pointer", "name"), [("/a/b", "a"), ("", ""), ("/a~1b/c", "a/b"), ("/~01", "~1"), ("x", "x")]
)
def test_an_argument_is_the_first_part_of_a_pointer(pointer, name):
    assert argument_at(pointer) == name


def test_items_about_something_else_are_no_calls():
    others = [
        item("a", 1.0, 0) | {"metadata": metadata}
        for metadata in ({}, {"call": "x"}, {"call": True})
    ]
    assert index_of(row(*others)).calls.tools == {}
    assert index_of(row(item("a", 1.0, 0, outcome="failed"), item("b", None, 0))).calls.tools == {}


def test_one_grader_counts_the_calls():
    one = row(item("find", 1.0, 0))
    other = {**one, "grades": {"other": one["grade"], **one["grades"]}}
    assert index_of(one, other).calls.tools["find"].expected == 2


def test_scores_are_told_apart_by_outcome():
    index = index_of(
        row(passed=True, score=0.5),
        row(passed=True, score=1.0),
        row(passed=False, score=0.25),
        row(),
    )
    means = {key: (each.count, each.mean) for key, each in index.by_outcome.items()}
    assert means == {("calls", True): (2, 0.75), ("calls", False): (1, 0.25)}
    assert index.by_outcome["calls", True].counts == [0, 0, 1, 0, 0, 1]


def test_samples_that_expect_no_call_are_known():
    rows = [
        row(expected=expected)
        for expected in ({"calls": []}, {"calls": None}, {"calls": [{"name": "a"}]}, None)
    ]
    assert list(index_of(*rows).quiet) == [0]


def test_reasons_are_known_row_by_row():
    first = row(item("book", 0.5, 0, "/day", "/day/0", "/seat"))
    second = row(key="reward", score=0.0)
    second["grades"]["reward"] |= {
        "reasons": [{"code": "late"}],
        "fault": {"code": "timed_out", "type": "Slow"},
    }
    tally = index_of(first, second, row()).given
    kinds = [("calls", "wrong_argument", "book", name) for name in ("day", "seat")]
    assert list(tally.kinds) == [
        *kinds,
        ("reward", "late", "", ""),
        ("reward", "timed_out", "Slow", ""),
    ]
    assert tally.given == [(0, 1), (2, 3), ()]
    assert tally.samples == [1, 1, 1, 1]


def test_how_many_reasons_were_left_out_is_none_itself():
    only = row(key="reward", score=0.0)
    only["grades"]["reward"] |= {
        "reasons": [{"code": "late"}, {"code": "more_reasons", "message": "26 more"}]
    }
    index = index_of(only)
    assert list(index.given.kinds) == [("reward", "late", "", "")]
