"""Grader ``tool_policy``, calls against rules of one's own or of other tools, and aggregator
``policy_checks``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any, Final

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
    identity_of,
    judged_calls,
    pattern_problem,
    refuse,
    sub_agent_grade,
    value_at,
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
_WAZA_POINTERS: Final = ("/command", "/path", "/skill")
_ABSENT: Final = object()
_MOST_REASONS: Final = 20  # of one check


@attrs.frozen(kw_only=True)
class CallPattern:
    """A pattern of calls: of the tool's name, and of arguments by JSON pointer.

    Attributes:
        tool: Regular expression that the whole name fits.
        arguments: JSON pointer -> regular expression that occurs in the value; of what is no text,
            in its JSON. A call without the argument does not fit.
    """

    tool: str
    arguments: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for pointer in self.arguments:
            if not pointer.startswith("/"):
                problem = f"{pointer!r} is no JSON pointer"
                raise ValueError(f"{problem}: it begins with a slash, /{pointer} for one argument")
        arguments = self.arguments.values()
        for problem in filter(None, map(pattern_problem, (self.tool, *arguments))):
            raise ValueError(problem)

    def __str__(self) -> str:
        """Return it as items name it."""
        if self.arguments:
            return f"{self.tool} {compact(self.arguments)}"
        return self.tool

    def matches(self, call: ToolCall) -> bool:
        """Return whether a call fits it."""
        match = re.fullmatch(self.tool, call.name)
        if match is None:
            return False
        for pointer, pattern in self.arguments.items():
            value = value_at(call.arguments, pointer, _ABSENT)
            if value is _ABSENT:
                return False
            text = value if isinstance(value, str) else compact(value)
            if re.search(pattern, text) is None:
                return False
        return True

    def occurs(self, call: ToolCall) -> bool:
        """Return whether it occurs in a call as waza has it.

        Case ignored, an argument that is no text being empty.
        """
        tool = self.tool.strip()
        if re.search(tool, call.name, re.IGNORECASE) is None:
            return False
        for pointer, pattern in self.arguments.items():
            value = value_at(call.arguments, pointer)
            text = value if isinstance(value, str) else ""
            match = re.search(pattern, text, re.IGNORECASE)
            if match is None:
                return False
        return True


Pattern = str | CallPattern  # a name alone, or with arguments


def _call_patterns(patterns: Iterable[Pattern]) -> list[CallPattern]:
    return [
        CallPattern(tool=pattern) if isinstance(pattern, str) else pattern for pattern in patterns
    ]


def _by_name(patterns: Iterable[Pattern]) -> dict[str, CallPattern]:
    return {str(pattern): pattern for pattern in _call_patterns(patterns)}


def _joined(sequence: Iterable[Pattern]) -> str:
    return ", ".join(map(str, sequence))


def _check_bounds(bounds: Mapping[str, int | None], least: int, why: str = "") -> None:
    """Check the lower and the upper of two bounds."""
    lower, upper = bounds
    numbers = [number for number in bounds.values() if number is not None]
    if not numbers:
        raise ValueError(f"give {lower}, {upper}, or both")
    if min(numbers) < least:
        raise ValueError(f"{lower} and {upper} are at least {least}{why}")
    last_number = numbers[-1]
    if numbers[0] > last_number:
        raise ValueError(f"{lower} {numbers[0]} is above {upper} {numbers[-1]}")


Check = tuple[str, Iterable[Reason]]
"""The name of a check, and the reasons why it is broken."""


@attrs.frozen(kw_only=True)
class Range:
    """Bounds of a number: ``min`` and ``max``, both included."""

    min: int | None = None
    max: int | None = None

    def __attrs_post_init__(self) -> None:
        bounds = {"min": self.min, "max": self.max}
        _check_bounds(bounds, 0)

    def checks(self, number: int, subject: str, what: str = "") -> Iterator[Check]:
        """Yield a check of each bound."""
        counted = Reason(code="too_few_calls", subject=subject, actual=number)
        if self.min is not None:
            few = replace(counted, expected=self.min)
            yield f"at least {self.min} {what}", [few] if number < self.min else []
        if self.max is not None:
            many = replace(counted, code="too_many_calls", expected=self.max)
            yield f"at most {self.max} {what}", [many] if number > self.max else []


@attrs.frozen(kw_only=True)
class Repeats:
    """Most times an identical call may be made: ``in_a_row`` and ``in_all``; at least once."""

    in_a_row: int | None = None
    in_all: int | None = None

    def __attrs_post_init__(self) -> None:
        bounds = {"in_a_row": self.in_a_row, "in_all": self.in_all}
        _check_bounds(bounds, 1, ": one call is no repeat")

    def checks(self, calls: Sequence[ToolCall]) -> Iterator[Check]:
        """Yield a check of each bound."""
        marks = [(identity_of(call), call.name) for call in calls]
        runs = [(mark, len(list(group))) for mark, group in groupby(marks)]
        if self.in_a_row is not None:
            yield "repeats in a row", _above(self.in_a_row, "in a row", runs)
        if self.in_all is not None:
            numbers = Counter(marks).items()
            yield "repeats in all", _above(self.in_all, "in all", numbers)


def _above(most: int, message: str, numbers: Iterable[tuple[tuple[Any, str], int]]) -> list[Reason]:
    """Return a reason for each call that is made too often."""
    broken = Reason(code="repeated_call", expected=most, message=message)
    return [
        replace(broken, subject=name, actual=number)
        for (mark, name), number in numbers
        if mark is not None and number > most
    ]


def _with_version(preset: str | None) -> str | None:
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

    Presets are the rules of other tools, with the options they have. ``deepeval/tool_permission``
    takes ``allow`` and ``deny``: exact names, the share of calls. ``waza/tool_constraint`` takes
    ``expect`` and ``deny``: expressions that occur, case ignored, with the arguments ``/command``,
    ``/path`` and ``/skill``. ``promptfoo/step-count`` takes ``calls``, or one glob in ``per_tool``.

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

    needs = frozenset({"calls"})
    compares = frozenset[str]()
    """Of the expectation it reads the forbidden tools alone."""
    metrics = ("policy_checks", "mean")

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
    preset: str | None = attrs.field(default=None, converter=_with_version)

    def __attrs_post_init__(self) -> None:
        """Refuse patterns that cannot be read and options that contradict each other."""
        program = (self.preset or "").partition("/")[0]
        orders = (*self.forbidden_order, *self.required_order)
        if program != "deepeval":
            _call_patterns(chain(self.allow or (), self.deny, self.expect, *orders))
        if not all(orders):
            raise ValueError("a sequence is empty: name at least one pattern")
        if program != "promptfoo":
            _call_patterns(self.per_tool)
        problem = self._contradiction()
        if self.preset is not None:
            problem = self._preset_problem(self.preset)
        if problem is not None:
            raise ValueError(problem)

    def _contradiction(self) -> str | None:
        """Return the contradiction of two rules, None where there is none."""
        denied = set(map(str, self.deny))
        bounds = self.per_tool
        for name in (*map(str, self.expect), *(name for name in bounds if bounds[name].min)):
            if name in denied:
                return f"{name} is denied and must be called"
        for order in self.required_order:
            if order in self.forbidden_order:
                return f"the order {_joined(order)} is both required and forbidden"
        if self.calls is None:
            most = None
        else:
            most = self.calls.max
        number = int(bool(self.expect))
        numbers = [number, *map(len, self.required_order)]
        numbers += [bound.min or 0 for bound in bounds.values()]
        least = max(numbers)
        if most is not None and most < least:
            return f"calls.max is {most}, but other rules ask for at least {least}"
        return None

    def _preset_problem(self, preset: str) -> str | None:
        """Return the option that a preset lacks, or has no place for; None for none."""
        name = preset.partition("@")[0]
        refuse(self, preset, _TAKES[name])
        if name == "promptfoo/step-count":
            per_tool_count = len(self.per_tool)
            is_one = per_tool_count + (self.calls is not None) == 1
            return None if is_one else f"{preset} takes calls, or one glob in per_tool"
        patterns = (*(self.allow or ()), *self.deny, *self.expect)
        if not patterns and self.allow is None:
            return f"{preset} needs {' or '.join(_TAKES[name])}"
        with_arguments = [pattern for pattern in patterns if isinstance(pattern, CallPattern)]
        arguments = [pattern.arguments for pattern in with_arguments]
        pointers = [*chain(*arguments)]
        if name == "deepeval/tool_permission":
            return f"{preset} looks at names alone; leave the arguments out" if pointers else None
        for pointer in pointers:
            if pointer not in _WAZA_POINTERS:
                known = ", ".join(_WAZA_POINTERS)
                return f"waza has patterns for the arguments {known}, not for {pointer}"
        return None

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = sub_agent_grade(sample) or judged_calls(sample, self.count, self.requestor)
        if self.preset is not None:
            if isinstance(calls, Grade):
                grade = calls
            else:
                grade = self._by_preset(self.preset, calls)
            return replace(grade, metadata={"preset": self.preset})
        if isinstance(calls, Grade):
            return calls
        forbidden = sample.expected.forbidden
        for problem in filter(None, map(pattern_problem, forbidden)):
            message = f"expected.forbidden: {problem}"
            return failed(Fault(category="data", code="unusable_pattern", message=message))
        checks = self._checks_of_calls(calls, forbidden)
        checks_of_order = self._checks_of_order(calls, sample.turns)
        return self._graded(chain(checks, checks_of_order), calls)

    def _by_preset(self, preset: str, calls: Sequence[ToolCall]) -> Grade:
        if preset.startswith("deepeval/"):
            return _permission(self.allow, self.deny, calls)
        if preset.startswith("waza/"):
            waza_checks = _waza_checks(self.expect, self.deny, calls)
            return self._graded(waza_checks, calls)
        per_tool = self.per_tool.items()
        glob, bounds = next(iter(per_tool), (None, self.calls))
        return _step_count(bounds or Range(min=0), glob, calls)

    def _checks_of_calls(
        self, calls: Sequence[ToolCall], forbidden: Iterable[str]
    ) -> Iterator[Check]:
        """Yield the checks of allowed, denied and expected calls, and of their numbers."""
        if self.allow is not None:
            patterns = _call_patterns(self.allow)
            others = [call for call in calls if not any(one.matches(call) for one in patterns)]
            yield "allow", _reasons("not_allowed", others, "no allowed pattern fits the call")
        by_name = _by_name((*self.deny, *forbidden))
        for name, pattern in by_name.items():
            fitting = [call for call in calls if pattern.matches(call)]
            reasons = _reasons("denied", fitting, f"calls of {name} are denied")
            yield f"deny {name}", reasons
        for name, pattern in _by_name(self.expect).items():
            message = f"no call of {name}"
            missed = Reason(code="tool_not_called", subject=pattern.tool, message=message)
            yield f"expect {name}", [] if any(map(pattern.matches, calls)) else [missed]
        if self.calls is not None:
            yield from self.calls.checks(len(calls), "", "calls")
        for name, bounds in self.per_tool.items():
            number = sum(map(CallPattern(tool=name).matches, calls))
            yield from bounds.checks(number, name, f"calls of {name}")

    def _checks_of_order(
        self, calls: Sequence[ToolCall], turns: Sequence[Sequence[Message]]
    ) -> Iterator[Check]:
        """Yield the checks of forbidden and required orders, repeats, and late calls."""
        for patterns in map(_call_patterns, self.forbidden_order):
            fitting = _first_in_order(patterns, calls)
            message = f"called in this order: {', '.join(call.name for call in fitting)}"
            is_broken = len(fitting) == len(patterns)
            reasons = _reasons("forbidden_order", fitting[-1:] if is_broken else [], message)
            yield f"forbidden order {_joined(patterns)}", reasons
        for patterns in map(_call_patterns, self.required_order):
            number = len(_first_in_order(patterns, calls))
            missing = [pattern.tool for pattern in patterns[number : number + 1]]
            yield (
                f"required order {_joined(patterns)}",
                [_missing_in_order(tool, number) for tool in missing],
            )
        if self.repeats is not None:
            yield from self.repeats.checks(calls)
        if not self.after_final and turns:
            yield "after final", _after_final(turns)

    def _graded(self, checks: Iterable[Check], calls: Sequence[ToolCall]) -> Grade:
        """Grade a run by the share of its checks that it passes; 0 after a fatal denied call."""
        items = list[Item]()
        reasons = list[Reason]()
        is_fatal = False
        for name, problems in checks:
            broken = list(islice(problems, _MOST_REASONS))
            items.append(Item(id=name, score=float(not broken)))
            reasons += broken
            is_fatal = is_fatal or (self.fatal and bool(broken) and name.startswith("deny "))
        if not items:
            return skipped("no_checks", "no rule of the policy applies to this run")
        passed = sum(item.score == 1.0 for item in items)
        score = 0.0 if is_fatal else passed / len(items)
        return Grade(
            score=score,
            passed=passed == len(items),
            counts={"calls": len(calls), "checks": len(items), "passed": passed},
            items=tuple(items),
            reasons=tuple(reasons),
        )


def _reasons(code: str, calls: Iterable[ToolCall], message: str) -> list[Reason]:
    return [Reason(code=code, subject=call.name, message=message) for call in calls]


def _missing_in_order(tool: str, number: int) -> Reason:
    message = f"no call of {tool} behind {number} call(s) before it"
    return Reason(code="order_missing", subject=tool, message=message)


def _first_in_order(patterns: Sequence[CallPattern], calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Return the first calls that fit the patterns one after the other, others between them.

    Fewer if they end.
    """
    fitting: list[ToolCall] = []
    for call in calls:
        if len(fitting) < len(patterns) and patterns[len(fitting)].matches(call):
            fitting.append(call)
    return fitting


def _after_final(turns: Iterable[Iterable[Message]]) -> Iterator[Reason]:
    """Yield the calls made after an answer without calls, before anybody else has spoken."""
    is_final = False
    for message in chain.from_iterable(turns):
        if message.role == "assistant":
            calls = message.tool_calls
            if is_final:
                yield from _reasons("call_after_final", calls, "the run had been answered before")
            is_answer = not calls and bool(text_of(message.content).strip())
            is_final = is_final or is_answer
        elif message.role not in {"tool", "function"}:
            is_final = False


def _permission(
    allow: Sequence[Pattern] | None, deny: Sequence[Pattern], calls: Sequence[ToolCall]
) -> Grade:
    """Return deepeval's grade: the share of calls of tools that are allowed, by name.

    1 without calls.
    """
    if any(call.arguments is None for call in calls):
        message = "deepeval takes no call whose arguments are no object"
        return failed(Fault(category="data", code="undecodable_arguments", message=message))
    if allow is None:
        allowed = None
    else:
        allowed = set(map(str, allow))
    refused = set(map(str, deny))
    reasons = []
    for call in calls:
        if call.name in refused:
            reason = Reason(code="denied", subject=call.name)
            reasons.append(reason)
        elif allowed is not None and call.name not in allowed:
            reasons.append(Reason(code="not_allowed", subject=call.name))
    right = len(calls) - len(reasons)
    score = right / len(calls) if calls else 1.0
    counts = {"calls": len(calls), "authorised": right}
    return Grade(score=score, passed=score >= 1.0, counts=counts, reasons=tuple(reasons))


def _waza_checks(
    expect: Iterable[Pattern], deny: Iterable[Pattern], calls: Sequence[ToolCall]
) -> Iterator[Check]:
    """Yield the checks of expected and denied calls by the rules of waza."""
    for pattern in _call_patterns(expect):
        missed = Reason(code="tool_not_called", subject=pattern.tool)
        yield f"expect {pattern}", [] if any(map(pattern.occurs, calls)) else [missed]
    for pattern in _call_patterns(deny):
        denied = Reason(code="denied", subject=pattern.tool)
        yield f"deny {pattern}", [denied] if any(map(pattern.occurs, calls)) else []


def _step_count(bounds: Range, glob: str | None, calls: Sequence[ToolCall]) -> Grade:
    """Return promptfoo's grade.

    1 where the number of calls that fit a glob is within the bounds, else 0.
    """
    signs = {"*": ".*", "?": "."}  # any characters but line ends; one of them
    pattern = "".join([signs.get(sign) or re.escape(sign) for sign in glob or "*"])
    matcher = re.compile(pattern, re.IGNORECASE)
    names = [call.name.strip() for call in calls]
    number = len(names)
    if glob is not None:
        number = sum(matcher.fullmatch(name) is not None for name in names)
    broken = [reasons for _, reasons in bounds.checks(number, glob or "")]
    reasons = tuple(chain.from_iterable(broken))
    counts = {"calls": len(calls), "matching": number}
    score = float(not reasons)
    return Grade(score=score, passed=not reasons, counts=counts, reasons=reasons)


class PolicyChecks(MemberShares):
    """Runs within the whole policy, and by check.

    ``kept_rate`` = runs whose grade has passed / graded runs with a verdict, with an interval that
    leaves out one task at a time; None without any. ``checks`` has ``runs``, ``kept`` and ``rate``
    of each item, with its interval.
    """

    figures = (
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
        if isinstance(grade, Grade):
            is_kept = grade.passed is True
        else:
            is_kept = grade.score == 1.0
        return {"runs": 1, "kept": int(is_kept)}

    @override
    def contribution(self, grade: Grade) -> Mapping[str, float] | None:
        if grade.passed is None:
            return None
        return super().contribution(grade)

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        return {"kept_rate": ratio(totals["kept"], totals["runs"])}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, members = self.members(grades)
        figures: dict[str, JSON] = {}
        if not runs.get("runs"):
            figures["kept_rate_reason"] = self.undefined
        checks: dict[str, JSON] = {}
        for check, (sums, rate) in members.items():
            checks[check] = {"runs": sums["runs"], "kept": sums.get("kept", 0), **rate}
        return {**figures, "checks": checks}
