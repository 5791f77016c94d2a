"""Grader ``tool_calls``: did the run make the calls it should have made?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from operator import attrgetter
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    ExpectedCall,
    Fault,
    Grade,
    Grader,
    Inputs,
    Reader,
    Sample,
    ToolCall,
    failed,
    replace,
    skipped,
)
from gradestack_plugins.tool_calls.account import COUNTS, Figure, Weighing
from gradestack_plugins.tool_calls.apart import apart
from gradestack_plugins.tool_calls.calls import name_of
from gradestack_plugins.tool_calls.comparison import Given, Wanted, value_of
from gradestack_plugins.tool_calls.grades import grade_of
from gradestack_plugins.tool_calls.leaves import Equality
from gradestack_plugins.tool_calls.matching import Manner, Matching, Order, TooManyCalls
from gradestack_plugins.tool_calls.peer_grades import peer_grade
from gradestack_plugins.tool_calls.presets import DOCUMENTED, OWN, Preset, find, refuse
from gradestack_plugins.tool_calls.rules import UnusableRule
from gradestack_plugins.tool_calls.scoring import ONE, ZERO, Scored, scored
from gradestack_plugins.tool_calls.straight import straight
from gradestack_plugins.tool_calls.terms import Mode, ToolTerms

_NAME = attrgetter("name")
_SIDES = frozenset({"assistant", "user"})
_STRAIGHT = frozenset({"order", "extra", "missing", "arguments", "equality", "assignment", "credit", "score", "empty"})
_NOT_OPTIONS = frozenset({"preset", "max_pairs", "profile"})


@attrs.frozen(kw_only=True)
class Empty:
    """What a sample without calls on one side, or on both, comes to."""

    both: Literal[0, 1, "skip"] = 1
    """Nothing expected, nothing made."""
    expected_only: Literal[0, "skip"] = 0
    """Something expected, nothing made."""
    made_only: Literal[0, 1, "skip"] = 0
    """Nothing expected, something made."""


@attrs.frozen(kw_only=True)
class ToolCalls(Grader):
    """Whether a run made the calls that are expected, and how much of them is right, in [0, 1].

    Each pair of an expected call e and a call a that was made has a share of what is right in it::

        s(e, a) = equal leaves / leaves of either      0 unless the names agree; 1 where neither has any

    A leaf is a scalar, or an empty list or object, at its JSON pointer. The matching M uses every call once, and has
    the largest sum of shares; of several, the one whose calls come first in order of the expected ones. Then::

        TP = sum of s over M        precision = TP / calls made        recall = TP / calls expected
        score = F1 = 2 precision recall / (precision + recall)

    with all three 1 where both lists are empty. The verdict is "passed" when every expected call is matched with s = 1
    and no call is left over. Everything is worked out in whole numbers and rounded once, so that ties are ties.

    ``preset`` names a published rule instead, which is then followed to the letter: what its program says, including
    where it raises (failed) and where it cannot be told what is expected (skipped, ``not_expressible``). Both profiles
    are the same. Alternatives: the list with the best score, its index in ``metadata.alternative``.

    Skipped: ``no_reference``, ``calls_not_recorded``, ``execution_not_recorded`` (``count: executed``), ``no_turns``
    (``unit: turn``), ``nothing_to_match`` (``empty``). Failed: ``too_many_calls``, ``unusable_rule``.

    What is not set is as ``documented`` has it: order ``any``, extra and missing calls ``penalise``, arguments
    ``rules``, equality ``json``, ``multiset``, ``optimal``, credit ``path``, unit ``sample``, ``stated``,
    ``attempted``, score ``f1``.

    Attributes:
        preset: A published rule, as ``NAME`` or ``NAME@VERSION``; ``documented`` is our own, with no other option set.
        order: ``any``; ``in_order``: calls come in the order expected, others in between; ``strict``: index by index.
        extra: What calls cost that nobody expected: ``penalise`` lowers the score, ``forbid`` makes it 0, ``allow``
            leaves them out.
        missing: What expected calls cost that were not made: ``penalise`` or ``forbid``.
        arguments: ``rules``: equal, but for arguments with a rule of their own; ``exact``: equal, rules aside;
            ``subset``: nothing beyond what is expected; ``superset``: at least that; ``ignore``: names only.
        per_tool: Tool, or ``*`` for all others -> ``arguments``, ``keys``, ``ignore``, ``defaults``.
        equality: ``json``: 1 = 1.0, true is no number; ``python``: true = 1; ``text``: as Python writes them.
        repeats: ``multiset``, or ``set``: equal calls are one.
        assignment: ``optimal``, or ``first_fit``: each expected call takes the first with anything right.
        credit: ``path``: a share for each pair; ``call``: a pair is right or not; ``none``: so is the run.
        unit: ``sample``, or ``turn``: the mean over turns, each matched alone.
        requestor: ``stated``: an expected call that says who makes it is made by them; ``any``; ``assistant`` or
            ``user``: only their calls, expected and made.
        count: ``attempted``, or ``executed``: only calls that were run.
        empty: What samples come to that have no calls on one side or on both.
        score: ``f1``, ``precision`` or ``recall``.
        max_pairs: Pairs of calls of one name that are compared at most, pairs of equal calls aside.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"calls", "expected", "tools", "turns"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls", "expected"})
    aggregators: ClassVar[tuple[str, ...]] = ("mean", "call_figures")
    words: ClassVar[tuple[str, str]] = ("all calls right", "not all calls right")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    preset: str | None = None
    order: Order | None = None
    extra: Literal["allow", "forbid", "penalise"] | None = None
    missing: Literal["forbid", "penalise"] | None = None
    arguments: Mode | None = None
    per_tool: Mapping[str, ToolTerms] | None = None
    equality: Equality | None = None
    repeats: Literal["multiset", "set"] | None = None
    assignment: Literal["optimal", "first_fit"] | None = None
    credit: Literal["none", "call", "path"] | None = None
    unit: Literal["sample", "turn"] | None = None
    requestor: Literal["stated", "any", "assistant", "user"] | None = None
    count: Literal["attempted", "executed"] | None = None
    empty: Empty | None = None
    score: Figure | None = None
    max_pairs: int = 65_536
    _preset: Preset | None = attrs.field(init=False, default=None, eq=False, repr=False)
    _manner: Manner = attrs.field(init=False, eq=False, repr=False)
    _weighing: Weighing = attrs.field(init=False, eq=False, repr=False)
    _full_name: str = attrs.field(init=False, default="", eq=False, repr=False)
    """Of the preset."""
    _apart: bool = attrs.field(init=False, default=False, eq=False, repr=False)
    """Whether calls come in any order."""
    _metadata: Mapping[str, Any] = attrs.field(init=False, factory=dict, eq=False, repr=False)
    _simple: bool = attrs.field(init=False, default=False, eq=False, repr=False)
    """Whether a run that repeats what is expected is right without a closer look."""

    def __attrs_post_init__(self) -> None:
        """Check the options.

        Raises:
            ValueError: There is no such preset, an option contradicts it, or ``max_pairs`` is less than 1.
        """
        if self.max_pairs < 1:
            raise ValueError(f"max_pairs must be at least 1, got {self.max_pairs}")
        given = self._given()
        preset = find(self.preset) if self.preset is not None else None if given else find(DOCUMENTED)
        if preset is not None:
            refuse(preset, given)
        if preset is None and self.order == "strict" and self.assignment == "first_fit":
            raise ValueError("assignment: first_fit has no meaning with order: strict, which goes index by index")
        if preset is None and self.credit == "none" and self.score is not None:
            raise ValueError(
                f"score: {self.score} has no meaning with credit: none, whose score is the verdict, 1 or 0"
            )
        own = {**OWN, **given}
        object.__setattr__(self, "_preset", preset)
        object.__setattr__(
            self,
            "_manner",
            Manner(
                order=own["order"],
                mode=own["arguments"],
                equality=own["equality"],
                first_fit=own["assignment"] == "first_fit",
                partial=own["credit"] == "path",
                max_pairs=self.max_pairs,
                per_tool=self.per_tool or {},
            ),
        )
        weighing = Weighing(
            extra=own["extra"],
            missing=own["missing"],
            order=own["order"],
            verdict_only=own["credit"] == "none",
            figure=own["score"],
        )
        object.__setattr__(self, "_weighing", weighing)

        full_name = "" if preset is None else preset.full_name
        object.__setattr__(self, "_full_name", full_name)
        object.__setattr__(self, "_metadata", {"preset": full_name} if full_name else {})
        object.__setattr__(self, "_apart", self.order in {None, "any"})
        simple = not (set(given) - _STRAIGHT) and own["arguments"] in {"rules", "exact"} and own["equality"] != "text"
        object.__setattr__(self, "_simple", simple and (preset is None or preset.name == DOCUMENTED))

    def _given(self) -> dict[str, Any]:
        """Return the options that say something about the rule, and were set."""
        fields = [each.name for each in attrs.fields(type(self)) if each.init and each.name not in _NOT_OPTIONS]
        return {name: value for name in fields if (value := getattr(self, name)) is not None}

    def for_recording(self, key: str, reader: Reader, inputs: Inputs, samples: Iterable[Sample]) -> ToolCalls:
        """Return the grader as header.json shows it: preset as ``NAME@VERSION``, with what a peer's stands for."""
        preset = self._preset
        if preset is None:
            return self
        stands = {} if preset.name == DOCUMENTED else preset.settings
        return attrs.evolve(self, preset=preset.full_name, **stands)

    @override
    def grade(self, sample: Sample) -> Grade:
        expected, made = sample.expected, sample.calls
        if expected.calls is None and not expected.alternatives:
            return skipped("no_reference", "the sample does not say which calls are expected")
        if made is None:
            return skipped("calls_not_recorded", "no answer is recorded, so it is not known which calls were made")
        preset = self._preset
        try:
            if self._simple and expected.calls is not None and not expected.alternatives:
                tools = sample.tools
                known = None if tools is None else list(map(_NAME, tools))
                right = straight(expected.calls, made, known, self._full_name)
                if isinstance(right, Grade):
                    return right
                if self._apart and (made or self.empty is None):
                    found = apart(expected.calls, made, known, self._manner, self._weighing, self._metadata, right)
                    if found is not None:
                        return found
            if preset is not None and preset.name != DOCUMENTED:
                return peer_grade(preset, sample, made, self.max_pairs)
            own = self._own(sample, made)
            return own if own.metadata else replace(own, metadata=self._metadata)
        except TooManyCalls as error:
            return failed(Fault(category="grading", code="too_many_calls", message=str(error)))
        except UnusableRule as error:
            return failed(Fault(category="data", code="unusable_rule", message=str(error)))
        except RecursionError:
            told = "arguments are nested too deeply to be compared"
            return failed(Fault(category="data", code="nested_too_deeply", message=told))

    def _own(self, sample: Sample, made: Sequence[ToolCall]) -> Grade:
        if self.count == "executed":
            if any(call.status is None for call in made):
                told = "the recording does not say of every call whether it was executed"
                return skipped("execution_not_recorded", told)
            made = [call for call in made if call.status in {"ok", "error"}]
        if not sample.expected.alternatives:
            return self._graded(sample, sample.expected.calls or (), made)
        lists: list[tuple[int | None, tuple[ExpectedCall, ...]]] = []
        if sample.expected.calls is not None:
            lists.append((None, sample.expected.calls))
        lists += enumerate(sample.expected.alternatives)
        best: Grade | None = None
        for place, calls in lists:
            found = self._graded(sample, calls, made)
            if place is not None:
                found = replace(found, metadata={**found.metadata, "alternative": place})
            if best is None or _worth(found) > _worth(best):
                best = found
        return best if best is not None else skipped("no_reference", "no list of calls is expected")

    def _graded(self, sample: Sample, expected: Sequence[ExpectedCall], made: Sequence[ToolCall]) -> Grade:
        tools = None if sample.tools is None else frozenset([name_of(tool.name) for tool in sample.tools])
        who, stated = self.requestor, (self.requestor or OWN["requestor"]) == "stated"
        rules = (self.arguments or OWN["arguments"]) == "rules"
        wanted = [
            Wanted(index, call, rules=rules, requestor=stated)
            for index, call in enumerate(expected)
            if who not in _SIDES or (call.requestor or "assistant") == who
        ]
        given = [Given(index, call) for index, call in enumerate(made) if who not in _SIDES or call.requestor == who]
        if self.unit != "turn":
            found = self._scored(wanted, given, tools)
            return found if isinstance(found, Grade) else _grade([found], self._metadata)
        if all(call.turn is None for call in wanted):
            return skipped("no_turns", "no expected call says in which turn it is due")
        turns = []
        for turn in sorted({call.turn or 0 for call in wanted} | {call.turn or 0 for call in given}):
            due = [call for call in wanted if (call.turn or 0) == turn]
            done = [call for call in given if (call.turn or 0) == turn]
            of_turn = self._scored(due, done, tools, turn)
            if not isinstance(of_turn, Grade):
                turns.append(of_turn)
        return _grade(turns, self._metadata) if turns else skipped("nothing_to_match", "every turn is left out (empty)")

    def _scored(
        self, wanted: list[Wanted], given: list[Given], tools: frozenset[str] | None, turn: int | None = None
    ) -> Scored | Grade:
        """Return what is said of a run or a turn, or a skipped grade where ``empty`` leaves it out."""
        matching = Matching(self._manner, wanted, given)
        if self.repeats == "set":
            wanted, given = _once(wanted, given, matching)
            matching = Matching(self._manner, wanted, given)
        found = scored(matching, wanted, given, tools, self._weighing, turn)
        if wanted and given:
            return found
        empty = self.empty or Empty()
        said = empty.both if not wanted and not given else empty.expected_only if wanted else empty.made_only
        if said == "skip":
            return skipped("nothing_to_match", "there are no calls on one side, and such samples are left out (empty)")
        if all(call.optional for call in wanted) and wanted:
            return found
        value = ONE if said else ZERO
        told = () if said else found.reasons
        return found._replace(score=value, passed=bool(said), precision=value, recall=value, f1=value, reasons=told)


def _worth(grade: Grade) -> tuple[bool, float, bool]:
    score = grade.score
    return score is not None, score or 0.0, bool(grade.passed)


def _once(wanted: list[Wanted], given: list[Given], matching: Matching) -> tuple[list[Wanted], list[Given]]:
    """Return calls without those that equal an earlier one; expected calls with rules are left as they are."""
    seen: set[Any] = set()
    kept = []
    for call in wanted:
        plain = not call.rules and len(call.names) == 1 and call.compared
        value = value_of(call, matching.terms(call.name)) if plain else call.index
        if value not in seen:
            seen.add(value)
            kept.append(call)
    seen, made = set(), []
    for each in given:
        value = value_of(each, matching.terms(each.name))
        if value not in seen:
            seen.add(value)
            made.append(each)
    return kept, made


def _grade(turns: Sequence[Scored], metadata: Mapping[str, Any]) -> Grade:
    """Return the grade of a run: the mean over its parts, of which there is one unless turns are matched alone."""
    if len(turns) == 1:
        (found,) = turns
        numbers = [above / below for above, below in found.ratios]
        return grade_of(numbers, found.counts, found.items, found.reasons, metadata, passed=found.passed)
    sums = [sum(Fraction(*each) for each in ratios) for ratios in zip(*(each.ratios for each in turns), strict=True)]
    numbers = [*(float(each / len(turns)) for each in sums[:4]), *map(float, sums[4:])]
    counts = {name: sum(each.counts[name] for each in turns) for name in COUNTS}
    return grade_of(
        numbers,
        counts,
        [item for each in turns for item in each.items],
        [reason for each in turns for reason in each.reasons],
        metadata,
        passed=all(each.passed for each in turns),
    )
