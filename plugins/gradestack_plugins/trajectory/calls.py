"""Calls as these graders count them: how one ended, and which of a run's calls are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Final, Literal

import msgspec

from gradestack import Grade, Grades, Item, Numbers, Sample, ToolCall, skipped
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
        return skipped("calls_not_recorded", "no answer is recorded, so it is not known which calls were made")
    made = [call for call in sample.calls if requestor is None or call.requestor == requestor]
    if count == "attempted":
        return made
    states = [state_of(call) for call in made]
    if "unknown" in states:
        return skipped("execution_not_recorded", "the recording does not say of every call whether it was executed")
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


def added_up(items: Iterable[Item]) -> dict[str, int]:
    """Return the counts of all items of a grade."""
    found = Counter[str]()
    for item in items:
        found.update(item.counts)
    return dict(found)


def numbers_by_tool(grade: Grade, divisor: str, count: Callable[[Mapping[str, int]], int]) -> Numbers | None:
    """Return the counts of a grade, and those of its tools as COUNT, newline, TOOL; each with its divisor."""
    if grade.score is None:
        return None
    found = Counter({**grade.counts, divisor: count(grade.counts)})
    for item in grade.items:
        counts = {**item.counts, divisor: count(item.counts)}
        found.update({f"{name}\n{item.id}": number for name, number in counts.items()})
    return found


def totals_by_tool(grades: Grades) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return the counts of all graded runs, and those of each tool."""
    runs: dict[str, int] = {}
    tools: dict[str, dict[str, int]] = {}
    for name, number in grades.totals.items():
        count, of_tool, tool = name.partition("\n")
        (tools.setdefault(tool, {}) if of_tool else runs)[count] = int(number)
    return runs, tools
