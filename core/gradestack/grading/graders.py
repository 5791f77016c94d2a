"""Graders at work on blocks of samples: their calls, guarded, and what they return, checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from numbers import Real
from time import perf_counter
from typing import Any

import msgspec

from gradestack.api import Grader
from gradestack.errors import DataError, PluginError, TimedOut, error_text, stable_text
from gradestack.grading.filters import Fields, parse_expression
from gradestack.grading.plan import Stage
from gradestack.interpreter import in_progress
from gradestack.model import (
    Expectation,
    Fault,
    Grade,
    Item,
    Outcome,
    Sample,
    Status,
    check_grade,
    explained,
    failed,
    replace,
    skipped,
)
from gradestack.output import traceback_text
from gradestack.table import have_sound_names, pack_verdicts, verdicts_of

Column = list[Grade]
"""One grader's grades of a block of samples, in order."""
Texts = list[str | None]
"""What a grader of texts judged of each sample; None where it judged none."""
_NUMBERS = frozenset({bool, int, float, type(None)})
_ANY_SCORE = (-inf, inf)
_UNPACKABLE = (TypeError, ValueError, ArithmeticError, RuntimeError)
"""What packing a verdict raises: numbers of other classes may raise anything of these."""

_forked: list[bool] = []  # not empty in a process that was forked since it began to grade
if hasattr(os, "register_at_fork"):  # not on every system
    os.register_at_fork(after_in_child=lambda: _forked.append(True))
begin_grading = _forked.clear
"""Take this process for the one that grades, whoever forked it."""


class Graded(msgspec.Struct, frozen=True):
    """The grades of a block of samples."""

    columns: dict[str, Column]
    """By grader key."""
    texts: dict[str, Texts]
    """By the key of a grader of texts."""
    verdicts: dict[str, list[bytes]]
    """What figures need of the grades, as bytes."""


class Graders:
    """All graders of a plan.

    Attributes:
        interrupted: Whether a grader was interrupted. Its block is graded up to the sample it was
            at.
    """

    def __init__(
        self,
        stages: tuple[Stage, ...],
        parts: Mapping[str, Sequence[str]],
        *,
        explain: bool,
        strict: bool,
    ) -> None:
        """Make a StageGrader per stage: gradestack's first, and those that combine grades last."""
        combined = {key for stage in stages for key in stage.combines}
        # ours see samples first; who combines grades of others comes last
        order = sorted(stages, key=lambda stage: (bool(stage.combines), stage.foreign))
        self._keys = [stage.key for stage in stages]
        self._graders = []
        for stage in order:
            explains = explain or stage.key in combined
            grader = StageGrader(stage, parts[stage.key], explain=explains, strict=strict)
            self._graders.append(grader)
        self.interrupted = False

    @property
    def timed_out(self) -> int:
        """Grades that took too long."""
        return sum(grader.timed_out for grader in self._graders)

    @property
    def seconds(self) -> dict[str, float]:
        """Grader key -> seconds it took."""
        return {grader.stage.key: grader.seconds for grader in self._graders}

    @property
    def tracebacks(self) -> dict[str, str]:
        """Grader key -> traceback of the first error it raised."""
        return {grader.stage.key: grader.traceback for grader in self._graders if grader.traceback}

    def grade(self, samples: Sequence[Sample]) -> Graded:
        """Return the grades of samples.

        After an interruption they are of the samples that every grader has judged, which may be
        none. A grader may fork: a child that comes back here would grade the rest a second time,
        and ends.
        """
        try:
            return self._grade(samples)
        finally:
            if _forked:
                os._exit(0)

    def _grade(self, samples: Sequence[Sample]) -> Graded:
        """Grade samples by each grader; if interrupted, keep those that all of them have graded."""
        graded = Graded({key: [] for key in self._keys}, {}, {})
        for grader in self._graders:
            started, key = perf_counter(), grader.stage.key
            column: Column = []
            with self._interruptible(column):
                grader.grade(samples, graded.columns, column)
            graded.verdicts[key] = grader.check(samples, column)
            graded.columns[key] = column
            if grader.has_to_explain(column):
                explained_column: Column = []
                graded.columns[key] = explained_column
                with self._interruptible(explained_column):
                    grader.explain(samples, column, explained_column)
            samples = samples[: len(graded.columns[key])]
            if grader.stage.extractor is not None:
                graded.texts[key] = grader.texts
            grader.seconds += perf_counter() - started
        if self.interrupted:
            for key in self._keys:
                del graded.columns[key][len(samples) :], graded.verdicts[key][len(samples) :]
        return graded

    @contextmanager
    def _interruptible(self, column: Column) -> Generator[None]:
        """Time what fills a column, grade by grade; the first interruption ends it."""
        try:
            with in_progress(column):
                yield
        except KeyboardInterrupt:
            if self.interrupted:
                raise
            self.interrupted = True


class StageGrader:
    """One grader of a plan.

    Attributes:
        stage: The grader.
        texts: What it judged of the samples of the block at hand, if it is a grader of texts.
        seconds: How long it took so far.
        timed_out: How many grades took too long.
        traceback: Of the first error it raised.
    """

    def __init__(self, stage: Stage, parts: Sequence[str], *, explain: bool, strict: bool) -> None:
        self.stage, self._parts = stage, parts
        self._explains, self._strict = explain, strict
        self._bounds = stage.component.bounds if stage.foreign else _ANY_SCORE
        self._sound: set[bytes] = set()
        """Verdicts that were looked at: grades of equal verdicts are equally sound."""
        self.texts: Texts = []
        self.seconds, self.timed_out, self.traceback = 0.0, 0, ""

    def grade(
        self, samples: Sequence[Sample], others: Mapping[str, Column], column: Column
    ) -> None:
        """Append the grader's unchecked grade of each sample to a column.

        Where the grader raises, append a failed grade.
        """
        texts = self.texts = []
        method = self._method(samples, others, column)
        if self.stage.filter:
            method = partial(self._grade_chosen, method)
        while len(column) < len(samples):
            try:
                self._add_grades(method, samples[len(column) :], column)
            except TimedOut as error:
                texts[len(column) :] = [""]
                column.append(self._raised_grade(samples[len(column)], error))
                self.timed_out += 1

    def _method(
        self, samples: Sequence[Sample], columns: Mapping[str, Column], column: Column
    ) -> Callable[[Sample], Any]:
        """Return the method that grades one of these samples."""
        component, keys = self.stage.component, self.stage.combines
        if keys:
            return lambda _: component.combine({key: columns[key][len(column)] for key in keys})
        method: Callable[[Sample], Any] = component.grade
        if type(component).combines is not Grader.combines:
            # `combines` of others that raised raises here, where it costs this grade alone
            method = lambda sample: component.combines or component.grade(sample)  # noqa: E731
        elif self.stage.extractor is not None:
            method = partial(self._grade_text, self.texts)
        is_ok = {Status.OK}.issuperset([sample.status for sample in samples])
        if is_ok and Status.OK in component.graded_statuses:
            return method
        return partial(self._grade_any_status, method)

    def _add_grades(
        self, method: Callable[[Sample], Any], samples: Sequence[Sample], column: Column
    ) -> None:
        """Append the checked grade of each sample to a column; errors become grades."""
        for sample in samples:
            if _forked:  # by the grader, at the sample before
                os._exit(0)
            flaw = None
            try:
                grade = method(sample)
                if type(grade) is not Grade or type(grade.outcome) is not Outcome:
                    grade = as_grade(grade)
                    flaw = check_grade(grade)
            except (KeyboardInterrupt, TimedOut, DataError):  # DataError: its options end the run
                raise
            except BaseException as error:  # noqa: BLE001
                grade = self._raised_grade(sample, error)
            column.append(grade if flaw is None else self._unsound_grade(sample, flaw))

    def check(self, samples: Sequence[Sample], column: Column) -> list[bytes]:
        """Replace grades that break the contract by failed ones; return all packed verdicts."""
        sound = self._sound
        try:
            verdicts, is_packed = verdicts_of(column, self._parts), True
        except _UNPACKABLE:
            verdicts, is_packed = [b""] * len(column), False
        are_named_well = have_sound_names(column)
        if are_named_well and sound.issuperset(verdicts):
            return verdicts
        has_changed = not is_packed
        for index, verdict in enumerate(verdicts):
            if are_named_well and verdict in sound:
                continue
            flaw = self._flaw_of(column[index])
            if flaw is not None:
                column[index], has_changed = self._unsound_grade(samples[index], flaw), True
            elif is_packed:
                sound.add(verdict)
            else:
                column[index] = _with_plain_numbers(column[index])
        return pack_verdicts(column, self._parts) if has_changed else verdicts

    def _flaw_of(self, grade: Grade) -> str | None:
        """Find a flaw in a grade; None where it is sound.

        A number of a class of its own may raise when it is compared: that is wrong with it.
        """
        low, high = self._bounds
        try:
            flaw = check_grade(grade)
            if flaw is not None or grade.score is None or low <= grade.score <= high:
                return flaw
        except Exception as error:  # noqa: BLE001 - code of the grader's author
            return f"its score cannot be compared: {error_text(error)}"
        bounds = f"{low:g} to {high:g}"
        hint = "a class says its own: bounds = (0, 10)"
        return f"a score outside its bounds, {bounds}: {grade.score!r} ({hint})"

    def has_to_explain(self, column: Column) -> bool:
        """Check whether grades are to be explained, and are not yet."""
        return self._explains and any(callable(grade.items) for grade in column)

    def explain(self, samples: Sequence[Sample], column: Column, explained_column: Column) -> None:
        """Append each grade with its items and reasons; where these raise, with the error."""
        for sample, grade in zip(samples, column, strict=False):
            try:
                explained_column.append(explained(grade))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if self._strict and not isinstance(error, TimedOut):
                    problem = f"did not explain its grade of {sample.source or sample.id}"
                    raise PluginError(f"{self._name} {problem}", error_text(error)) from error
                self.timed_out += isinstance(error, TimedOut)
                why = f"could not be explained: {error_text(error)}"
                explained_column.append(replace(grade, items=(), rationale=why))

    @property
    def _name(self) -> str:
        return f"grader {self.stage.key!r} ({self.stage.signature})"

    def _raised_grade(self, sample: Sample, error: BaseException) -> Grade:
        """Return the failed grade of a sample at which a grader raised, or took too long."""
        if self._strict:
            problem = f"{self._name} raised on {sample.source or sample.id}"
            raise PluginError(problem, error_text(error)) from error
        is_memory = isinstance(error, MemoryError)
        if not self.traceback and not is_memory:
            below = error.__traceback__ and error.__traceback__.tb_next  # without the guard
            self.traceback = traceback_text(error, below)
        message = stable_text(error)
        if isinstance(error, RecursionError):
            message = "nested too deeply"
        elif is_memory and not message:
            message = "not enough memory"
        code = "timed_out" if isinstance(error, TimedOut) else "raised"
        return self._failed_grade(code, message, type(error).__name__)

    def _unsound_grade(self, sample: Sample, flaw: str) -> Grade:
        """Return the failed grade in place of one that breaks the contract."""
        if self._strict:
            problem = f"{self._name} broke its contract on {sample.source or sample.id}"
            raise PluginError(problem, flaw)
        return self._failed_grade("bad_grade", flaw, "ContractError")

    def _failed_grade(self, code: str, message: str, kind: str) -> Grade:
        component = self.stage.signature
        return failed(
            Fault(category="grading", code=code, message=message, type=kind, component=component)
        )

    def _grade_chosen(self, method: Callable[[Sample], Any], sample: Sample) -> Any:
        """Return the grade of a run that the grader's filter is true of; others are skipped."""
        text = self.stage.filter
        if parse_expression(text).holds(Fields.of(sample)):
            return method(sample)
        self.texts.append(None)
        return skipped("not_chosen", f"not chosen by filter: {text}")

    def _grade_any_status(self, method: Callable[[Sample], Any], sample: Sample) -> Any:
        """Return a grade of a run that may have failed, or be missing."""
        grade = None if sample.status is Status.OK else self._skip_other_kinds(sample)
        if grade is None and sample.status in self.stage.component.graded_statuses:
            return method(sample)
        self.texts.append(None)
        return unhandled(sample) if grade is None else grade

    def _skip_other_kinds(self, sample: Sample) -> Grade | None:
        """Return the skipped grade of a run that expects only what its grader does not compare.

        Such a run is of another grader's kind, whatever became of it.
        """
        compared = self.stage.component.compares
        expected_kinds = _expected_kinds(sample.expected)
        if not compared or not expected_kinds or expected_kinds & compared:
            return None
        wanted, expected = " or ".join(sorted(compared)), " and ".join(sorted(expected_kinds))
        return skipped("no_reference", f"no expected {wanted}: the run expects {expected}")

    def _grade_text(self, texts: Texts, sample: Sample) -> Any:
        """Grade the text that the extractor takes out of a sample, and add it to ``texts``.

        An empty one is a failed extraction, unless the stage grades it. A sample whose reference is
        a list of texts is graded turn by turn.
        """
        component, references = self.stage.component, sample.expected.text
        texts.append("")
        if isinstance(references, tuple) and not getattr(component, "alternatives", False):
            grade, texts[-1] = self._grade_turns(sample, references)
            return grade
        try:
            text = self._extract(sample)
        except (KeyboardInterrupt, TimedOut):
            raise
        except BaseException as error:
            if self._strict:
                where = sample.source or sample.id
                problem = f"the extractor of {self.stage.key!r} raised on {where}"
                raise PluginError(problem, error_text(error)) from error
            return failed(_extraction_fault("raised", stable_text(error), type(error).__name__))
        if not text and not self.stage.grades_empty:
            empty = _extraction_fault("empty_submission", "the submission is empty")
            return self._skip_other_kinds(sample) or failed(empty)
        texts[-1] = text
        return component.grade(replace(sample, text=text))

    def _extract(self, sample: Sample) -> str:
        extractor = self.stage.extractor
        return "" if extractor is None else extractor.component.extract(sample)

    def _grade_turns(self, sample: Sample, references: tuple[str, ...]) -> tuple[Grade, str]:
        """Grade each turn by itself; return one grade for all turns, and their texts joined.

        Score = sum of the turns' scores / number of references, an absent turn counting 0.

        A list of references needs an input of as many turns. ``turns_passed`` counts scores >= 1.0.
        """
        turns = len(sample.input) if isinstance(sample.input, tuple) else None
        if turns != len(references):
            count = "one" if turns is None else turns
            message = f"{len(references)} reference texts for {count} user turn(s)"
            return failed(Fault(category="data", code="turn_mismatch", message=message)), ""
        samples = _split_turns(sample, references)
        grades: Column = []
        texts: Texts = []
        self._add_grades(partial(self._grade_text, texts), samples, grades)
        self.check(samples, grades)
        absent = len(references) - len(samples)
        lack = _extraction_fault("missing_turn", "the recording lacks this turn")
        grades = [*map(explained, grades), *[failed(lack)] * absent]
        texts += [""] * absent
        items = tuple(map(_turn_item, range(1, len(grades) + 1), grades, texts, references))
        submission = " | ".join(f"[Turn {number}] {text}" for number, text in enumerate(texts, 1))
        if not any(item.outcome is Outcome.GRADED for item in items):
            none = Fault(category="data", code="no_turn", message="no turn could be graded")
            return failed((items and items[0].fault) or none), submission
        total, passed = 0.0, 0
        for item in items:  # in their order: no sum(), which later Pythons compensate
            total += item.score or 0.0
            passed += (item.score or 0.0) >= 1.0
        counts = {"turns_passed": passed, "turns_total": len(references)}
        score = total / len(references)
        return Grade(score=score, items=items, counts=counts, metadata=counts), submission


def as_grade(returned: Any) -> Any:
    """Return the grade that a number, True or False stands for; anything else as it is."""
    if isinstance(returned, bool):
        return Grade(score=float(returned), passed=returned)
    return Grade(score=float(returned)) if isinstance(returned, Real) else returned  # numpy's, too


def _with_plain_numbers(grade: Grade) -> Grade:
    """Return a grade whose numbers are Python's own, whatever classes they were of."""
    members = {}
    for name in ("parts", "counts"):
        numbers = getattr(grade, name)
        members[name] = {key: _plain_number(number) for key, number in numbers.items()}
    return replace(grade, score=_plain_number(grade.score), **members)


def _plain_number(number: Any) -> Any:
    if type(number) in _NUMBERS:
        return number
    return float(number) if isinstance(number, float) else int(number)


def unhandled(sample: Sample) -> Grade:
    """Return the grade of a sample its grader is not asked about.

    A run that failed, or is missing.
    """
    if sample.status is Status.MISSING:
        fault = Fault(category="data", code="missing", message="no run of this dataset row")
        return Grade(outcome=Outcome.MISSING, fault=fault, rationale=fault.message)
    unknown = Fault(category="target", code="target_error", message="the recorded run failed")
    return failed(sample.error or unknown)


def _expected_kinds(expected: Expectation) -> frozenset[str]:
    """List the fields of an expectation that say anything; alternatives are calls."""
    kinds = {
        name
        for name in ("calls", "label", "text", "plan", "state")
        if getattr(expected, name) is not None
    }
    kinds |= {"calls"} if expected.alternatives else set()
    return frozenset(kinds | ({"forbidden"} if expected.forbidden else set()))


def _extraction_fault(code: str, message: str, kind: str = "") -> Fault:
    return Fault(category="extraction", code=code, message=message, type=kind)


def _split_turns(sample: Sample, references: Sequence[str]) -> list[Sample]:
    """Return a sample for each recorded turn of one, with its part of the references."""
    return [
        replace(
            sample,
            input=question,
            turns=(turn,),
            calls=tuple(call for message in turn for call in message.tool_calls),
            text=None,
            expected=replace(sample.expected, text=reference),
        )
        for question, turn, reference in zip(
            sample.input or (), sample.turns, references, strict=False
        )
    ]


def _turn_item(number: int, grade: Grade, text: str | None, reference: str) -> Item:
    """Build the item of one turn from its grade, with submission and ground truth as metadata."""
    return Item(
        id=f"turn {number}",
        outcome=grade.outcome,
        score=grade.score,
        reasons=grade.reasons,
        fault=grade.fault,
        metadata={"submission": text, "ground_truth": reference, "rationale": grade.rationale},
    )
