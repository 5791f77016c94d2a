"""Graders ``tau_partial`` and ``tau_reward``.

Partial credit for expected calls, and the recorded reward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs
import msgspec
from attrs.validators import ge, lt
from typing_extensions import override

from gradestack import (
    LARGEST_SCORE,
    Expectation,
    ExpectedCall,
    Explanation,
    Fault,
    Grade,
    Grader,
    Item,
    Reason,
    Sample,
    Status,
    ToolCall,
    failed,
    replace,
    skipped,
)
from gradestack.jsonio import JsonProblem, as_map, as_number, compact, loads
from gradestack_plugins.readers.chat.unread import calls_unknown, has_unread_calls
from gradestack_plugins.statistics.success import is_success
from gradestack_plugins.tau_bench.record import TauRecord
from gradestack_plugins.tau_bench.similarity import (
    Budget,
    Losses,
    TooMuchWork,
    differences,
    similarity,
    with_one_nan,
)

_NOT_PLAIN = (
    "the reference is more than a list of names and arguments, which partial credit does "
    "not support"
)
_OK: Final = Status.OK  # members of an Enum take long to get at


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

    Samples of other readers are graded from their calls and expected calls. Those without an
    expected-calls reference are skipped, and so is every run whose calls were not recorded or
    cannot be read.

    Each item of a grade is an expected call: ``id`` its index, ``gold`` its tool, ``label`` the
    same tool when it was called. ``parts.argument_similarity`` is there in that case only;
    ``metadata.call`` is the index of the best call made or null. The item has its own reasons, the
    grade those of all items.

    Attributes:
        name_weight: Credit for calling the right tool.
        argument_weight: Credit for its arguments; the two are not negative and sum to 1 (within
            1e-9).
        ignore_calls: Tools that do not count as calls where nothing is expected.
        no_expected: ``strict`` grades samples where nothing is expected, ``skip`` leaves them out.
    """

    needs = frozenset({"calls", "expected"})
    compares = frozenset({"calls"})
    graded_statuses = frozenset({Status.OK, Status.FAILED})
    metrics = ("mean", "partial_statistics")
    verdict_labels = ("all calls right", "not all calls right")

    name_weight: float = attrs.field(default=0.4, validator=ge(0))
    argument_weight: float = attrs.field(default=0.6, validator=ge(0))
    ignore_calls: tuple[str, ...] = ()
    no_expected: Literal["strict", "skip"] = "strict"

    def __attrs_post_init__(self) -> None:
        total = self.name_weight + self.argument_weight
        size = abs(total - 1.0)
        if size > 1e-9:
            raise ValueError(f"name_weight and argument_weight must sum to 1, got {total}")

    @override
    def grade(self, sample: Sample) -> Grade:
        recorded = sample.recorded
        parts: dict[str, float] = {}
        if "reward" in recorded:
            parts = _reward_part(recorded["reward"])
        if sample.status is not _OK:
            return _grade_of_nothing((), [_run_error(sample)], parts)
        expected = sample.expected.calls
        made = sample.calls
        native = sample.native
        record = native if isinstance(native, TauRecord) else None
        if record is not None and record.problem is not None:
            fault = Fault(category="data", code="malformed_record", message=record.problem)
            return replace(failed(fault), parts=parts)
        if expected is None:
            if record is None:
                return skipped("no_reference", "no expected calls")
            message = "the record has no info.task.actions"
            reason = Reason(code="no_expected_actions", message=message)
            return _grade_of_nothing((), [reason], parts)
        if made is None:
            return _without_calls(sample)
        if not _is_plain(sample.expected):
            return skipped("reference_not_plain", _NOT_PLAIN)
        if expected:
            return self._score(expected, made, parts)
        if self.no_expected == "skip":
            why = "no call is expected, and such samples are left out (no_expected: skip)"
            return skipped("nothing_expected", why)
        reasons = [
            Reason(code="unexpected_call", actual=_arguments(call), subject=call.name)
            for call in made
            if call.name not in self.ignore_calls
        ]
        return _grade_of_nothing(made, reasons, parts)

    def _score(
        self,
        expected: Sequence[ExpectedCall],
        made: Sequence[ToolCall],
        parts: Mapping[str, float],
    ) -> Grade:
        """Grade the calls made by the credit of each expected call's best match."""
        budget = Budget()
        matches: list[Match] = []
        similarities: list[float] = []
        total = 0.0
        try:
            for call in expected:
                match = _best_match(call, made, budget)
                matches.append(match)
                if match is not _NOT_CALLED:
                    total += self._credit(match)
                    similarities.append(match.similarity)
        except (TooMuchWork, RecursionError) as error:
            fault = Fault(category="grading", code="too_much_work", message=str(error))
            return replace(failed(fault), parts=parts)
        n_called = len(similarities)
        counts = {
            "expected_calls": len(expected),
            "called": n_called,
            "made_calls": len(made),
        }
        return Grade(
            score=total / len(expected),
            counts=counts,
            parts=parts,
            numbers={"similarities": n_called, "similarity": math.fsum(similarities)},
            items=lambda: self._explain(expected, matches),
        )

    def _credit(self, match: Match) -> float:
        """Return the score of an expected call."""
        if match.position is None:
            return 0.0
        return self.name_weight + self.argument_weight * match.similarity

    def _explain(self, expected: Sequence[ExpectedCall], matches: Sequence[Match]) -> Explanation:
        """Build the items of expected calls, and the reasons for which they lose credit."""
        budget, losses = Budget(), Losses()
        items: list[Item] = []
        for call, match in zip(expected, matches, strict=True):
            label, parts = None, {}
            if match is not _NOT_CALLED:
                label, parts = call.name, {"argument_similarity": match.similarity}
            reasons: tuple[Reason, ...] = ()
            if match.similarity < 1.0:
                reasons = losses.add(_losses(call, match, budget))
            item = Item(
                id=str(len(items)),
                score=self._credit(match),
                gold=call.name,
                label=label,
                parts=parts,
                reasons=reasons,
                metadata={"call": match.position},
            )
            items.append(item)
        kept, rationale = losses.of_grade()
        return Explanation(items=tuple(items), reasons=kept, rationale=rationale)


class Match(msgspec.Struct, frozen=True, gc=False):
    """The call made that is most like an expected one."""

    position: int | None
    """Place of the call; None where the tool was never called."""
    similarity: float
    """How alike their arguments are."""
    expected: Any = None
    """The arguments that were compared, where they differ."""
    actual: Any = None


_NOT_CALLED: Final = Match(None, 0.0)


def _best_match(expected: ExpectedCall, made: Sequence[ToolCall], budget: Budget) -> Match:
    """Return the first call of that name with the highest similarity.

    The weighted score rounds monotonically, so the highest similarity has the highest score.
    """
    best = _NOT_CALLED
    name, arguments = expected.name, expected.arguments
    for position, call in enumerate(made):
        if call.name != name:
            continue
        if call.arguments == arguments and arguments is not None:
            return Match(position, 1.0)  # equal ones need no look for NaN
        wanted, given = _arguments(expected), _arguments(call)
        close = similarity(wanted, given, budget)
        if best is _NOT_CALLED or close > best.similarity:
            best = Match(position, close, wanted, given)
        if close == 1.0:
            break
    return best


def _arguments(call: ExpectedCall | ToolCall) -> Any:
    """Return the compared values: undecodable arguments read as ``{}``, odd values stay."""
    arguments = call.arguments
    if arguments is not None:
        return with_one_nan(arguments if type(arguments) is dict else dict(arguments))
    try:
        return loads(call.raw_arguments or "{}")
    except JsonProblem:
        return {}


def _is_plain(expected: Expectation) -> bool:
    """Return whether a reference is a list of names and arguments."""
    if expected.alternatives or expected.forbidden:
        return False
    for call in expected.calls or ():
        if call.rules or call.names or call.optional:
            return False
        if call.arguments is None and call.raw_arguments is None:
            return False
    return True


def _losses(expected: ExpectedCall, match: Match, budget: Budget) -> Iterator[Reason]:
    """Yield why an expected call has less than full credit."""
    subject = expected.name
    if match.position is None:
        arguments = _arguments(expected)
        yield Reason(code="missing_call", expected=arguments, subject=subject)
        return
    try:
        yield from differences(match.expected, match.actual, subject, budget)
    except (TooMuchWork, RecursionError):
        message = "too large to be listed in detail"
        yield Reason(code="arguments_differ", subject=subject, message=message)


def _without_calls(sample: Sample) -> Grade:
    """Return the grade of a sample that does not say which calls were made."""
    if has_unread_calls(sample):
        return calls_unknown(sample)
    return skipped("no_calls_recorded", "no calls recorded")


def _run_error(sample: Sample) -> Reason:
    message = ""
    if sample.error is not None:
        message = sample.error.message
    return Reason(code="run_error", message=message or "the run ended in an error")


def _grade_of_nothing(
    made: Sequence[ToolCall], reasons: list[Reason], parts: Mapping[str, float]
) -> Grade:
    """Return the grade of a run of which nothing is expected: 1 without reasons, else 0."""
    losses = Losses()
    losses.add(reasons)
    counts = {"expected_calls": 0, "called": 0, "made_calls": len(made)}
    score = 0.0 if reasons else 1.0
    kept, rationale = losses.of_grade()
    return Grade(score=score, counts=counts, parts=parts, reasons=kept, rationale=rationale)


@attrs.frozen(kw_only=True)
class TauReward(Grader):
    """The recorded reward as the score, and whether it means success.

    ``score = reward``; ``passed = 1 - tolerance <= reward <= 1 + tolerance`` (the benchmark's own
    test, both bounds included). Records of runs that ended in an error have a reward, 0.0, and are
    graded like any other. A reward that is missing, null, not a number or not finite gives a failed
    grade; a boolean counts as 0 or 1. Samples of other readers without a recorded ``reward`` are
    skipped.

    Attributes:
        tolerance: How far from 1 a successful reward may be.
    """

    needs = frozenset({"recorded"})
    compares = frozenset[str]()
    graded_statuses = frozenset({Status.OK, Status.FAILED})
    metrics = ("mean", "binary", "pass_hat_k", "pass_at_k")
    verdict_labels = ("solved", "not solved")

    tolerance: float = attrs.field(default=1e-6, validator=[ge(0), lt(math.inf)])

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
            is_number = finite_number(recorded["reward"]) is not None
            problem = f"over {LARGEST_SCORE:g}" if is_number else "not a finite number"
            message = f"the reward is {problem}: {compact(recorded['reward'])[:80]}"
            return _unusable(message)
        passed = is_success(reward, self.tolerance)
        reasons = () if passed else tuple(_reward_reasons(sample))
        rationale = "; ".join(reason.message for reason in reasons)
        return Grade(score=reward, passed=passed, reasons=reasons, rationale=rationale)


def _unusable(message: str) -> Grade:
    return failed(Fault(category="data", code="unusable_reward", message=message))


def _reward_reasons(sample: Sample) -> Iterator[Reason]:
    """Yield why a recorded reward is not full: error, step limit, database, or outputs."""
    recorded = sample.recorded
    if sample.status is Status.FAILED:
        yield _run_error(sample)
        return
    if recorded.get("judged") is False:
        message = "the conversation reached its step limit before it could be judged"
        yield Reason(code="not_judged", message=message)
    r_actions = recorded.get("r_actions")
    if finite_number(r_actions) == 0.0:
        message = "the database differs from what the expected calls leave"
        yield Reason(code="database_mismatch", message=message)
    outputs = recorded.get("outputs")
    for text, occurred in as_map(outputs).items():
        if occurred is False:
            message = f"the user was never told {compact(text)}"
            yield Reason(code="missing_output", expected=text, message=message)


def _reward_part(recorded: Any) -> dict[str, float]:
    """Return the part that is a recorded reward, if it is one."""
    reward = reward_of(recorded)
    return {} if reward is None else {"reward": reward}


def reward_of(value: Any) -> float | None:
    """Return a recorded reward; None if it is no finite number, or above the largest score."""
    number = finite_number(value)
    if number is not None and abs(number) <= LARGEST_SCORE:
        return number
    return None


def finite_number(value: Any) -> float | None:
    """Return a value as a finite float, None when it is not such a number.

    A boolean counts as 0 or 1.
    """
    if isinstance(value, bool):
        return float(value)
    return as_number(value)
