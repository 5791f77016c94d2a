"""The straight way to the grade of a run that repeats what is expected, call by call: most runs do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gradestack import ExpectedCall, Grade, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.account import COUNTS, right_call
from gradestack_plugins.tool_calls.comparison import alike, are_scalars, pointers
from gradestack_plugins.tool_calls.terms import pointer_to

_MOST_CALLS = 4
_LETTERS = 256
"""Of names and pointers of a run's calls, up to which its grade is kept for the next run with the same ones."""
Shape = tuple[str, bool, tuple[str, ...]]
"""A tool; whether its arguments are scalars; and their keys, or else the pointers of all that is in them."""


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
    letters = 0
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
        flat = are_scalars(arguments)
        places = tuple(arguments if flat else pointers(arguments))
        letters += len(name) + len("".join(places))
        shapes.append((name, flat, places))
    if tools is not None and not {tool.name for tool in tools}.issuperset([call.name for call in made]):
        return None  # there is a reason for each that is not
    if letters <= _LETTERS and len(shapes) <= _MOST_CALLS:
        return _kept(tuple(shapes), preset)
    return _grade(tuple(shapes), preset)


def _grade(shapes: tuple[Shape, ...], preset: str) -> Grade:
    number, right = len(shapes), sum([len(places) for _, _, places in shapes])
    items = [
        right_call(index, name, index, name, [pointer_to(key) for key in places] if flat else list(places))
        for index, (name, flat, places) in enumerate(shapes)
    ]
    counts = dict.fromkeys(COUNTS, 0) | dict.fromkeys(_RIGHT, number) | {"arguments_right": right}
    parts = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "credit": float(number), "required_credit": float(number)}
    metadata = {"preset": preset} if preset else {}
    return Grade(score=1.0, passed=True, counts=counts, parts=parts, items=tuple(items), metadata=metadata)


_RIGHT = ("expected", "made", "matched", "exact", "required", "weighed")
_kept = lru_cache(maxsize=4096)(_grade)
