"""The straight way to the grade of a run that repeats what is expected, call by call: most runs do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gradestack import ExpectedCall, Grade, Item, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.account import COUNTS
from gradestack_plugins.tool_calls.comparison import alike, pointers

_SHORT = 256
"""Letters of the pointers of a call whose grade is kept for the next run with the same ones."""
Shape = tuple[str, tuple[str, ...]]
"""A tool, and the pointers of the arguments it was called with."""


def straight(
    expected: Sequence[ExpectedCall], made: Sequence[ToolCall], tools: Sequence[ToolSpec] | None, preset: str
) -> Grade | None:
    """Return the grade of a run whose calls are those expected, in their order; None where that takes a closer look.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        tools: The tools the run had.
        preset: For the grade's metadata; empty for none.
    """
    if len(expected) != len(made) or not made:
        return None
    shapes: list[Shape] = []
    for call, other in zip(expected, made, strict=True):
        name, arguments = call.name, call.arguments
        if name != other.name or type(name) is not str or type(arguments) is not dict:
            return None
        if type(other.arguments) is not dict or not alike(arguments, other.arguments):
            return None
        if call.rules or call.names or call.optional:
            return None
        if call.requestor is not None and call.requestor != other.requestor:
            return None
        shapes.append((name, tuple(pointers(arguments))))
    if tools is not None and not {tool.name for tool in tools}.issuperset([call.name for call in made]):
        return None  # there is a reason for each that is not
    if len(made) <= 4 and sum([len("".join(places)) + len(name) for name, places in shapes]) <= _SHORT:
        return _kept(tuple(shapes), preset)
    return _grade(tuple(shapes), preset)


def _grade(shapes: tuple[Shape, ...], preset: str) -> Grade:
    items = [
        Item(
            id=str(index),
            score=1.0,
            gold=name,
            label=name,
            counts={**_RIGHT, "arguments_right": len(places)} if places else _RIGHT,
            metadata={"call": index, "arguments": {"right": list(places)} if places else {}},
        )
        for index, (name, places) in enumerate(shapes)
    ]
    number = len(items)
    counts = dict.fromkeys(COUNTS, 0)
    counts |= dict.fromkeys(("expected", "made", "matched", "exact", "required", "weighed"), number)
    counts["arguments_right"] = sum([len(places) for _, places in shapes])
    parts = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "credit": float(number), "required_credit": float(number)}
    metadata = {"preset": preset} if preset else {}
    return Grade(score=1.0, passed=True, counts=counts, parts=parts, items=tuple(items), metadata=metadata)


_RIGHT = {"expected": 1, "made": 1, "matched": 1, "exact": 1}
_kept = lru_cache(maxsize=4096)(_grade)
