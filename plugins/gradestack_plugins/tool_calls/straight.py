"""The straight way to the grade of a run that repeats what is expected, call by call: most runs do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gradestack import ExpectedCall, Grade, ToolCall
from gradestack_plugins.tool_calls.account import COUNTS, right_call
from gradestack_plugins.tool_calls.calls import arguments_of
from gradestack_plugins.tool_calls.comparison import are_scalars, inside, same_kind

_MOST_CALLS = 4
_LETTERS = 256
"""Of names and pointers of a run's calls, up to which its grade is kept for the next run with the same ones."""
_TEXTS, _NUMBERS = frozenset({str}), frozenset({int, float, bool, type(None)})
"""Types of which equal values are alike if they have the same one."""
_MOST = 4096
_grades: dict[tuple[Any, ...], Grade] = {}
"""Those of the last few thousand runs that differ."""


def straight(
    expected: Sequence[ExpectedCall], made: Sequence[ToolCall], known: Sequence[str] | None, preset: str
) -> Grade | int:
    """Return the grade of a run whose calls are those expected, in their order; else how many of the first ones are.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        known: Names of the tools the run had; None where that is not known.
        preset: For the grade's metadata; empty for none.
    """
    shapes: list[Any] = [preset]
    right = 0
    for call, other in zip(expected, made, strict=False):
        name, arguments, given = call.name, call.arguments, other.arguments
        if name != other.name or arguments != given or call.rules or call.names or call.optional:
            return right
        if type(name) is not str or type(arguments) is not dict or type(given) is not dict:
            return right
        if call.requestor is not None and call.requestor != other.requestor:
            return right
        if known is not None and name not in known:
            return right  # there is a reason for that
        shapes.append(name)
        shapes.append(tuple(arguments))
        for key, value in arguments.items():  # what alike says
            kind = type(value)
            if kind is str:
                continue
            other_value = given[key]
            if kind in _NUMBERS:
                if kind is not type(other_value) or value != other_value:  # NaN is equal to itself as one object
                    return right
            elif form := _form(value, other_value):
                shapes.append((key, *form))
            else:
                return right
        right += 1
    if len(expected) != len(made) or not made:
        return right
    key = tuple(shapes)
    return _grades.get(key) or _keep(key, expected)


def _form(value: Any, other: Any) -> tuple[Any, ...]:
    """Return what tells the pointers within a nested value from others; nothing where an equal one is not alike."""
    kind = type(value)
    if kind is list and kind is type(other) and _TEXTS.issuperset(map(type, value)):
        return (str(len(value)),)
    if not same_kind(value, other):
        return ()
    return ("{", *value) if kind is dict and are_scalars(value) else tuple(inside("", value))


def _keep(key: tuple[Any, ...], expected: Sequence[ExpectedCall]) -> Grade:
    """Return a new grade, which is kept unless it is large or a key is no text: 1 and true are equal ones."""
    items = [right_call(index, call.name, arguments_of(call.arguments)) for index, call in enumerate(expected)]
    number = len(items)
    grade = Grade(
        score=1.0,
        passed=True,
        counts=_counts(number, sum([each.counts.get("arguments_right", 0) for each in items])),
        parts=_parts(number),
        items=tuple(items),
        metadata={"preset": key[0]} if key[0] else {},
    )
    try:
        letters = sum([len("".join(each)) for each in key])
    except TypeError:
        return grade
    if number <= _MOST_CALLS and letters <= _LETTERS:
        if len(_grades) >= _MOST:
            _grades.clear()
        _grades[key] = grade
    return grade


_RIGHT = ("expected", "made", "matched", "exact", "required", "weighed")


@lru_cache(maxsize=1024)  # the fewer objects thousands of grades hold, the more of them are in the processor's cache
def _counts(number: int, right: int) -> dict[str, int]:
    return dict.fromkeys(COUNTS, 0) | dict.fromkeys(_RIGHT, number) | {"arguments_right": right}


@lru_cache(maxsize=1024)
def _parts(number: int) -> dict[str, float]:
    return {"precision": 1.0, "recall": 1.0, "f1": 1.0, "credit": float(number), "required_credit": float(number)}
