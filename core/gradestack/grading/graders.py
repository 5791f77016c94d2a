"""Graders at work: their calls, guarded; texts taken out of samples for them.

All of a plan on blocks of samples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from numbers import Real
from time import perf_counter
from typing import Any, NamedTuple

from gradestack.api import Grader
from gradestack.errors import DataError, PluginError, TimedOut, error_text, stable_text
from gradestack.grading.plan import Stage
from gradestack.interpreter import under_way
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
from gradestack.table import packed_verdicts, verdicts_of

_NUMBERS = frozenset({bool, int, float})
TRACEBACKS: dict[str, str] = {}
"""Grader key -> traceback of the first error it raised on the shard at hand."""


_forked: list[bool] = []  # not empty in a process that was forked since it began to grade
if hasattr(os, "register_at_fork"):  # not on every system
    os.register_at_fork(after_in_child=lambda: _forked.append(True))
begin_grading = _forked.clear
"""Take this process for the one that grades, whoever forked it."""


def guarded_grades(
    method: Callable[[Sample], Grade | float],
    stage: Stage,
    samples: Sequence[Sample],
    into: list[Grade],
    *,
    strict: bool,
) -> None:
    """Add what a grader's method says about each sample, still unchecked.

    A failed grade that names it where it raises.

    A grader may fork. A child that comes back here is none of ours and ends: it would grade the
    rest a second time.
    """
    add, forked, trusted = into.append, _forked, not stage.foreign
    for sample in samples:
        try:
            grade = method(sample)
            if forked:
                os._exit(0)
            if trusted and type(grade) is Grade and type(grade.outcome) is Outcome:
                add(grade)
                continue
            flaw = check_grade(grade := as_grade(grade))
        except BaseException as error:
            if forked:
                os._exit(0)
            if isinstance(
                error, KeyboardInterrupt | TimedOut | DataError
            ):  # DataError: its options end the run
                raise
            into.append(raised_grade(stage, sample, error, strict=strict))
            continue
        into.append(grade if flaw is None else _unsound(stage, sample, flaw, strict=strict))


def check_grades(
    stage: Stage,
    samples: Sequence[Sample],
    grades: list[Grade],
    parts: Sequence[str] = (),
    sound: set[bytes] | None = None,
    *,
    strict: bool,
) -> list[bytes]:
    """Put failed grades in place of those that break the contract, and return the verdicts, which
    also hold ``parts``.

    ``sound`` are verdicts that were looked at before: grades of equal verdicts are equally sound.
    """
    sound = set() if sound is None else sound
    try:
        verdicts, odd = verdicts_of(grades, parts), False
    except (
        TypeError,
        ValueError,
        ArithmeticError,
        RuntimeError,
    ):  # numbers of other classes, which may raise anything, a lone surrogate, sets
        verdicts, odd = [b""] * len(grades), True
    if sound.issuperset(verdicts):
        return verdicts
    changed, bounds = odd, stage.component.bounds if stage.foreign else (-inf, inf)
    for at, verdict in enumerate(verdicts):
        if verdict in sound:
            continue
        flaw = _flaw_of(grades[at], bounds)
        if flaw is not None:
            grades[at], changed = _unsound(stage, samples[at], flaw, strict=strict), True
        elif odd:
            grades[at] = _with_plain_numbers(grades[at])
        else:
            sound.add(verdict)
    return packed_verdicts(grades, parts) if changed else verdicts


def _flaw_of(grade: Grade, bounds: tuple[float, float]) -> str | None:
    """Return what is wrong with a grade; None where it is sound.

    A number of a class of its own may raise when it is compared: that is wrong with it.
    """
    try:
        return check_grade(grade) or _beyond(grade, *bounds)
    except Exception as error:  # noqa: BLE001 - code of the grader's author
        return f"its score cannot be compared: {error_text(error)}"


def as_grade(returned: Any) -> Any:
    """Return the grade that a number, True or False stands for; anything else as it is."""
    if isinstance(returned, bool):
        return Grade(score=float(returned), passed=returned)
    return Grade(score=float(returned)) if isinstance(returned, Real) else returned  # numpy's, too


def _beyond(grade: Grade, low: float, high: float) -> str | None:
    """Return what is wrong with a sound grade's score that is not within its grader's bounds."""
    if grade.score is None or low <= grade.score <= high:
        return None
    return (
        f"a score outside its bounds, {low:g} to {high:g}: {grade.score!r} (a class says its "
        "own: bounds = (0, 10))"
    )


def _with_plain_numbers(grade: Grade) -> Grade:
    def plain(number: Any) -> Any:
        if number is None or type(number) in _NUMBERS:
            return number
        return float(number) if isinstance(number, float) else int(number)

    both = {
        name: {key: plain(each) for key, each in getattr(grade, name).items()}
        for name in ("parts", "counts")
    }
    return replace(grade, score=plain(grade.score), **both)


def raised_grade(stage: Stage, sample: Sample, error: BaseException, *, strict: bool) -> Grade:
    """Return the failed grade of a sample at which a grader raised, or was stopped for its time."""
    if strict:
        msg = f"grader {stage.key!r} ({stage.signature}) raised on {sample.source or sample.id}"
        raise PluginError(msg, error_text(error)) from error
    if stage.key not in TRACEBACKS and not isinstance(error, MemoryError):
        below = error.__traceback__ and error.__traceback__.tb_next  # without the guard
        TRACEBACKS[stage.key] = traceback_text(error, below)
    text = "nested too deeply" if isinstance(error, RecursionError) else stable_text(error)
    if isinstance(error, MemoryError) and not text:
        text = "not enough memory"
    code, kind = "timed_out" if isinstance(error, TimedOut) else "raised", type(error).__name__
    return failed(
        Fault(category="grading", code=code, message=text, type=kind, component=stage.signature)
    )


def _unsound(stage: Stage, sample: Sample, problem: str, *, strict: bool) -> Grade:
    if strict:
        msg = (
            f"grader {stage.key!r} ({stage.signature}) broke its contract on "
            f"{sample.source or sample.id}"
        )
        raise PluginError(msg, problem)
    return failed(
        Fault(
            category="grading",
            code="bad_grade",
            message=problem,
            type="ContractError",
            component=stage.signature,
        )
    )


def unhandled(sample: Sample) -> Grade:
    """Return the grade of a sample its grader is not asked about.

    A run that failed, or is missing.
    """
    if sample.status is Status.MISSING:
        fault = Fault(category="data", code="missing", message="no run of this dataset row")
        return Grade(outcome=Outcome.MISSING, fault=fault, rationale=fault.message)
    return failed(
        sample.error
        or Fault(category="target", code="target_error", message="the recorded run failed")
    )


def _expected_kinds(expected: Expectation) -> frozenset[str]:
    """List the fields of an expectation that say anything; alternatives are calls."""
    known = {
        "calls": expected.calls is not None or bool(expected.alternatives),
        "forbidden": bool(expected.forbidden),
        "label": expected.label is not None,
        "text": expected.text is not None,
        "plan": expected.plan is not None,
        "state": expected.state is not None,
    }
    return frozenset(kind for kind, is_known in known.items() if is_known)


def _grade_elsewhere(stage: Stage, sample: Sample) -> Grade | None:
    """Return the skipped grade of a run that expects only what its grader does not compare.

    Such a run is of another grader's kind, whatever became of it.
    """
    compared = stage.component.compares
    kinds = _expected_kinds(sample.expected)
    if not compared or not kinds or kinds & compared:
        return None
    wanted, expected = " or ".join(sorted(compared)), " and ".join(sorted(kinds))
    return skipped("no_reference", f"no expected {wanted}: the run expects {expected}")


def _handled_grade(
    stage: Stage, method: Callable[[Sample], Any], judged: list[str | None], sample: Sample
) -> Grade | float:
    """Return a grade of a run that may have failed, or be missing."""
    elsewhere = None if sample.status is Status.OK else _grade_elsewhere(stage, sample)
    if elsewhere is not None:
        judged.append(None)
        return elsewhere
    if sample.status in stage.component.graded_statuses:
        return method(sample)  # type: ignore[no-any-return]
    judged.append(None)
    return unhandled(sample)


def _text_grade(stage: Stage, judged: list[str | None], strict: bool, sample: Sample) -> Any:
    """Return what a grader says of the text its extractor takes out of a sample, and add that text
    to a list.

    An empty one is a failed extraction, unless the stage grades it. A sample whose reference is a
    list of texts is graded turn by turn.
    """
    judged.append("")
    if isinstance(sample.expected.text, tuple) and not getattr(
        stage.component, "alternatives", False
    ):
        grade, judged[-1] = _per_turn(stage, sample, sample.expected.text, strict=strict)
        return grade
    try:
        text = stage.extractor.component.extract(sample) if stage.extractor is not None else ""
    except (KeyboardInterrupt, TimedOut):
        raise
    except BaseException as error:
        if strict:
            msg = f"the extractor of {stage.key!r} raised on {sample.source or sample.id}"
            raise PluginError(msg, error_text(error)) from error
        said = stable_text(error)
        return failed(
            Fault(category="extraction", code="raised", message=said, type=type(error).__name__)
        )
    if not text and not stage.grades_empty:
        return _grade_elsewhere(stage, sample) or failed(
            Fault(category="extraction", code="empty_submission", message="the submission is empty")
        )
    judged[-1] = text
    return stage.component.grade(replace(sample, text=text))


def _per_turn(
    stage: Stage, sample: Sample, truths: tuple[str, ...], *, strict: bool
) -> tuple[Grade, str]:
    """Grade every turn alone.

    Score = sum of the turns' scores / number of references, an absent turn counting 0.

    A list of references needs an input of as many turns. ``turns_passed`` counts scores >= 1.0.
    """
    if not isinstance(sample.input, tuple) or len(sample.input) != len(truths):
        turns = len(sample.input) if isinstance(sample.input, tuple) else "one"
        message = f"{len(truths)} reference texts for {turns} user turn(s)"
        return failed(Fault(category="data", code="turn_mismatch", message=message)), ""
    alone = [
        replace(
            sample,
            input=said,
            turns=(turn,),
            calls=tuple(call for message in turn for call in message.tool_calls),
            text=None,
            expected=replace(sample.expected, text=truth),
        )
        for said, turn, truth in zip(sample.input, sample.turns, truths, strict=False)
    ]
    grades: list[Grade] = []
    texts: list[str | None] = []
    guarded_grades(partial(_text_grade, stage, texts, strict), stage, alone, grades, strict=strict)
    check_grades(stage, alone, grades, strict=strict)
    grades = [explained(grade) for grade in grades]
    absent = len(truths) - len(alone)
    lack = Fault(
        category="extraction", code="missing_turn", message="the recording lacks this turn"
    )
    grades += [failed(lack)] * absent
    texts += [""] * absent
    items = tuple(
        Item(
            id=f"turn {number}",
            outcome=grade.outcome,
            score=grade.score,
            reasons=grade.reasons,
            fault=grade.fault,
            metadata={"submission": text, "ground_truth": truth, "rationale": grade.rationale},
        )
        for number, (grade, text, truth) in enumerate(zip(grades, texts, truths, strict=True), 1)
    )
    submission = " | ".join(f"[Turn {number}] {text}" for number, text in enumerate(texts, 1))
    if not any(item.outcome is Outcome.GRADED for item in items):
        fault = items[0].fault if items else None
        return failed(
            fault or Fault(category="data", code="no_turn", message="no turn could be graded")
        ), submission
    total, passed = 0.0, 0
    for item in items:  # in their order: no sum(), which later Pythons compensate
        total += item.score or 0.0
        passed += (item.score or 0.0) >= 1.0
    counts = {"turns_passed": passed, "turns_total": len(truths)}
    return Grade(score=total / len(truths), items=items, counts=counts, metadata=counts), submission


_OK = Status.OK


Column = list[Grade]
"""One grader's grades of a block of samples, in order."""


class Graded(NamedTuple):
    """The grades of a block of samples."""

    columns: dict[str, Column]
    """By grader key."""
    texts: dict[str, list[str | None]]
    """What graders of texts judged."""
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
        # ours see samples first; who combines grades of others comes last
        self._stages = sorted(stages, key=lambda stage: (bool(stage.combines), stage.foreign))
        self._parts, self._strict = parts, strict
        self._keys = [stage.key for stage in stages]
        combined = {key for stage in stages for key in stage.combines}
        self._explain = {key for key in self._keys if explain or key in combined}
        self._sound: dict[str, set[bytes]] = {stage.key: set() for stage in stages}
        self.interrupted, self.timed_out = False, 0
        self.seconds = dict.fromkeys((stage.key for stage in stages), 0.0)

    def grade(self, samples: Sequence[Sample]) -> Graded:
        """Return the grades of samples.

        After an interruption they are of the samples that every grader has judged, which may be
        none.
        """
        usual = {_OK}.issuperset([sample.status for sample in samples])
        found = Graded({key: [] for key in self._keys}, {}, {})  # in their order
        for stage in self._stages:
            started = perf_counter()
            column: Column = []
            judged: list[str | None] = []
            with self._interruptible(column):
                self._fill(stage, found.columns, usual, samples, column, judged)
            parts, sound = self._parts[stage.key], self._sound[stage.key]
            verdicts = check_grades(stage, samples, column, parts, sound, strict=self._strict)
            found.verdicts[stage.key] = verdicts
            if stage.key in self._explain and any(callable(grade.items) for grade in column):
                column = self._explained_column(stage, samples, column)
            found.columns[stage.key] = column
            samples = samples[: len(column)]
            if stage.extractor is not None:
                found.texts[stage.key] = judged
            self.seconds[stage.key] += perf_counter() - started
        if self.interrupted:
            every: Any = (found.columns, found.verdicts)
            for columns in every:
                columns |= {key: column[: len(samples)] for key, column in columns.items()}
        return found

    @contextmanager
    def _interruptible(self, column: Column) -> Generator[None]:
        """Time what fills a column, grade by grade; the first interruption ends it."""
        try:
            with under_way(column):
                yield
        except KeyboardInterrupt:
            if self.interrupted:
                raise
            self.interrupted = True

    def _explained_column(self, stage: Stage, samples: Sequence[Sample], column: Column) -> Column:
        """Return grades with their items and reasons, as far as it is not interrupted."""
        made: Column = []
        with self._interruptible(made):
            for sample, grade in zip(samples, column, strict=False):
                made.append(self._explain_grade(stage, sample, grade))
        return made

    def _explain_grade(self, stage: Stage, sample: Sample, grade: Grade) -> Grade:
        """Return a grade with its items; without them, and saying so, where making them raises."""
        try:
            return explained(grade)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if self._strict and not isinstance(error, TimedOut):
                whose = f"grader {stage.key!r} ({stage.signature})"
                msg = f"{whose} did not explain its grade of {sample.source or sample.id}"
                raise PluginError(msg, error_text(error)) from error
            self.timed_out += isinstance(error, TimedOut)
            why = f"could not be explained: {error_text(error)}"
            return replace(grade, items=(), rationale=why)
        finally:
            if _forked:
                os._exit(0)

    def _fill(
        self,
        stage: Stage,
        others: Mapping[str, Column],
        usual: bool,
        samples: Sequence[Sample],
        column: Column,
        judged: list[str | None],
    ) -> None:
        keys, component, method = stage.combines, stage.component, stage.component.grade
        if keys:
            method = lambda _: component.combine({key: others[key][len(column)] for key in keys})  # noqa: E731
        elif type(component).combines is not Grader.combines:
            # `combines` of others that raised raises here, where it costs this grade alone
            method = lambda sample: component.combines or component.grade(sample)  # noqa: E731
        elif stage.extractor is not None:
            method = partial(_text_grade, stage, judged, self._strict)
        if not keys and not (usual and _OK in component.graded_statuses):
            method = partial(_handled_grade, stage, method, judged)
        while len(column) < len(samples):
            try:
                guarded_grades(method, stage, samples[len(column) :], column, strict=self._strict)
            except TimedOut as error:
                judged[len(column) :] = [""]
                column.append(raised_grade(stage, samples[len(column)], error, strict=self._strict))
                self.timed_out += 1
