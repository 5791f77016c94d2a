"""Tool schemas, in DeepFabric's own list form or OpenAI's: what arguments are checked against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from gradestack import JSON, Reason, ToolSpec
from gradestack.jsonio import as_list, as_map, pointer_to, same
from gradestack_plugins.readers import chat

OWN_OF_JSON: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
"""JSON Schema's type words -> DeepFabric's own."""

CLASSES: Final[dict[str, frozenset[type]]] = {
    "str": frozenset({str}),
    "int": frozenset({int}),
    "float": frozenset({int, float}),
    "bool": frozenset({bool}),
    "list": frozenset({list}),
    "dict": frozenset({dict}),
    "null": frozenset({type(None)}),
}
"""Classes of decoded JSON values each type accepts: nothing is coerced.

A bool is no number, 1.0 is no int.
"""

_JSON_CLASSES: Final = frozenset({str, int, float, bool, list, dict, type(None)})


Made = TypeVar("Made")


class Parameter(NamedTuple):
    """What is checked of one argument."""

    word: str
    """The declared type, for messages."""
    classes: frozenset[type] | None
    """Accepted classes; None where no type is declared."""
    schema: JSON = None
    """The whole schema of the argument."""


class Signature(NamedTuple):
    """What is checked of one tool's arguments."""

    required: tuple[str, ...]
    parameters: Mapping[str, Parameter]

    def word_of(self, name: str) -> str:
        """Return the declared type of an argument, "" without a declaration."""
        return self.parameters[name].word if name in self.parameters else ""


def fits(accepted: frozenset[type], value: JSON) -> bool:
    """Return whether a value is of an accepted class.

    Values that are not plain JSON count by their base class.
    """
    kind = type(value)
    return kind in accepted or (kind not in _JSON_CLASSES and isinstance(value, tuple(accepted)))


def signature(parameters: JSON) -> Signature:
    """Return what is checked of a tool's JSON Schema."""
    schema = as_map(parameters)
    declared = {}
    for name, inner in as_map(schema.get("properties")).items():
        word = as_map(inner).get("type")
        shown = " or ".join(map(str, word)) if isinstance(word, list) else str(word)
        declared[name] = Parameter(shown, classes_of(word), inner)
    required = schema.get("required")
    names = (
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else ()
    )
    return Signature(tuple(dict.fromkeys(names)), declared)


def classes_of(word: JSON) -> frozenset[type] | None:
    """Return the classes a declared type accepts, None when it declares nothing that can be
    checked.

    JSON Schema's words, DeepFabric's own words and lists of either are understood.
    """
    if isinstance(word, list):
        classes = [classes_of(entry) if isinstance(entry, str) else None for entry in word]
        known = [accepted for accepted in classes if accepted is not None]
        return frozenset().union(*known) if known and len(known) == len(classes) else None
    if not isinstance(word, str):
        return None
    return CLASSES.get(OWN_OF_JSON.get(word, word))


LARGEST_SCHEMA: Final = 8 * 1024  # bytes of what is made once: all that are held have a bound
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def make_once(make: Callable[[Any], Made], schema: Any) -> Made:
    """Make something of a schema, the same object for the same content."""
    try:
        packed = _pack(schema)  # unlike ``==`` MessagePack tells true from 1 and 1.0
    except (TypeError, ValueError, OverflowError, RecursionError):  # of lone surrogates, too
        return make(schema)
    return _made_of(make, packed) if len(packed) <= LARGEST_SCHEMA else make(schema)


@lru_cache(8192)  # without it a run without rows takes 1.2 times as long
def _made_of(make: Callable[[Any], Made], packed: bytes) -> Made:
    return make(_unpack(packed))


def find_signature(tools: tuple[ToolSpec, ...], name: str) -> Signature | None:
    """Return the signature of the first tool of that name, None when there is none."""
    parameters = [tool.parameters for tool in tools if tool.name == name]
    return make_once(signature, parameters[0]) if parameters else None


def convert(tools: Sequence[Mapping[str, JSON]]) -> tuple[ToolSpec, ...]:
    """Return a record's tools as tool specifications, without those that have no name."""
    specs = [make_once(chat.tool_spec, tool) for tool in tools]
    return tuple(spec for spec in specs if spec is not None and spec.name)


MOST_REASONS: Final = 50  # arguments whose faults are listed per sample; the verdict needs one


class Strictness(NamedTuple):
    """Checks beyond required names and types."""

    unknown: bool = False
    """Whether arguments the schema does not know are wrong."""
    enums: bool = False
    """Whether values are held against ``enum`` and ``const``."""
    nested: bool = False
    """Whether nested objects, list items and alternatives are checked, too."""


def schema_reasons(
    signature: Signature, arguments: Mapping[str, JSON], tool: str, strict: Strictness
) -> list[Reason]:
    """Return why arguments do not satisfy a tool's schema; nothing when they do."""
    reasons = [
        _lost("missing_argument", tool, name, expected=signature.word_of(name))
        for name in signature.required
        if name not in arguments
    ]
    for name, value in arguments.items():
        declared = signature.parameters.get(name)
        if declared is None:
            if strict.unknown:
                reasons.append(_lost("unknown_argument", tool, name, actual=value))
        elif declared.classes is not None and not fits(declared.classes, value):
            word = declared.word
            reasons.append(_lost("wrong_type", tool, name, expected=word, actual=value))
        elif strict.enums or strict.nested:
            found = _strict_reasons(declared.schema, value, (name,), tool, strict)
            reasons += islice(found, MOST_REASONS)
    return reasons[:MOST_REASONS]


def _lost(code: str, tool: str, *path: str | int, **values: JSON) -> Reason:
    return Reason(code=code, pointer=pointer_to(*path), subject=tool, **values)


_DEEPEST: Final = 64  # nested values below this depth are not checked


def _inner_reasons(
    schema: JSON, value: JSON, path: tuple[str | int, ...], tool: str, strict: Strictness
) -> Iterator[Reason]:
    """Yield what a nested schema has against a value, its type first."""
    declared = as_map(schema).get("type")
    accepted = classes_of(declared)
    if accepted is not None and not fits(accepted, value):
        yield _lost("wrong_type", tool, *path, expected=declared, actual=value)
    else:
        yield from _strict_reasons(schema, value, path, tool, strict)


def _strict_reasons(
    schema: JSON, value: JSON, path: tuple[str | int, ...], tool: str, strict: Strictness
) -> Iterator[Reason]:
    """Yield what a schema has against a value whose type is right."""
    known = as_map(schema)
    if not known or len(path) > _DEEPEST:
        return
    if strict.enums:
        allowed = [known["const"]] if "const" in known else known.get("enum")
        if isinstance(allowed, list) and not any(_is_same(value, each) for each in allowed):
            yield _lost("not_in_enum", tool, *path, expected=allowed, actual=value)
    if strict.nested:
        yield from _branch_reasons(known, value, path, tool, strict)
        yield from _content_reasons(known, value, path, tool, strict)


def _branch_reasons(
    schema: Mapping[str, JSON],
    value: JSON,
    path: tuple[str | int, ...],
    tool: str,
    strict: Strictness,
) -> Iterator[Reason]:
    """Yield the alternatives of which none fits."""
    for word in ("anyOf", "oneOf"):
        branches = as_list(schema.get(word))
        tried = [list(_inner_reasons(each, value, path, tool, strict)) for each in branches]
        if tried and all(tried):
            yield _lost("no_branch_fits", tool, *path, expected=word, actual=value)


def _content_reasons(
    schema: Mapping[str, JSON],
    value: JSON,
    path: tuple[str | int, ...],
    tool: str,
    strict: Strictness,
) -> Iterator[Reason]:
    """Yield what is wrong with the items of a list, or the members of an object."""
    items = schema.get("items")
    properties: Any = schema.get("properties")
    if isinstance(value, list) and isinstance(items, Mapping):
        for at, item in enumerate(value):
            yield from _inner_reasons(items, item, (*path, at), tool, strict)
    if not isinstance(value, Mapping):
        return
    for name in as_list(schema.get("required")):
        if isinstance(name, str) and name not in value:
            yield _lost("missing_argument", tool, *path, name)
    for name, item in value.items() if isinstance(properties, Mapping) else ():
        if name in properties:
            yield from _inner_reasons(properties[name], item, (*path, name), tool, strict)
        elif strict.unknown:
            yield _lost("unknown_argument", tool, *path, name, actual=item)


def _is_same(value: JSON, other: JSON) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and same(value, other)
