"""Text graders: the submission taken out of a sample, graded whole or turn by turn."""

from __future__ import annotations

from gradestack.errors import PluginError, TimedOut
from gradestack.grading.guarded import guarded_grade, unhandled
from gradestack.grading.plan import Stage
from gradestack.model import Fault, Grade, Item, Outcome, Sample, Status, failed, replace
from gradestack.plugin_errors import stable_text


def grade_sample(stage: Stage, sample: Sample, *, strict: bool = False) -> tuple[Grade, str | None]:
    """Return a grader's grade and the submission it judged (None for graders that take none).

    Whatever a component raises becomes a failed grade that names it. A sample whose reference is a list of texts is
    graded turn by turn, see ``_per_turn``. In ``upstream``, text graders judge failed runs too (what they said,
    mostly nothing), as letta-evals does when it re-grades a recording.
    """
    regrade = stage.extractor is not None and stage.profile == "upstream" and sample.status is Status.FAILED
    if sample.status not in stage.component.handles and not regrade:
        return unhandled(sample), None
    if stage.extractor is None:
        return guarded_grade(stage, sample, strict=strict), None
    if isinstance(sample.expected.text, tuple) and not stage.component.alternatives:
        return _per_turn(stage, sample, sample.expected.text, strict=strict)
    return _submitted(stage, sample, strict=strict)


def _submitted(stage: Stage, sample: Sample, *, strict: bool) -> tuple[Grade, str]:
    """Extract the submission and grade it.

    An empty one is a failed extraction in ``documented``, unless the stage grades it; ``upstream`` grades any text.
    """
    try:
        text = stage.extractor.component.extract(sample) if stage.extractor is not None else ""
    except (KeyboardInterrupt, TimedOut):
        raise
    except BaseException as error:
        if strict:
            msg = f"the extractor of {stage.key!r} raised on {sample.source or sample.id}"
            raise PluginError(msg, f"{type(error).__name__}: {error}") from error
        said = stable_text(error)
        return failed(Fault(category="extraction", code="raised", message=said, type=type(error).__name__)), ""
    if not text and stage.profile == "documented" and not stage.grades_empty:
        return failed(Fault(category="extraction", code="empty_submission", message="the submission is empty")), ""
    return guarded_grade(stage, replace(sample, text=text), strict=strict), text


def _per_turn(stage: Stage, sample: Sample, truths: tuple[str, ...], *, strict: bool) -> tuple[Grade, str]:
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
        alone = replace(
            sample,
            input=sample.input[number],
            turns=turn,
            calls=tuple(call for messages in turn for message in messages for call in message.tool_calls),
            text=None,
            expected=replace(sample.expected, text=truth),
        )
        grade, text = _submitted(stage, alone, strict=strict) if turn else (_absent_turn(stage), "")
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


def _absent_turn(stage: Stage) -> Grade:
    message = "the recording lacks this turn"
    if stage.profile == "upstream":
        return Grade(score=0.0, rationale=message)
    return failed(Fault(category="extraction", code="missing_turn", message=message))
