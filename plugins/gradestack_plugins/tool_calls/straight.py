"""The straight way to the grade of a run that repeats what is expected, call by call: most runs do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradestack import ExpectedCall, Grade, Item, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.account import right_call
from gradestack_plugins.tool_calls.comparison import alike, pointers


def straight(
    expected: Sequence[ExpectedCall],
    made: Sequence[ToolCall],
    tools: Sequence[ToolSpec] | None,
    metadata: Mapping[str, Any],
) -> Grade | None:
    """Return the grade of a run whose calls are those expected, in their order; None where that takes a closer look.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        tools: The tools the run had.
        metadata: Of the grade.
    """
    number = len(made)
    if len(expected) != number or not made:
        return None
    items: list[Item] = []
    right = 0
    for index, call in enumerate(expected):
        name, arguments, other = call.name, call.arguments, made[index]
        if name != other.name or type(name) is not str or type(arguments) is not dict:
            return None
        if type(other.arguments) is not dict or not alike(arguments, other.arguments):
            return None
        if call.rules or call.names or call.optional:
            return None
        if call.requestor is not None and call.requestor != other.requestor:
            return None
        places = pointers(arguments)
        right += len(places)
        items.append(right_call(index, name, index, name, places))
    if tools is not None and not {tool.name for tool in tools}.issuperset([call.name for call in made]):
        return None  # there is a reason for each that is not
    counts = {
        "expected": number,
        "made": number,
        "matched": number,
        "exact": number,
        "missing": 0,
        "extra": 0,
        "out_of_order": 0,
        "hallucinated_tool": 0,
        "required": number,
        "weighed": number,
        "arguments_right": right,
        "arguments_wrong": 0,
        "arguments_missing": 0,
        "arguments_unknown": 0,
    }
    credit = float(number)
    parts = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "credit": credit, "required_credit": credit}
    return Grade(score=1.0, passed=True, counts=counts, parts=parts, items=tuple(items), metadata=metadata)
