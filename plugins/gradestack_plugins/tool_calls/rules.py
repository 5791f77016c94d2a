"""Rules of single arguments: allowed values, tolerances, sets, patterns and schemas."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradestack import Rule
from gradestack.jsonio import as_number, compact, is_number
from gradestack_plugins.tool_calls.leaves import Equality, equal, mark_of

_DEEPEST = 64


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
        return satisfies(value, wanted)
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


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}


def satisfies(value: Any, schema: Any, depth: int = 0) -> bool:
    """Return whether a value is as a schema says; a word that is not known here says nothing.

    Known are ``type``, ``const``, ``enum``, ``anyOf``, ``oneOf``, ``allOf``, ``not``, bounds of numbers, lengths and
    ``pattern`` of texts, ``items``, ``prefixItems``, numbers of items, ``uniqueItems``, ``properties``, ``required``
    and ``additionalProperties``. Nested more deeply than 64 levels, nothing is satisfied. A library would also follow
    references, and compiles each schema anew.
    """
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or depth > _DEEPEST or not _has_kind(value, schema):
        return False
    if is_number(value):
        own = _number_satisfies(value, schema)
    elif isinstance(value, str):
        pattern = schema.get("pattern")
        own = not isinstance(pattern, str) or re.search(pattern, value) is not None
        own = own and _within(len(value), schema, "minLength", "maxLength")
    elif isinstance(value, list):
        own = _list_satisfies(value, schema, depth)
    else:
        own = not isinstance(value, dict) or _object_satisfies(value, schema, depth)
    return own and _combined(value, schema, depth + 1)


def _has_kind(value: Any, schema: Mapping[str, Any]) -> bool:
    words = schema.get("type", ())
    known = [_KINDS[word] for word in ([words] if isinstance(words, str) else words) if word in _KINDS]
    if known and not any(fits(value) for fits in known):
        return False
    if "const" in schema and not equal(value, schema["const"], "json"):
        return False
    return "enum" not in schema or any(equal(value, each, "json") for each in schema["enum"])


def _combined(value: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if "anyOf" in schema and not any(satisfies(value, each, depth) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(satisfies(value, each, depth) for each in schema["oneOf"]) != 1:
        return False
    if "allOf" in schema and not all(satisfies(value, each, depth) for each in schema["allOf"]):
        return False
    return "not" not in schema or not satisfies(value, schema["not"], depth)


def _within(size: int, schema: Mapping[str, Any], least: str, most: str) -> bool:
    low: Any = schema.get(least)
    high: Any = schema.get(most)
    return (not is_number(low) or size >= low) and (not is_number(high) or size <= high)


def _number_satisfies(value: float, schema: Mapping[str, Any]) -> bool:
    step = schema.get("multipleOf")
    if is_number(step) and step and value % step:
        return False
    return all(not is_number(schema.get(word)) or fits(value, schema[word]) for word, fits in _BOUNDS.items())


def _list_satisfies(value: list[Any], schema: Mapping[str, Any], depth: int) -> bool:
    first = schema.get("prefixItems") or ()
    if not all(satisfies(each, one, depth + 1) for each, one in zip(value, first, strict=False)):
        return False
    if "items" in schema and not all(satisfies(each, schema["items"], depth + 1) for each in value[len(first) :]):
        return False
    if schema.get("uniqueItems") is True and len({mark_of(each, "json") for each in value}) < len(value):
        return False
    return _within(len(value), schema, "minItems", "maxItems")


def _object_satisfies(value: dict[str, Any], schema: Mapping[str, Any], depth: int) -> bool:
    if any(key not in value for key in schema.get("required") or ()):
        return False
    known, others = schema.get("properties") or {}, schema.get("additionalProperties", True)
    if not all(satisfies(each, known.get(key, others), depth + 1) for key, each in value.items()):
        return False
    return _within(len(value), schema, "minProperties", "maxProperties")
