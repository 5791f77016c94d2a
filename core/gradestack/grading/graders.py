"""All graders at work on blocks of samples."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import Any, NamedTuple

from gradestack.api import Grader
from gradestack.errors import TimedOut
from gradestack.grading.guarded import check_grades, explained_grade, guarded_grades, raised_grade, unexplained
from gradestack.grading.plan import Stage
from gradestack.grading.turns import grade_sample
from gradestack.grading.watch import Watch
from gradestack.interpreter import UNDER_WAY
from gradestack.model import Fault, Grade, Outcome, Sample, Status, failed

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
    verdicts: dict[str, list[bytes]]
    """What figures need of the grades, as bytes; not where they need what is explained."""


class Graders:
    """All graders of a plan.

    Attributes:
        interrupted: Whether a grader was interrupted. Its block is graded up to the sample it was at.
        spared: Keys of graders that end a process at the block at hand -> how; they are not asked.
        note: Is told which grader is at work.
    """

    def __init__(
        self,
        stages: tuple[Stage, ...],
        explain: Container[str],
        parts: Mapping[str, Sequence[str]],
        *,
        watched: int,
        strict: bool,
    ) -> None:
        # ours see samples first; who combines grades of others comes last
        self._stages = sorted(stages, key=lambda stage: (bool(stage.component.combines), stage.foreign))
        self._parts, self._strict = parts, strict
        self._keys = [stage.key for stage in stages]
        self.watches = {stage.key: Watch(stage, watched, strict=strict) for stage in stages if stage.foreign}
        self._explain = [
            stage.key
            for stage in stages
            if stage.key in explain and type(stage.component).explain is not Grader.explain and stage.extractor is None
        ]
        self._sound: dict[str, set[bytes]] = {stage.key: set() for stage in stages}
        self.interrupted, self.timed_out = False, 0
        self.spared: Mapping[str, Fault] = {}
        self.note: Callable[[str], None] | None = None
        self.seconds = dict.fromkeys((stage.key for stage in stages), 0.0)

    def grade(self, samples: list[Sample]) -> Graded:
        """Return the grades of samples.

        After an interruption they are of the samples that every grader has judged, which may be none.
        """
        usual, thread = {_OK}.issuperset([sample.status for sample in samples]), get_ident()
        found = Graded({key: [] for key in self._keys}, {key: [] for key in self._keys}, {}, {})  # in their order
        for stage in self._stages:
            started = perf_counter()
            column: Column = []
            judged: list[str | None] = []
            watch = self.watches.get(stage.key)
            given = samples if watch is None else watch.given(samples)
            fill = partial(self._fill, stage, found.explained, usual)
            if self.note is not None:
                self.note(stage.key)
            with self._interruptible(thread, column):
                fill(given, column, judged)
            explain, parts = stage.key in self._explain, self._parts[stage.key]
            sound = self._sound[stage.key]
            verdicts = check_grades(stage, samples, column, () if explain else parts, sound, strict=self._strict)
            if not (explain and parts):
                found.verdicts[stage.key] = verdicts
            found.columns[stage.key] = found.explained[stage.key] = column
            if explain:
                shown: Column = []
                found.explained[stage.key] = shown
                with self._interruptible(thread, shown):
                    self._explained(stage, given, column, shown)
            if watch is not None:
                if not self.interrupted and perf_counter() - started < 1:  # a slow one is asked once
                    self._compare(stage, watch, samples, column, fill)
                if watch.look(samples, column, found.explained[stage.key]):
                    found.verdicts.pop(stage.key, None)
            samples = samples[: len(found.explained[stage.key])]
            if stage.extractor is not None:
                found.texts[stage.key] = judged
            self.seconds[stage.key] += perf_counter() - started
        if self.note is not None:
            self.note("")
        if self.interrupted:
            every: Any = (found.columns, found.explained, found.verdicts)
            for columns in every:
                columns |= {key: column[: len(samples)] for key, column in columns.items()}
        return found

    def _compare(self, stage: Stage, watch: Watch, samples: list[Sample], column: Column, fill: Any) -> None:
        """Have a watched grader grade its block once more."""
        if again := watch.again():
            other: Column = []
            timed_out = self.timed_out
            with self._interruptible(get_ident(), other):
                fill(again, other, [])
            self.timed_out = timed_out
            check_grades(stage, samples, other, strict=self._strict)
            watch.compare(samples, column, other)

    @contextmanager
    def _interruptible(self, thread: int, column: Column) -> Generator[None]:
        """Time what fills a column, grade by grade; the first interruption ends it."""
        UNDER_WAY[thread] = column
        try:
            yield
        except KeyboardInterrupt:
            if self.interrupted:
                raise
            self.interrupted = True
        finally:
            UNDER_WAY.pop(thread, None)

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
        self,
        stage: Stage,
        others: Mapping[str, Column],
        usual: bool,
        samples: list[Sample],
        column: Column,
        judged: list[str | None],
    ) -> None:
        keys, combine = stage.component.combines, stage.component.combine
        method = (lambda _: combine({key: others[key][len(column)] for key in keys})) if keys else stage.component.grade
        if (fault := self.spared.get(stage.key)) is not None:
            column += [failed(fault)] * len(samples)
            judged += [""] * len(samples)
            self.timed_out += fault.code == "timed_out"
        while len(column) < len(samples):
            rest = samples[len(column) :] if column else samples
            try:
                if keys or (stage.extractor is None and usual and _OK in stage.component.handles):
                    guarded_grades(method, stage, rest, column, strict=self._strict)
                    continue
                for sample in rest:
                    grade, text = grade_sample(stage, sample, strict=self._strict)
                    judged.append(text)
                    column.append(grade)
            except TimedOut as error:
                judged[len(column) :] = [""]
                column.append(raised_grade(stage, samples[len(column)], error, strict=self._strict))
                self.timed_out += 1
