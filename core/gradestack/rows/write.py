"""What graders say of samples, as their part of lines of results.jsonl; and the lines of both parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from gradestack.errors import PluginError
from gradestack.grading.plan import Plan
from gradestack.grading.recording import WrittenBlock
from gradestack.jsonio.values import dumps, json_data
from gradestack.model import ABSENT, Fault, Grade, Outcome, Sample, failed
from gradestack.rows.encoding import check_all, encode, write
from gradestack.rows.read import Row
from gradestack.rows.recorded import TOO_DEEP, UNWRITABLE, Recorded, recorded_of
from gradestack.rows.success import Success

_LONG = 1 << 20
"""Bytes of a row of which no copy is made."""
_DEEPER = 16
"""Levels and calls by which a grade lies deeper in a row than alone, or more."""
_NUMBERS = frozenset({int, float})
Columns = dict[str, list[Grade]]
"""Grader key -> its grades of a block."""
Texts = Mapping[str, Sequence[str | None]]
"""Grader key -> the texts it judged."""


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


class _Verdict(Struct, gc=False):
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


class RowWriter(msgspec.Struct, frozen=True, kw_only=True):
    """Writes the rows of blocks of samples.

    Attributes:
        main: Key of the grader shown as ``grade``.
        success: What makes a sample a success; None: nothing does.
        signatures: Name and version of each grader, by its key.
        strict: Refuse a grade that is not JSON.
        slim: Leave trajectories out.
    """

    main: str
    success: Success | None
    signatures: Mapping[str, str]
    strict: bool = False
    slim: bool = False

    @classmethod
    def of(cls, plan: Plan, success: Success | None, *, strict: bool, slim: bool = False) -> RowWriter:
        """Return the writer of a plan's rows."""
        signatures = {stage.key: stage.signature for stage in plan.graders}
        return cls(main=plan.main, success=success, signatures=signatures, strict=strict, slim=slim)

    def recorded(self, samples: Sequence[Sample]) -> Recorded:
        """Return the samples' parts of their lines, written before graders see them."""
        return recorded_of(samples, slim=self.slim)

    def lines(
        self, samples: Sequence[Sample], recorded: Recorded, columns: Columns, texts: Texts
    ) -> tuple[list[bytes | memoryview], WrittenBlock]:
        """Return the lines of a block in pieces, and what stands in them.

        Raises:
            PluginError: A grader has changed a sample or gave what is not JSON, and the run is strict.
        """
        if self.strict and self.recorded(samples).data != recorded.data:
            msg = f"a grader has changed the sample at {samples[0].source or samples[0].id}"
            raise PluginError(msg, f"one of: {', '.join(f'{key} ({of})' for key, of in self.signatures.items())}")
        mended: dict[tuple[str, int], Grade] = {}
        if recorded.mended:
            samples, columns = list(samples), {key: list(column) for key, column in columns.items()}
            for place, (sample, fault) in recorded.mended.items():
                samples[place] = sample
                mended |= {(key, place): failed(fault) for key in columns}
            for (key, place), grade in mended.items():
                columns[key][place] = grade
            texts = {
                key: [None if at in recorded.mended else text for at, text in enumerate(judged)]
                for key, judged in texts.items()
            }
        try:
            return self._lines(samples, recorded.data, columns, texts), WrittenBlock(samples, mended)
        except UNWRITABLE:
            pass
        found: list[bytes | memoryview] = []
        for at, sample in enumerate(samples):
            grades = {key: [column[at]] for key, column in columns.items()}
            judged = {key: [column[at]] for key, column in texts.items()}
            data = recorded.data[at]
            try:
                found += self._line(sample, data, grades, judged)
            except UNWRITABLE:
                written = {key: [self._mended(grade, sample, key)] for key, (grade,) in grades.items()}
                mended |= {(key, at): grade for key, (grade,) in written.items() if grade is not grades[key][0]}
                found += self._line(sample, data, written, judged)
        return found, WrittenBlock(samples, mended)

    def _lines(
        self, samples: Sequence[Sample], recorded: Sequence[bytes], columns: Columns, texts: Texts
    ) -> list[bytes | memoryview]:
        """Return the lines of samples all of whose grades msgspec writes as the standard library does."""
        check_grades(chain.from_iterable(columns.values()))
        written = {key: [write(_grade(grade)) for grade in column] for key, column in columns.items()}
        keys = [b"%b%b:" % (b"," if at else b"", write(key)) for at, key in enumerate(columns)]
        found: list[bytes | memoryview] = []
        for at, (sample, own) in enumerate(zip(samples, recorded, strict=True)):
            found += (b'{"grade":', written[self.main][at], b',"grades":{')
            for key, column in zip(keys, written.values(), strict=True):
                found += (key, column[at])
            rest = write(self._verdict(sample, columns, texts, at))
            found += (b"},", _inner(rest), b",", _inner(own), b"}\n")
        return found

    def _verdict(self, sample: Sample, columns: Columns, texts: Texts, at: int) -> _Verdict:
        judged = {key: text for key, column in texts.items() if (text := column[at]) is not None}
        submission = judged.get(self.main, sample.text if sample.text is not None else sample.label)
        passed = None if self.success is None else self.success.passed(columns[self.success.grader][at])
        return _Verdict(passed, columns[self.main][at].outcome, submission or "", judged or None)

    def _line(self, sample: Sample, recorded: bytes, columns: Columns, texts: Texts) -> list[bytes | memoryview]:
        """Return the line of one sample."""
        try:
            return self._lines([sample], [recorded], columns, texts)
        except (TypeError, ValueError):  # as what is recorded: the standard library decides
            pass
        grades = {key: json_data(_grade(column[0])) for key, column in columns.items()}
        row = {"grade": grades[self.main], "grades": grades, **json_data(self._verdict(sample, columns, texts, 0))}
        return [dumps(row).encode()[:-1], b",", memoryview(recorded)[1:], b"\n"]

    def _mended(self, grade: Grade, sample: Sample, key: str) -> Grade:
        """Return a grade that can be written: itself, or a failed one that says why it cannot."""
        try:
            with suppress(TypeError, ValueError):
                check_grades([grade])
            alone: Any = grade_to_json(grade)
            for _ in range(_DEEPER):
                alone = [alone]
            encode(alone)
        except RecursionError:
            return failed(TOO_DEEP)
        except (AttributeError, TypeError, ValueError) as error:
            why = f"the grade is not JSON: {error}"
            if self.strict:
                msg = f"grader {key!r} ({self.signatures[key]}) broke its contract on {sample.source or sample.id}"
                raise PluginError(msg, why) from error
            kind, signature = type(error).__name__, self.signatures[key]
            return failed(Fault(category="grading", code="bad_grade", message=why, type=kind, component=signature))
        return grade


def _inner(data: bytes) -> bytes | memoryview:
    """Return a JSON object without its braces; of a long one without a copy."""
    return data[1:-1] if len(data) < _LONG else memoryview(data)[1:-1]


def check_grades(grades: Iterable[Grade]) -> None:
    """Refuse what msgspec would not write as the standard library does: all of a block are looked at together.

    Raises:
        AttributeError: A reason or an item is none.
        TypeError: Something is not JSON.
        ValueError: Something is NaN or infinite.
    """
    mappings: list[Mapping[str, Any]] = []
    numbers: list[Any] = []
    values: list[Any] = []
    for grade in grades:
        mappings += (grade.counts, grade.parts)
        numbers.append(grade.score or 0)
        if grade.metadata:
            values.append(grade.metadata)
        for reason in chain(grade.reasons, *[item.reasons for item in grade.items]):
            values += (reason.expected, reason.actual)
        for item in grade.items:
            mappings += (item.counts, item.parts)
            numbers.append(item.score or 0)
            if item.metadata:
                values.append(item.metadata)
    numbers += chain.from_iterable([each.values() for each in mappings])
    try:
        total = sum(numbers)
        if type(total) not in _NUMBERS or not isfinite(total):
            check_all(numbers)
    except (TypeError, OverflowError):  # None, a whole number beyond floats, or something worse
        check_all(numbers)
    check_all([value for value in values if value is not ABSENT])
