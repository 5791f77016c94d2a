"""What graders say of a sample, as its part of a line of results.jsonl; and the line of both parts."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from msgspec import Raw, Struct

from gradestack.jsonio.values import dumps, json_data
from gradestack.model import ABSENT, Fault, Grade, Item, Outcome, Reason, Sample
from gradestack.rows.encoding import SAFE, check, check_numbers, write
from gradestack.rows.read import Row

_LONG = 1 << 20
"""Bytes of a row of which no copy is made."""
_MOST_HELD, _SHORT = 2048, 4096
"""Grades that are kept as they were written, and the bytes of one."""
Pieces = tuple[bytes | memoryview, ...]
"""What a line is written of, one after the other."""


class _Grade(Struct, gc=False, omit_defaults=True):
    metadata: Any
    rationale: str
    score: float
    state: Outcome
    counts: Any = None
    fault: Fault | None = None
    gold: str | None = None
    items: Any = None
    label: str | None = None
    parts: Any = None
    passed: bool | None = None
    reasons: Any = None


class _Graded(Struct, gc=False):
    grade: Any
    grades: Mapping[str, Any]
    passed: bool | None
    state: Outcome
    submission: str
    submissions: Any


def _grade(grade: Grade) -> _Grade:
    metadata, fault = grade.metadata, grade.fault
    if fault is not None:
        metadata = {"error": fault.message, "error_type": fault.type or fault.code, **metadata}
    return _Grade(
        metadata,
        grade.rationale,
        0.0 if grade.score is None else grade.score,
        grade.outcome,
        grade.counts or None,
        fault,
        grade.gold,
        grade.items or None,
        grade.label,
        grade.parts or None,
        grade.passed,
        grade.reasons or None,
    )


def grade_to_json(grade: Grade) -> Row:
    """Return a grade as it stands in a row.

    ``score`` is 0.0 for an ungraded one, as letta-evals writes it; read ``state``. Failures carry ``metadata.error``
    and ``metadata.error_type``.

    Raises:
        TypeError: It is not JSON.
    """
    row: Row = json_data(_grade(grade))
    return row


def _submission(sample: Sample, submissions: Mapping[str, str], main: str) -> str:
    for text in (submissions.get(main), sample.text, sample.label):
        if text is not None:
            return text
    return ""


_held: dict[int, tuple[Grade, Raw]] = {}
"""Grades that were written, by their identity: of a right run, a grader may give the grade of one before."""


def _checked(grade: Grade) -> _Grade | Raw:
    """Return a grade that can be written, or as it was written before.

    Raises:
        AttributeError: A reason or an item is none.
        TypeError: Something is not JSON.
        ValueError: Something is NaN or infinite.
    """
    held = _held.get(id(grade))
    if held is not None:
        return held[1]
    check_grade(grade)
    if not grade.passed or grade.reasons or grade.rationale:
        return _grade(grade)
    written = Raw(write(_grade(grade)))
    if len(memoryview(written)) <= _SHORT:
        if len(_held) >= _MOST_HELD:
            _held.clear()
        _held[id(grade)] = grade, written
    return written


def graded_bytes(
    sample: Sample,
    grades: Mapping[str, Grade],
    main: str,
    *,
    passed: bool | None,
    submissions: Mapping[str, str],
) -> bytes:
    """Return the part of a row that graders decide, as JSON: the letta-evals result form, and beside it what is added.

    Args:
        sample: The recorded run.
        grades: Its grades by grader key.
        main: Key of the grader shown as ``grade``.
        passed: Whether the sample passes by the run's outcome grader; None where that says nothing.
        submissions: What each text grader judged, by grader key.

    Raises:
        RecursionError: Something is nested too deeply.
        TypeError: Something is not JSON.
        ValueError: The same.
    """

    def row(written: Mapping[str, Any]) -> _Graded:
        submission = _submission(sample, submissions, main)
        return _Graded(written[main], written, passed, grades[main].outcome, submission, submissions or None)

    try:
        return write(row({key: _checked(grade) for key, grade in grades.items()}))
    except (TypeError, ValueError):  # as what is recorded: the standard library decides
        return dumps(json_data(row({key: _grade(grade) for key, grade in grades.items()}))).encode()


def pieces_of_line(graded: bytes, recorded: bytes) -> Pieces:
    """Return the line of both parts of a row, each a JSON object that is not empty; of a long one without a copy."""
    if len(recorded) < _LONG:
        return (b"%b,%b\n" % (graded[:-1], recorded[1:]),)
    return memoryview(graded)[:-1], b",", memoryview(recorded)[1:], b"\n"


def check_grade(of: Grade | Item) -> None:
    """Refuse what msgspec would not write as the standard library does.

    Raises:
        AttributeError: A reason or an item is none.
        TypeError: Something is not JSON.
        ValueError: Something is NaN or infinite.
    """
    if of.metadata:
        check(of.metadata)
    if of.parts:
        check_numbers(of.parts.values())
    if of.counts:
        check_numbers(of.counts.values())
    if of.score is not None and not (type(of.score) is float and isfinite(of.score)):
        check(of.score)
    for reason in of.reasons:
        _check_reason(reason)
    if isinstance(of, Grade):
        for item in of.items:
            check_grade(item)


def _check_reason(reason: Reason) -> None:
    for value in (reason.expected, reason.actual):
        if value is not ABSENT and type(value) not in SAFE:
            check(value)
