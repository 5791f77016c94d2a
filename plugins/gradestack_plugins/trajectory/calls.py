"""Calls as the graders of the family see them: which count, how they ended, which are equal."""

from __future__ import annotations

import abc
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Grade,
    Grades,
    Item,
    Numbers,
    Outcome,
    Sample,
    ToolCall,
    compile_later,
    ratio,
    ratio_interval,
    skipped,
)
from gradestack_plugins.readers.chat.unread import calls_unknown
from gradestack_plugins.statistics.mean import IntervalAggregator

State = Literal["ok", "error", "denied", "not_run", "unknown"]
Count = Literal["attempted", "executed"]
ASSISTANT: Final = "assistant"
"""Whose calls are judged unless somebody else is named: tools and policies are the agent's."""
SUB_AGENT: Final = "sub_agent"
"""Why a run is not counted in rates of runs: it is a part of another."""


def sub_agent_grade(sample: Sample) -> Grade | None:
    """Return the skipped grade for a sub-agent's run; None for any other run.

    Readers say whose sub-agent it was in the facet ``subagent_of``.
    """
    parent = sample.facets.get("subagent_of")
    if parent is None:
        return None
    return skipped(SUB_AGENT, f"a sub-agent of {parent}: not counted in rates of runs")


def is_of_sub_agent(grade: Grade) -> bool:
    """Return whether a grade is of a sub-agent's run, whose counts count."""
    return any(reason.code == SUB_AGENT for reason in grade.reasons)


def state_of(call: ToolCall) -> State:
    """Return the state in which a call ended.

    Where its format has no word for it, a result or an error says that it was executed.
    """
    if call.status is not None:
        return call.status
    if call.error is not None:
        return "error"
    return "unknown" if call.result is None else "ok"


def judged_calls(
    sample: Sample, count: Count = "attempted", requestor: str | None = ASSISTANT
) -> list[ToolCall] | Grade:
    """Return the calls that count, those of one requestor or of all.

    A grade is returned instead for a sample whose calls are not known.
    """
    if sample.calls is None:
        return calls_unknown(sample)
    calls = [call for call in sample.calls if requestor is None or call.requestor == requestor]
    if count == "attempted":
        return calls
    if any(state_of(call) == "unknown" for call in calls):
        return skipped("execution_not_recorded", "not every call's execution is recorded")
    return [call for call in calls if state_of(call) in {"ok", "error"}]


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_sorted: Final = json.JSONEncoder(sort_keys=True, default=dict).encode
_plain: Final = json.JSONDecoder(parse_float=_number, parse_constant=str).decode
_FLOAT: Final = compile_later(rb"\d[.e]")
_NOT_ENCODED: Final = (TypeError, ValueError, OverflowError)
"""Errors of texts with half a character, and of huge integers."""


def identity_of(call: ToolCall) -> str | bytes | None:
    """Return a text that calls of one name with the same arguments share.

    None where they are too deep to compare.

    The order of keys does not matter, nor whether a whole number is written 1 or 1.0; true is not
    1.
    """
    content = [call.name, call.raw_arguments if call.arguments is None else call.arguments]
    try:
        text = _encoded(content)
        # null may be no number
        if isinstance(text, bytes) and b"null" not in text and not _FLOAT.search(text):
            return text
        return _encoded(_plain(_sorted(content)))
    except (RecursionError, *_NOT_ENCODED):
        return None


def _encoded(content: Any) -> str | bytes:
    """Return the JSON of some content, keys in order; text where it cannot be in bytes."""
    try:
        return _encode(content)
    except _NOT_ENCODED:
        return _sorted(content)


def refuse(grader: Any, preset: str, takes: Collection[str]) -> None:
    """Refuse options that a preset of another tool does not take."""
    default = type(grader)()
    free = {"preset", "count", "requestor", *takes}
    fields = attrs.fields(type(grader))
    names = [field.name for field in fields if field.name not in free]
    stated = [name for name in names if getattr(grader, name) != getattr(default, name)]
    if stated:
        problem = f"the preset {preset} leaves no choice for {', '.join(stated)}"
        raise ValueError(f"{problem}; leave out either")


def pattern_problem(text: str) -> str | None:
    """Return why a text is no regular expression, None of one that is."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        return f"{text!r} is no regular expression: {error}"
    return None


def value_at(value: Any, pointer: str, default: Any = None) -> Any:
    """Return the value at a JSON pointer, the default where there is nothing."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
            continue
        is_index = isinstance(value, list) and re.fullmatch("[0-9]{1,9}", key) is not None
        if not is_index or int(key) >= len(value):
            return default
        value = value[int(key)]
    return value


def add_counts(items: Iterable[Item]) -> dict[str, int]:
    """Return the sums of the counts of all items of a grade."""
    total = Counter[str]()
    for item in items:
        total.update(item.counts)
    return dict(total)


def share_item(name: str, counts: dict[str, int], above: int, below: int) -> Item:
    """Return the calls of one tool, with their share.

    Skipped where there is nothing to divide by.
    """
    if not below:
        return Item(id=name, outcome=Outcome.SKIPPED, counts=counts)
    score = above / below
    return Item(id=name, score=score, counts=counts)


Counts = dict[str, int]
Members = dict[str, tuple[Counts, dict[str, JSON]]]
"""Member -> its sums, and its share with the interval."""


class MemberShares(IntervalAggregator):
    """One count's share of another, over all graded runs and by tool, check or other item of a
    grade.
    """

    above: ClassVar[str]
    below: ClassVar[str]
    share: ClassVar[str]
    undefined: ClassVar[str]

    @abc.abstractmethod
    def counts(self, grade: Grade | Item) -> Mapping[str, int]:
        """Return the numbers of a grade or an item, ``above`` and ``below`` among them."""

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None and not is_of_sub_agent(grade):
            return None
        total = Counter(self.counts(grade))
        for item in grade.items:
            counts = self.counts(item)
            total.update({f"{name}\n{item.id}": number for name, number in counts.items()})
        return total

    def members(self, grades: Grades) -> tuple[Counts, Members]:
        """Return the sums over all graded runs, and the figures of each member.

        Returns:
            Count -> sum over the runs.
            Member (a tool, say) -> its sums, and its share with an interval.
        """
        runs: Counts = {}
        sums: dict[str, Counts] = {}
        for name, number in sorted(grades.totals.items()):
            count, is_of_member, member = name.partition("\n")
            counts = sums.setdefault(member, {}) if is_of_member else runs
            counts[count] = int(number)
        tasks: dict[str, Counter[tuple[float, ...]]] = {member: Counter() for member in sums}
        for numbers, times in grades.task_numbers()[0].items():
            of_task = dict(numbers)
            for name, divisor in numbers:
                count, is_of_member, member = name.partition("\n")
                if is_of_member and count == self.below:
                    dividend = of_task.get(f"{self.above}\n{member}", 0)
                    tasks[member][divisor, dividend] += times
        return runs, {member: self._member(sums[member], tasks[member]) for member in sorted(sums)}

    def _member(
        self, counts: Counts, tasks: Counter[tuple[float, ...]]
    ) -> tuple[Counts, dict[str, JSON]]:
        interval: JSON = {"reason": self.undefined}
        if tasks:
            interval = {**ratio_interval(tasks, confidence=self.confidence)}
        count = counts[self.below]
        share = ratio(counts.get(self.above, 0), count)
        return counts, {self.share: share, f"{self.share}_interval": interval}


class CallShares(MemberShares):
    """Calls over all graded runs and by tool; ``below`` is the sum of several counts."""

    summands: ClassVar[tuple[str, ...]]

    def shown(self, counts: Mapping[str, int]) -> dict[str, JSON]:
        """Return counts as they are written."""
        return dict(counts)

    @override
    def counts(self, grade: Grade | Item) -> Mapping[str, int]:
        below = sum([grade.counts.get(name, 0) for name in self.summands])
        return {self.above: 0, **grade.counts, self.below: below}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, members = self.members(grades)
        figures = self.shown(runs)
        if not runs.get(self.below):
            figures[f"{self.share}_reason"] = self.undefined
        figures["tools"] = {
            tool: {**self.shown(counts), **share} for tool, (counts, share) in members.items()
        }
        return figures
