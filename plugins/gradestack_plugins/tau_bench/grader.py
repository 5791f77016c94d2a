"""Grader ``tau_partial``: partial credit for expected tool calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

import attrs

from gradestack.api import Grader, Profile
from gradestack.jsontext import JsonProblem, compact, loads
from gradestack.model import ABSENT, Fault, Grade, Item, Reason, Sample, Status, ToolCall, failed, skipped
from gradestack_plugins.tau_bench.records import Call, Content, Malformed, TauRecord, content_of, finite_number
from gradestack_plugins.tau_bench.similarity import Budget, TooMuchWork, differences, similarity

MAX_REASONS = 50
"""Reasons kept per sample; one more says how many were left out."""
_SHOWN_REASONS = 3
_SHOWN_CHARACTERS = 80
Parts = dict[str, float | None]


@attrs.frozen
class _Match:
    """An expected call and the best call made with its name."""

    expected: Call
    place: int | None = None
    """Index of that call among all calls made; None when the tool was never called."""
    similarity: float = 0.0


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

    def grade(self, sample: Sample) -> Grade:
        """Return the partial score of one sample."""
        reward = finite_number(sample.recorded.get("reward"))
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
        return attrs.evolve(failed(fault), parts=parts)

    def _grade(self, sample: Sample, parts: Parts) -> Grade:
        if isinstance(sample.native, TauRecord):
            content = content_of(sample.native.record, self.profile)
        elif sample.status is Status.FAILED:
            content = Content(errored=True, expected=None)
        elif sample.expected.calls is None:
            return skipped("no_reference", "the sample does not say which calls are expected")
        elif sample.calls is None:
            return skipped("no_calls_recorded", "the sample does not say which calls were made")
        else:
            content = Content(
                errored=False,
                expected=tuple(map(_general_call, sample.expected.calls)),
                made=tuple(map(_general_call, sample.calls)),
            )
        if content.errored:
            message = sample.error.message if sample.error is not None else ""
            return _plain(
                0.0, content, parts, [Reason(code="run_error", message=message or "the run ended in an error")]
            )
        if content.expected is None:
            message = "the record has no info.task.actions"
            return _plain(0.0, content, parts, [Reason(code="no_expected_actions", message=message)])
        if not content.expected:
            return self._nothing_expected(content, parts)
        return self._graded(content.expected, content.made, parts)

    def _nothing_expected(self, content: Content, parts: Parts) -> Grade:
        if self.no_expected == "skip":
            return skipped("nothing_expected", "no call is expected, and such samples are left out (no_expected: skip)")
        counted = [call for call in content.made if not (isinstance(call.name, str) and call.name in self.ignore_calls)]
        reasons = [Reason(code="unexpected_call", actual=c.arguments, subject=_subject(c)) for c in counted]
        return _plain(0.0 if counted else 1.0, content, parts, reasons)

    def _graded(self, expected: tuple[Call, ...], made: tuple[Call, ...], parts: Parts) -> Grade:
        work, listing = Budget(), Budget()
        reasons = _ReasonList()
        total = 0.0
        called = 0
        items = []
        for index, call in enumerate(expected):
            match = _match(call, made, work)
            score = self._score(match)
            total += score
            called += match.place is not None
            items.append(_item(index, match, score, reasons.add(_reasons(match, made, listing))))
        return Grade(
            score=total / len(expected),
            counts={"expected_calls": len(expected), "called": called, "made_calls": len(made)},
            parts=parts,
            items=tuple(items),
            reasons=reasons.all(),
            rationale=reasons.rationale(),
        )

    def _score(self, match: _Match) -> float:
        return 0.0 if match.place is None else self.name_weight + self.argument_weight * match.similarity


def _general_call(call: ToolCall) -> Call:
    """Return a call of any reader; undecodable arguments read as ``{}``, other values than objects are kept."""
    if call.arguments is not None:
        return Call(call.name, dict(call.arguments))
    try:
        return Call(call.name, {} if call.raw_arguments is None else loads(call.raw_arguments))
    except JsonProblem:
        return Call(call.name, {})


def _match(expected: Call, made: tuple[Call, ...], budget: Budget) -> _Match:
    """Return the first call of the expected name with the highest similarity.

    The weighted score rounds monotonically, so the highest similarity has the highest score.
    """
    best = _Match(expected)
    for place, call in enumerate(made):
        if expected.name == call.name:
            found = similarity(expected.arguments, call.arguments, budget)
            if best.place is None or found > best.similarity:
                best = _Match(expected, place, found)
                if found == 1.0:
                    break
    return best


def _item(index: int, match: _Match, score: float, reasons: tuple[Reason, ...]) -> Item:
    gold = match.expected.name if isinstance(match.expected.name, str) else None
    called = match.place is not None
    return Item(
        id=str(index),
        score=score,
        gold=gold,
        label=gold if called else None,
        parts={"argument_similarity": match.similarity} if called else {},
        reasons=reasons,
        metadata={"call": match.place},
    )


def _reasons(match: _Match, made: tuple[Call, ...], budget: Budget) -> Iterator[Reason]:
    """Yield a reason for every point lost on one expected call."""
    subject = _subject(match.expected)
    if match.place is None:
        yield Reason(code="missing_call", expected=match.expected.arguments, subject=subject)
    elif match.similarity < 1.0:
        try:
            yield from differences(match.expected.arguments, made[match.place].arguments, subject, budget)
        except (TooMuchWork, RecursionError):
            yield Reason(code="arguments_differ", subject=subject, message="too large to be listed in detail")


def _subject(call: Call) -> str:
    return call.name if isinstance(call.name, str) else compact(call.name)


def _plain(score: float, content: Content, parts: Parts, reasons: list[Reason]) -> Grade:
    """Return a grade without items."""
    listed = _ReasonList()
    listed.add(reasons)
    return Grade(
        score=score,
        counts={"expected_calls": 0, "called": 0, "made_calls": len(content.made)},
        parts=parts,
        reasons=listed.all(),
        rationale=listed.rationale(),
    )


class _ReasonList:
    """The first reasons of a sample, and how many more there were."""

    def __init__(self) -> None:
        self._kept: list[Reason] = []
        self._more = 0

    def add(self, reasons: Iterable[Reason]) -> tuple[Reason, ...]:
        """Take reasons as long as there is room and return those taken."""
        start = len(self._kept)
        for reason in reasons:
            if len(self._kept) < MAX_REASONS:
                self._kept.append(reason)
            else:
                self._more += 1
        return tuple(self._kept[start:])

    def all(self) -> tuple[Reason, ...]:
        """Return the reasons kept, and one that counts the others."""
        if not self._more:
            return tuple(self._kept)
        return (*self._kept, Reason(code="more_reasons", message=f"{self._more} more reasons were left out"))

    def rationale(self) -> str:
        """Return the first few reasons in one line."""
        texts = [describe(reason) for reason in self._kept[:_SHOWN_REASONS]]
        hidden = len(self._kept) - len(texts) + self._more
        return "; ".join(texts + [f"{hidden} more"] * bool(hidden))


def describe(reason: Reason) -> str:
    """Return a reason as one line, such as ``book wrong_argument /date expected "2024-05-20" got "2024-05-21"``."""
    words = [reason.subject, reason.code, reason.pointer]
    for word, value in (("expected", reason.expected), ("got", reason.actual)):
        if value is not ABSENT:
            words.append(f"{word} {_clipped(value)}")
    words.append(reason.message)
    return " ".join(word for word in words if word)


def _clipped(value: Any) -> str:
    try:
        text = compact(value)
    except RecursionError:
        return "…"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
