"""One grader at work: extraction, grading, per-turn grading, and the guard that turns exceptions into failed grades."""

from __future__ import annotations

from time import perf_counter

import attrs

from gradestack.api import Extractor, Grader, Profile
from gradestack.errors import PluginError
from gradestack.guard import stable_text
from gradestack.model import Fault, Grade, Item, Outcome, Sample, Status, check_grade, failed

_OK = Status.OK


@attrs.frozen(kw_only=True)
class GraderSlot:
    """A grader, its key in the suite, and the name and version failures are signed with."""

    key: str
    component: str
    grader: Grader
    extractor: Extractor | None = None
    """Where its submission comes from; None for graders that judge the sample itself."""
    profile: Profile = "documented"
    """The grader's own, or the suite's."""

    @property
    def signature(self) -> str:
        """Name and version."""
        return f"{self.component} {self.grader.version}"


def grade_sample(slot: GraderSlot, sample: Sample, *, strict: bool = False) -> tuple[Grade, str | None]:
    """Return a grader's grade and the submission it judged (None for graders that take none).

    Whatever a component raises becomes a failed grade that names it. A sample whose reference is a list of texts is
    graded turn by turn, see :func:`_per_turn`. In ``upstream``, text graders judge failed runs too (what they said,
    mostly nothing), as letta-evals does when it re-grades a recording.

    Raises:
        PluginError: A component raised or broke the contract, and ``strict`` is set.
    """
    regrade = slot.extractor is not None and slot.profile == "upstream" and sample.status is Status.FAILED
    if sample.status not in slot.grader.handles and not regrade:
        return _unhandled(sample), None
    if slot.extractor is None:
        return _guarded(slot, sample, strict=strict), None
    if isinstance(sample.expected.text, tuple) and not slot.grader.alternatives:
        return _per_turn(slot, sample, sample.expected.text, strict=strict)
    return _submitted(slot, sample, strict=strict)


def _submitted(slot: GraderSlot, sample: Sample, *, strict: bool) -> tuple[Grade, str]:
    """Extract the submission and grade it.

    An empty one is a failed extraction in ``documented``; ``upstream`` grades it like any other text.
    """
    try:
        text = slot.extractor.extract(sample) if slot.extractor is not None else ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if strict:
            msg = f"the extractor of {slot.key!r} raised on {sample.source or sample.id}"
            raise PluginError(msg, f"{type(error).__name__}: {error}") from error
        said = stable_text(error)
        return failed(Fault(category="extraction", code="raised", message=said, type=type(error).__name__)), ""
    if not text and slot.profile == "documented":
        return failed(Fault(category="extraction", code="empty_submission", message="the submission is empty")), ""
    return _guarded(slot, attrs.evolve(sample, text=text), strict=strict), text


def _per_turn(slot: GraderSlot, sample: Sample, truths: tuple[str, ...], *, strict: bool) -> tuple[Grade, str]:
    """Grade every turn alone: score = sum of the turns' scores / number of references, an absent turn counting 0.

    A list of references needs an input of as many turns. ``turns_passed`` counts scores >= 1.0.
    """
    if not isinstance(sample.input, tuple) or len(sample.input) != len(truths):
        turns = len(sample.input) if isinstance(sample.input, tuple) else "one"
        message = f"{len(truths)} reference texts for {turns} user turn(s)"
        return failed(Fault(category="data", code="turn_mismatch", message=message)), ""
    items, texts = [], []
    total, passed = 0.0, 0
    for number, truth in enumerate(truths):
        turn = sample.turns[number : number + 1]
        alone = attrs.evolve(
            sample,
            input=sample.input[number],
            turns=turn,
            calls=tuple(call for messages in turn for message in messages for call in message.tool_calls),
            text=None,
            expected=attrs.evolve(sample.expected, text=truth),
        )
        grade, text = _submitted(slot, alone, strict=strict) if turn else (_absent_turn(slot), "")
        score = grade.score or 0.0
        total += score
        passed += score >= 1.0
        texts.append(text)
        items.append(
            Item(
                id=f"turn {number + 1}",
                outcome=grade.outcome,
                score=grade.score,
                reasons=grade.reasons,
                fault=grade.fault,
                metadata={"submission": text, "ground_truth": truth, "rationale": grade.rationale},
            )
        )
    submission = " | ".join(f"[Turn {number}] {text}" for number, text in enumerate(texts, 1))
    if not any(item.outcome is Outcome.GRADED for item in items):
        fault = items[0].fault if items else None
        return failed(fault or Fault(category="data", code="no_turn", message="no turn could be graded")), submission
    counts = {"turns_passed": passed, "turns_total": len(truths)}
    return Grade(score=total / len(truths), items=tuple(items), counts=counts, metadata=counts), submission


def _absent_turn(slot: GraderSlot) -> Grade:
    """Return the grade of a turn the recording lacks: a failure, in upstream a score of 0; no grader is asked."""
    message = "the recording lacks this turn"
    if slot.profile == "upstream":
        return Grade(score=0.0, rationale=message)
    return failed(Fault(category="extraction", code="missing_turn", message=message))


def _guarded(slot: GraderSlot, sample: Sample, *, strict: bool) -> Grade:
    try:
        grade = slot.grader.grade(sample)
        problem = check_grade(grade) if isinstance(grade, Grade) else _no_grade(grade)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a raising grader never loses the run
        return _raised(slot, sample, error, strict=strict)
    return grade if problem is None else _unsound(slot, sample, problem, strict=strict)


def _no_grade(returned: object) -> str:
    return f"returned {type(returned).__name__}, not a Grade"


def _raised(slot: GraderSlot, sample: Sample, error: BaseException, *, strict: bool) -> Grade:
    if strict:
        msg = f"grader {slot.key!r} ({slot.signature}) raised on {sample.source or sample.id}"
        raise PluginError(msg, f"{type(error).__name__}: {error}") from error
    said = "nested too deeply" if isinstance(error, RecursionError) else stable_text(error)
    if isinstance(error, MemoryError) and not said:
        said = "not enough memory"
    return failed(
        Fault(category="grading", code="raised", message=said, type=type(error).__name__, component=slot.signature)
    )


def _unsound(slot: GraderSlot, sample: Sample, problem: str, *, strict: bool) -> Grade:
    if strict:
        msg = f"grader {slot.key!r} ({slot.signature}) broke its contract on {sample.source or sample.id}"
        raise PluginError(msg, problem)
    return failed(
        Fault(category="grading", code="bad_grade", message=problem, type="ContractError", component=slot.signature)
    )


def _unhandled(sample: Sample) -> Grade:
    if sample.status is Status.MISSING:
        fault = Fault(category="data", code="missing", message="the recording has no run of this dataset row")
        return Grade(outcome=Outcome.MISSING, fault=fault, rationale=fault.message)
    return failed(sample.error or Fault(category="target", code="target_error", message="the recorded run failed"))


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
