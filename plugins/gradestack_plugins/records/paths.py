"""Where in a record a field stands: a column, or a path below it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from gradestack.jsonio import JsonProblem, loads

_STEP: Final = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*)|\[\s*(?:(?P<index>-?\d{1,9})|'(?P<single>[^'\\]*)'|"(?P<double>[^"\\]*)")\s*\]"""
)


def steps_of(place: str) -> tuple[str | int, ...]:
    """Return the names and indexes that lead to a place: of a column one, of a path (``$.log.calls[0]``) each of its.

    Raises:
        ValueError: It begins with ``$`` and is no path of names and indexes.
    """
    if not place.startswith("$"):
        return (place,)
    found: list[str | int] = []
    at = 1
    while at < len(place) and (step := _STEP.match(place, at)):
        name = next((step[group] for group in ("name", "single", "double") if step[group] is not None), None)
        found.append(int(step["index"]) if name is None else name)
        at = step.end()
    if at < len(place) or not found or isinstance(found[0], int):
        msg = (
            f"{place!r} is no path of names and indexes such as $.log.messages, $.runs[0] or $['a column']; "
            "wildcards, slices and filters are not followed"
        )
        raise ValueError(msg)
    return tuple(found)


def walk(record: Any, steps: tuple[str | int, ...]) -> Any:
    """Return what stands at the end of a path, None where there is nothing.

    A cell on the way that holds JSON text is decoded.
    """
    at = record
    for step in steps:
        if isinstance(at, str):
            try:
                at = loads(at)
            except JsonProblem:
                return None
        if isinstance(step, int):
            if not isinstance(at, list) or not -len(at) <= step < len(at):
                return None
            at = at[step]
        elif isinstance(at, Mapping):
            at = at.get(step)
        else:
            return None
    return at


def holds(record: Any, steps: tuple[str | int, ...]) -> bool:
    """Return whether a record has the place a path leads to, be it null there."""
    holder, last = walk(record, steps[:-1]), steps[-1]
    if isinstance(holder, str):
        return walk(holder, (last,)) is not None
    if isinstance(last, int):
        return isinstance(holder, list) and -len(holder) <= last < len(holder)
    return isinstance(holder, Mapping) and last in holder
