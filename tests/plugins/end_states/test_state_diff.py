"""Assertions about what changed: every kind, every operator, both forms of a recorded state."""

import json

import pytest

import gradestack
from gradestack import Expectation, Outcome, Sample, testing
from gradestack_plugins.end_states.state_diff import StateDiff, Unusable, difference_of, fits, matches
from tests.core.outcomes import data

DATA = data(__file__, "state_diff.yaml")

CHANGES = {
    "inserts": [{"__table__": "notes", "id": 3, "text": "hi"}, {"__table__": "notes", "id": 4, "text": "ho"}],
    "updates": [
        {
            "__table__": "jobs",
            "before": {"id": 1, "state": "new", "at": 5},
            "after": {"id": 1, "state": "done", "at": 6},
        }
    ],
    "deletes": [{"__table__": "tags", "id": 9}],
}
TABLES = {
    "before": {
        "notes": [],
        "jobs": [{"id": 1, "state": "new", "at": 5}],
        "tags": {"9": {"id": 9}},
        "kept": [{"id": 1}],
    },
    "after": {
        "notes": [{"id": 3, "text": "hi"}, {"id": 4, "text": "ho"}],
        "jobs": [{"id": 1, "state": "done", "at": 6}],
        "tags": [],
        "kept": [{"id": 1}],
    },
}


def graded(*assertions, state=None, **more):
    reference = Expectation(state={"assertions": list(assertions), **more})
    return StateDiff().grade(Sample(id="a", state=CHANGES if state is None else state, expected=reference))


def about(kind, entity, **more):
    return {"diff_type": kind, "entity": entity, **more}


@pytest.mark.parametrize("state", [CHANGES, TABLES], ids=["changes", "tables"])
@pytest.mark.parametrize(("assertion", "kept"), DATA["every_kind_of_assertion"])
def test_every_kind_of_assertion(state, assertion, kept):
    """As recorded changes, or as tables before and after; at least one row is expected where no number is."""
    grade = graded(assertion, state=state)
    assert (grade.score, grade.passed) == (float(kept), kept), [each.message for each in grade.reasons]


def test_the_score_is_the_share_that_is_kept():
    """Items are the assertions; fields to ignore may hold for all tables, or for one; nothing asserted is kept."""
    changed = about("changed", "jobs", expected_changes={"state": {"to": "done"}})
    grade = graded(about("added", "notes"), changed, about("removed", "jobs"))
    assert grade.score == pytest.approx(1 / 3)
    assert [(item.id, item.score) for item in grade.items][1:] == [("1 changed jobs", 0.0), ("2 removed jobs", 0.0)]
    assert [each.pointer for each in grade.reasons] == ["/assertions/1", "/assertions/1", "/assertions/2"]
    for ignored in ({"global": ["at"]}, {"jobs": ["at"]}):
        assert graded(changed, ignore_fields=ignored).passed
    assert not graded(changed, ignore_fields={"notes": ["at"]}).passed
    assert graded(changed, strict=False).passed
    assert (graded().score, graded().passed) == (1.0, True)


@pytest.mark.parametrize(("value", "predicate", "kept"), DATA["every_operator"])
def test_every_operator(value, predicate, kept):
    """Several in one predicate are all to be kept; values without an order are in none."""
    assert matches(value, predicate) is kept


def test_where_takes_dotted_paths_and_joins():
    """A path that leads nowhere is null; and and or take lists of conditions."""
    row = {"a": {"b": 1}, "c": 2}
    assert fits(row, {"a.b": 1, "c": {"gt": 1}})
    assert fits(row, {"a.x.y": {"is_null": True}})
    assert fits(row, {"or": [{"c": 3}, {"a.b": 1}]})
    assert not fits(row, {"and": [{"c": 3}, {"a.b": 1}]})
    for where in ({"c": {"like": 1}}, {"c": {"or": 1}}, [1]):
        with pytest.raises(Unusable):
            fits(row, where)


def test_rows_without_a_key_are_told_by_what_they_hold():
    """And equal ones by their number; another field may be the key."""
    found = difference_of({"before": {"t": [{"x": 1}, {"x": 1}]}, "after": {"t": [{"x": 1}, {"x": 2}]}}, "id")
    assert (found.added, found.removed, found.changed) == ({"t": [{"x": 2}]}, {"t": [{"x": 1}]}, {})
    found = difference_of({"before": {"t": [{"k": 1, "x": 1}]}, "after": {"t": [{"k": 1, "x": 2}]}}, "k")
    assert list(found.changed) == ["t"]


@pytest.mark.parametrize(
    ("state", "assertions"),
    [
        ([], [about("added", "notes")]),
        ({"tables": {}}, [about("added", "notes")]),
        ({"inserts": [{"id": 1}]}, [about("added", "notes")]),
        ({"before": {"t": 3}, "after": {}}, [about("added", "t")]),
        (CHANGES, [about("moved", "notes")]),
        (CHANGES, [{"diff_type": "added"}]),
        (CHANGES, ["added"]),
        (CHANGES, "added"),
        (CHANGES, [about("added", "notes", where={"id": {"like": 1}})]),
        (CHANGES, [about("added", "notes", expected_count="2")]),
    ],
)
def test_what_is_not_of_its_form_fails_the_grade(state, assertions):
    """It is not known whether the run was right: no zero."""
    reference = Expectation(state={"assertions": assertions})
    grade = StateDiff().grade(Sample(id="a", state=state, expected=reference))
    assert (grade.outcome, grade.fault.code) == (Outcome.FAILED, "unusable_state")


def test_nothing_recorded_and_nothing_asserted_are_skipped():
    assert StateDiff().grade(Sample(id="a")).reasons[0].code == "state_not_recorded"
    assert StateDiff().grade(Sample(id="a", state=CHANGES)).reasons[0].code == "no_assertions"
    assert StateDiff(assertions=(about("added", "notes"),)).grade(Sample(id="a", state=CHANGES)).passed
    testing.check_grader(StateDiff(assertions=(about("added", "notes", where={"x": {"gt": 1}}),)))


def test_a_file_with_states_is_graded(tmp_path):
    """In gradestack's own form: the state of the run, and what the reference asserts of it."""
    record = {
        "id": "a",
        "state": CHANGES,
        "expected": {"state": {"assertions": [about("added", "notes")]}},
        "predicted": [],
    }
    (tmp_path / "runs.jsonl").write_text(json.dumps(record) + "\n")
    report = gradestack.grade_files([tmp_path / "runs.jsonl"], graders=["state_diff"], output=tmp_path / "out")
    assert report.metrics["avg_score_attempted"] == 1.0
