"""The cost of a check by a JSON Schema, counted before the library that checks sees the value.

The library makes an error of each keyword that fails, with a copy of the value, and keeps those of
all branches, so that a few lines whose references meet again and again take gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import jsonschema_rs
import msgspec

from gradestack.jsonio import dumps
from gradestack_plugins.trajectory.calls import value_at

_MOST: Final = 150_000
"""Units of a check: one is about what an error takes, 1.6 KB and 20 microseconds."""
_ENTRIES, _CHARACTERS, _STEPS, _LEVELS = 16, 800, 5000, 8
"""Entries and characters that are copied, steps of a pattern, levels of a keyword's path: of each
so many take one unit.
"""
_METASCHEMA: Final = 480
"""Units for each entry of a value that is checked as a schema, times those above."""
_ALWAYS: Final = 100_000
"""Nodes of a schema without references times bytes of a value whose check needs no counting."""
_LARGEST_SCHEMA: Final = 2 * 1024 * 1024
_LARGEST_PATTERNS: Final = 64 * 1024 * 1024
_STATE: Final = 24  # bytes of a state of a pattern, at least
_SIZES: Final = (*(1 << power for power in (12, 14, 16, 18, 20, 22)), 10 * 1024 * 1024)
_CACHE: Final = 256 * 1024
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_NAMES: Final = ("$anchor", "$dynamicAnchor", "$id", "id")
_encode: Final = msgspec.json.Encoder().encode


class Unusable(ValueError):
    """A schema, or a check against it, that is not done; the code says why, the message of what.

    ``schema_unusable``: it is not a JSON Schema; ``not_expressible``: it asks for what is not done
    here, references elsewhere or patterns that look around; ``schema_too_large``: it takes too much
    time or memory.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _too_large(message: str) -> Unusable:
    return Unusable("schema_too_large", message)


def json_bytes(value: Any) -> bytes:
    """Return the JSON of a value."""
    try:
        return _encode(value)
    except (TypeError, ValueError):  # of what the fast encoder does not write: half a character
        return dumps(value).encode("utf-8", "surrogatepass")


def pattern_options(size: int = _SIZES[-1]) -> jsonschema_rs.RegexOptions:
    """Return the limits of compiled patterns."""
    return jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=_CACHE)


# without it a check by a schema with patterns and references takes three times as long
@lru_cache(maxsize=4096)
def _size_of(pattern: str) -> int:
    """Return the size a pattern is compiled to, rounded up; 0 of one that is not compiled."""
    schema = {"pattern": pattern}
    for size in _SIZES:
        with suppress(jsonschema_rs.ValidationError, ValueError):
            jsonschema_rs.validator_for(schema, pattern_options=pattern_options(size))
            return size
    return 0


def _patterns(schema: Mapping[str, Any]) -> list[str]:
    pattern = schema.get("pattern")
    by_pattern = schema.get("patternProperties")
    patterns = [pattern] if isinstance(pattern, str) else []
    return patterns + (list(by_pattern) if isinstance(by_pattern, dict) else [])


def _copy_cost(value: Any) -> float:
    """Return the units that a copy of a value takes."""
    text = json_bytes(value)
    return len(text) / _CHARACTERS + text.count(b",") / _ENTRIES


def _members(value: Any) -> Iterable[Any]:
    """Return the members of an object or a list, nothing of anything else."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _nodes(value: Any) -> Iterator[Any]:
    """Yield a value and all values within it."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _members(node)


class SchemaCost:
    """The cost of checks by a schema, known before it is used."""

    def __init__(self, schema: Any, length: int) -> None:
        """Collect the references and the size of a schema; ``length`` is that of its text.

        Raises:
            Unusable: It is too large.
        """
        if length > _LARGEST_SCHEMA:
            raise _too_large(f"the schema is longer than {_LARGEST_SCHEMA >> 20} MB")
        self._schema = schema
        self._size = 0
        self._pattern_bytes = 0
        self._bases = [schema]
        self._anchors: dict[str, list[Any]] = {}
        self._has_references = False
        nodes = list(_nodes(schema))
        self._size += len(nodes)
        schemas = [node for node in nodes if isinstance(node, dict)]
        for node in schemas:
            self._add_names(node)
            self._add_patterns(node)
            self._has_references = self._has_references or not node.keys().isdisjoint(_REFERENCES)
        self.memory = 64 * length + self._pattern_bytes
        """Bytes that its validator may hold."""
        # copied into the validator of the keyword, for all schemas that are for the same value
        copied = [
            node
            for node in schemas
            if "unevaluatedProperties" in node or "unevaluatedItems" in node
        ]
        self._count(copied, None, _MOST // 2)

    def _add_names(self, node: dict[str, Any]) -> None:
        """Record the names by which a subschema may be referenced, and whether it is a base."""
        for key in _NAMES:
            name = node.get(key)
            if isinstance(name, str) and name:
                self._anchors.setdefault(name.removeprefix("#"), []).append(node)
        if node is not self._schema and (node.get("$id") or node.get("id")):
            self._bases.append(node)
        if node.get("$recursiveAnchor") is True:
            self._anchors.setdefault("", []).append(node)

    def _add_patterns(self, node: dict[str, Any]) -> None:
        for pattern in _patterns(node):
            compiled = _size_of(pattern)
            self._pattern_bytes += compiled + _CACHE
            self._size += compiled // _STATE // _STEPS
            if self._pattern_bytes > _LARGEST_PATTERNS:
                raise _too_large("the patterns of the schema are too many or too large")

    def check(self, value: Any) -> None:
        """Refuse a value whose check takes too much time or memory."""
        if self._has_references or self._size * len(json_bytes(value)) > _ALWAYS:
            self._count([self._schema], value, _MOST)

    def _count(self, schemas: list[Any], value: Any, most: int) -> None:
        """Count the units that schemas, and all that they lead to, take at a value.

        Refuse too many.
        """
        waiting: list[tuple[Any, Any, int, tuple[int, ...]]] = [
            (schema, value, 0, ()) for schema in schemas
        ]
        units = 0.0
        while waiting:
            schema, at, level, behind = waiting.pop()
            units += 1 + level / _LEVELS
            if isinstance(schema, dict):
                units += _own_cost(schema, at)
                for target in self._targets(schema):
                    if target is None:
                        copy_cost = _copy_cost(at)
                        units += _METASCHEMA * (1 + copy_cost)
                    elif id(target) not in behind:
                        # else it leads back to itself, which the library sees, too
                        waiting.append((target, at, level + 1, (*behind, id(target))))
                for inner, member in _applied(schema, at):
                    waiting.append((inner, member, level + 1, behind if member is at else ()))
            if units > most:
                raise _too_large("a check by the schema takes too much time or memory")

    def _targets(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the schemas that the references of one may mean.

        None is one that the library has itself.
        """
        for key in _REFERENCES:
            reference = schema.get(key)
            if isinstance(reference, str):
                yield from self._targets_of(reference)

    def _targets_of(self, reference: str) -> Iterable[Any]:
        """Find all subschemas that a reference may stand for; [None] for a meta-schema."""
        address, _, quoted = reference.partition("#")
        fragment = unquote(quoted)
        is_pointer = fragment.startswith("/")
        if is_pointer:
            targets = []
        else:
            targets = list(self._anchors.get(fragment, ()))
        if is_pointer or not fragment:
            values = [value_at(base, fragment) for base in self._bases]
            targets += [value for value in values if isinstance(value, dict | bool)]
        is_known = address.partition("://")[2].startswith("json-schema.org/")
        if not targets and not is_known:
            raise _too_large(f"the reference {reference[:60]!r} cannot be followed")
        targets_by_id = {id(target): target for target in targets or [None]}
        return targets_by_id.values()


def _own_cost(schema: Mapping[str, Any], value: Any) -> float:
    """Return the units of a schema's own keywords at a value.

    At most an error of each entry, with a copy.
    """
    errors, compared = len(schema), 0.0
    for key, argument in schema.items():
        if key in {"required", "dependentRequired", "dependencies"}:
            members = _members(argument)
            lengths = [len(names) if isinstance(names, list) else 1 for names in members]
            errors += sum(lengths)
        elif key in {"enum", "const"}:
            compared += _copy_cost(argument)
    steps = 0.0
    patterns = _patterns(schema)
    if patterns:
        texts = [value] if isinstance(value, str) else value if isinstance(value, Mapping) else ()
        total_sizes = sum(map(_size_of, patterns))
        total_texts = sum(map(len, texts))
        steps = total_sizes / _STATE * total_texts
    copy_cost = _copy_cost(value)
    return errors * (1 + copy_cost) + compared + steps / _STEPS


_IN_PLACE: Final = {"allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"}
_ALTERNATIVES: Final = {"not", "if", "then", "else"}
_OF_ITEMS: Final = {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"}


def _applied(schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the schemas inside of one, each with the part of the value it is for."""
    for key, inner in schema.items():
        if key in _IN_PLACE:
            yield from [(member, value) for member in _members(inner)]
        elif key in _ALTERNATIVES:
            yield inner, value
        elif isinstance(value, Mapping) and isinstance(inner, dict):
            yield from _applied_to_members(key, inner, schema, value)
        elif isinstance(value, list | tuple) and key in _OF_ITEMS:
            if isinstance(inner, list):
                yield from zip(inner, value, strict=False)
            else:
                yield from [(inner, item) for item in value]


def _applied_to_members(
    key: str, inner: dict[str, Any], schema: Mapping[str, Any], value: Mapping[str, Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield (schema, part of the object) for each schema that a keyword applies to members."""
    if key == "properties":
        smaller, larger = (inner, value) if len(inner) < len(value) else (value, inner)
        yield from [(inner[name], value[name]) for name in smaller if name in larger]
    elif key == "patternProperties":
        yield from [(one, member) for one in inner.values() for member in value.values()]
    elif key in {"additionalProperties", "unevaluatedProperties"}:
        named = schema.get("properties")
        names = named if isinstance(named, dict) else {}
        yield from [(inner, member) for name, member in value.items() if name not in names]
    elif key == "propertyNames":
        yield from [(inner, name) for name in value]
