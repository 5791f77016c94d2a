"""Grader ``tool_calls``: did the run make the calls it should have made?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

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
from gradestack_plugins.readers.chat.unread import calls_unknown
from gradestack_plugins.tool_calls.diff import Expected, Made, Mode, ToolTerms, name_of, value_of
from gradestack_plugins.tool_calls.matching import (
    Assignment,
    Count,
    Credit,
    Empty,
    Extra,
    FigureName,
    Matching,
    Missing,
    Options,
    Order,
    Repeats,
    Requestor,
    TooManyCalls,
    Unit,
)
from gradestack_plugins.tool_calls.outcomes import (
    ONE,
    ZERO,
    Scored,
    Tools,
    explanation_of,
    figures_of,
    score_calls,
)
from gradestack_plugins.tool_calls.presets import DOCUMENTED, find, grade_as_published, refuse
from gradestack_plugins.tool_calls.published.preset import Preset
from gradestack_plugins.tool_calls.rules import UnusableRule
from gradestack_plugins.tool_calls.values import Equality

_SIDES = frozenset({"assistant", "user"})
_NOT_OPTIONS = frozenset({"preset", "max_pairs"})
_NO_SIDE = "there are no calls on one side, and such samples are left out (empty)"
_EXPORT_ADVICE = "of a data set, grade its log: gradestack grade LOG --dataset FILE"


@attrs.frozen(kw_only=True)
class ToolCalls(Grader):
    """Whether a run made the calls that are expected, and how much of them is right, in [0, 1].

    Each pair of an expected call e and a call a that was made has a share of what is right in it::

        s(e, a) = equal leaves / leaves of either   0 unless names agree; 1 where neither has any

    A leaf is a scalar, or an empty list or object, at its JSON pointer. The matching M pairs
    calls one to one so that the total credit is largest. Of several such matchings it is the one
    whose calls come first, in order of the expected calls. Then::

        TP = sum of s over M        precision = TP / calls made        recall = TP / calls expected
        score = F1 = 2 precision recall / (precision + recall)

    with all three 1 where both lists are empty. The verdict is "passed" when every expected call is
    matched with s = 1 and no call is left over. Everything is worked out in whole numbers and
    rounded once, so that ties are ties.

    ``preset`` names a published rule instead, which is then followed to the letter. Where its
    program raises, the grade is failed; where it cannot be told what is expected, it is skipped
    (``not_expressible``). Alternatives: the list with the best score, its index in
    ``metadata.alternative``.

    Skipped: ``no_reference``, ``calls_not_recorded``, ``execution_not_recorded``
    (``count: executed``), ``no_turns`` (``unit: turn``), ``nothing_to_match`` (``empty``). Failed:
    ``too_many_calls``, ``unusable_rule``.

    What is not set is as ``documented`` has it: order ``any``, extra and missing calls
    ``penalise``, arguments ``rules``, equality ``json``, ``multiset``, ``optimal``, credit
    ``path``, unit ``sample``, ``stated``, ``attempted``, score ``f1``.

    Attributes:
        preset: A published rule, as ``NAME`` or ``NAME@VERSION``; ``documented`` is our own, with
            no other option set.
        order: ``any``; ``in_order``: calls come in the order expected, others in between;
            ``strict``: index by index.
        extra: What calls cost that nobody expected: ``penalise`` lowers the score, ``forbid`` makes
            it 0, ``allow`` leaves them out.
        missing: What expected calls cost that were not made: ``penalise`` or ``forbid``.
        arguments: ``rules``: equal, but for arguments with a rule of their own; ``exact``: equal,
            rules aside;
            ``subset``: nothing beyond what is expected; ``superset``: at least that; ``ignore``:
                names only.
        per_tool: Tool, or ``*`` for all others -> ``arguments``, ``keys``, ``ignore``,
            ``defaults``.
        equality: ``json``: 1 = 1.0, true is no number; ``python``: true = 1; ``text``: as Python
            writes them.
        repeats: ``multiset``, or ``set``: equal calls are one.
        assignment: ``optimal``, or ``first_fit``: each expected call takes the first with anything
            right.
        credit: ``path``: a share for each pair; ``call``: a pair is right or not; ``none``: so is
            the run.
        unit: ``sample``, or ``turn``: the mean over turns, each matched alone.
        requestor: ``stated``: an expected call that says who makes it is made by them; ``any``;
            ``assistant`` or
            ``user``: only their calls, expected and made.
        count: ``attempted``, or ``executed``: only calls that were run.
        empty: What samples come to that have no calls on one side or on both.
        score: ``f1``, ``precision`` or ``recall``.
        max_pairs: Pairs of calls of one name that are compared at most, pairs of equal calls aside.
    """

    needs = frozenset({"calls", "expected"})
    compares = frozenset({"calls"})
    metrics = ("mean", "call_figures")
    verdict_labels = ("all calls right", "not all calls right")

    preset: str | None = None
    order: Order | None = None
    extra: Extra | None = None
    missing: Missing | None = None
    arguments: Mode | None = None
    per_tool: Mapping[str, ToolTerms] | None = None
    equality: Equality | None = None
    repeats: Repeats | None = None
    assignment: Assignment | None = None
    credit: Credit | None = None
    unit: Unit | None = None
    requestor: Requestor | None = None
    count: Count | None = None
    empty: Empty | None = None
    score: FigureName | None = None
    max_pairs: int = attrs.field(default=65_536, validator=attrs.validators.ge(1))
    _preset: Preset | None = attrs.field(init=False, default=None, eq=False, repr=False)
    _options: Options = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Set preset and options from the fields, and refuse fields that contradict each other."""
        fields = [field.name for field in attrs.fields(type(self)) if field.init]
        values = {name: getattr(self, name) for name in fields if name not in _NOT_OPTIONS}
        stated = {name: value for name, value in values.items() if value is not None}
        preset = None
        if self.preset is not None or not stated:
            preset = find(self.preset or DOCUMENTED)
            refuse(preset, stated)
        elif self.order == "strict" and self.assignment == "first_fit":
            problem = "assignment: first_fit has no meaning with order: strict"
            raise ValueError(f"{problem}, which goes index by index")
        elif self.credit == "none" and self.score is not None:
            problem = f"score: {self.score} has no meaning with credit: none"
            raise ValueError(f"{problem}, whose score is the verdict, 1 or 0")
        options = Options(**stated, max_pairs=self.max_pairs)
        object.__setattr__(self, "_preset", preset)
        object.__setattr__(self, "_options", options)

    def for_recording(
        self, key: str, reader: Reader, inputs: Inputs, samples: Iterable[Sample]
    ) -> ToolCalls:
        """Return the grader as header.json shows it.

        Preset as ``NAME@VERSION``, with the options that a published one stands for.
        """
        preset = self._preset
        if preset is None:
            return self
        settings = {} if preset.name == DOCUMENTED else preset.settings
        return attrs.evolve(self, preset=preset.full_name, **settings)

    @property
    @override
    def tool_schemas(self) -> bool:
        return str(self.preset).startswith("bfcl/")

    @override
    def grade(self, sample: Sample) -> Grade:
        expected, made = sample.expected, sample.calls
        if expected.calls is None and not expected.alternatives:
            return skipped("no_reference", "no expected calls")
        if made is None:
            return calls_unknown(sample, _EXPORT_ADVICE)
        preset = self._preset
        try:
            if preset is not None and preset.name != DOCUMENTED:
                return grade_as_published(preset, sample, made, self.max_pairs)
            return self._best(sample, made)
        except TooManyCalls as error:
            return failed(Fault(category="grading", code="too_many_calls", message=str(error)))
        except UnusableRule as error:
            return failed(Fault(category="data", code="unusable_rule", message=str(error)))
        except RecursionError:
            message = "arguments are nested too deeply to be compared"
            return failed(Fault(category="data", code="nested_too_deeply", message=message))

    def _best(self, sample: Sample, made: Sequence[ToolCall]) -> Grade:
        """Return the grade by the list of expected calls that gives the best one."""
        if self._preset is None:
            metadata = {}
        else:
            metadata = {"preset": self._preset.full_name}
        if self._options.count == "executed":
            if any(call.status is None for call in made):
                message = "not every call's execution is recorded"
                return replace(skipped("execution_not_recorded", message), metadata=metadata)
            made = [call for call in made if call.status in {"ok", "error"}]
        tools: Tools = None
        if sample.tools is not None:
            names = [name_of(tool.name) for tool in sample.tools]
            tools = frozenset(names)
        grades = []
        if sample.expected.calls is not None:
            graded = self._graded(sample.expected.calls, made, tools, metadata)
            grades.append(graded)
        for index, calls in enumerate(sample.expected.alternatives):
            about = {**metadata, "alternative": index}
            grades.append(self._graded(calls, made, tools, about))
        return max(grades, key=_rank)

    def _graded(
        self,
        expected: Sequence[ExpectedCall],
        made: Sequence[ToolCall],
        tools: Tools,
        metadata: Mapping[str, Any],
    ) -> Grade:
        """Grade the calls made against the expected ones, with items and reasons."""
        turns = self._scored(expected, made, tools)
        if isinstance(turns, Grade):
            return replace(turns, metadata=metadata)
        explanation = explanation_of(turns, tools, self._options)
        figures = figures_of(turns)
        return Grade(**figures, **explanation, metadata=metadata)

    def _scored(
        self, expected: Sequence[ExpectedCall], made: Sequence[ToolCall], tools: Tools
    ) -> list[Scored] | Grade:
        """Return the calls of each turn scored, or the grade of a sample without any turn."""
        side = self._options.requestor
        arguments = self._options.arguments
        options = {"rules": arguments == "rules", "requestor": side == "stated"}
        wanted = [Expected(index, call, **options) for index, call in enumerate(expected)]
        done = [Made(index, call) for index, call in enumerate(made)]
        if side in _SIDES:
            whose = [call.requestor or "assistant" for call in expected]
            wanted = [call for call in wanted if whose[call.index] == side]
            done = [call for call in done if call.requestor == side]
        if self._options.unit != "turn":
            scored = self._scored_turn(wanted, done, tools, None)
            return skipped("nothing_to_match", _NO_SIDE) if scored is None else [scored]
        if all(call.turn is None for call in wanted):
            return skipped("no_turns", "no expected call has a turn")
        turns = []
        numbers = {call.turn or 0 for call in chain[Expected | Made](wanted, done)}
        for turn in sorted(numbers):
            due = [call for call in wanted if (call.turn or 0) == turn]
            calls = [call for call in done if (call.turn or 0) == turn]
            scored = self._scored_turn(due, calls, tools, turn)
            turns += [] if scored is None else [scored]
        return turns or skipped("nothing_to_match", "every turn is left out (empty)")

    def _scored_turn(
        self, expected: list[Expected], made: list[Made], tools: Tools, turn: int | None
    ) -> Scored | None:
        """Return the calls of a run or a turn matched, None where ``empty`` leaves it out."""
        if self._options.repeats == "set":
            expected = self._without_repeats(expected)
            made = self._without_repeats(made)
        matching = Matching(self._options, expected, made)
        scored = score_calls(matching, expected, made, tools, turn)
        if expected and made:
            return scored
        empty = self._options.empty
        worth = empty.expected_only if expected else empty.made_only
        worth = worth if expected or made else empty.both
        if worth == "skip":
            return None
        if expected and all(call.optional for call in expected):
            return scored
        ratios = (ONE if worth else ZERO,) * 4 + scored.ratios[4:]
        return scored._replace(ratios=ratios, passed=bool(worth), silent=bool(worth))

    def _without_repeats(self, calls: list[Any]) -> list[Any]:
        """Return calls without those that equal an earlier one.

        Expected calls with rules are left as they are.
        """
        first_calls: dict[object, Any] = {}
        for call in calls:
            is_made = isinstance(call, Made)
            if is_made or (not call.rules and len(call.names) == 1 and call.compared):
                terms = self._options.terms(call.name)
                value = value_of(call, terms)
            else:
                value = call.index
            first_calls.setdefault(value, call)
        return list(first_calls.values())


def _rank(grade: Grade) -> tuple[bool, float, bool]:
    """Return a sorting key of a grade, whose greatest belongs to the best one."""
    return grade.score is not None, grade.score or 0.0, bool(grade.passed)
