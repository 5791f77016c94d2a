"""Predicates over rows, as agent-diff has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from gradestack.jsonio import compact

Row = Mapping[str, Any]
Test = Callable[[Any, Any], bool]


class Unusable(ValueError):
    """An assertion or a state that is not of its form; the message says where and what."""


def _text(value: Any) -> Any:
    """Return a value as texts are looked for in it: lists and objects as compact JSON."""
    if not isinstance(value, dict | list):
        return value
    try:
        return json.dumps(value, separators=(",", ":"))
    except (TypeError, ValueError):
        return None


def _of_texts(test: Callable[[str, str], bool], *, folded: bool = False, inside: bool = False) -> Test:
    def tested(value: Any, wanted: Any) -> bool:
        value = _text(value) if inside else value
        if not isinstance(value, str) or not isinstance(wanted, str):
            return False
        return test(value.lower(), wanted.lower()) if folded else test(value, wanted)

    return tested


def _compared(test: Callable[[Any, Any], Any]) -> Test:
    def tested(value: Any, wanted: Any) -> bool:
        with suppress(TypeError):  # values that have no order
            return bool(test(value, wanted))
        return False

    return tested


def _within(value: Any, wanted: Any) -> Any:
    return value in wanted


def _regex(value: str, wanted: str) -> bool:
    with suppress(re.error):
        return re.search(wanted, value) is not None
    return False


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple | str) else ()


def _has_any(value: Any, wanted: Any) -> bool:
    return any(_compared(lambda each, held: each in held)(each, value) for each in wanted or ())


_TESTS: Final[Mapping[str, Test]] = {
    "eq": lambda value, wanted: bool(value == wanted),
    "ne": lambda value, wanted: bool(value != wanted),
    "neq": lambda value, wanted: bool(value != wanted),
    "not_eq": lambda value, wanted: bool(value != wanted),
    "gt": _compared(lambda value, wanted: value > wanted),
    "gte": _compared(lambda value, wanted: value >= wanted),
    "lt": _compared(lambda value, wanted: value < wanted),
    "lte": _compared(lambda value, wanted: value <= wanted),
    "in": _compared(_within),
    "not_in": _compared(lambda value, wanted: value not in wanted),
    "contains": _of_texts(lambda value, wanted: wanted in value, inside=True),
    "not_contains": _of_texts(lambda value, wanted: wanted not in value, inside=True),
    "i_contains": _of_texts(lambda value, wanted: wanted in value, folded=True, inside=True),
    "starts_with": _of_texts(str.startswith),
    "ends_with": _of_texts(str.endswith),
    "i_starts_with": _of_texts(str.startswith, folded=True),
    "i_ends_with": _of_texts(str.endswith, folded=True),
    "regex": _of_texts(_regex),
    "has_any": lambda value, wanted: bool(_listed(value)) and _has_any(value, wanted),
    "has_all": lambda value, wanted: (
        isinstance(value, list | tuple | str)
        and all(_compared(lambda each, held: each in held)(each, value) for each in wanted or ())
    ),
    "exists": lambda value, wanted: bool(wanted) is (value is not None),
    "is_null": lambda value, wanted: bool(wanted) is (value is None),
    "not_null": lambda value, wanted: bool(wanted) is (value is not None),
}
_JOINED: Final = {"and": all, "or": any}


def matches(value: Any, predicate: Any) -> bool:
    """Return whether a value keeps a predicate: ``{operator: operand}``, all of several, or a value to equal.

    Raises:
        Unusable: An operator nobody knows.
    """
    if not isinstance(predicate, Mapping):
        return bool(value == predicate)
    return all(_kept(value, operator, operand) for operator, operand in predicate.items())


def _kept(value: Any, operator: str, operand: Any) -> bool:
    if operator in _JOINED:
        if not isinstance(operand, list):
            raise Unusable(f"{operator}: expected a list of predicates, found {compact(operand)[:60]}")
        return _JOINED[operator](matches(value, each) for each in operand)
    if operator not in _TESTS:
        raise Unusable(f"{operator}: unknown operator; there are {', '.join([*_TESTS, *_JOINED])}")
    return _TESTS[operator](value, operand)


def at(row: Row, path: str) -> Any:
    """Return what stands at a dotted path of a row, None where nothing does."""
    value: Any = row
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def fits(row: Row, where: Any) -> bool:
    """Return whether a row keeps all predicates of a ``where``; ``and`` and ``or`` take lists of such.

    Raises:
        Unusable: It is no mapping, or has an operator nobody knows.
    """
    if where is None:
        return True
    if not isinstance(where, Mapping):
        raise Unusable(f"where: expected predicates by field, found {compact(where)[:60]}")
    for field, predicate in where.items():
        if field in _JOINED and isinstance(predicate, list):
            if not _JOINED[field](fits(row, each) for each in predicate):
                return False
        elif not matches(at(row, field), predicate):
            return False
    return True
