"""All graders at work on blocks of samples."""

from __future__ import annotations

from collections.abc import Container
from threading import get_ident
from time import perf_counter
from typing import NamedTuple

from gradestack.api import Grader
from gradestack.errors import TimedOut
from gradestack.grading.guarded import explained_grade, guarded_grades, raised_grade, unexplained
from gradestack.grading.plan import Stage
from gradestack.grading.turns import grade_sample
from gradestack.interpreter import UNDER_WAY
from gradestack.model import Grade, Outcome, Sample, Status

_GRADED, _OK = Outcome.GRADED, Status.OK
Column = list[Grade]
"""One grader's grades of a block of samples, in order."""


class Graded(NamedTuple):
    """The grades of a block of samples."""

    columns: dict[str, Column]
    """By grader key, as the graders gave them."""
    explained: dict[str, Column]
    """The same with items and reasons, where these were asked for."""
    texts: dict[str, list[str | None]]
    """What graders of texts judged."""


class Graders:
    """All graders of a plan.

    Attributes:
        interrupted: Whether a grader was interrupted. Its block is graded up to the sample it was at.
    """

    def __init__(self, stages: tuple[Stage, ...], explain: Container[str], *, strict: bool) -> None:
        self._stages, self._strict = stages, strict
        self._explain = [
            stage.key
            for stage in stages
            if stage.key in explain and type(stage.component).explain is not Grader.explain and stage.extractor is None
        ]
        self.interrupted, self.timed_out = False, 0
        self.seconds = dict.fromkeys((stage.key for stage in stages), 0.0)

    def grade(self, samples: list[Sample]) -> Graded:
        """Return the grades of samples.

        After an interruption they are of the samples that every grader has judged, which may be none.
        """
        usual, thread = {_OK}.issuperset([sample.status for sample in samples]), get_ident()
        found = Graded({}, {}, {})
        for stage in self._stages:
            started = perf_counter()
            column: Column = []
            judged: list[str | None] = []
            try:
                UNDER_WAY[thread] = column
                self._fill(stage, samples, column, judged, usual=usual)
                found.explained[stage.key] = column
                if stage.key in self._explain:
                    shown: Column = []
                    found.explained[stage.key] = UNDER_WAY[thread] = shown
                    self._explained(stage, samples, column, shown)
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                samples = samples[: len(found.explained.get(stage.key, column))]
            finally:
                UNDER_WAY.pop(thread, None)
            found.columns[stage.key] = column
            found.explained.setdefault(stage.key, column)
            if stage.extractor is not None:
                found.texts[stage.key] = judged
            self.seconds[stage.key] += perf_counter() - started
        if self.interrupted:
            for columns in (found.columns, found.explained):
                columns |= {key: column[: len(samples)] for key, column in columns.items()}
        return found

    def _explained(self, stage: Stage, samples: list[Sample], column: Column, shown: Column) -> None:
        for sample, grade in zip(samples, column, strict=False):
            if grade.outcome is not _GRADED and grade.numbers is None:
                shown.append(grade)
                continue
            try:
                shown.append(explained_grade(stage, sample, grade, strict=self._strict))
            except TimedOut as error:
                shown.append(unexplained(grade, error))
                self.timed_out += 1

    def _fill(
        self, stage: Stage, samples: list[Sample], column: Column, judged: list[str | None], *, usual: bool
    ) -> None:
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
