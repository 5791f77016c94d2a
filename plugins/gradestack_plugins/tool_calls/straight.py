"""The straight way to the grade of a run that repeats what is expected, call by call: most runs do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from gradestack import JSON, ExpectedCall, Grade, Item, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.account import COUNTS
from gradestack_plugins.tool_calls.comparison import alike, pointers


def straight(
    expected: Sequence[ExpectedCall],
    made: Sequence[ToolCall],
    tools: Sequence[ToolSpec] | None,
    metadata: Mapping[str, JSON],
) -> Grade | None:
    """Return the grade of a run whose calls are those expected, in their order; None where that takes a closer look.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        tools: The tools the run had.
        metadata: Of the grade.
    """
    if len(expected) != len(made) or not made:
        return None
    items, leaves = [], 0
    for index, (call, other) in enumerate(zip(expected, made, strict=True)):
        name, arguments = call.name, call.arguments
        if name != other.name or type(name) is not str or type(arguments) is not dict:
            return None
        if type(other.arguments) is not dict or not alike(arguments, other.arguments):
            return None
        if call.rules or call.names or call.optional:
            return None
        if call.requestor is not None and call.requestor != other.requestor:
            return None
        right = pointers(arguments)
        leaves += len(right)
        items.append(
            Item(
                id=str(index),
                score=1.0,
                gold=name,
                label=name,
                counts=_of_item(len(right)),
                metadata={"call": index, "arguments": {"right": right}} if right else {"call": index, "arguments": {}},
            )
        )
    if tools is not None and not {tool.name for tool in tools}.issuperset([call.name for call in made]):
        return None  # there is a reason for each that is not
    counts, parts = _of_grade(len(items), leaves)
    return Grade(score=1.0, passed=True, counts=counts, parts=parts, items=tuple(items), metadata=metadata)


@lru_cache(maxsize=1024)
def _of_item(leaves: int) -> dict[str, int]:
    counts = {"expected": 1, "made": 1, "matched": 1, "exact": 1}
    return {**counts, "arguments_right": leaves} if leaves else counts


@lru_cache(maxsize=1024)
def _of_grade(number: int, leaves: int) -> tuple[dict[str, int], dict[str, float | None]]:
    counts = dict.fromkeys(COUNTS, 0)
    counts |= dict.fromkeys(("expected", "made", "matched", "exact", "required", "weighed"), number)
    parts = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "credit": float(number), "required_credit": float(number)}
    return {**counts, "arguments_right": leaves}, dict(parts)
