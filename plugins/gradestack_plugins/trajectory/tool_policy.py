"""Grader ``tool_policy``, calls against rules of one's own or of other tools, and aggregator ``policy_checks``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Fault,
    Figure,
    Grade,
    Grader,
    Grades,
    Item,
    Message,
    Numbers,
    Outcome,
    Reason,
    Sample,
    ToolCall,
    failed,
    member_intervals,
    preset_version,
    ratio,
    replace,
    skipped,
    valid_confidence,
)
from gradestack.jsonio import compact
from gradestack_plugins.readers.chat import text_of
from gradestack_plugins.trajectory.calls import ASSISTANT, Count, identity_of, judged, refuse

PRESETS: Final = {
    "deepeval/tool_permission": "4.3.1",
    "waza/tool_constraint": "091a1f9",
    "promptfoo/step-count": "0.121.20",
}
TAKES: Final = {
    "deepeval/tool_permission": ("allow", "deny"),
    "waza/tool_constraint": ("expect", "deny"),
    "promptfoo/step-count": ("calls", "per_tool"),
}
"""Preset -> the options it has."""
_WAZA_ARGUMENTS: Final = ("command", "path", "skill")
_ABSENT: Final = object()


@attrs.frozen(kw_only=True)
class CallPattern:
    """What a call looks like: its tool's name, and arguments by JSON pointer.

    Attributes:
        tool: Regular expression that the whole name fits.
        arguments: JSON pointer -> regular expression that occurs in the value; of what is no text, in its JSON. A call
            without the argument does not fit.
    """

    tool: str
    arguments: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for pointer, text in (("", self.tool), *self.arguments.items()):
            if pointer and not pointer.startswith("/"):
                raise ValueError(f"{pointer!r} is no JSON pointer: it begins with a slash, /{pointer} for one argument")
            try:
                re.compile(text)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from error

    def __str__(self) -> str:
        """Return it as items name it."""
        return f"{self.tool} {compact(self.arguments)}" if self.arguments else self.tool


Pattern = str | CallPattern
"""A name alone, or with arguments."""


def whole(patterns: Iterable[Pattern]) -> tuple[CallPattern, ...]:
    """Return patterns that may be written as a name alone."""
    return tuple(CallPattern(tool=each) if isinstance(each, str) else each for each in patterns)


def fits(pattern: CallPattern, call: ToolCall) -> bool:
    """Return whether a call looks like a pattern."""
    if re.fullmatch(pattern.tool, call.name) is None:
        return False
    for pointer, text in pattern.arguments.items():
        value = _at(call.arguments, pointer)
        if value is _ABSENT or re.search(text, value if isinstance(value, str) else compact(value)) is None:
            return False
    return True


def _at(value: Any, pointer: str) -> Any:
    """Return what stands at a JSON pointer, a mark of its own where nothing does."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _ABSENT
    return value


def _in_order(patterns: Sequence[CallPattern], calls: Iterable[ToolCall]) -> Iterator[ToolCall]:
    """Yield the first calls that fit the patterns one after the other, others between them; fewer if they end."""
    waiting = iter(patterns)
    wanted = next(waiting, None)
    for call in calls:
        if wanted is None:
            return
        if fits(wanted, call):
            yield call
            wanted = next(waiting, None)


def _text_at(arguments: JSON, name: str) -> str:
    """Return a text argument, the empty text for anything else."""
    value = _at(arguments, f"/{name}")
    return value if isinstance(value, str) else ""


@attrs.frozen(kw_only=True)
class Range:
    """How often: ``min`` and ``max``, both included."""

    min: int | None = None
    max: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.min is None and self.max is None:
            raise ValueError("give min, max, or both")
        if (self.min or 0) < 0 or (self.max or 0) < 0:
            raise ValueError("min and max are at least 0")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")


@attrs.frozen(kw_only=True)
class Repeats:
    """How often an identical call may be made: ``in_a_row`` and ``in_all``; at least once."""

    in_a_row: int | None = None
    in_all: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.in_a_row is None and self.in_all is None:
            raise ValueError("give in_a_row, in_all, or both")
        if min(each for each in (self.in_a_row, self.in_all) if each is not None) < 1:
            raise ValueError("in_a_row and in_all are at least 1: one call is no repeat")
        if self.in_a_row is not None and self.in_all is not None and self.in_a_row > self.in_all:
            raise ValueError(f"in_a_row {self.in_a_row} is above in_all {self.in_all}")


_MOST_REASONS: Final = 20
"""Of one check."""
_RULES: Final = ("allow", "deny", "expect", "calls", "per_tool", "forbidden_order", "required_order", "repeats")


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
        """Return what a preset lacks, or has no place for."""
        name = preset.partition("@")[0]
        given = {each: getattr(self, each) for each in _RULES if each not in TAKES[name]}
        given |= {"per_tool": self.per_tool or None} if "per_tool" in given else {}
        given |= {"allow": True} if "allow" in given and self.allow is not None else {}
        refuse(preset, {**given, "after_final": not self.after_final, "fatal": self.fatal})
        if name == "promptfoo/step-count":
            number = len(self.per_tool) + (self.calls is not None)
            return None if number == 1 else f"{preset} takes calls, or one glob in per_tool"
        patterns = (*(self.allow or ()), *self.deny, *self.expect)
        if name == "waza/tool_constraint":
            return _waza_problem(whole(patterns)) if patterns else f"{preset} needs expect or deny"
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
                re.compile(text)
            except (re.error, RecursionError, OverflowError) as error:
                message = f"expected.forbidden: {text!r} is no regular expression: {error}"
                return failed(Fault(category="data", code="unusable_pattern", message=message))
        return self._graded([*self._checks(sample, calls, forbidden)], calls)

    def _by_preset(self, preset: str, calls: Sequence[ToolCall]) -> Grade:
        if preset.startswith("deepeval/"):
            return _permission(self.allow, self.deny, calls)
        if preset.startswith("waza/"):
            return _constraint(whole(self.expect), whole(self.deny), calls)
        glob, bounds = next(iter(self.per_tool.items()), (None, self.calls))
        return _step_count(bounds or Range(min=0), glob, calls)

    def _checks(
        self, sample: Sample, calls: Sequence[ToolCall], forbidden: Iterable[str]
    ) -> Iterator[tuple[str, Iterator[Reason]]]:
        """Yield the checks: the name of each, and why it is broken."""
        if self.allow is not None:
            yield "allow", _not_allowed(whole(self.allow), calls)
        for pattern in _once(whole((*self.deny, *forbidden))):
            yield f"deny {pattern}", _denied(pattern, calls)
        for pattern in _once(whole(self.expect)):
            yield f"expect {pattern}", _not_called(pattern, calls)
        if self.calls is not None:
            yield from _bounds("calls", self.calls, calls, "")
        for name, bounds in self.per_tool.items():
            own = CallPattern(tool=name)
            yield from _bounds(f"calls of {name}", bounds, [call for call in calls if fits(own, call)], name)
        for sequence in self.forbidden_order:
            yield f"forbidden order {_shown(sequence)}", _forbidden_order(sequence, calls)
        for sequence in self.required_order:
            yield f"required order {_shown(sequence)}", _out_of_order(sequence, calls)
        if self.repeats is not None and self.repeats.in_a_row is not None:
            yield "repeats in a row", _repeated_in_a_row(self.repeats.in_a_row, calls)
        if self.repeats is not None and self.repeats.in_all is not None:
            yield "repeats in all", _repeated_in_all(self.repeats.in_all, calls)
        if not self.after_final and sample.turns:
            yield "after final", _after_final(sample.turns)

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
        yield f"at least {bounds.min} {name}", _too_few(bounds.min, calls, of)
    if bounds.max is not None:
        yield f"at most {bounds.max} {name}", _too_many(bounds.max, calls, of)


def _not_allowed(allowed: Sequence[CallPattern], calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the calls that fit none of the patterns."""
    for call in calls:
        if not any(fits(pattern, call) for pattern in allowed):
            yield Reason(code="not_allowed", subject=call.name, message="no allowed pattern fits the call")


def _denied(pattern: CallPattern, calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the calls that fit a pattern that none may fit."""
    for call in calls:
        if fits(pattern, call):
            yield Reason(code="denied", subject=call.name, message=f"calls of {pattern} are denied")


def _not_called(pattern: CallPattern, calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield a reason where no call fits a pattern that one must fit."""
    if not any(fits(pattern, call) for call in calls):
        yield Reason(code="tool_not_called", subject=pattern.tool, message=f"no call of {pattern}")


def _too_few(least: int, calls: Sequence[ToolCall], of: str) -> Iterator[Reason]:
    """Yield a reason where there are fewer calls."""
    if len(calls) < least:
        yield Reason(code="too_few_calls", subject=of, expected=least, actual=len(calls))


def _too_many(most: int, calls: Sequence[ToolCall], of: str) -> Iterator[Reason]:
    """Yield a reason where there are more calls."""
    if len(calls) > most:
        yield Reason(code="too_many_calls", subject=of, expected=most, actual=len(calls))


def _out_of_order(sequence: Sequence[Pattern], calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the first pattern of a sequence that no call fits behind those before it."""
    patterns = whole(sequence)
    met = len(list(_in_order(patterns, calls)))
    if met < len(patterns):
        missed = patterns[met].tool
        yield Reason(
            code="order_missing", subject=missed, message=f"no call of {missed} behind {met} call(s) before it"
        )


def _forbidden_order(sequence: Sequence[Pattern], calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield a reason where calls fit a sequence, whatever stands between them."""
    patterns = whole(sequence)
    found = list(_in_order(patterns, calls))
    if len(found) == len(patterns):
        names = ", ".join(call.name for call in found)
        yield Reason(code="forbidden_order", subject=found[-1].name, message=f"called in this order: {names}")


def _repeated_in_a_row(most: int, calls: Iterable[ToolCall]) -> Iterator[Reason]:
    """Yield the runs of identical calls that are longer."""
    for identity, group in groupby(calls, key=identity_of):
        run = list(group)
        if identity is not None and len(run) > most:
            yield Reason(code="repeated_call", subject=run[0].name, expected=most, actual=len(run), message="in a row")


def _repeated_in_all(most: int, calls: Sequence[ToolCall]) -> Iterator[Reason]:
    """Yield the calls that are made more often, wherever they stand."""
    known = [(identity, call.name) for call in calls if (identity := identity_of(call)) is not None]
    for (_, name), number in Counter(known).items():
        if number > most:
            yield Reason(code="repeated_call", subject=name, expected=most, actual=number, message="in all")


def _after_final(turns: Iterable[Iterable[Message]]) -> Iterator[Reason]:
    """Yield the calls made after the agent has given an answer without calls, before anybody else spoke."""
    final = False
    for message in (message for turn in turns for message in turn):
        if message.role == "assistant":
            if message.tool_calls and final:
                for call in message.tool_calls:
                    yield Reason(code="call_after_final", subject=call.name, message="the run had been answered before")
            final = final or (not message.tool_calls and bool(text_of(message.content).strip()))
        elif message.role not in {"tool", "function"}:
            final = False


def _waza_problem(patterns: Sequence[CallPattern]) -> str | None:
    """Return what waza has no pattern for: arguments other than three, at the top."""
    for pointer in (pointer for each in patterns for pointer in each.arguments):
        if pointer.removeprefix("/") not in _WAZA_ARGUMENTS:
            named = ", ".join(f"/{name}" for name in _WAZA_ARGUMENTS)
            return f"waza has patterns for the arguments {named}, not for {pointer}"
    return None


def _permission(allow: Sequence[Pattern] | None, deny: Sequence[Pattern], calls: Sequence[ToolCall]) -> Grade:
    """Return deepeval's grade: the share of calls of tools that are allowed, by name; 1 without calls."""
    if any(call.arguments is None for call in calls):
        message = "deepeval takes no call whose arguments are no object"
        return failed(Fault(category="data", code="undecodable_arguments", message=message))
    allowed, refused = None if allow is None else set(map(_name, allow)), set(map(_name, deny))
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


def _name(pattern: Pattern) -> str:
    return pattern if isinstance(pattern, str) else pattern.tool


def _constraint(expect: Sequence[CallPattern], deny: Sequence[CallPattern], calls: Sequence[ToolCall]) -> Grade:
    """Return waza's grade: passed checks / checks; patterns occur in names and arguments, case ignored."""
    items, reasons = [], []
    for code, wanted, patterns in (("tool_not_called", True, expect), ("denied", False, deny)):
        for pattern in patterns:
            found = any(_waza_fits(pattern, call) for call in calls)
            items.append(Item(id=f"{'expect' if wanted else 'deny'} {pattern}", score=float(found is wanted)))
            if found is not wanted:
                reasons.append(Reason(code=code, subject=pattern.tool))
    passed = len(items) - len(reasons)
    counts = {"calls": len(calls), "checks": len(items), "passed": passed}
    score = passed / len(items)
    return Grade(score=score, passed=not reasons, counts=counts, items=tuple(items), reasons=tuple(reasons))


def _waza_fits(pattern: CallPattern, call: ToolCall) -> bool:
    if re.search(pattern.tool.strip(), call.name, re.IGNORECASE) is None:
        return False
    return all(
        not text or re.search(text, _text_at(call.arguments, pointer.removeprefix("/")), re.IGNORECASE)
        for pointer, text in pattern.arguments.items()
    )


def _step_count(bounds: Range, glob: str | None, calls: Sequence[ToolCall]) -> Grade:
    """Return promptfoo's grade: 1 where the number of calls that fit a glob is within the bounds, else 0."""
    number = len(calls) if glob is None else sum(_glob(glob).fullmatch(call.name.strip()) is not None for call in calls)
    low = bounds.min is not None and number < bounds.min
    high = bounds.max is not None and number > bounds.max
    code, bound = ("too_few_calls", bounds.min) if low else ("too_many_calls", bounds.max)
    broken = low or high
    reasons = (Reason(code=code, subject=glob or "", expected=bound, actual=number),) if broken else ()
    counts = {"calls": len(calls), "matching": number}
    return Grade(score=float(not broken), passed=not broken, counts=counts, reasons=reasons)


def _glob(text: str) -> re.Pattern[str]:
    """Return a glob of promptfoo's: ``*`` any characters but line ends, ``?`` one of them, case ignored."""
    return re.compile("".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in text), re.IGNORECASE)


_RUNS, _KEPT = "runs ", "kept "


@attrs.frozen(kw_only=True)
class PolicyChecks(Aggregator):
    """Runs that keep a whole policy, and each of its checks.

    ``kept_rate`` = runs whose grade has passed / graded runs with a verdict, with an interval that leaves out one task
    at a time; None without any. ``checks`` has ``runs``, ``kept`` and ``rate`` of each item, with its interval.

    Attributes:
        confidence: Of the interval, between 0 and 1.
    """

    version: ClassVar[str] = "1"
    figures: ClassVar = (
        Figure("kept_rate", "Runs that keep the policy", about="runs that passed / runs with a verdict"),
        Figure("checks.{check}.rate", "Runs that keep a check", about="runs that keep it / runs with a verdict"),
    )
    needs: ClassVar = frozenset({"items"})

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None or grade.passed is None:
            return None
        found = {"runs": 1, "kept": int(grade.passed)}
        for item in grade.items:
            for name, number in ((_RUNS, 1), (_KEPT, int(item.score == 1.0))):
                found[name + item.id] = found.get(name + item.id, 0) + number
        return found

    @override
    def estimate(self, runs: float, kept: float) -> Mapping[str, float | None]:
        return {"kept_rate": ratio(kept, runs)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        totals = grades.totals
        names = sorted(name.removeprefix(_RUNS) for name in totals if name.startswith(_RUNS))
        intervals = member_intervals(grades.task_numbers()[0], _KEPT, _RUNS, confidence=self.confidence)
        checks: dict[str, JSON] = {}
        for name in names:
            runs, kept = int(totals[_RUNS + name]), int(totals.get(_KEPT + name, 0))
            checks[name] = {"runs": runs, "kept": kept, "rate": kept / runs, "rate_interval": {**intervals[name]}}
        return {**({} if totals.get("runs") else {"kept_rate_reason": "no run has a verdict"}), "checks": checks}
