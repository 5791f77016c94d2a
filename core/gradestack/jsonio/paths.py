"""Where in a record something stands: a key, or a JSONPath (RFC 9535) below it.

Names and indexes are walked here. The rest of a path, from its first wildcard, slice or filter on,
is a query of python-jsonpath, which takes some ten times as long.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import lru_cache
from threading import get_ident
from typing import Any, Final, TypeAlias

from gradestack.errors import TimedOut
from gradestack.interpreter import IN_FORCE, IN_PROGRESS, in_progress, time_limit, work_limit
from gradestack.jsonio.values import JsonProblem, loads
from gradestack.patterns import compile_later

_STEP: Final = compile_later(
    r"""\.(?P<name>[^\W\d][\w-]*)|"""
    r"""\[\s*(?:(?P<index>-?\d{1,9})|'(?P<single>[^'\\]*)'|"(?P<double>[^"\\]*)")\s*\]"""
)
_QUERY: Final = compile_later(
    r"[*:?,\\\s]|\.\.|[^\x00-\x7f]"
)  # what the rest of a path has that only a query can follow
_EXAMPLES: Final = (
    "a path into a record is such as $.log.messages, $.runs[0], $.log[*].call or $['a column']"
)
PATH_SECONDS: Final = 5.0
"""Seconds of work that following a path in one record may take.

Each record that takes too long halves them, so that a file of such records ends, too, and the
others in it are read.
"""
_LEAST_SECONDS: Final = 0.01
_LONGEST: Final = 200  # characters of a path that a message shows


class Query:
    """The rest of a path (or a ValueError, if it is none) that may lead to several places.

    ``place``: all of it.
    """

    def __init__(self, path: str, place: str) -> None:
        """Compile a JSONPath with python-jsonpath; refuse a wrong path or a missing library."""
        self._place, self._timeouts = place[:_LONGEST], 0
        try:
            library = importlib.import_module("jsonpath")
        except ImportError as error:
            what = "wildcards, slices and filters are followed by python-jsonpath"
            raise ValueError(
                f"{place[:_LONGEST]!r}: {what}: pip install python-jsonpath (extra 'paths')"
            ) from error
        try:
            self._find = library.JSONPathEnvironment(strict=True).compile(path).findall
        except (library.JSONPathError, RecursionError) as error:
            message = str(error).partition("\n")[0]
            raise ValueError(_refusal(place, f"is no JSONPath: {message}")) from error

    def found(self, value: Any) -> list[Any]:
        """Return the values at the places it leads to.

        A ValueError where it cannot be followed, or not in time.
        """
        now, graded = IN_FORCE.get(), get_ident() in IN_PROGRESS
        try:
            with (
                time_limit(now.limits.seconds_per_grade),
                work_limit(max(PATH_SECONDS / 2**self._timeouts, _LEAST_SECONDS)),
                in_progress([]),
            ):
                return list(self._find(value)) if isinstance(value, list | Mapping) else []
        except TimedOut as error:
            self._timeouts = min(self._timeouts + 1, 99)
            if graded:
                raise
            now.timed_out += 1
            raise ValueError(f"the path {self._place!r} {error}") from error
        except RecursionError:
            raise
        except (
            Exception
        ) as error:  # of the library: a filter that cannot be applied to what is there
            raise ValueError(f"the path {self._place!r} cannot be followed: {error}") from error


Steps: TypeAlias = tuple[str | int | Query, ...]


@lru_cache(maxsize=256)
def path_steps(text: str) -> Steps:
    """Return the steps that lead to a place.

    Of a key itself, of a path (``$.log.calls[0]``) names, indexes, and one query.

    Raises:
        ValueError: It begins with ``$`` and is no path.
    """
    if not text.startswith("$"):
        return (text,)
    steps: list[str | int | Query] = []
    at = 1
    while at < len(text) and (step := _STEP.match(text, at)):
        name = next(
            (step[group] for group in ("name", "single", "double") if step[group] is not None), None
        )
        steps.append(int(step["index"]) if name is None else name)
        at = step.end()
    rest = text[at:]
    if _QUERY.search(rest):
        steps.append(Query(f"${rest}", text))
    elif rest and steps:
        raise ValueError(
            _refusal(text, f"is no path: {rest[:_LONGEST]!r} is neither a name nor an index")
        )
    if not steps or isinstance(steps[0], int):
        raise ValueError(_refusal(text, "is no path into a record"))
    return tuple(steps)


def _refusal(text: str, problem: str) -> str:
    return f"{text[:_LONGEST]!r} {problem}; {_EXAMPLES}"


def pointer_to(*steps: Any) -> str:
    """Return the JSON pointer (RFC 6901) that keys and indexes make, one below the other."""
    text = ""
    for step in steps:
        word = step if isinstance(step, str) else str(step)
        text += (
            f"/{word.replace('~', '~0').replace('/', '~1') if '~' in word or '/' in word else word}"
        )
    return text


def path_value(record: Any, steps: Steps, absent: Any = None) -> Any:
    """Return the value at the end of a path, ``absent`` where there is nothing.

    Of a query the list of what it found.

    A text on the way that holds JSON is decoded.

    Raises:
        RecursionError: What a query looks through is nested too deeply.
        ValueError: A query cannot be applied to what is there.
    """
    at = record
    for step in steps:
        if isinstance(at, str):
            try:
                at = loads(at)
            except JsonProblem:
                return absent
        if isinstance(step, Query):
            return step.found(at) or absent
        if isinstance(step, int):
            if not isinstance(at, list) or not -len(at) <= step < len(at):
                return absent
            at = at[step]
        elif isinstance(at, dict) or (at is not None and isinstance(at, Mapping)):
            at = at.get(step, absent)
        else:
            return absent
    return at


_ABSENT: Final = object()


def path_exists(record: Any, steps: Steps) -> bool:
    """Return whether a record has the place a path leads to, be it null there."""
    return path_value(record, steps, _ABSENT) is not _ABSENT
