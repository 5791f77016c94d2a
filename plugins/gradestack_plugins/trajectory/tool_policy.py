"""Grader ``tool_policy``, calls against rules of one's own or of other tools, and aggregator
``policy_checks``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Fault,
    Figure,
    Grade,
    Grader,
    Grades,
    Item,
    Message,
    Outcome,
    Reason,
    Sample,
    ToolCall,
    failed,
    preset_version,
    ratio,
    replace,
    skipped,
)
from gradestack.jsonio import compact
from gradestack_plugins.readers.chat import text_of
from gradestack_plugins.trajectory.calls import (
    ASSISTANT,
    Count,
    MemberShares,
    at_pointer,
    bad_pattern,
    identity_of,
    judged,
    refuse,
    sub_agent_grade,
)

PRESETS: Final = {
    "deepeval/tool_permission": "4.3.1",
    "waza/tool_constraint": "091a1f9",
    "promptfoo/step-count": "0.121.20",
}
_TAKES: Final = {
    "deepeval/tool_permission": ("allow", "deny"),
    "waza/tool_constraint": ("expect", "deny"),
    "promptfoo/step-count": ("calls", "per_tool"),
}
"""Preset -> the options it has."""
_WAZA_ARGUMENTS: Final = ("command", "path", "skill")
_ABSENT: Final = object()
_MOST_REASONS: Final = 20  # of one check


@attrs.frozen(kw_only=True)
class CallPattern:
    """What a call looks like: its tool's name, and arguments by JSON pointer.

    Attributes:
        tool: Regular expression that the whole name fits.
        arguments: JSON pointer -> regular expression that occurs in the value; of what is no text,
            in its JSON. A call without the argument does not fit.
    """

    tool: str
    arguments: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for pointer, text in (("", self.tool), *self.arguments.items()):
            if pointer and not pointer.startswith("/"):
                raise ValueError(
                    f"{pointer!r} is no JSON pointer: it begins with a slash, /{pointer} for one "
                    "argument"
                )
            if problem := bad_pattern(text):
                raise ValueError(problem)

    def __str__(self) -> str:
        """Return it as items name it."""
        return f"{self.tool} {compact(self.arguments)}" if self.arguments else self.tool

    def fits(self, call: ToolCall) -> bool:
        """Return whether a call looks like it."""
        if re.fullmatch(self.tool, call.name) is None:
            return False
        for pointer, text in self.arguments.items():
            value = at_pointer(call.arguments, pointer, _ABSENT)
            if (
                value is _ABSENT
                or re.search(text, value if isinstance(value, str) else compact(value)) is None
            ):
                return False
        return True

    def occurs(self, call: ToolCall) -> bool:
        """Return whether it occurs in a call as waza has it.

        Case ignored, an argument that is no text being empty.
        """
        if re.search(self.tool.strip(), call.name, re.IGNORECASE) is None:
            return False
        for pointer, text in self.arguments.items():
            value = at_pointer(call.arguments, pointer)
            if (
                text
                and re.search(text, value if isinstance(value, str) else "", re.IGNORECASE) is None
            ):
                return False
        return True


Pattern = str | CallPattern  # a name alone, or with arguments


def _whole(patterns: Iterable[Pattern]) -> list[CallPattern]:
    return [CallPattern(tool=each) if isinstance(each, str) else each for each in patterns]


def _shown(sequence: Iterable[Pattern]) -> str:
    return ", ".join(map(str, sequence))


def _check_bounds(
    least: int, low: tuple[str, int | None], high: tuple[str, int | None], why: str = ""
) -> None:
    (lower, first), (upper, last) = low, high
    numbers = [number for number in (first, last) if number is not None]
    if not numbers:
        raise ValueError(f"give {lower}, {upper}, or both")
    if min(numbers) < least:
        raise ValueError(f"{lower} and {upper} are at least {least}{why}")
    if numbers[0] > numbers[-1]:
        raise ValueError(f"{lower} {first} is above {upper} {last}")


@attrs.frozen(kw_only=True)
class Range:
    """How often: ``min`` and ``max``, both included."""

    min: int | None = None
    max: int | None = None

    def __attrs_post_init__(self) -> None:
        _check_bounds(0, ("min", self.min), ("max", self.max))

    def checks(self, number: int, subject: str, what: str = "") -> Checks:
        """Yield a check of each bound: what it asks for, and the reason where it is broken."""
        if self.min is not None:
            few = Reason(code="too_few_calls", subject=subject, expected=self.min, actual=number)
            yield f"at least {self.min} {what}", [few] if number < self.min else []
        if self.max is not None:
            many = Reason(code="too_many_calls", subject=subject, expected=self.max, actual=number)
            yield f"at most {self.max} {what}", [many] if number > self.max else []


@attrs.frozen(kw_only=True)
class Repeats:
    """How often an identical call may be made: ``in_a_row`` and ``in_all``; at least once."""

    in_a_row: int | None = None
    in_all: int | None = None

    def __attrs_post_init__(self) -> None:
        _check_bounds(
            1, ("in_a_row", self.in_a_row), ("in_all", self.in_all), ": one call is no repeat"
        )

    def checks(self, calls: Sequence[ToolCall]) -> Checks:
        """Yield a check of each bound."""
        marks = [(identity_of(call), call.name) for call in calls]
        for most, how in ((self.in_a_row, "in a row"), (self.in_all, "in all")):
            if most is not None:
                runs = ((mark, len(list(group))) for mark, group in groupby(marks))
                numbers = runs if how == "in a row" else Counter(marks).items()
                above = [
                    (name, number)
                    for (mark, name), number in numbers
                    if mark is not None and number > most
                ]
                broken = Reason(code="repeated_call", expected=most, message=how)
                yield (
                    f"repeats {how}",
                    [replace(broken, subject=name, actual=number) for name, number in above],
                )


Checks = Iterator[tuple[str, Iterable[Reason]]]  # the name of each check, and why it is broken


def _named(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


@attrs.frozen(kw_only=True)
class ToolPolicy(Grader):
    """Share of a policy's checks that a run keeps, in [0, 1]; ``passed`` when it keeps all.

        score = passed / checks

    Each rule is a check: ``allow`` one, each pattern of ``deny`` and ``expect``, each ``min`` and
    ``max``, each sequence, ``in_a_row`` and ``in_all``, ``after_final``. With ``fatal`` a broken
    ``deny`` makes the score 0. What the reference forbids (``expected.forbidden``) is denied, too.
    ``items`` are the checks, reasons what breaks them.

    Names are regular expressions that the whole name fits. ``after_final`` looks at the
    conversation: the agent has answered once it says something without calling, until somebody else
    speaks; without a conversation the check is left out. Skipped without recorded calls, and
    without any check.

    Presets are the rules of other tools, with the options they have: ``deepeval/tool_permission``
    (``allow``, ``deny``; names exactly, the share of calls), ``waza/tool_constraint`` (``expect``,
    ``deny``; expressions that occur, case ignored, arguments ``/command``, ``/path``, ``/skill``),
    ``promptfoo/step-count`` (``calls``, or one glob in ``per_tool``).

    Attributes:
        allow: Patterns of which each call fits one; null: all are allowed.
        deny: Patterns that no call fits; they win over ``allow``.
        expect: Patterns of which each is fitted by a call.
        calls: How many calls there are.
        per_tool: Pattern of names -> how many calls of them.
        forbidden_order: Sequences of patterns that no calls fit in this order, others between them
            or not.
        required_order: Sequences of patterns that calls fit in this order.
        repeats: How often an identical call may be made.
        after_final: Whether a call may follow the final answer.
        fatal: A broken ``deny`` makes the score 0.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
        preset: The rule of another tool.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    """Of what is expected it reads the forbidden tools alone."""
    metrics: ClassVar[tuple[str, ...]] = ("policy_checks", "mean")
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
        by = (self.preset or "").partition("/")[0]
        orders = (*self.forbidden_order, *self.required_order)
        for sequence in (
            (self.allow or (), self.deny, self.expect, *orders) if by != "deepeval" else ()
        ):
            _whole(sequence)
        if not all(orders):
            raise ValueError("a sequence is empty: name at least one pattern")
        if by != "promptfoo":
            _whole(self.per_tool)
        if problem := self._contradiction() if self.preset is None else self._unfit(self.preset):
            raise ValueError(problem)

    def _contradiction(self) -> str | None:
        denied, bounds = set(map(str, self.deny)), self.per_tool.values()
        needed = [
            *map(str, self.expect),
            *(name for name, each in self.per_tool.items() if each.min),
        ]
        if both := next((each for each in needed if each in denied), None):
            return f"{both} is denied and must be called"
        if same := next(
            (each for each in self.required_order if each in self.forbidden_order), None
        ):
            return f"the order {_shown(same)} is both required and forbidden"
        least = [
            int(bool(self.expect)),
            *map(len, self.required_order),
            *(each.min or 0 for each in bounds),
        ]
        if self.calls is not None and self.calls.max is not None and self.calls.max < max(least):
            return f"calls.max is {self.calls.max}, but other rules ask for at least {max(least)}"
        return None

    def _unfit(self, preset: str) -> str | None:
        """Return what a preset lacks, or has no place for."""
        name = preset.partition("@")[0]
        refuse(self, preset, _TAKES[name])
        if name == "promptfoo/step-count":
            one = len(self.per_tool) + (self.calls is not None) == 1
            return None if one else f"{preset} takes calls, or one glob in per_tool"
        patterns = (*(self.allow or ()), *self.deny, *self.expect)
        if not patterns and self.allow is None:
            return f"{preset} needs {' or '.join(_TAKES[name])}"
        pointers = [
            pointer
            for each in patterns
            if isinstance(each, CallPattern)
            for pointer in each.arguments
        ]
        if name == "deepeval/tool_permission":
            return f"{preset} looks at names alone; leave the arguments out" if pointers else None
        known = [f"/{each}" for each in _WAZA_ARGUMENTS]
        if other := next((each for each in pointers if each not in known), None):
            return f"waza has patterns for the arguments {', '.join(known)}, not for {other}"
        return None

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = sub_agent_grade(sample) or judged(sample, self.count, self.requestor)
        if self.preset is not None:
            grade = calls if isinstance(calls, Grade) else self._by_preset(self.preset, calls)
            return replace(grade, metadata={"preset": self.preset})
        if isinstance(calls, Grade):
            return calls
        forbidden = sample.expected.forbidden
        if problem := next(filter(None, map(bad_pattern, forbidden)), None):
            return failed(
                Fault(
                    category="data",
                    code="unusable_pattern",
                    message=f"expected.forbidden: {problem}",
                )
            )
        return self._graded(
            chain(self._of_calls(calls, forbidden), self._of_several(calls, sample.turns)), calls
        )

    def _by_preset(self, preset: str, calls: Sequence[ToolCall]) -> Grade:
        if preset.startswith("deepeval/"):
            return _permission(self.allow, self.deny, calls)
        if preset.startswith("waza/"):
            return self._graded(_waza_checks(_whole(self.expect), _whole(self.deny), calls), calls)
        glob, bounds = next(iter(self.per_tool.items()), (None, self.calls))
        return _step_count(bounds or Range(min=0), glob, calls)

    def _of_calls(self, calls: Sequence[ToolCall], forbidden: Iterable[str]) -> Checks:
        if self.allow is not None:
            allowed, message = _whole(self.allow), "no allowed pattern fits the call"
            others = (call for call in calls if not any(each.fits(call) for each in allowed))
            yield (
                "allow",
                (Reason(code="not_allowed", subject=call.name, message=message) for call in others),
            )
        for name, pattern in {str(each): each for each in _whole((*self.deny, *forbidden))}.items():
            message, fitting = f"calls of {name} are denied", filter(pattern.fits, calls)
            yield (
                f"deny {name}",
                [Reason(code="denied", subject=call.name, message=message) for call in fitting],
            )
        for name, pattern in {str(each): each for each in _whole(self.expect)}.items():
            missed = Reason(
                code="tool_not_called", subject=pattern.tool, message=f"no call of {name}"
            )
            yield f"expect {name}", [] if any(map(pattern.fits, calls)) else [missed]
        if self.calls is not None:
            yield from self.calls.checks(len(calls), "", "calls")
        for name, bounds in self.per_tool.items():
            yield from bounds.checks(
                sum(map(CallPattern(tool=name).fits, calls)), name, f"calls of {name}"
            )

    def _of_several(self, calls: Sequence[ToolCall], turns: Sequence[Sequence[Message]]) -> Checks:
        for patterns in map(_whole, self.forbidden_order):
            found = _in_order(patterns, calls)
            message = f"called in this order: {', '.join(call.name for call in found)}"
            broken = len(found) == len(patterns)
            reasons = (
                [Reason(code="forbidden_order", subject=found[-1].name, message=message)]
                if broken
                else []
            )
            yield f"forbidden order {_shown(patterns)}", reasons
        for patterns in map(_whole, self.required_order):
            number = len(_in_order(patterns, calls))
            missed = patterns[number].tool if number < len(patterns) else ""
            message = f"no call of {missed} behind {number} call(s) before it"
            broken = number < len(patterns)
            reasons = (
                [Reason(code="order_missing", subject=missed, message=message)] if broken else []
            )
            yield f"required order {_shown(patterns)}", reasons
        if self.repeats is not None:
            yield from self.repeats.checks(calls)
        if not self.after_final and turns:
            yield "after final", _after_final(turns)

    def _graded(self, checks: Checks, calls: Sequence[ToolCall]) -> Grade:
        items, reasons, fatal = [], [], False
        for name, found in checks:
            broken = list(islice(found, _MOST_REASONS))
            items.append(Item(id=name, score=float(not broken)))
            reasons += broken
            fatal = fatal or (self.fatal and bool(broken) and name.startswith("deny "))
        if not items:
            return skipped("no_checks", "no rule of the policy applies to this run")
        passed = sum(item.score == 1.0 for item in items)
        return Grade(
            outcome=Outcome.GRADED,
            score=0.0 if fatal else passed / len(items),
            passed=passed == len(items),
            counts={"calls": len(calls), "checks": len(items), "passed": passed},
            items=tuple(items),
            reasons=tuple(reasons),
        )


def _in_order(patterns: Sequence[CallPattern], calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Return the first calls that fit the patterns one after the other, others between them.

    Fewer if they end.
    """
    found: list[ToolCall] = []
    for call in calls:
        if len(found) < len(patterns) and patterns[len(found)].fits(call):
            found.append(call)
    return found


def _after_final(turns: Iterable[Iterable[Message]]) -> Iterator[Reason]:
    """Yield the calls made after the agent has given an answer without calls, before anybody else
    spoke.
    """
    final = False
    for message in chain.from_iterable(turns):
        if message.role == "assistant":
            for call in message.tool_calls if final else ():
                yield Reason(
                    code="call_after_final",
                    subject=call.name,
                    message="the run had been answered before",
                )
            final = final or (not message.tool_calls and bool(text_of(message.content).strip()))
        elif message.role not in {"tool", "function"}:
            final = False


def _permission(
    allow: Sequence[Pattern] | None, deny: Sequence[Pattern], calls: Sequence[ToolCall]
) -> Grade:
    """Return deepeval's grade: the share of calls of tools that are allowed, by name.

    1 without calls.
    """
    if any(call.arguments is None for call in calls):
        message = "deepeval takes no call whose arguments are no object"
        return failed(Fault(category="data", code="undecodable_arguments", message=message))
    allowed, refused = None if allow is None else set(map(str, allow)), set(map(str, deny))
    reasons = []
    for call in calls:
        if call.name in refused:
            reasons.append(Reason(code="denied", subject=call.name))
        elif allowed is not None and call.name not in allowed:
            reasons.append(Reason(code="not_allowed", subject=call.name))
    right = len(calls) - len(reasons)
    score = right / len(calls) if calls else 1.0
    counts = {"calls": len(calls), "authorised": right}
    return Grade(score=score, passed=score >= 1.0, counts=counts, reasons=tuple(reasons))


def _waza_checks(
    expect: Sequence[CallPattern], deny: Sequence[CallPattern], calls: Sequence[ToolCall]
) -> Checks:
    for verb, code, patterns in (("expect", "tool_not_called", expect), ("deny", "denied", deny)):
        for pattern in patterns:
            passed = any(map(pattern.occurs, calls)) is (verb == "expect")
            yield f"{verb} {pattern}", [] if passed else [Reason(code=code, subject=pattern.tool)]


def _step_count(bounds: Range, glob: str | None, calls: Sequence[ToolCall]) -> Grade:
    """Return promptfoo's grade.

    1 where the number of calls that fit a glob is within the bounds, else 0.
    """
    signs = {"*": ".*", "?": "."}  # any characters but line ends; one of them
    fitting = re.compile(
        "".join(signs.get(each, re.escape(each)) for each in glob or ""), re.IGNORECASE
    )
    number = sum(glob is None or fitting.fullmatch(call.name.strip()) is not None for call in calls)
    reasons = tuple(reason for _, broken in bounds.checks(number, glob or "") for reason in broken)
    counts = {"calls": len(calls), "matching": number}
    return Grade(score=float(not reasons), passed=not reasons, counts=counts, reasons=reasons)


@attrs.frozen(kw_only=True)
class PolicyChecks(MemberShares):
    """Runs within the whole policy, and by check.

    ``kept_rate`` = runs whose grade has passed / graded runs with a verdict, with an interval that
    leaves out one task at a time; None without any. ``checks`` has ``runs``, ``kept`` and ``rate``
    of each item, with its interval.
    """

    figures: ClassVar = (
        Figure(
            "kept_rate", "Runs within the policy", about="runs that passed / runs with a verdict"
        ),
        Figure(
            "checks.{check}.rate",
            "Runs that pass a check",
            about="runs that pass it / runs with a verdict",
        ),
    )
    share, above, below, undefined = "rate", "kept", "runs", "no run has a verdict"

    @override
    def counts(self, grade: Grade | Item) -> Mapping[str, int]:
        return {
            "runs": 1,
            "kept": int(grade.passed is True if isinstance(grade, Grade) else grade.score == 1.0),
        }

    @override
    def contribution(self, grade: Grade) -> Mapping[str, float] | None:
        return None if grade.passed is None else super().contribution(grade)

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        runs = totals["runs"]
        kept = totals["kept"]
        return {"kept_rate": ratio(kept, runs)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, checks = self.members(grades)
        reason = {} if runs.get("runs") else {"kept_rate_reason": self.undefined}
        shown = {
            check: {"runs": sums["runs"], "kept": sums.get("kept", 0), **rate}
            for check, (sums, rate) in checks.items()
        }
        return {**reason, "checks": shown}
