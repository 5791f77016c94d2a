"""All graders at work on blocks of samples."""

from __future__ import annotations

from threading import get_ident
from time import perf_counter

from gradestack.errors import TimedOut
from gradestack.grading.guarded import guarded_grades, raised_grade
from gradestack.grading.plan import Stage
from gradestack.grading.turns import grade_sample
from gradestack.model import Grade, Sample, Status

_OK = Status.OK
Column = list[Grade]
"""One grader's grades of a block of samples, in order."""
UNDER_WAY: dict[int, list[Grade]] = {}
"""Thread -> the grades made so far of the block its grader is at: who keeps the time looks whether there are more."""


class Graders:
    """All graders of a plan.

    Args:
        stages: The graders.
        strict: Raise instead of recording a failed grade.

    Attributes:
        seconds: Time spent so far, by grader key.
        timed_out: How many grades took too long.
        interrupted: Whether a grader was interrupted. Its block is graded up to the sample it was at.
    """

    def __init__(self, stages: tuple[Stage, ...], *, strict: bool) -> None:
        self._stages, self._strict = stages, strict
        self.interrupted, self.timed_out = False, 0
        self.seconds = dict.fromkeys((stage.key for stage in stages), 0.0)

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
        for stage in self._stages:
            started = perf_counter()
            column: Column = []
            judged: list[str | None] = []
            UNDER_WAY[get_ident()] = column
            try:
                self._fill(stage, samples, column, judged, usual=usual)
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                samples = samples[: len(column)]
            finally:
                del UNDER_WAY[get_ident()]
            columns[stage.key] = column
            if stage.extractor is not None:
                texts[stage.key] = judged
            self.seconds[stage.key] += perf_counter() - started
        if self.interrupted:
            columns = {key: column[: len(samples)] for key, column in columns.items()}
        return columns, texts

    def _fill(
        self, stage: Stage, samples: list[Sample], column: Column, judged: list[str | None], *, usual: bool
    ) -> None:
        """Add the grades of samples to a column; one that took too long fails, and the others have their turn."""
        while len(column) < len(samples):
            rest = samples[len(column) :] if column else samples
            try:
                if stage.extractor is None and usual and _OK in stage.component.handles:
                    guarded_grades(stage.component.grade, stage, rest, column, strict=self._strict)
                    continue
                for sample in rest:
                    grade, text = grade_sample(stage, sample, strict=self._strict)
                    judged.append(text)
                    column.append(grade)
            except TimedOut as error:
                judged[len(column) :] = [""]
                column.append(raised_grade(stage, samples[len(column)], error, strict=self._strict))
                self.timed_out += 1
