"""All graders at work on blocks of samples."""

from __future__ import annotations

from time import perf_counter

from gradestack.grading.guarded import guarded_grades
from gradestack.grading.plan import Stage
from gradestack.grading.turns import grade_sample
from gradestack.model import Grade, Sample, Status

_OK = Status.OK
Column = list[Grade]
"""One grader's grades of a block of samples, in order."""


class Graders:
    """All graders of a plan.

    Args:
        stages: The graders.
        strict: Raise instead of recording a failed grade.

    Attributes:
        seconds: Time spent so far, by grader key.
        interrupted: Whether a grader was interrupted. Its block is graded up to the sample it was at.
    """

    def __init__(self, stages: tuple[Stage, ...], *, strict: bool) -> None:
        self._stages, self._strict = stages, strict
        self.interrupted = False
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
            try:
                if stage.extractor is None and usual and _OK in stage.component.handles:
                    guarded_grades(stage.component.grade, stage, samples, column, strict=self._strict)
                else:
                    for sample in samples:
                        grade, text = grade_sample(stage, sample, strict=self._strict)
                        judged.append(text)
                        column.append(grade)
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                samples = samples[: len(column)]
            columns[stage.key] = column
            if stage.extractor is not None:
                texts[stage.key] = judged
            self.seconds[stage.key] += perf_counter() - started
        if self.interrupted:
            columns = {key: column[: len(samples)] for key, column in columns.items()}
        return columns, texts
