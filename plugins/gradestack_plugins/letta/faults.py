"""Why a recorded run, or a recorded grade, is none: error records, and what a grade says in place of a judgement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradestack import JSON, Fault
from gradestack_plugins.letta.references import as_text

_RUN, _GRADING = "Error: ", "Error during grading: "
"""How the rationale begins of a grade that stands for a run, or for a judge, that broke down."""


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def error_fault(error: JSON) -> Fault:
    """Return the fault of an ``error`` record: ``category``, ``exception_type`` and ``message``, or a text."""
    if not isinstance(error, Mapping):
        return Fault(category="target", code="recorded_error", message=as_text(error))
    category, kind, message = (_text(error.get(name)) for name in ("category", "exception_type", "message"))
    return Fault(category=category or "target", code="recorded_error", message=message, type=kind)


def grade_fault(grade: JSON) -> Fault | None:
    """Return why a recorded grade is no judgement, from its rationale and ``metadata``; None when nothing says so.

    The message is what stands behind "Error: " (category ``target``) or "Error during grading: " (``grading``), and
    ``metadata.error`` where that says something else; the type is ``metadata.error_type``.
    """
    if not isinstance(grade, Mapping):
        return None
    rationale, metadata = _text(grade.get("rationale")), grade.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    error = as_text(metadata["error"]) if metadata.get("error") else ""
    prefix = next((each for each in (_RUN, _GRADING) if rationale.startswith(each)), "")
    message = (rationale.removeprefix(prefix) if prefix else "") or error
    if not message:
        return None
    if error not in message:
        message = f"{message} ({error})"
    category, code = ("target", "target_error") if prefix == _RUN else ("grading", "recorded_error")
    return Fault(category=category, code=code, message=message, type=_text(metadata.get("error_type")))


def result_fault(result: Mapping[str, Any]) -> Fault | None:
    """Return the first fault among a result's grades, that of the gate before the others."""
    return next((fault for grade in _grades(result) if (fault := grade_fault(grade)) is not None), None)


def _grades(result: Mapping[str, Any]) -> Iterator[JSON]:
    yield result.get("grade")
    if isinstance(grades := result.get("grades"), Mapping):
        yield from grades.values()
