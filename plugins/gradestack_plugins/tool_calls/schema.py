"""The part of JSON Schema that says what one argument may be: enough for a rule, without a library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gradestack.jsonio import is_number
from gradestack_plugins.tool_calls.leaves import equal, token_of

_DEEPEST = 64


def satisfies(value: Any, schema: Any, depth: int = 0) -> bool:
    """Return whether a value is as a schema says; a word that is not known here says nothing.

    Known are ``type``, ``const``, ``enum``, ``anyOf``, ``oneOf``, ``allOf``, ``not``, bounds of numbers, lengths and
    ``pattern`` of texts, ``items``, ``prefixItems``, numbers of items, ``uniqueItems``, ``properties``, ``required``
    and ``additionalProperties``. Nested more deeply than 64 levels, nothing is satisfied.
    """
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return False
    if not (_kind(value, schema) and _number(value, schema) and _text(value, schema)):
        return False
    return _combined(value, schema, depth) and _list(value, schema, depth) and _object(value, schema, depth)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _kind(value: Any, schema: Mapping[str, Any]) -> bool:
    words = schema.get("type", ())
    known = [_KINDS[word] for word in ([words] if isinstance(words, str) else words) if word in _KINDS]
    if known and not any(fits(value) for fits in known):
        return False
    if "const" in schema and not equal(value, schema["const"], "json"):
        return False
    return "enum" not in schema or any(equal(value, each, "json") for each in schema["enum"])


def _combined(value: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if "anyOf" in schema and not any(satisfies(value, each, depth + 1) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(satisfies(value, each, depth + 1) for each in schema["oneOf"]) != 1:
        return False
    if "allOf" in schema and not all(satisfies(value, each, depth + 1) for each in schema["allOf"]):
        return False
    return "not" not in schema or not satisfies(value, schema["not"], depth + 1)


_BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}


def _bounded(size: float, schema: Mapping[str, Any], least: str, most: str) -> bool:
    bounds = ((least, "minimum"), (most, "maximum"))
    return all(not is_number(schema.get(word)) or _BOUNDS[kind](size, schema[word]) for word, kind in bounds)


def _number(value: Any, schema: Mapping[str, Any]) -> bool:
    if not is_number(value):
        return True
    step = schema.get("multipleOf")
    if is_number(step) and step and value % step:
        return False
    return all(not is_number(schema.get(word)) or fits(value, schema[word]) for word, fits in _BOUNDS.items())


def _text(value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, str):
        return True
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and re.search(pattern, value) is None:
        return False
    return _bounded(len(value), schema, "minLength", "maxLength")


def _list(value: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, list):
        return True
    first = schema.get("prefixItems") or ()
    if not all(satisfies(each, one, depth + 1) for each, one in zip(value, first, strict=False)):
        return False
    if "items" in schema and not all(satisfies(each, schema["items"], depth + 1) for each in value[len(first) :]):
        return False
    if schema.get("uniqueItems") is True and len({token_of(each, "json") for each in value}) < len(value):
        return False
    return _bounded(len(value), schema, "minItems", "maxItems")


def _object(value: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    if any(key not in value for key in schema.get("required") or ()):
        return False
    known = schema.get("properties") or {}
    if not all(satisfies(value[key], each, depth + 1) for key, each in known.items() if key in value):
        return False
    others = schema.get("additionalProperties", True)
    if not all(satisfies(each, others, depth + 1) for key, each in value.items() if key not in known):
        return False
    return _bounded(len(value), schema, "minProperties", "maxProperties")
