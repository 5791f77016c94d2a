"""Assertions about what changed: every kind, every operator, both forms of a recorded state."""

import json

import pytest

import gradestack
from gradestack import Expectation, Sample, testing
from gradestack_plugins.end_states.declared import Unusable
from gradestack_plugins.end_states.state_diff import StateDiff, difference_of, matches, row_fits
from tests.core.outcomes import data

DATA = data(__file__, "state_diff.yaml")

CHANGES = DATA["changes"]
TABLES = DATA["tables"]


def graded(*assertions, state=None, **more):
    reference = Expectation(state={"assertions": list(assertions), **more})
    return StateDiff().grade(
        Sample(id="a", state=CHANGES if state is None else state, expected=reference)
    )


def about(kind, entity, **more):
    return {"diff_type": kind, "entity": entity, **more}


@pytest.mark.parametrize("state", [CHANGES, TABLES], ids=["changes", "tables"])
@pytest.mark.parametrize(("assertion", "is_met"), DATA["every_kind_of_assertion"])
def test_every_kind_of_assertion(state, assertion, is_met):
    """As recorded changes, or as tables before and after.

    At least one row is expected where no number is.
    """
    grade = graded(assertion, state=state)
    assert (grade.score, grade.passed) == (float(is_met), is_met), [
        reason.message for reason in grade.reasons
    ]


@pytest.mark.parametrize(("value", "predicate", "is_met"), DATA["every_operator"])
def test_every_operator(value, predicate, is_met):
    """Several in one predicate are all to be kept; values without an order are in none."""
    assert matches(value, predicate) is is_met


def test_where_takes_dotted_paths_and_joins():
    """A path that leads nowhere is null; and and or take lists of conditions."""
    row = {"a": {"b": 1}, "c": 2}
    assert row_fits(row, {"a.b": 1, "c": {"gt": 1}})
    assert row_fits(row, {"a.x.y": {"is_null": True}})
    assert row_fits(row, {"or": [{"c": 3}, {"a.b": 1}]})
    assert not row_fits(row, {"and": [{"c": 3}, {"a.b": 1}]})
    for where in ({"c": {"like": 1}}, {"c": {"or": 1}}, [1]):
        with pytest.raises(Unusable):
            row_fits(row, where)


def test_rows_without_a_key_are_told_by_what_they_hold():
    """And equal ones by their number; another field may be the key."""
    difference = difference_of(
        {"before": {"t": [{"x": 1}, {"x": 1}]}, "after": {"t": [{"x": 1}, {"x": 2}]}}, "id"
    )
    assert difference.added == {"t": [{"x": 2}]}
    assert difference.removed == {"t": [{"x": 1}]}
    assert difference.changed == {"t": []}
    difference = difference_of(
        {"before": {"t": [{"k": 1, "x": 1}]}, "after": {"t": [{"k": 1, "x": 2}]}}, "k"
    )
    changed = difference.changed.values()
    change_counts = [len(changes) for changes in changed]
    assert change_counts == [1]


def test_nothing_recorded_and_nothing_asserted_are_skipped():
    first_reason = StateDiff().grade(Sample(id="a")).reasons[0]
    assert first_reason.code == "state_not_recorded"
    reasons = StateDiff().grade(Sample(id="a", state=CHANGES)).reasons
    assert reasons[0].code == "no_assertions"
    state_diff = StateDiff(assertions=(about("added", "notes"),))
    sample = Sample(id="a", state=CHANGES)
    assert state_diff.grade(sample).passed
    grader = StateDiff(assertions=(about("added", "notes", where={"x": {"gt": 1}}),))
    testing.check_grader(grader)


def test_a_file_with_states_is_graded(tmp_path):
    """In gradestack's own form: the state of the run, and what the reference asserts of it."""
    assertions = [about("added", "notes")]
    state = {"assertions": assertions}
    expected = {"state": state}
    record = {
        "id": "a",
        "state": CHANGES,
        "expected": expected,
        "predicted": [],
    }
    runs_path = tmp_path / "runs.jsonl"
    text = json.dumps(record)
    runs_path.write_text(text + "\n")
    output = tmp_path / "out"
    paths = [tmp_path / "runs.jsonl"]
    report = gradestack.grade_files(paths, graders=["state_diff"], output=output)
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == 1.0
