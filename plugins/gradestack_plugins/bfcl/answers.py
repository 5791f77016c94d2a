"""Possible answers as expectations: several values per argument, arguments that may be absent, calls by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from gradestack import JSON, Expectation, ExpectedCall, Rule
from gradestack_plugins.bfcl.literals import parse_calls

_MOST_VALUES = 64
"""Values that an object's or a list's parts may make up; beyond, they are described by a schema."""
_LEFT_OUT = ""
"""What stands among the values of an argument that may be absent."""


class Unusable(ValueError):
    """A ground truth that is none of the known forms."""


def expectation(ground_truth: Any, parameters: Mapping[str, Sequence[str]] | None = None) -> Expectation:
    """Return what a ground truth expects.

    Args:
        ground_truth: A list of calls with their allowed values, of turns of call texts, or of accepted texts.
        parameters: Names of each function's parameters in order, for call texts.

    Raises:
        Unusable: It is something else.
    """
    if not isinstance(ground_truth, list):
        raise Unusable
    if ground_truth and all(isinstance(each, str) for each in ground_truth):
        return Expectation(text=tuple(ground_truth))
    if ground_truth and all(isinstance(each, list) for each in ground_truth):
        turns = enumerate(ground_truth)
        return Expectation(calls=tuple(call for turn, texts in turns for call in _written(texts, turn, parameters)))
    return Expectation(calls=tuple(_allowed(each) for each in ground_truth))


def _written(texts: list[Any], turn: int, parameters: Mapping[str, Sequence[str]] | None) -> list[ExpectedCall]:
    found = []
    for text in texts:
        calls = parse_calls(text, parameters) if isinstance(text, str) else None
        if not calls:
            raise Unusable
        for call in calls:
            raw = call.text if call.arguments is None else None
            found.append(ExpectedCall(name=call.name, arguments=call.arguments, raw_arguments=raw, turn=turn))
    return found


def _allowed(entry: Any) -> ExpectedCall:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise Unusable
    ((name, values),) = entry.items()
    if not isinstance(values, dict) or not all(isinstance(each, list) for each in values.values()):
        raise Unusable
    arguments: dict[str, JSON] = {}
    rules: dict[str, Rule] = {}
    for key, allowed in values.items():
        rule = _rule(allowed)
        if rule.compare == "exact" and rule.any_of and rule.any_of[0] != _LEFT_OUT:
            arguments[key] = rule.any_of[0]
        if len(rule.any_of) != 1 or rule.optional or rule.compare != "exact":
            rules[key] = rule
    return ExpectedCall(name=name, arguments=arguments, rules=rules or None)


def _rule(allowed: list[Any]) -> Rule:
    """Return the rule of an argument; ``""`` among its values says that it may be absent."""
    optional = any(_is_left_out(each) for each in allowed)
    given = [each for each in allowed if not _is_left_out(each)]
    parts = [_values(each) for each in given]
    if any(part is None for part in parts):
        return Rule(any_of=tuple(_schema(each) for each in given), optional=optional, compare="schema")
    values: list[JSON] = []
    for value in (each for part in parts if part is not None for each in part):
        if not any(type(value) is type(other) and value == other for other in values):
            values.append(value)
    return Rule(any_of=tuple(values) if values else (_LEFT_OUT,), optional=optional)


def _is_left_out(value: Any) -> bool:
    return isinstance(value, str) and not value


def _values(allowed: Any) -> list[JSON] | None:
    """Return the values one entry stands for; None where they are too many.

    Objects keep a list of allowed values per key, and stand in lists, too.
    """
    if isinstance(allowed, dict):
        keys = [_choices(each) for each in allowed.values()]
        return _products(keys, lambda chosen: {k: v for k, v in zip(allowed, chosen, strict=True) if v is not _ABSENT})
    if isinstance(allowed, list) and any(isinstance(each, dict) for each in allowed):
        return _products([_values(each) for each in allowed], list)
    return [allowed]


_ABSENT = object()


def _choices(allowed: Any) -> list[Any] | None:
    """Return what a key of an object may be: its values, and nothing at all where it may be absent."""
    if not isinstance(allowed, list):
        return [allowed]
    found: list[Any] = []
    for each in allowed:
        values = [_ABSENT] if _is_left_out(each) else _values(each)
        if values is None:
            return None
        found += values
    return found


def _products(parts: list[list[Any] | None], made: Any) -> list[JSON] | None:
    number = 1
    for part in parts:
        number *= len(part) if part is not None else _MOST_VALUES + 1
    if number > _MOST_VALUES or any(part is None for part in parts):
        return None
    return [made(chosen) for chosen in product(*(part for part in parts if part is not None))]


def _schema(allowed: Any) -> dict[str, Any]:
    """Return the JSON Schema of what one entry stands for."""
    if isinstance(allowed, dict):
        lists = {key: each if isinstance(each, list) else [each] for key, each in allowed.items()}
        properties = {}
        for key, values in lists.items():
            schemas = []
            for each in values:  # a comprehension is a call more before Python 3.12: half the levels
                if not _is_left_out(each):
                    schemas.append(_schema(each))  # noqa: PERF401 - likewise
            properties[key] = {"anyOf": schemas or [{"const": _LEFT_OUT}]}
        return {
            "type": "object",
            "properties": properties,
            "required": [key for key, values in lists.items() if not any(map(_is_left_out, values))],
            "additionalProperties": False,
        }
    if isinstance(allowed, list) and any(isinstance(each, dict) for each in allowed):
        number = len(allowed)
        items = []
        for each in allowed:
            items.append(_schema(each))  # noqa: PERF401 - likewise
        return {"type": "array", "prefixItems": items, "minItems": number, "maxItems": number}
    return {"const": allowed}
