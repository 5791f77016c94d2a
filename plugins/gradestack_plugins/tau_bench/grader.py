"""Grader ``tau_partial``: partial credit for expected tool calls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    ExpectedCall,
    Fault,
    Grade,
    Grader,
    Item,
    Profile,
    Reason,
    Sample,
    Status,
    ToolCall,
    failed,
    replace,
    skipped,
)
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.tau_bench.losses import Losses
from gradestack_plugins.tau_bench.records import Call, Malformed, TauRecord, content_of, reward_of
from gradestack_plugins.tau_bench.similarity import Budget, TooMuchWork, differences, similarity

_OK = Status.OK
Parts = dict[str, float | None]


Named = Call | ExpectedCall | ToolCall
"""What has a name and arguments."""
_NOT_PLAIN = "the reference is more than a list of names and arguments, which partial credit does not know"


@attrs.frozen(kw_only=True)
class TauPartial(Grader):
    """Partial credit for the calls a run was expected to make.

    With e running over the n expected calls and c over all calls made::

        score(e)  = max over c of  name_weight + argument_weight * similarity(arguments(e), arguments(c))
                    where name(c) = name(e);  0 if there is no such c
        score     = (score(e1) + ... + score(en)) / n

    A call may serve several expected calls; extra calls and order cost nothing. ``similarity`` is defined in
    :func:`gradestack_plugins.tau_bench.similarity.similarity`. Special cases, in this order:

    - the run ended in an error: 0;
    - the record names no expected actions at all (``info``, ``task`` or ``actions`` missing): 0;
    - nothing is expected (an empty or null list): 1 if no call was made, look-ups included, else 0. ``ignore_calls``
      names tools that do not count here; ``no_expected: skip`` leaves such samples ungraded.

    A record on which the original program stops (``info: null``, a missing ``traj``, a call that is not an object)
    gives a failed grade. Samples of other readers are graded from their calls and expected calls; without an
    expected-calls reference, or where calls were not recorded, they are skipped.

    ``documented`` differs from ``upstream`` in two ways, both in what counts as recorded: arguments recorded as an
    object are taken as they are (upstream reads ``{}``), and act/react runs, which have no ``tool_calls``, are read
    from the "Action:" texts of the assistant (upstream sees no calls). Scores of all other records are equal to the
    last bit.

    Each item of a grade is an expected call: ``id`` its index, ``gold`` its tool, ``label`` the same tool when it was
    called, ``parts.argument_similarity`` in that case only, ``metadata.call`` the index of the best call made or null.
    Its reasons stand in the item and, with those of the others, in the grade.

    Attributes:
        name_weight: Credit for calling the right tool.
        argument_weight: Credit for its arguments; the two are not negative and sum to 1 (within 1e-9).
        ignore_calls: Tools that do not count as calls where nothing is expected.
        no_expected: ``strict`` grades samples where nothing is expected, ``skip`` leaves them out.
        profile: ``documented`` or ``upstream``.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"calls", "expected", "recorded", "native"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls", "expected"})
    handles: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    aggregators: ClassVar[tuple[str, ...]] = ("mean", "partial_statistics")
    words: ClassVar[tuple[str, str]] = ("all calls right", "not all calls right")

    name_weight: float = 0.4
    argument_weight: float = 0.6
    ignore_calls: tuple[str, ...] = ()
    no_expected: Literal["strict", "skip"] = "strict"
    profile: Profile = "documented"

    def __attrs_post_init__(self) -> None:
        """Check the weights.

        Raises:
            ValueError: A weight is negative or not finite, or their sum is not 1.
        """
        for name, weight in (("name_weight", self.name_weight), ("argument_weight", self.argument_weight)):
            if not math.isfinite(weight) or weight < 0:
                raise ValueError(f"{name} must be a finite number of at least 0, got {weight}")
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
        except TooMuchWork as error:
            fault = Fault(category="grading", code="too_much_work", message=str(error))
        except RecursionError:
            message = "arguments are nested too deeply to be compared"
            fault = Fault(category="grading", code="too_much_work", message=message)
        return replace(failed(fault), parts=parts)

    def _grade(self, sample: Sample, parts: Parts) -> Grade:
        expected: Sequence[Named] | None
        made: Sequence[Named] | None
        if isinstance(sample.native, TauRecord):
            content = content_of(sample.native.record, self.profile)
            errored, expected, made = content.errored, content.expected, content.made
        else:
            errored, expected, made = sample.status is not _OK, sample.expected.calls, sample.calls
        if errored:
            message = sample.error.message if sample.error is not None else ""
            reason = Reason(code="run_error", message=message or "the run ended in an error")
            return _without_items(0.0, (), parts, [reason])
        if expected is None:
            if not isinstance(sample.native, TauRecord):
                return skipped("no_reference", "the sample does not say which calls are expected")
            reason = Reason(code="no_expected_actions", message="the record has no info.task.actions")
            return _without_items(0.0, (), parts, [reason])
        if made is None:
            return skipped("no_calls_recorded", "the sample does not say which calls were made")
        if sample.expected.alternatives or sample.expected.forbidden:
            return skipped("reference_not_plain", _NOT_PLAIN)
        return self._scored(expected, made, parts) if expected else self._nothing_expected(made, parts)

    def _nothing_expected(self, made: Sequence[Named], parts: Parts) -> Grade:
        if self.no_expected == "skip":
            return skipped("nothing_expected", "no call is expected, and such samples are left out (no_expected: skip)")
        counted = [call for call in made if not (isinstance(call.name, str) and call.name in self.ignore_calls)]
        reasons = [Reason(code="unexpected_call", actual=_arguments(c), subject=_subject(c)) for c in counted]
        return _without_items(0.0 if counted else 1.0, made, parts, reasons)

    def _scored(self, expected: Sequence[Named], made: Sequence[Named], parts: Parts) -> Grade:
        """Grade the calls made by the calls expected, at least one."""
        budget, listing, lost = Budget(), Budget(), Losses()
        items = []
        total, called = 0.0, 0
        for index, call in enumerate(expected):
            if type(call) is ExpectedCall and not call.plain:
                return skipped("reference_not_plain", _NOT_PLAIN)
            place, close = best_match(call, made, budget)
            gold = call.name if isinstance(call.name, str) else None
            if place is None:
                reasons = lost.add(_reasons(call, made, place, listing))
                items.append(Item(id=str(index), score=0.0, gold=gold, reasons=reasons, metadata={"call": None}))
                continue
            called += 1
            score = self.name_weight + self.argument_weight * close
            total += score
            items.append(
                Item(
                    id=str(index),
                    score=score,
                    gold=gold,
                    label=gold,
                    parts={"argument_similarity": close},
                    reasons=() if close == 1.0 else lost.add(_reasons(call, made, place, listing)),
                    metadata={"call": place},
                )
            )
        return Grade(
            score=total / len(items),
            counts={"expected_calls": len(items), "called": called, "made_calls": len(made)},
            parts=parts,
            items=tuple(items),
            reasons=lost.reasons() if lost.kept else (),
            rationale=lost.rationale() if lost.kept else "",
        )


def best_match(expected: Named, made: Sequence[Named], budget: Budget) -> tuple[int | None, float]:
    """Return the place of the first call of that name with the highest similarity, and the similarity.

    The weighted score rounds monotonically, so the highest similarity has the highest score. None and 0.0 without such
    a call.

    Raises:
        TooMuchWork: Arguments nested too deeply or too large.
    """
    name, arguments = expected.name, expected.arguments
    best, found = None, 0.0
    for place, call in enumerate(made):
        if call.name != name:
            continue
        if arguments == call.arguments and arguments is not None:  # the usual end
            return place, 1.0
        close = similarity(_arguments(expected), _arguments(call), budget)
        if best is None or close > found:
            best, found = place, close
            if close == 1.0:
                break
    return best, found


def _arguments(call: Named) -> Any:
    """Return what is compared: undecodable arguments of any reader's call read as ``{}``; odd values are kept."""
    arguments = call.arguments
    if isinstance(call, Call) or type(arguments) is dict:
        return arguments
    if arguments is not None:
        return dict(arguments)
    try:
        return {} if call.raw_arguments is None else loads(call.raw_arguments)
    except JsonProblem:
        return {}


def _reasons(expected: Named, made: Sequence[Named], place: int | None, budget: Budget) -> Iterator[Reason]:
    """Yield a reason for every point lost on one expected call."""
    subject = _subject(expected)
    if place is None:
        yield Reason(code="missing_call", expected=_arguments(expected), subject=subject)
        return
    try:
        yield from differences(_arguments(expected), _arguments(made[place]), subject, budget)
    except (TooMuchWork, RecursionError):
        yield Reason(code="arguments_differ", subject=subject, message="too large to be listed in detail")


def _subject(call: Named) -> str:
    return call.name if isinstance(call.name, str) else compact(call.name)


def _without_items(score: float, made: Sequence[Named], parts: Parts, reasons: list[Reason]) -> Grade:
    """Return a grade without items."""
    lost = Losses()
    lost.add(reasons)
    return Grade(
        score=score,
        counts={"expected_calls": 0, "called": 0, "made_calls": len(made)},
        parts=parts,
        reasons=lost.reasons(),
        rationale=lost.rationale(),
    )
