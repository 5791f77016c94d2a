"""Rules of single arguments: allowed values, tolerances, sets, patterns and schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from gradestack import Rule
from gradestack.jsonio import as_number, compact, is_number
from gradestack_plugins.tool_calls.leaves import Equality, equal, mark_of

_REFERENCES = ('"$ref"', '"$dynamicRef"', '"$recursiveRef"')


class UnusableRule(ValueError):
    """A rule that says nothing, or two things."""


def check(rules: Mapping[str, Rule]) -> None:
    """Check that the rules of a call's arguments can be used."""
    for key, rule in rules.items():
        if problem := _problem(rule):
            raise UnusableRule(f"rule of {key}: {problem}")


def _problem(rule: Rule) -> str:
    if rule.ignore and (rule.any_of or rule.compare != "exact" or rule.tolerance is not None):
        return "ignore takes any value, so it goes with no other condition"
    if rule.tolerance is not None and rule.compare not in {"exact", "number"}:
        return f"tolerance is of numbers, and compare is {rule.compare}"
    if rule.tolerance is not None and not rule.tolerance >= 0:
        return f"tolerance must be a number of at least 0, got {rule.tolerance}"
    if rule.compare in {"regex", "schema"} and not rule.any_of:
        return f"compare {rule.compare} needs any_of, the list of them"
    for schema in rule.any_of if rule.compare == "schema" else ():
        if any(word in compact(schema) for word in _REFERENCES):  # a check could then take any time
            return "references in a schema are not followed; write out what they stand for"
        try:
            _validator(schema)
        except (ValueError, RecursionError) as error:
            return f"{compact(schema)[:60]} is no schema: {str(error).partition(chr(10))[0]}"
    for pattern in rule.any_of if rule.compare == "regex" else ():
        if not isinstance(pattern, str):
            return f"a pattern is a text, got {compact(pattern)[:60]}"
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return f"{pattern[:60]!r} is no pattern: {error}"
    return ""


def is_met(rule: Rule, value: Any, allowed: Sequence[Any], equality: Equality) -> bool:
    """Return whether a value is one of those allowed, as the rule compares; where none are named, any is."""
    return rule.ignore or not allowed or any(_agrees(rule, value, each, equality) for each in allowed)


def _agrees(rule: Rule, value: Any, wanted: Any, equality: Equality) -> bool:
    compare = rule.compare
    if compare == "text":
        return equal(value, wanted, "text")
    if compare == "regex":
        return isinstance(value, str) and isinstance(wanted, str) and re.search(wanted, value) is not None
    if compare == "schema":
        return _satisfies(value, wanted)
    if compare == "set" and isinstance(value, list) and isinstance(wanted, list):
        return {mark_of(each, equality) for each in value} == {mark_of(each, equality) for each in wanted}
    if compare == "number":
        left, right = _number(value), _number(wanted)
        return left is not None and right is not None and _near(left, right, rule.tolerance or 0)
    if rule.tolerance is not None and is_number(value) and is_number(wanted):
        return _near(value, wanted, rule.tolerance)
    return equal(value, wanted, equality)


def _near(value: float, wanted: float, tolerance: float) -> bool:
    try:
        return value == wanted or abs(value - wanted) <= tolerance
    except OverflowError:
        return False


def _number(value: Any) -> float | None:
    """Return a number, or the one a text is."""
    if isinstance(value, str):
        try:
            return as_number(float(value))
        except ValueError:
            return None
    return value if is_number(value) else None


def _validator(schema: Any) -> Any:
    """Return what checks values by a schema: it fetches nothing, and formats are annotations."""
    import jsonschema_rs  # noqa: PLC0415 - of the rules, only those with a schema need it

    if not isinstance(schema, dict | bool):
        raise ValueError("expected an object or a boolean")  # noqa: TRY004 - an unusable rule
    return jsonschema_rs.validator_for(schema, validate_formats=False, retriever=_refuse)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


def _satisfies(value: Any, schema: Any) -> bool:
    """Return whether a value is as a schema says; what the library cannot read, such as half a character, is not."""
    try:
        return bool(_validator(schema).is_valid(value))
    except (ValueError, RecursionError):
        return False
