"""Graders ``tau_partial`` and ``tau_reward``.

Partial credit for expected calls, and the recorded reward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    LARGEST_SCORE,
    ExpectedCall,
    Explanation,
    Fault,
    Grade,
    Grader,
    Item,
    Profile,
    Reason,
    Sample,
    Status,
    ToolCall,
    explained,
    failed,
    replace,
    skipped,
)
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers.chat.unread import calls_unknown, has_unread_calls
from gradestack_plugins.tau_bench.reader import Call, Malformed, TauRecord, content_of
from gradestack_plugins.tau_bench.similarity import (
    Budget,
    Losses,
    TooMuchWork,
    differences,
    similarity,
)

Parts = dict[str, float | None]
Named = Call | ExpectedCall | ToolCall
_OK = Status.OK
_NOT_PLAIN = (
    "the reference is more than a list of names and arguments, which partial credit does "
    "not support"
)


@attrs.frozen(kw_only=True)
class TauPartial(Grader):
    """Partial credit for the calls a run was expected to make.

    With e running over the n expected calls and c over all calls made::

        score(e)  = max over c of  name_weight + argument_weight * similarity(arguments(e),
        arguments(c))
                    where name(c) = name(e);  0 if there is no such c
        score     = (score(e1) + ... + score(en)) / n

    A call may serve several expected calls; extra calls and order cost nothing. ``similarity`` is
    defined in ``gradestack_plugins.tau_bench.similarity.similarity``. Special cases, in this order:

    - the run ended in an error: 0;
    - the record names no expected actions at all (``info``, ``task`` or ``actions`` missing): 0;
    - nothing is expected (an empty or null list): 1 if no call was made, look-ups included, else 0.
      ``ignore_calls`` names tools that do not count here; ``no_expected: skip`` leaves such samples
      ungraded.

    A record on which the original program stops (``info: null``, a missing ``traj``, a call that is
    not an object) gives a failed grade. Samples of other readers are graded from their calls and
    expected calls; without an expected-calls reference, or where calls were not recorded, they are
    skipped.

    ``documented`` differs from ``upstream`` in two ways, both in what counts as recorded: arguments
    recorded as an object are taken as they are (upstream reads ``{}``), and act/react runs, which
    have no ``tool_calls``, are read from the "Action:" texts of the assistant (upstream sees no
    calls). Scores of all other records are equal to the last bit.

    Each item of a grade is an expected call: ``id`` its index, ``gold`` its tool, ``label`` the
    same tool when it was called, ``parts.argument_similarity`` in that case only, ``metadata.call``
    the index of the best call made or null. Its reasons stand in the item and, with those of the
    others, in the grade.

    Attributes:
        name_weight: Credit for calling the right tool.
        argument_weight: Credit for its arguments; the two are not negative and sum to 1 (within
            1e-9).
        ignore_calls: Tools that do not count as calls where nothing is expected.
        no_expected: ``strict`` grades samples where nothing is expected, ``skip`` leaves them out.
        profile: ``documented`` or ``upstream``.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls", "expected"})
    compares: ClassVar[frozenset[str] | None] = frozenset({"calls"})
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    metrics: ClassVar[tuple[str, ...]] = ("mean", "partial_statistics")
    verdict_labels: ClassVar[tuple[str, str]] = ("all calls right", "not all calls right")

    name_weight: float = attrs.field(default=0.4, validator=attrs.validators.ge(0))
    argument_weight: float = attrs.field(default=0.6, validator=attrs.validators.ge(0))
    ignore_calls: tuple[str, ...] = ()
    no_expected: Literal["strict", "skip"] = "strict"
    profile: Profile = "documented"

    def __attrs_post_init__(self) -> None:
        total = self.name_weight + self.argument_weight
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"name_weight and argument_weight must sum to 1, got {total}")

    @override
    def grade(self, sample: Sample) -> Grade:
        reward = reward_of(sample.recorded.get("reward")) if sample.recorded else None
        parts: Parts = {} if reward is None else {"reward": reward}
        try:
            return self._grade(sample, parts)
        except Malformed as error:
            fault = Fault(category="data", code="malformed_record", message=str(error))
        except (TooMuchWork, RecursionError) as error:
            deep = "arguments are nested too deeply to be compared"
            message = str(error) if isinstance(error, TooMuchWork) else deep
            fault = Fault(category="grading", code="too_much_work", message=message)
        return replace(failed(fault), parts=parts)

    def _grade(self, sample: Sample, parts: Parts) -> Grade:
        expected: Sequence[Named] | None
        made: Sequence[Named] | None
        native = sample.native
        if isinstance(native, TauRecord):
            content = content_of(native.record, self.profile)
            errored, expected, made = content.errored, content.expected, content.made
        else:
            errored, expected, made = sample.status is not _OK, sample.expected.calls, sample.calls
        if errored:
            message = sample.error.message if sample.error is not None else ""
            reason = Reason(code="run_error", message=message or "the run ended in an error")
            return _without_items(0.0, (), parts, [reason])
        if expected is None:
            if not isinstance(native, TauRecord):
                return skipped("no_reference", "no expected calls")
            reason = Reason(
                code="no_expected_actions", message="the record has no info.task.actions"
            )
            return _without_items(0.0, (), parts, [reason])
        if has_unread_calls(sample):
            return calls_unknown(sample)
        if made is None:
            return skipped("no_calls_recorded", "no calls recorded")
        if sample.expected.alternatives or sample.expected.forbidden:
            return skipped("reference_not_plain", _NOT_PLAIN)
        if expected:
            grade = self._scored(expected, made, parts)
            return grade if native is None else explained(grade)
        if self.no_expected == "skip":
            return skipped(
                "nothing_expected",
                "no call is expected, and such samples are left out (no_expected: skip)",
            )
        counted = [
            call
            for call in made
            if not (isinstance(call.name, str) and call.name in self.ignore_calls)
        ]
        reasons = [
            Reason(code="unexpected_call", actual=_arguments(c), subject=_subject(c))
            for c in counted
        ]
        return _without_items(0.0 if counted else 1.0, made, parts, reasons)

    def _scored(self, expected: Sequence[Named], made: Sequence[Named], parts: Parts) -> Grade:
        total, budget = 0.0, Budget()
        similar: list[float] = []
        for call in expected:
            if type(call) is ExpectedCall and (
                call.rules
                or call.names
                or call.optional
                or (call.arguments is None and not call.plain)
            ):
                return skipped("reference_not_plain", _NOT_PLAIN)
            place, close = _best_match(call, made, budget)
            if place is not None:
                total += self.name_weight + self.argument_weight * close
                similar.append(close)
        return Grade(
            score=total / len(expected),
            counts={
                "expected_calls": len(expected),
                "called": len(similar),
                "made_calls": len(made),
            },
            parts=parts,
            numbers={"similarities": len(similar), "similarity": math.fsum(similar)},
            items=partial(self._explanation, expected, made),
        )

    def _explanation(self, expected: Sequence[Named], made: Sequence[Named]) -> Explanation:
        budget, listing, lost, items = Budget(), Budget(), Losses(), []
        for index, call in enumerate(expected):
            place, close = _best_match(call, made, budget)
            gold = call.name if isinstance(call.name, str) else None
            reasons = () if close == 1.0 else lost.add(_reasons(call, made, place, listing))
            items.append(
                Item(
                    id=str(index),
                    score=0.0 if place is None else self.name_weight + self.argument_weight * close,
                    gold=gold,
                    label=None if place is None else gold,
                    parts={} if place is None else {"argument_similarity": close},
                    reasons=reasons,
                    metadata={"call": place},
                )
            )
        return Explanation(items=tuple(items), **lost.of_grade())


def _best_match(expected: Named, made: Sequence[Named], budget: Budget) -> tuple[int | None, float]:
    """Return the place of the first call of that name with the highest similarity, and the
    similarity.

    The weighted score rounds monotonically, so the highest similarity has the highest score. None
    and 0.0 without such a call.
    """
    name, arguments = expected.name, expected.arguments
    best, most = None, 0.0
    for place, call in enumerate(made):
        if call.name != name:
            continue
        if arguments == call.arguments and arguments is not None:  # nearly always
            return place, 1.0
        close = similarity(_arguments(expected), _arguments(call), budget)
        if best is None or close > most:
            best, most = place, close
            if close == 1.0:
                break
    return best, most


def _arguments(call: Named) -> Any:
    """Return what is compared: undecodable arguments of any reader's call read as ``{}``.

    Odd values stay.
    """
    arguments = call.arguments
    if type(arguments) is dict or isinstance(call, Call):
        return arguments
    if arguments is not None:
        return dict(arguments)
    try:
        return {} if call.raw_arguments is None else loads(call.raw_arguments)
    except JsonProblem:
        return {}


def _reasons(
    expected: Named, made: Sequence[Named], place: int | None, budget: Budget
) -> Iterator[Reason]:
    subject = _subject(expected)
    if place is None:
        yield Reason(code="missing_call", expected=_arguments(expected), subject=subject)
        return
    try:
        yield from differences(_arguments(expected), _arguments(made[place]), subject, budget)
    except (TooMuchWork, RecursionError):
        yield Reason(
            code="arguments_differ", subject=subject, message="too large to be listed in detail"
        )


def _subject(call: Named) -> str:
    return call.name if isinstance(call.name, str) else compact(call.name)


def _without_items(
    score: float, made: Sequence[Named], parts: Parts, reasons: list[Reason]
) -> Grade:
    lost = Losses()
    lost.add(reasons)
    counts = {"expected_calls": 0, "called": 0, "made_calls": len(made)}
    return Grade(score=score, counts=counts, parts=parts, **lost.of_grade())


@attrs.frozen(kw_only=True)
class TauReward(Grader):
    """The recorded reward as the score, and whether it means success.

    ``score = reward``; ``passed = 1 - tolerance <= reward <= 1 + tolerance`` (the benchmark's own
    test, both bounds included). Records of runs that ended in an error have a reward, 0.0, and are
    graded like any other. A reward that is missing, null, not a number or not finite gives a failed
    grade; a boolean counts as 0 or 1. Samples of other readers without a recorded ``reward`` are
    skipped.

    Both profiles are the same here.

    Attributes:
        tolerance: How far from 1 a successful reward may be.
        profile: ``documented`` or ``upstream``; no effect.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"recorded"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    metrics: ClassVar[tuple[str, ...]] = ("mean", "binary", "pass_hat_k", "pass_at_k")
    verdict_labels: ClassVar[tuple[str, str]] = ("solved", "not solved")

    tolerance: float = attrs.field(
        default=1e-6, validator=[attrs.validators.ge(0), attrs.validators.lt(math.inf)]
    )
    profile: Profile = "documented"

    @override
    def grade(self, sample: Sample) -> Grade:
        recorded = sample.recorded
        if "reward" not in recorded:
            if isinstance(sample.native, TauRecord):
                return _unusable("the record has no reward")
            if sample.error is not None:
                return failed(sample.error)
            return skipped("no_reward", "the sample has no recorded reward")
        reward = reward_of(recorded["reward"])
        if reward is None:
            what = (
                "not a finite number"
                if finite_number(recorded["reward"]) is None
                else f"over {LARGEST_SCORE:g}"
            )
            return _unusable(f"the reward is {what}: {compact(recorded['reward'])[:80]}")
        passed = is_success(reward, self.tolerance)
        reasons = () if passed else tuple(_reward_reasons(sample, recorded))
        rationale = "; ".join(reason.message for reason in reasons)
        return Grade(score=reward, passed=passed, reasons=reasons, rationale=rationale)


def _unusable(message: str) -> Grade:
    return failed(Fault(category="data", code="unusable_reward", message=message))


def _reward_reasons(sample: Sample, recorded: Mapping[str, object]) -> Iterator[Reason]:
    if sample.status is Status.FAILED:
        detail = sample.error.message if sample.error is not None else ""
        yield Reason(code="run_error", message=detail or "the run ended in an error")
        return
    if recorded.get("judged") is False:
        yield Reason(
            code="not_judged",
            message="the conversation reached its step limit before it could be judged",
        )
    if finite_number(recorded.get("r_actions")) == 0.0:
        yield Reason(
            code="database_mismatch",
            message="the database differs from what the expected calls leave",
        )
    outputs = recorded.get("outputs")
    for text, occurred in outputs.items() if isinstance(outputs, Mapping) else ():
        if occurred is False:
            yield Reason(
                code="missing_output",
                expected=text,
                message=f"the user was never told {compact(text)}",
            )


def is_success(score: float, tolerance: float) -> bool:
    """Return whether a score is within ``tolerance`` of 1, both bounds included."""
    return 1.0 - tolerance <= score <= 1.0 + tolerance


def reward_of(value: Any) -> float | None:
    """Return a recorded reward, None when it is no finite number, or larger than any
    score may be.
    """
    number = finite_number(value)
    return number if number is not None and abs(number) <= LARGEST_SCORE else None


def finite_number(value: Any) -> float | None:
    """Return a value as a finite float, None when it is not such a number.

    A boolean counts as 0 or 1.
    """
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
