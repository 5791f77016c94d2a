"""One grader at work: extraction, grading, per-turn grading, and the guard that turns exceptions into failed grades."""

from __future__ import annotations

from time import perf_counter

from gradestack.grading.guarded import _no_grade, _raised, _unsound
from gradestack.grading.plan import GraderSlot
from gradestack.grading.turns import grade_sample
from gradestack.model import Grade, Sample, Status, check_grade

_OK = Status.OK


Column = list[Grade]
"""One grader's grades of a block of samples, in order."""


class Judge:
    """All graders of a suite at work on blocks of samples.

    Args:
        slots: The graders.
        strict: Raise instead of recording a failed grade.
        brief: Nobody reads reasons or rationales.

    Attributes:
        seconds: Time spent so far, by grader key.
        interrupted: Whether a grader was interrupted. Its block is graded up to the sample it was at.
    """

    def __init__(self, slots: tuple[GraderSlot, ...], *, strict: bool, brief: bool = False) -> None:
        self._slots, self._strict, self._brief = slots, strict, brief
        self.interrupted = False
        self.seconds = dict.fromkeys((slot.key for slot in slots), 0.0)

    def columns(self, samples: list[Sample]) -> tuple[dict[str, Column], dict[str, list[str | None]]]:
        """Return the grades by grader key, and what graders of texts judged.

        After an interruption they are of the samples that every grader has judged, which may be none.

        Raises:
            KeyboardInterrupt: Interrupted again.
            PluginError: A component raised or broke the contract, and the run is strict.
        """
        usual = all(sample.status is _OK for sample in samples)
        columns: dict[str, Column] = {}
        texts: dict[str, list[str | None]] = {}
        for slot in self._slots:
            started = perf_counter()
            column: Column = []
            judged: list[str | None] = []
            try:
                if slot.extractor is None and usual and _OK in slot.grader.handles:
                    self._directly(slot, samples, column)
                else:
                    self._one_by_one(slot, samples, column, judged)
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                samples = samples[: len(column)]
            columns[slot.key] = column
            if slot.extractor is not None:
                texts[slot.key] = judged
            self.seconds[slot.key] += perf_counter() - started
        if self.interrupted:
            columns = {key: column[: len(samples)] for key, column in columns.items()}
        return columns, texts

    def _one_by_one(self, slot: GraderSlot, samples: list[Sample], column: Column, judged: list[str | None]) -> None:
        for sample in samples:
            grade, text = grade_sample(slot, sample, strict=self._strict)
            judged.append(text)
            column.append(grade)

    def _directly(self, slot: GraderSlot, samples: list[Sample], column: Column) -> None:
        grade_of = slot.grader.brief if self._brief else slot.grader.grade
        for sample in samples:
            try:
                grade = grade_of(sample)
                problem = check_grade(grade) if isinstance(grade, Grade) else _no_grade(grade)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a raising grader never loses the run
                column.append(_raised(slot, sample, error, strict=self._strict))
                continue
            if problem is not None:
                grade = _unsound(slot, sample, problem, strict=self._strict)
            column.append(grade)
