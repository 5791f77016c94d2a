"""The line of a sample in results.jsonl, whatever it holds: what cannot be written as JSON becomes a failure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from gradestack.errors import PluginError
from gradestack.model import Fault, Grade, Sample, Status, failed, replace
from gradestack.rows.encoding import encode
from gradestack.rows.success import Success
from gradestack.rows.write import check_grade, grade_to_json, row_bytes

_TOO_DEEP = Fault(category="data", code="too_deep", message="nested too deeply to be written")
_UNWRITABLE = (AttributeError, RecursionError, TypeError, ValueError)  # a text among reasons has no code


def row_line(
    sample: Sample,
    grades: Mapping[str, Grade],
    submissions: Mapping[str, str],
    *,
    main: str,
    success: Success | None,
    signatures: Mapping[str, str],
    strict: bool,
    slim: bool = False,
) -> tuple[bytes, Sample, Mapping[str, Grade]]:
    """Return a sample's line, and the sample and grades that were really written.

    A grade that cannot be written becomes a failed one. Where the sample itself cannot be, it is written without what
    was recorded, as a failed run all of whose grades failed.

    Args:
        sample: The recorded run.
        grades: Its grades by grader key.
        submissions: What each text grader judged, by grader key.
        main: Key of the grader shown as ``grade``.
        success: What makes a sample a success; None: nothing does.
        signatures: Name and version of each grader, by its key.
        strict: Refuse a grade that is not JSON.
        slim: Leave the trajectory out.

    Raises:
        PluginError: A grade is not JSON, and the run is strict.
    """

    def line(sample: Sample, grades: Mapping[str, Grade], submissions: Mapping[str, str]) -> bytes:
        passed = None if success is None else success.passed(grades[success.grader])
        return row_bytes(sample, grades, main, passed=passed, submissions=submissions, slim=slim)

    try:
        return line(sample, grades, submissions), sample, grades
    except _UNWRITABLE:
        pass
    mended = {key: _mended(grade, sample, key, signatures[key], strict=strict) for key, grade in grades.items()}
    try:
        return line(sample, mended, submissions), sample, mended
    except _UNWRITABLE as error:
        deep = isinstance(error, RecursionError)
        fault = _TOO_DEEP if deep else Fault(category="data", code="not_json", message=f"not JSON: {error}")
    bare, mended = _bare(sample, fault), {key: failed(fault) for key in grades}
    return line(bare, mended, {}), bare, mended


def _mended(grade: Grade, sample: Sample, key: str, signature: str, *, strict: bool) -> Grade:
    """Return a grade that can be written: itself, or a failed one that says why it cannot."""
    try:
        with suppress(TypeError, ValueError):
            check_grade(grade)
        encode(grade_to_json(grade))
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
