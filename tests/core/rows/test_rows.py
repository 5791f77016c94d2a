"""Rows of results.jsonl.

What is written, that grades and keys read back equal, and what changed on disk.
"""

import json

import msgspec
import pytest

from gradestack import (
    Fault,
    Grade,
    Key,
    Outcome,
    Sample,
    failed,
    grade_from_json,
    grade_to_json,
    replace,
    skipped,
)
from gradestack.jsonio import dumps
from gradestack.rows.read import GradedRow
from tests.core.outcomes import data
from tests.core.row_reference import written

DATA = data(__file__, "rows.yaml")


FAULT = Fault(
    category="grading", code="raised", message="boom", type="ValueError", component="toy 7"
)
RICH = msgspec.convert(DATA["rich"], Grade)


def through_json(grade):
    text = dumps(grade_to_json(grade))
    return grade_from_json(json.loads(text))


@pytest.mark.parametrize(
    "grade",
    [
        Grade(score=1.0),
        Grade(score=0),
        RICH,
        skipped("no_tools", "none"),
        Grade(outcome=Outcome.MISSING),
    ],
)
def test_grades_read_back_equal(grade):
    assert through_json(grade) == grade


def test_a_failed_grade_reads_back_with_its_fault():
    """Its metadata has gained the error, as letta-evals writes it.

    Written again, nothing changes.
    """
    grade = failed(FAULT)
    back = through_json(grade)
    assert back.outcome == Outcome.FAILED
    assert back.score is None
    assert back.fault == FAULT
    assert back.metadata == {"error": "boom", "error_type": "ValueError"}
    assert grade_to_json(back) == grade_to_json(failed(FAULT))


SAMPLE = replace(msgspec.convert(DATA["sample"], Sample), native=object())


def test_a_row_holds_the_letta_form_and_more():
    grades = {"q": Grade(score=1.0), "r": failed(FAULT)}
    written_grades = {key: grade_to_json(grade) for key, grade in grades.items()}
    row = DATA["row"]
    expected = row | {"grade": written_grades["q"], "grades": written_grades}
    assert written(SAMPLE, grades, "q", passed=True) == expected


def test_keys_read_back_equal():
    row = written(SAMPLE, {"q": Grade(score=1.0)}, "q", passed=True)
    key = msgspec.convert(row, GradedRow).key()
    expected = Key(id="t1", model="m", run=2, facets={"domain": "air"})
    assert key == expected
