"""What BFCL takes for its possible answers and its types, from expected calls and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack import ExpectedCall, Rule, ToolSpec
from gradestack_plugins.tool_calls.calls import arguments_of, name_of
from gradestack_plugins.tool_calls.peers.verdict import NotTold, Raised

Answers = dict[str, list[Any]]
"""Parameter -> values of which one must be met; ``""`` among them: it may be left out."""
LEFT_OUT = ""
TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
    "number": float,
    "object": dict,
}
"""BFCL's words, and the two of JSON Schema that mean the same."""


@attrs.frozen
class Parameter:
    """What a tool's schema says of a parameter."""

    kind: type
    items: type | None
    """Of a list: the kind of its items."""
    takes_integers: bool


@attrs.frozen
class Described:
    """A tool, as far as the rules look at it."""

    name: str
    parameters: Mapping[str, Any]
    required: tuple[str, ...]

    def parameter(self, name: str) -> Parameter:
        """Return what is said of a parameter.

        Raises:
            Raised: The original program stops at what is said of it.
        """
        about = self.parameters[name]
        word = _word(about)
        kind = _kind(word)
        items = _kind(_word(about.get("items"))) if kind is list else None
        return Parameter(kind, items, word in {"float", "number"})


def _word(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        raise Raised("schema_incomplete", "a parameter of the tool has no description the original program can read")
    return schema.get("type", "any")


def _kind(word: Any) -> type:
    kind = TYPES.get(word) if isinstance(word, str) else None
    if kind is None:
        raise Raised("schema_incomplete", f"the original program knows no type {word!r}")
    return kind


def described(tool: ToolSpec) -> Described:
    """Return a tool as the rules look at it.

    Raises:
        Raised: Its schema lacks what the original program reads.
    """
    schema = tool.parameters
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not isinstance(required, list | tuple):
        told = f"the schema of {tool.name} lacks properties or required, which the original program reads"
        raise Raised("schema_incomplete", told)
    return Described(name_of(tool.name), properties, tuple(map(str, required)))


def answers_of(call: ExpectedCall) -> Answers:
    """Return a call's possible answers: a plain value is the only one, the values of an object are lists in turn.

    Raises:
        NotTold: A rule says what a list of values cannot.
    """
    found: Answers = {}
    rules = call.rules or {}
    for key, value in arguments_of(call.arguments).items():
        if key not in rules:
            found[key] = [_listed(value)]
    for key, rule in rules.items():
        found[key] = _ruled(rule)
    return found


def _ruled(rule: Rule) -> list[Any]:
    if rule.ignore or rule.compare not in {"exact", "schema"} or rule.tolerance is not None:
        raise NotTold("not_expressible", "an argument has a rule that is no list of values")
    values = [_from_schema(each) if rule.compare == "schema" else _listed(each) for each in rule.any_of]
    return [*values, LEFT_OUT] if rule.optional else values


def _listed(value: Any) -> Any:
    """Return a plain value as an answer: each value of an object is a list of one."""
    if isinstance(value, dict):
        return {key: [each] for key, each in value.items()}
    if isinstance(value, list):
        return [_listed(each) if isinstance(each, dict) else each for each in value]
    return value


def _from_schema(schema: Any) -> Any:
    """Return the answer a schema stands for, in the form the reader of BFCL's answers writes it."""
    if not isinstance(schema, Mapping):
        raise NotTold("not_expressible", "an argument has a schema that is no list of values")
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("prefixItems"), list):
        return [_from_schema(each) for each in schema["prefixItems"]]
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        raise NotTold("not_expressible", "an argument has a schema that is no list of values")
    required = schema.get("required") or ()
    found = {}
    for key, each in properties.items():
        values = [_from_schema(value) for value in (each.get("anyOf") if isinstance(each, Mapping) else None) or ()]
        found[key] = values if key in required else [*values, LEFT_OUT]
    return found
