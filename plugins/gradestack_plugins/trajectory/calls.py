"""Calls as these graders count them: how one ended, and which of a run's calls are judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Grade,
    Grades,
    Item,
    Numbers,
    Sample,
    TaskNumbers,
    ToolCall,
    ratio,
    ratio_interval,
    skipped,
    valid_confidence,
)
from gradestack.jsonio import dumps

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
