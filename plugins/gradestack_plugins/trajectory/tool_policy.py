"""Grader ``tool_policy``: calls against rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    Fault,
    Grade,
    Grader,
    Item,
    Outcome,
    Reason,
    Sample,
    ToolCall,
    failed,
    preset_version,
    replace,
    skipped,
)
from gradestack_plugins.trajectory import policy_checks, policy_presets
from gradestack_plugins.trajectory.calls import ASSISTANT, Count, judged
from gradestack_plugins.trajectory.patterns import CallPattern, Pattern, compiled, fits, whole
from gradestack_plugins.trajectory.policy_checks import Range, Repeats
from gradestack_plugins.trajectory.policy_presets import PRESETS, TAKES
from gradestack_plugins.trajectory.presets import refuse

_MOST_REASONS: Final = 20
"""Of one check."""
_RULES: Final = (
    "allow",
    "deny",
    "expect",
    "calls",
    "per_tool",
    "forbidden_order",
    "required_order",
    "repeats",
    "after_final",
)


def _named(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


@attrs.frozen(kw_only=True)
class ToolPolicy(Grader):
    """Share of a policy's checks that a run keeps, in [0, 1]; ``passed`` when it keeps all.

        score = passed / checks

    Each rule is a check: ``allow`` one, each pattern of ``deny`` and ``expect``, each ``min`` and ``max``, each
    sequence, ``in_a_row`` and ``in_all``, ``after_final``. With ``fatal`` a broken ``deny`` makes the score 0. What the
    reference forbids (``expected.forbidden``) is denied, too. ``items`` are the checks, reasons what breaks them.

    Names are regular expressions that the whole name fits. ``after_final`` looks at the conversation: the agent has
    answered once it says something without calling, until somebody else speaks; without a conversation the check is
    left out. Skipped without recorded calls, and without any check.

    Presets are the rules of other tools, with the options they have: ``deepeval/tool_permission`` (``allow``, ``deny``;
    names exactly, the share of calls), ``waza/tool_constraint`` (``expect``, ``deny``; expressions that occur, case
    ignored, arguments ``/command``, ``/path``, ``/skill``), ``promptfoo/step-count`` (``calls``, or one glob in
    ``per_tool``). Both profiles are the same.

    Attributes:
        allow: Patterns of which each call fits one; null: all are allowed.
        deny: Patterns that no call fits; they win over ``allow``.
        expect: Patterns of which each is fitted by a call.
        calls: How many calls there are.
        per_tool: Pattern of names -> how many calls of them.
        forbidden_order: Sequences of patterns that no calls fit in this order, others between them or not.
        required_order: Sequences of patterns that calls fit in this order.
        repeats: How often an identical call may be made.
        after_final: Whether a call may follow the final answer.
        fatal: A broken ``deny`` makes the score 0.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
        preset: The rule of another tool.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"calls", "turns", "expected"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls"})
    aggregators: ClassVar[tuple[str, ...]] = ("policy_checks", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    allow: tuple[Pattern, ...] | None = None
    deny: tuple[Pattern, ...] = ()
    expect: tuple[Pattern, ...] = ()
    calls: Range | None = None
    per_tool: dict[str, Range] = attrs.field(factory=dict)
    forbidden_order: tuple[tuple[Pattern, ...], ...] = ()
    required_order: tuple[tuple[Pattern, ...], ...] = ()
    repeats: Repeats | None = None
    after_final: bool = True
    fatal: bool = False
    count: Count = "attempted"
    requestor: str | None = ASSISTANT
    preset: str | None = attrs.field(default=None, converter=_named)

    def __attrs_post_init__(self) -> None:
        """Check that the rules agree.

        Raises:
            ValueError: A pattern is none, or rules contradict each other or the preset.
        """
        if self.preset is None or not self.preset.startswith("deepeval/"):
            for sequence in (self.allow or (), self.deny, self.expect, *self.forbidden_order, *self.required_order):
                whole(sequence)
        if any(not sequence for sequence in (*self.forbidden_order, *self.required_order)):
            raise ValueError("a sequence is empty: name at least one pattern")
        if self.preset is None or not self.preset.startswith("promptfoo/"):
            whole(self.per_tool)
        if problem := self._contradiction() if self.preset is None else self._unfit(self.preset):
            raise ValueError(problem)

    def _contradiction(self) -> str | None:
        """Return why no run can keep the rules."""
        denied = set(map(str, whole(self.deny)))
        needed = [*map(str, whole(self.expect)), *(name for name, bounds in self.per_tool.items() if bounds.min)]
        if both := next((each for each in needed if each in denied), None):
            return f"{both} is denied and must be called"
        if same := next((each for each in self.required_order if each in self.forbidden_order), None):
            return f"the order {_shown(same)} is both required and forbidden"
        least = [int(bool(self.expect)), *map(len, self.required_order)]
        least += [bounds.min or 0 for bounds in self.per_tool.values()]
        most = None if self.calls is None else self.calls.max
        if most is not None and most < max(least):
            return f"calls.max is {most}, but other rules ask for at least {max(least)}"
        return None

    def _unfit(self, preset: str) -> str | None:
        """Return what a preset lacks, or has no place for.

        Raises:
            ValueError: Options contradict it.
        """
        name = preset.partition("@")[0]
        given = {each: getattr(self, each) for each in _RULES if each not in TAKES[name] and each != "after_final"}
        given |= {"per_tool": self.per_tool or None} if "per_tool" in given else {}
        given |= {"allow": True} if "allow" in given and self.allow is not None else {}
        refuse(preset, {**given, "after_final": not self.after_final, "fatal": self.fatal})
        if name == "promptfoo/step-count":
            number = len(self.per_tool) + (self.calls is not None)
            return None if number == 1 else f"{preset} takes calls, or one glob in per_tool"
        patterns = (*(self.allow or ()), *self.deny, *self.expect)
        if name == "waza/tool_constraint":
            return policy_presets.waza_problem(whole(patterns)) if patterns else f"{preset} needs expect or deny"
        if any(isinstance(each, CallPattern) and each.arguments for each in patterns):
            return f"{preset} looks at names alone; leave the arguments out"
        return None if patterns or self.allow is not None else f"{preset} needs allow or deny"

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = judged(sample, self.count, self.requestor)
        if isinstance(calls, Grade):
            return calls if self.preset is None else replace(calls, metadata={"preset": self.preset})
        if self.preset is not None:
            return replace(self._by_preset(self.preset, calls), metadata={"preset": self.preset})
        forbidden = sample.expected.forbidden
        for text in forbidden:
            try:
                compiled(text)
            except (re.error, RecursionError, OverflowError) as error:
                message = f"expected.forbidden: {text!r} is no regular expression: {error}"
                return failed(Fault(category="data", code="unusable_pattern", message=message))
        return self._graded([*self._checks(sample, calls, forbidden)], calls)

    def _by_preset(self, preset: str, calls: Sequence[ToolCall]) -> Grade:
        if preset.startswith("deepeval/"):
            return policy_presets.permission(self.allow, self.deny, calls)
        if preset.startswith("waza/"):
            return policy_presets.constraint(whole(self.expect), whole(self.deny), calls)
        glob, bounds = next(iter(self.per_tool.items()), (None, self.calls))
        return policy_presets.step_count(bounds or Range(min=0), glob, calls)

    def _checks(
        self, sample: Sample, calls: Sequence[ToolCall], forbidden: Iterable[str]
    ) -> Iterator[tuple[str, Iterator[Reason]]]:
        """Yield the checks: the name of each, and why it is broken."""
        if self.allow is not None:
            yield "allow", policy_checks.not_allowed(whole(self.allow), calls)
        for pattern in _once(whole((*self.deny, *forbidden))):
            yield f"deny {pattern}", policy_checks.denied(pattern, calls)
        for pattern in _once(whole(self.expect)):
            yield f"expect {pattern}", policy_checks.not_called(pattern, calls)
        if self.calls is not None:
            yield from _bounds("calls", self.calls, calls, "")
        for name, bounds in self.per_tool.items():
            own = CallPattern(tool=name)
            yield from _bounds(f"calls of {name}", bounds, [call for call in calls if fits(own, call)], name)
        for sequence in self.forbidden_order:
            yield f"forbidden order {_shown(sequence)}", policy_checks.forbidden_order(sequence, calls)
        for sequence in self.required_order:
            yield f"required order {_shown(sequence)}", policy_checks.out_of_order(sequence, calls)
        if self.repeats is not None and self.repeats.in_a_row is not None:
            yield "repeats in a row", policy_checks.repeated_in_a_row(self.repeats.in_a_row, calls)
        if self.repeats is not None and self.repeats.in_all is not None:
            yield "repeats in all", policy_checks.repeated_in_all(self.repeats.in_all, calls)
        if not self.after_final and sample.turns:
            yield "after final", policy_checks.after_final(sample.turns)

    def _graded(self, checks: Sequence[tuple[str, Iterator[Reason]]], calls: Sequence[ToolCall]) -> Grade:
        items, reasons, fatal = [], [], False
        for name, found in checks:
            broken = list(islice(found, _MOST_REASONS))
            items.append(Item(id=name, score=float(not broken)))
            reasons += broken
            fatal = fatal or (self.fatal and bool(broken) and name.startswith("deny "))
        if not items:
            return skipped("no_checks", "the policy has no rule that says something of this run")
        passed = sum(item.score == 1.0 for item in items)
        return Grade(
            outcome=Outcome.GRADED,
            score=0.0 if fatal else passed / len(items),
            passed=passed == len(items),
            counts={"calls": len(calls), "checks": len(items), "passed": passed},
            items=tuple(items),
            reasons=tuple(reasons),
        )


def _once(patterns: Sequence[CallPattern]) -> Iterator[CallPattern]:
    """Yield patterns, each once."""
    return iter({str(each): each for each in patterns}.values())


def _shown(sequence: Iterable[Pattern]) -> str:
    return ", ".join(map(str, whole(sequence)))


def _bounds(name: str, bounds: Range, calls: Sequence[ToolCall], of: str) -> Iterator[tuple[str, Iterator[Reason]]]:
    if bounds.min is not None:
        yield f"at least {bounds.min} {name}", policy_checks.too_few(bounds.min, calls, of)
    if bounds.max is not None:
        yield f"at most {bounds.max} {name}", policy_checks.too_many(bounds.max, calls, of)
