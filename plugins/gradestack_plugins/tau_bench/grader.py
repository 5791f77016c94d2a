"""Grader ``tau_partial``: partial credit for expected tool calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    ABSENT,
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
from gradestack_plugins.tau_bench.records import Call, Content, Malformed, TauRecord, content_of, reward_of
from gradestack_plugins.tau_bench.similarity import Budget, TooMuchWork, differences, similarity

MAX_REASONS = 50
"""Reasons kept per sample; one more says how many were left out."""
_SHOWN_REASONS = 3
_SHOWN_CHARACTERS = 80
_OK = Status.OK
Parts = dict[str, float | None]


_MOST_KNOWN = 4096
Named = Call | ToolCall
"""What has a name and arguments."""
Match = tuple[Any, int | None, float]
"""Of an expected call: its name, the place of the best call made with that name, None without one; their similarity."""


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

    @override
    def grade(self, sample: Sample) -> Grade:
        return self._evaluate(sample, explain=True)

    @override
    def brief(self, sample: Sample) -> Grade:
        return self._evaluate(sample, explain=False)

    def _evaluate(self, sample: Sample, *, explain: bool) -> Grade:
        reward = reward_of(sample.recorded.get("reward")) if sample.recorded else None
        parts: Parts = {} if reward is None else {"reward": reward}
        try:
            expected, made = sample.expected.calls, sample.calls
            usual = sample.native is None and sample.status is _OK and reward is None
            if usual and expected and made is not None:
                return self._usual(expected, made, explain=explain)
            return self._grade(sample, parts)
        except Malformed as error:
            fault = Fault(category="data", code="malformed_record", message=str(error))
        except TooMuchWork as error:
            fault = Fault(category="grading", code="too_much_work", message=str(error))
        except RecursionError:
            message = "arguments are nested too deeply to be compared"
            fault = Fault(category="grading", code="too_much_work", message=message)
        return replace(failed(fault), parts=parts)

    @cached_property
    def _known(self) -> dict[tuple[tuple[Match, ...], int], Grade]:
        """Grades without reasons, by all they depend on: matches and number of calls made."""
        return {}

    @cached_property
    def _right(self) -> dict[int, tuple[tuple[ToolCall, ...], Grade]]:
        """Grades of runs that did just what was expected, by the identity of the expected calls.

        The runs of a task often share one object; the entry holds it, so that an identity cannot be taken over.
        """
        return {}

    def _usual(self, expected: tuple[ToolCall, ...], made: tuple[ToolCall, ...], *, explain: bool) -> Grade:
        """Grade a sample of any reader that expects calls."""
        if len(made) == len(expected):
            for wanted, one in zip(expected, made, strict=True):
                if wanted.name != one.name or one.arguments is None or wanted.arguments != one.arguments:
                    break
            else:
                held = self._right.get(id(expected))
                return held[1] if held is not None and held[0] is expected else self._all_right(expected, made)
        matches = _matches(expected, made)
        found = self._without_reasons(matches, len(made))
        if explain and any(match[2] < 1.0 for match in matches):
            return self._explained(found, matches, expected, made)
        return found

    def _all_right(self, expected: tuple[ToolCall, ...], made: tuple[ToolCall, ...]) -> Grade:
        """Grade a run that made just the expected calls, in their order; keep its grade if they are of different tools.

        Otherwise an expected call may be matched by another call than its own, by its arguments.
        """
        found = self._without_reasons(_matches(expected, made), len(made))
        if len({call.name for call in expected}) == len(expected):
            if len(self._right) >= _MOST_KNOWN:
                self._right.clear()
            self._right[id(expected)] = (expected, found)
        return found

    def _without_reasons(self, matches: tuple[Match, ...], made: int) -> Grade:
        """Return the grade matches come to, without reasons; the same object for the same matches."""
        key = (matches, made)
        found = self._known.get(key)
        if found is None:
            found = self._assembled(matches, made, {})
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = found
        return found

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
                expected=tuple(Call(call.name, _arguments(call)) for call in sample.expected.calls),
                made=tuple(Call(call.name, _arguments(call)) for call in sample.calls),
            )
        if content.errored:
            message = sample.error.message if sample.error is not None else ""
            return _without_items(
                0.0, content, parts, [Reason(code="run_error", message=message or "the run ended in an error")]
            )
        if content.expected is None:
            message = "the record has no info.task.actions"
            return _without_items(0.0, content, parts, [Reason(code="no_expected_actions", message=message)])
        if not content.expected:
            return self._nothing_expected(content, parts)
        return self._graded(content.expected, content.made, parts)

    def _nothing_expected(self, content: Content, parts: Parts) -> Grade:
        if self.no_expected == "skip":
            return skipped("nothing_expected", "no call is expected, and such samples are left out (no_expected: skip)")
        counted = [call for call in content.made if not (isinstance(call.name, str) and call.name in self.ignore_calls)]
        reasons = [Reason(code="unexpected_call", actual=c.arguments, subject=_subject(c)) for c in counted]
        return _without_items(0.0 if counted else 1.0, content, parts, reasons)

    def _graded(self, expected: tuple[Call, ...], made: tuple[Call, ...], parts: Parts) -> Grade:
        matches = _matches(expected, made)
        return self._explained(self._assembled(matches, len(made), parts), matches, expected, made)

    def _assembled(self, matches: tuple[Match, ...], made: int, parts: Parts) -> Grade:
        """Return the grade matches come to, without reasons."""
        total = 0.0
        called = 0
        items = []
        for index, (name, place, found) in enumerate(matches):
            score = 0.0 if place is None else self.name_weight + self.argument_weight * found
            total += score
            called += place is not None
            gold = name if isinstance(name, str) else None
            items.append(
                Item(
                    id=str(index),
                    score=score,
                    gold=gold,
                    label=None if place is None else gold,
                    parts={} if place is None else {"argument_similarity": found},
                    metadata={"call": place},
                )
            )
        return Grade(
            score=total / len(matches),
            counts={"expected_calls": len(matches), "called": called, "made_calls": made},
            parts=parts,
            items=tuple(items),
        )

    def _explained(
        self, grade: Grade, matches: tuple[Match, ...], expected: tuple[Named, ...], made: tuple[Named, ...]
    ) -> Grade:
        """Return the grade with a reason for every point lost."""
        listing, reasons, items = Budget(), _ReasonList(), []
        for match, item, call in zip(matches, grade.items, expected, strict=True):
            kept = reasons.add(_reasons(match, call, made, listing)) if match[2] < 1.0 else ()
            items.append(item if not kept else _with_reasons(item, kept))
        return Grade(
            score=grade.score,
            counts=grade.counts,
            parts=grade.parts,
            items=tuple(items),
            reasons=reasons.all(),
            rationale=reasons.rationale(),
        )


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


def _matches(expected: Sequence[Named], made: Sequence[Named]) -> tuple[Match, ...]:
    """Return, for every expected call, the first call of its name with the highest similarity.

    The weighted score rounds monotonically, so the highest similarity has the highest score.
    """
    budget = None
    matches: list[Match] = []
    for call in expected:
        name, arguments = call.name, call.arguments
        best, found, place = None, 0.0, -1
        for one in made:
            place += 1
            if one.name != name:
                continue
            if arguments == one.arguments and arguments is not None:  # the usual end
                best, found = place, 1.0
                break
            budget = budget or Budget()
            close = similarity(_arguments(call), _arguments(one), budget)
            if best is None or close > found:
                best, found = place, close
                if close == 1.0:
                    break
        matches.append((name, best, found))
    return tuple(matches)


def _with_reasons(item: Item, reasons: tuple[Reason, ...]) -> Item:
    return Item(
        id=item.id,
        score=item.score,
        gold=item.gold,
        label=item.label,
        parts=item.parts,
        reasons=reasons,
        metadata=item.metadata,
    )


def _reasons(match: Match, expected: Named, made: tuple[Named, ...], budget: Budget) -> Iterator[Reason]:
    """Yield a reason for every point lost on one expected call."""
    _, place, _ = match
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


def _without_items(score: float, content: Content, parts: Parts, reasons: list[Reason]) -> Grade:
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
    if reason.expected is not ABSENT:
        words.append(f"expected {_clipped(reason.expected)}")
    if reason.actual is not ABSENT:
        words.append(f"got {_clipped(reason.actual)}")
    words.append(reason.message)
    return " ".join(filter(None, words))


def _clipped(value: Any) -> str:
    try:
        text = compact(value)
    except RecursionError:
        return "…"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
