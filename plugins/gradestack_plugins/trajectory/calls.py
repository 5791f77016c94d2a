"""Graders of how calls went: ``tool_success`` and ``repeats``, and what a call is to all graders of this family."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import isfinite
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grade,
    Grader,
    Grades,
    Item,
    Numbers,
    Outcome,
    Reason,
    Sample,
    TaskNumbers,
    ToolCall,
    ratio,
    ratio_interval,
    replace,
    skipped,
    valid_confidence,
)
from gradestack.jsonio import compact, dumps
from gradestack_plugins.readers.chat.results import ERRORS, error_form

State = Literal["ok", "error", "denied", "not_run", "unknown"]
STATES: Final[tuple[State, ...]] = ("ok", "error", "denied", "not_run", "unknown")
Count = Literal["attempted", "executed"]
_encode: Final = msgspec.json.Encoder(order="deterministic").encode
ASSISTANT: Final = "assistant"
"""Whose calls are judged unless somebody else is named: tools and policies are the agent's."""


def state_of(call: ToolCall) -> State:
    """Return how a call ended; where its format has no word for it, a result or an error says that it was executed."""
    if call.status is not None:
        return call.status
    if call.error is not None:
        return "error"
    return "unknown" if call.result is None else "ok"


def judged(sample: Sample, count: Count = "attempted", requestor: str | None = ASSISTANT) -> list[ToolCall] | Grade:
    """Return the calls that count, of one requestor or of all, or the grade of a sample of which they are not known.

    Those that were executed are not known where the recording leaves open of one whether it was.
    """
    if sample.calls is None:
        return skipped("calls_not_recorded", "no answer recorded, so the calls made are unknown")
    made = [call for call in sample.calls if requestor is None or call.requestor == requestor]
    if count == "attempted":
        return made
    states = [state_of(call) for call in made]
    if "unknown" in states:
        return skipped("execution_not_recorded", "not every call's execution is recorded")
    return [call for call, state in zip(made, states, strict=True) if state in {"ok", "error"}]


def identity_of(call: ToolCall) -> str | None:
    """Return a text that calls of one name with the same arguments share; None where they are too deep to compare.

    The order of keys does not matter, nor whether a whole number is written 1 or 1.0; true is not 1.
    """
    try:
        told = [call.name, call.raw_arguments if call.arguments is None else _plain(call.arguments)]
        try:
            return _encode(told).decode()
        except (TypeError, ValueError):  # a lone surrogate, which the fast encoder does not write
            return dumps(told)
    except (RecursionError, TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is float:
        return int(value) if value.is_integer() else value if isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        entries = {}
        for key, each in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            entries[str(key)] = _plain(each)
        return entries
    if not isinstance(value, list | tuple):
        return value
    items = []
    for each in value:
        items.append(_plain(each))  # noqa: PERF401 - likewise
    return items


def refuse(preset: str, given: Mapping[str, Any]) -> None:
    """Refuse options that contradict a preset of another tool; None and empty ones were not given."""
    names = [name for name, value in given.items() if value is not None and value != () and value is not False]
    if names:
        raise ValueError(f"the preset {preset} leaves no choice for {', '.join(names)}; leave out either")


def bad_pattern(text: str) -> str | None:
    """Return why a text is no regular expression."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        return f"{text!r} is no regular expression: {error}"
    return None


def at_pointer(value: Any, pointer: str, default: Any = None) -> Any:
    """Return what stands at a JSON pointer, the default where there is nothing."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch("[0-9]{1,9}", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return default
    return value


def added_up(items: Iterable[Item]) -> dict[str, int]:
    """Return the counts of all items of a grade."""
    found = Counter[str]()
    for item in items:
        found.update(item.counts)
    return dict(found)


def members(grades: Grades) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return the sums of all graded runs, and those of each member, whose names are NUMBER, newline, MEMBER."""
    runs: dict[str, int] = {}
    found: dict[str, dict[str, int]] = {}
    for name, number in grades.totals.items():
        count, of_member, member = name.partition("\n")
        (found.setdefault(member, {}) if of_member else runs)[count] = int(number)
    return runs, found


@attrs.frozen(kw_only=True)
class CallShare(Aggregator):
    """Calls over all graded runs and by tool, with one count's share of others; intervals leave out a task at a time.

    Attributes:
        confidence: Of the intervals, between 0 and 1.
    """

    needs: ClassVar = frozenset({"items"})
    share: ClassVar[str]
    count: ClassVar[str]
    divisor: ClassVar[str]
    divisors: ClassVar[tuple[str, ...]]
    """The counts whose sum is the divisor."""
    undefined: ClassVar[str]

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    def shown(self, counts: Mapping[str, int]) -> dict[str, JSON]:
        """Return counts as they are written."""
        return dict(counts)

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        found = Counter(self._with_divisor(grade.counts))
        for item in grade.items:
            found.update({f"{name}\n{item.id}": number for name, number in self._with_divisor(item.counts).items()})
        return found

    def _with_divisor(self, counts: Mapping[str, int]) -> dict[str, int]:
        return {**counts, self.divisor: sum([counts.get(name, 0) for name in self.divisors])}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        total, tools = members(grades)
        above, below = f"{self.count}\n", f"{self.divisor}\n"
        intervals = member_intervals(grades.task_numbers()[0], above, below, confidence=self.confidence)
        found = self.shown(total)
        if not total.get(self.divisor):
            found[f"{self.share}_reason"] = self.undefined
        by_tool: dict[str, JSON] = {}
        for tool, counts in sorted(tools.items()):
            by_tool[tool] = {
                **self.shown(counts),
                self.share: ratio(counts.get(self.count, 0), counts[self.divisor]),
                f"{self.share}_interval": {**intervals.get(tool, {"reason": self.undefined})},
            }
        return {**found, "tools": by_tool}


def member_intervals(
    tasks: Mapping[TaskNumbers, int], above: str, below: str, *, confidence: float = 0.95
) -> dict[str, JSON]:
    """Return the intervals of the ratios of members, of the rate of each tool for instance.

    ``above`` and ``below`` are what the names of dividends and divisors begin with; the member's name follows.
    """
    cells: dict[str, Counter[tuple[float, ...]]] = {}
    for numbers, times in tasks.items():
        known = dict(numbers)
        for name, divisor in numbers:
            if name.startswith(below):
                member = name.removeprefix(below)
                cells.setdefault(member, Counter())[divisor, known.get(above + member, 0)] += times
    return {member: {**ratio_interval(each, confidence=confidence)} for member, each in cells.items()}


_SHOWN = 300
"""Characters of an error's text kept in a reason."""
_CODES: Final = {"error": "call_failed", "denied": "call_denied", "not_run": "call_not_run", "unknown": "no_result"}


def _checked(_: object, field: attrs.Attribute[tuple[str, ...]], patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if problem := bad_pattern(pattern):
            raise ValueError(f"{field.name}: {problem}")


@attrs.frozen(kw_only=True)
class ToolSuccess(Grader):
    """Share of the executed calls that did not end in an error, in [0, 1].

        score = ok / (ok + error)

    Calls that were denied, did not run, or of which no result was recorded were not executed and count in neither.
    Skipped without recorded calls, without any call, and where no call has a recorded result.

    A call failed when its format says so (``status``, ``is_error``). Otherwise its result is read by the table
    ``errors@1``: JSON with ``success: false``, ``error``, ``status: failed`` or an HTTP status of 400 to 599, and text
    that begins as an error does. Each reason names the rule. ``not_errors`` and ``errors`` go before the table.

    ``counts`` has ``calls``, each state (``ok``, ``error``, ``denied``, ``not_run``, ``unknown``), ``retried`` (errors
    after which the same tool was called again) and ``recovered`` (errors after which it was called with success).
    ``items`` holds the same by tool. Both profiles are the same.

    Attributes:
        errors: Regular expressions; a result in which one occurs is an error.
        not_errors: Regular expressions; a result in which one occurs is none, whatever else applies.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls"})
    aggregators: ClassVar[tuple[str, ...]] = ("tool_outcomes", "mean")
    words: ClassVar[tuple[str, str]] = ("without failed calls", "with failed calls")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    errors: tuple[str, ...] = attrs.field(default=(), validator=_checked)
    not_errors: tuple[str, ...] = attrs.field(default=(), validator=_checked)

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = sample.calls
        if calls is None:
            return skipped("calls_not_recorded", "no answer recorded, so the calls made are unknown")
        if not calls:
            return skipped("no_calls", "the run made no call")
        by_tool: dict[str, list[State]] = {}
        reasons = []
        for call in calls:
            state, message = self._ended(call)
            by_tool.setdefault(call.name, []).append(state)
            if state != "ok":
                reasons.append(Reason(code=_CODES[state], subject=call.name, message=message[:_SHOWN]))
        items = tuple(_item(name, states) for name, states in by_tool.items())
        counts = added_up(items)
        executed = counts["ok"] + counts["error"]
        if not executed:
            found = skipped("execution_not_recorded", "no call has a recorded result")
            return replace(found, counts=counts, reasons=(*found.reasons, *reasons))
        return Grade(score=counts["ok"] / executed, counts=counts, items=items, reasons=tuple(reasons))

    def _ended(self, call: ToolCall) -> tuple[State, str]:
        """Return how a call ended; of an error its text, behind the rule that found it."""
        state, error = state_of(call), call.error or ""
        kind = call.error_type or ""
        by_table = kind.startswith(ERRORS)
        if state not in {"ok", "error"} or (state == "error" and not by_table):
            return state, error
        if self.errors or self.not_errors:
            text = call.result if isinstance(call.result, str) else compact(call.result)
            if any(re.search(pattern, text) for pattern in self.not_errors):
                return "ok", ""
            for pattern in self.errors:
                if re.search(pattern, text):
                    return "error", f"errors {pattern}: {text}"
        if call.status is None and (form := error_form(call.result)) is not None:
            return "error", f"{form.type}: {form.message}"
        return state, f"{kind}: {error}" if by_table else ""


def _item(name: str, states: Sequence[State]) -> Item:
    counts: dict[str, int] = dict.fromkeys(("calls", *STATES, "retried", "recovered"), 0)
    counts["calls"] = len(states)
    succeeds = called = False
    for state in reversed(states):
        counts[state] += 1
        if state == "error":
            counts["retried"] += called
            counts["recovered"] += succeeds
        called, succeeds = True, succeeds or state == "ok"
    executed = counts["ok"] + counts["error"]
    if not executed:
        return Item(id=name, outcome=Outcome.SKIPPED, counts=counts)
    return Item(id=name, score=counts["ok"] / executed, counts=counts)


_NONE, _RATE = "no call was executed", "ok / (ok + error)"


@attrs.frozen(kw_only=True)
class ToolOutcomes(CallShare):
    """Calls by outcome, over all runs and by tool.

    Every count of the graded runs' grades is added up, and for each tool those of its items. ``success_rate`` = ok /
    (ok + error), over calls, not over runs; None where no call was executed. Its interval leaves out one task at a
    time.
    """

    version: ClassVar[str] = "2"
    figures: ClassVar = (
        Figure("success_rate", "Successful calls", about=_RATE, divisor="executed", undefined=_NONE),
        Figure("tools.{tool}.success_rate", "Successful calls of a tool", about=_RATE, divisor="executed"),
    )
    share, count, divisor, undefined = "success_rate", "ok", "executed", _NONE
    divisors = ("ok", "error")

    @override
    def estimate(self, ok: float, executed: float) -> Mapping[str, float | None]:
        return {"success_rate": ratio(ok, executed)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs = sum(times for grade, times in grades.counted if grade.score is not None)
        return {"executed": 0, "runs": runs, **super().compute(grades)}


_NAMES: Final = 5


@attrs.frozen(kw_only=True)
class CallRepeats(Grader):
    """Share of the calls that are not identical to the call before them, in [0, 1]; ``passed`` without a loop.

        score = (calls - repeats) / calls

    Calls are identical when tool and arguments are, whatever the order of keys. A *loop* is a block of up to ``period``
    calls made at least ``loop`` times in a row: one call, or two in turns, and so on. ``counts`` has ``calls``,
    ``distinct``, ``repeats`` (identical to the call before), ``longest`` (the longest run of identical calls), and
    ``loops`` with ``looped``, the calls within one; reasons name each loop and how often it went round. Skipped without
    recorded calls, and without any. Both profiles are the same.

    Attributes:
        loop: How many rounds are a loop, at least 2.
        period: The most calls of a round.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls"})
    aggregators: ClassVar[tuple[str, ...]] = ("loops", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    loop: int = 3
    period: int = 4
    count: Count = "attempted"
    requestor: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.loop < 2 or self.period < 1:
            raise ValueError("loop is at least 2 rounds and period at least 1 call")

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = judged(sample, self.count, self.requestor)
        if isinstance(calls, Grade):
            return calls
        if not calls:
            return skipped("no_calls", "the run made no call")
        marks = [mark if (mark := identity_of(call)) is not None else f"#{n}" for n, call in enumerate(calls)]
        repeats = sum(left == right for left, right in pairwise(marks))
        loops = list(self._loops(marks))
        counts = {
            "calls": len(calls),
            "distinct": len(set(marks)),
            "repeats": repeats,
            "longest": max(len(list(group)) for _, group in groupby(marks)),
            "loops": len(loops),
            "looped": sum(end - start for start, end, _ in loops),
        }
        reasons = tuple(_reason(calls, start, end, period) for start, end, period in loops)
        return Grade(score=(len(calls) - repeats) / len(calls), passed=not loops, counts=counts, reasons=reasons)

    def _loops(self, marks: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Yield the loops: first call, one past the last, calls of a round; shorter rounds first tried."""
        start = 0
        while start < len(marks):
            for period in range(1, self.period + 1):
                end = start + period
                while end < len(marks) and marks[end] == marks[end - period]:
                    end += 1
                if end - start >= self.loop * period:
                    yield start, end, period
                    start = end
                    break
            else:
                start += 1


def _reason(calls: Sequence[ToolCall], start: int, end: int, period: int) -> Reason:
    names = [call.name for call in calls[start : start + min(period, _NAMES)]]
    message = f"{', '.join(names)}: {(end - start) // period} times in a row, from call {start}"
    return Reason(code="loop", subject=calls[start].name, actual=(end - start) // period, message=message)


@attrs.frozen(kw_only=True)
class Loops(Aggregator):
    """Runs with a loop, repeated calls, and the longest run of identical ones.

    ``loop_rate`` = runs with a loop / graded runs; ``repeat_share`` = repeats / calls over all runs. Intervals leave
    out one task at a time; None without any run.

    Attributes:
        confidence: Of the intervals, between 0 and 1.
    """

    figures: ClassVar = (
        Figure("loop_rate", "Runs with a loop", better="lower", about="runs with a loop / graded runs"),
        Figure("repeat_share", "Repeated calls", better="lower", about="repeats / calls"),
    )

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        counts = grade.counts
        looping = int(counts.get("loops", 0) > 0)
        return {"runs": 1, "looping": looping, "calls": counts.get("calls", 0), "repeats": counts.get("repeats", 0)}

    @override
    def estimate(self, runs: float, looping: float, calls: float, repeats: float) -> Mapping[str, float | None]:
        return {"loop_rate": ratio(looping, runs), "repeat_share": ratio(repeats, calls)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        below = {"loop_rate": "runs", "repeat_share": "calls"}
        lacking = [name for name, divisor in below.items() if not grades.totals.get(divisor)]
        reasons: dict[str, JSON] = {f"{name}_reason": "no run made a call" for name in lacking}
        longest = [grade.counts.get("longest", 0) for grade, _ in grades.counted if grade.score is not None]
        return {**reasons, "longest": max(longest, default=0)}
