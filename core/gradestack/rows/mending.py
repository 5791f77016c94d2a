"""The line of a sample in results.jsonl, whatever it holds: what cannot be written as JSON becomes a failure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from gradestack.errors import PluginError
from gradestack.model import Fault, Grade, Sample, Status, failed, replace
from gradestack.rows.encoding import encode
from gradestack.rows.recorded import recorded_bytes
from gradestack.rows.success import Success
from gradestack.rows.write import Pieces, check_grade, grade_to_json, graded_bytes, pieces_of_line

_TOO_DEEP = Fault(category="data", code="too_deep", message="nested too deeply to be written")
_DEEPER = 16
"""Levels and calls by which a grade lies deeper in a row than alone, or more."""
_UNWRITABLE = (AttributeError, RecursionError, TypeError, ValueError)  # a text among reasons has no code


class Recorded(NamedTuple):
    """What is recorded of a sample, written."""

    data: bytes
    sample: Sample
    """As it is written."""
    fault: Fault | None = None
    """Why it could not be written whole: all its grades fail."""


def recorded_part(sample: Sample, *, slim: bool = False) -> Recorded:
    """Return a sample's part of its line.

    A sample that cannot be written is written as a failed run, without what was recorded.

    Args:
        sample: The recorded run.
        slim: Leave the trajectory out.
    """
    try:
        return Recorded(recorded_bytes(sample, slim=slim), sample)
    except _UNWRITABLE as error:
        deep = isinstance(error, RecursionError)
        fault = _TOO_DEEP if deep else Fault(category="data", code="not_json", message=f"not JSON: {error}")
    bare = _bare(sample, fault)
    return Recorded(recorded_bytes(bare, slim=slim), bare, fault)


def row_line(
    recorded: Recorded,
    grades: Mapping[str, Grade],
    submissions: Mapping[str, str],
    *,
    main: str,
    success: Success | None,
    signatures: Mapping[str, str],
    strict: bool,
) -> tuple[Pieces, Mapping[str, Grade]]:
    """Return a sample's line, and the grades that were really written.

    A grade that cannot be written becomes a failed one.

    Args:
        recorded: The recorded run, written before it was graded.
        grades: Its grades by grader key.
        submissions: What each text grader judged, by grader key.
        main: Key of the grader shown as ``grade``.
        success: What makes a sample a success; None: nothing does.
        signatures: Name and version of each grader, by its key.
        strict: Refuse a grade that is not JSON.

    Raises:
        PluginError: A grade is not JSON, and the run is strict.
    """
    sample = recorded.sample
    if recorded.fault is not None:
        grades, submissions = {key: failed(recorded.fault) for key in grades}, {}

    def line(grades: Mapping[str, Grade]) -> Pieces:
        passed = None if success is None else success.passed(grades[success.grader])
        graded = graded_bytes(sample, grades, main, passed=passed, submissions=submissions)
        return pieces_of_line(graded, recorded.data)

    try:
        return line(grades), grades
    except _UNWRITABLE:
        mended = {key: _mended(grade, sample, key, signatures[key], strict=strict) for key, grade in grades.items()}
        return line(mended), mended


def _mended(grade: Grade, sample: Sample, key: str, signature: str, *, strict: bool) -> Grade:
    """Return a grade that can be written: itself, or a failed one that says why it cannot."""
    try:
        with suppress(TypeError, ValueError):
            check_grade(grade)
        alone: Any = grade_to_json(grade)
        for _ in range(_DEEPER):
            alone = [alone]
        encode(alone)
    except RecursionError:
        return failed(_TOO_DEEP)
    except (AttributeError, TypeError, ValueError) as error:
        why = f"the grade is not JSON: {error}"
        if strict:
            msg = f"grader {key!r} ({signature}) broke its contract on {sample.source or sample.id}"
            raise PluginError(msg, why) from error
        kind = type(error).__name__
        return failed(Fault(category="grading", code="bad_grade", message=why, type=kind, component=signature))
    return grade


def _bare(sample: Sample, fault: Fault) -> Sample:
    """Return a sample that failed with a fault, without anything recorded that may not be JSON."""
    return replace(
        sample,
        turns=(),
        calls=None,
        plan=None,
        expected=replace(sample.expected, calls=None, alternatives=(), plan=None, state=None),
        recorded={},
        state=None,
        agent_usage=None,
        facets={},
        status=Status.FAILED,
        error=fault,
    )
