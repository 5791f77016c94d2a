"""Rules for single arguments: whether a rule makes sense, and whether a value meets it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from gradestack import Rule
from gradestack.jsonio import as_number, compact, is_beyond_json, is_number
from gradestack_plugins.tool_calls.values import Equality, equal, mark_of

_REFERENCES: Final = ('"$ref"', '"$dynamicRef"', '"$recursiveRef"')
_SHOWN: Final = 60


class UnusableRule(ValueError):
    """A rule that says nothing, or two things."""


def rule_problem(rule: Rule) -> str:
    """Return why a rule cannot be used, "" for one that can."""
    compare, tolerance = rule.compare, rule.tolerance
    if rule.ignore and (rule.any_of or compare != "exact" or tolerance is not None):
        return "ignore takes any value, so it goes with no other condition"
    if tolerance is not None and compare not in {"exact", "number"}:
        return f"tolerance is of numbers, and compare is {compare}"
    if tolerance is not None and not tolerance >= 0:
        return f"tolerance must be a number of at least 0, got {tolerance}"
    check = _CHECKS.get(compare)
    if check is None:
        return ""
    if not rule.any_of:
        return f"compare {compare} needs any_of, the list of them"
    return next(filter(None, map(check, rule.any_of)), "")


def _schema_problem(schema: Any) -> str:
    """Explain why a value cannot be used as a JSON schema; an empty text where it can."""
    text = compact(schema)
    if any(reference in text for reference in _REFERENCES):  # a check could then take any time
        return "references in a schema are not followed; write out what they stand for"
    try:
        _validator(schema)
    except (ValueError, RecursionError) as error:
        first_line = str(error).partition("\n")[0]
        return f"{text[:_SHOWN]} is no schema: {first_line}"
    return ""


def _pattern_problem(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return f"a pattern is a text, got {compact(pattern)[:_SHOWN]}"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{pattern[:_SHOWN]!r} is no pattern: {error}"
    return ""


_CHECKS: Final = {"schema": _schema_problem, "regex": _pattern_problem}


def is_met(rule: Rule, value: Any, allowed: Sequence[Any], equality: Equality) -> bool:
    """Return whether a value is one of those allowed, as the rule compares.

    Where none are named, any is.
    """
    if rule.ignore or not allowed:
        return True
    return any(_agrees(rule, value, wanted, equality) for wanted in allowed)


def _agrees(rule: Rule, value: Any, wanted: Any, equality: Equality) -> bool:
    """Compare an argument with the expected value in the way that its rule names."""
    compare, tolerance = rule.compare, rule.tolerance
    if compare == "text":
        return equal(value, wanted, "text")
    if compare == "regex":
        are_texts = isinstance(value, str) and isinstance(wanted, str)
        return are_texts and re.search(wanted, value) is not None
    if compare == "schema":
        return _satisfies(value, wanted)
    if compare == "set" and isinstance(value, list) and isinstance(wanted, list):
        members, wanted_members = (
            {mark_of(member, equality) for member in values} for values in (value, wanted)
        )
        return members == wanted_members
    if compare == "number":
        value = _number(value)
        wanted = _number(wanted)
        return value is not None and wanted is not None and _is_near(value, wanted, tolerance or 0)
    if tolerance is not None and is_number(value) and is_number(wanted):
        return _is_near(value, wanted, tolerance)
    return equal(value, wanted, equality)


def _is_near(value: float, wanted: float, tolerance: float) -> bool:
    if is_beyond_json(value):
        return False
    try:
        return value == wanted or abs(value - wanted) <= tolerance
    except OverflowError:
        return False


def _number(value: Any) -> float | None:
    """Return a number, or the one that a text writes."""
    if not isinstance(value, str):
        return value if is_number(value) else None
    try:
        return as_number(float(value))
    except ValueError:
        return None


def _validator(schema: Any) -> Any:
    """Return a validator of values by a schema: it fetches nothing, and formats are annotations."""
    import jsonschema_rs  # noqa: PLC0415 - of the rules, only those with a schema need it

    if not isinstance(schema, dict | bool):
        raise ValueError("expected an object or a boolean")
    return jsonschema_rs.validator_for(schema, validate_formats=False, retriever=_refuse)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


def _satisfies(value: Any, schema: Any) -> bool:
    """Return whether a value keeps a schema.

    A value that the library cannot read, such as half a character, does not.
    """
    try:
        return bool(_validator(schema).is_valid(value))
    except (ValueError, RecursionError):
        return False
