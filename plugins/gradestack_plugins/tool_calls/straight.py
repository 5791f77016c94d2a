"""The straight way to the grade of a run that repeats what is expected, call by call: most runs do."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

from gradestack import ExpectedCall, Grade, ToolCall
from gradestack_plugins.tool_calls.account import COUNTS, right_call
from gradestack_plugins.tool_calls.comparison import pointers, same_kind
from gradestack_plugins.tool_calls.leaves import SCALARS
from gradestack_plugins.tool_calls.terms import pointer_to

_MOST = 4096
_MOST_CALLS = 4
_LETTERS = 256
"""Of names and pointers of a run's calls, up to which its grade is kept for the next run with the same ones."""
Shape = tuple[str, bool, tuple[str, ...]]
"""A tool; whether its arguments are scalars; and their keys, or else the pointers of all that is in them."""
_kept: dict[tuple[str, tuple[Shape, ...]], Grade] = {}


def straight(
    expected: Sequence[ExpectedCall], made: Sequence[ToolCall], known: AbstractSet[str] | None, preset: str
) -> Grade | None:
    """Return the grade of a run whose calls are those expected, in their order; None where that takes a closer look.

    Args:
        expected: Expected calls.
        made: Calls that were made.
        known: Names of the tools the run had; None where that is not known.
        preset: For the grade's metadata; empty for none.
    """
    if len(expected) != len(made) or not made:
        return None
    shapes: list[Shape] = []
    for call, other in zip(expected, made, strict=True):
        name, arguments, given = call.name, call.arguments, other.arguments
        if name != other.name or arguments != given or call.rules or call.names or call.optional:
            return None
        if type(name) is not str or type(arguments) is not dict or type(given) is not dict:
            return None
        if call.requestor is not None and call.requestor != other.requestor:
            return None
        if known is not None and name not in known:
            return None  # there is a reason for that
        flat = True  # what alike and are_scalars say, in one pass
        for key, value in arguments.items():
            if type(value) is not str:
                if not same_kind(value, given[key]):
                    return None
                flat = flat and type(value) in SCALARS
        shapes.append((name, flat, tuple(arguments if flat else pointers(arguments))))
    key = preset, tuple(shapes)
    return _kept.get(key) or _keep(key)


def _keep(key: tuple[str, tuple[Shape, ...]]) -> Grade:
    """Return a new grade, which is kept unless it is large or a key is no text: 1 and true are equal ones."""
    preset, shapes = key
    grade = _grade(shapes, preset)
    try:
        letters = sum([len(name) + len("".join(places)) for name, _, places in shapes])
    except TypeError:
        return grade
    if len(shapes) <= _MOST_CALLS and letters <= _LETTERS:
        if len(_kept) >= _MOST:
            _kept.clear()
        _kept[key] = grade
    return grade


def _grade(shapes: tuple[Shape, ...], preset: str) -> Grade:
    number, right = len(shapes), sum([len(places) for _, _, places in shapes])
    items = [
        right_call(index, name, index, name, [pointer_to(key) for key in places] if flat else list(places))
        for index, (name, flat, places) in enumerate(shapes)
    ]
    metadata = {"preset": preset} if preset else {}
    return Grade(
        score=1.0,
        passed=True,
        counts=_counts(number, right),
        parts=_parts(number),
        items=tuple(items),
        metadata=metadata,
    )


_RIGHT = ("expected", "made", "matched", "exact", "required", "weighed")


@lru_cache(maxsize=1024)  # the fewer objects thousands of grades hold, the more of them are in the processor's cache
def _counts(number: int, right: int) -> dict[str, int]:
    return dict.fromkeys(COUNTS, 0) | dict.fromkeys(_RIGHT, number) | {"arguments_right": right}


@lru_cache(maxsize=1024)
def _parts(number: int) -> dict[str, float]:
    return {"precision": 1.0, "recall": 1.0, "f1": 1.0, "credit": float(number), "required_credit": float(number)}
