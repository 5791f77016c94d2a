"""Tool schemas: DeepFabric's own list form, the OpenAI form, and what the grader checks arguments
against.

Conversions follow the rules of DeepFabric's tool definitions (``docs/deepfabric.md``, "Tool
schemas").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from gradestack import ABSENT, JSON, Reason, ToolSpec, replace
from gradestack.jsonio import as_list, pointer_to, same
from gradestack_plugins.deepfabric.options import OLD, RecordProblem, Rules, Version
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

_CLASSES: Final[dict[str, frozenset[type]]] = {
    "str": frozenset({str}),
    "int": frozenset({int}),
    "float": frozenset({int, float}),
    "bool": frozenset({bool}),
    "list": frozenset({list}),
    "dict": frozenset({dict}),
}
"""Classes of decoded JSON values each type accepts: nothing is coerced.

A bool is no number, 1.0 is no int.
"""

_JSON_CLASSES: Final = frozenset({str, int, float, bool, list, dict, type(None)})


class Signature(NamedTuple):
    """What is checked of one tool's arguments."""

    required: tuple[str, ...]
    classes: Mapping[str, frozenset[type] | None]
    """Accepted classes by parameter name; None for a parameter whose type is not declared."""
    words: Mapping[str, str]  # declared types, for messages
    properties: Mapping[str, Any]


def fits(accepted: frozenset[type], value: JSON) -> bool:
    """Return whether a value is of an accepted class.

    Values that are not plain JSON count by their base class.
    """
    kind = type(value)
    return kind in accepted or (kind not in _JSON_CLASSES and isinstance(value, tuple(accepted)))


def signature(parameters: Mapping[str, JSON] | None, rules: Rules) -> Signature:
    """Return what is checked of a tool's JSON Schema."""
    return _documented(parameters) if rules == "documented" else _upstream(parameters, rules)


def _upstream(parameters: Mapping[str, JSON] | None, version: Version) -> Signature:
    schema: Any = (
        parameters  # whatever it is, it fails below with the words the original fails with
    )
    words: dict[str, str] = {}
    try:
        properties, listed = schema.get("properties", {}), schema.get("required", [])
        if version != OLD:
            properties, listed = properties or {}, listed or []
        listed = set(listed)
        for name, declared in properties.items():
            if declared is None:
                continue
            words[name] = OWN_OF_JSON.get(declared.get("type", "string"), "str")
            if not isinstance(declared.get("description", ""), str):
                raise RecordProblem(f"the description of parameter {name!r} is not text")
        required = tuple([name for name in words if name in listed])
    except (AttributeError, TypeError) as error:
        raise RecordProblem(str(error), stops=isinstance(error, TypeError)) from error
    return Signature(
        required, {name: _CLASSES[word] for name, word in words.items()}, words, properties
    )


def _documented(parameters: Mapping[str, JSON] | None) -> Signature:
    schema: Mapping[str, JSON] = parameters if isinstance(parameters, Mapping) else {}
    properties, listed = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, Mapping) else {}
    types = {
        name: each.get("type") if isinstance(each, Mapping) else None
        for name, each in properties.items()
    }
    words = {
        name: " or ".join(map(str, word)) if isinstance(word, list) else str(word)
        for name, word in types.items()
    }
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    classes = {name: classes_of(word) for name, word in types.items()}
    return Signature(tuple(dict.fromkeys(names)), classes, words, properties)


def classes_of(word: JSON) -> frozenset[type] | None:
    """Return the classes a declared type accepts, None when it declares nothing that can be
    checked.

    JSON Schema's words, DeepFabric's own words and lists of either are understood.
    """
    if isinstance(word, list):
        accepted: frozenset[type] = frozenset()
        for entry in word:
            found = classes_of(entry) if isinstance(entry, str) else None
            if found is None:
                return None
            accepted |= found
        return accepted or None
    if not isinstance(word, str):
        return None
    if word == "null":
        return frozenset({type(None)})
    return _CLASSES.get(OWN_OF_JSON.get(word, word))


_MOST_TOOLS = 4096
_LARGEST_TOOL = 8 * 1024  # bytes of a tool that is shared: all that are held have a bound
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


_signatures: dict[tuple[str, Rules], tuple[Mapping[str, JSON], Signature | None]] = {}
"""Of the last tool of a name, with its parameters.

Making it for every sample takes a fifth of a run without rows.
"""


def find(specs: tuple[ToolSpec, ...], name: str, rules: Rules) -> Signature | None:
    """Return the signature of the first tool of that name, None when there is none, or none that
    can be converted.
    """
    for spec in specs:
        if spec.name == name:
            break
    else:
        return None
    parameters = spec.parameters or {}
    known = _signatures.get((name, rules))
    if known is not None and (known[0] is parameters or known[0] == parameters):
        return known[1]
    found = None
    with suppress(RecordProblem):
        found = signature(parameters, rules)
    if len(_signatures) >= _MOST_TOOLS:
        _signatures.clear()
    _signatures[name, rules] = parameters, found
    return found


def conversion_problem(specs: tuple[ToolSpec, ...], version: Rules) -> RecordProblem | None:
    """Return why a version of the program cannot convert a snapshot of tools, None when it can."""
    try:
        for spec in specs:
            signature(spec.parameters or {}, version)
    except RecordProblem as problem:
        return problem
    return None


def convert(raw: Sequence[Mapping[str, JSON]], rules: Rules) -> tuple[ToolSpec, ...]:
    """Return a record's ``tools`` as tool specifications.

    Records with the same tool share one object.
    """
    return tuple(spec for entry in raw if (spec := _shared(entry, rules)) is not None)


def _shared(entry: Mapping[str, JSON], rules: Rules) -> ToolSpec | None:
    """Return a tool; one of the same content met before is the same object again, and is not made
    again.

    Content is compared as MessagePack, which unlike ``==`` tells true from 1 and 1.0.
    """
    with suppress(
        ValueError, OverflowError, RecursionError
    ):  # lone surrogates, huge integers, deep nesting
        packed = _pack(entry)
        if len(packed) <= _LARGEST_TOOL:
            return _held(packed, rules)
    return _spec(entry, rules)


@lru_cache(_MOST_TOOLS)  # without it a run without rows takes 1.2 times as long
def _held(packed: bytes, rules: Rules) -> ToolSpec | None:
    return _spec(_unpack(packed), rules)


def _spec(entry: Mapping[str, JSON], rules: Rules) -> ToolSpec | None:
    if rules != "documented":
        return _upstream_spec(entry, rules)
    spec = chat.tool_spec(entry)
    return spec if spec is not None and spec.name else None


def _upstream_spec(entry: Mapping[str, Any], version: Version) -> ToolSpec:
    try:
        function = entry.get("function", {})
        name, description = function.get("name", ""), function.get("description", "")
        parameters = function.get("parameters", {})
    except AttributeError as error:
        raise RecordProblem(str(error)) from error
    signature(parameters, version)
    for what, text in (("name", name), ("description", description)):
        if not isinstance(text, str):
            raise RecordProblem(f"the {what} of a tool must be text, got {json.dumps(text)[:80]}")
    return ToolSpec(name=name, description=description, parameters=parameters)


TOLERANCE: Final = 1e-6  # largest difference of two numbers that count as equal
_DEEPEST: Final = 64  # nested values below this depth are not checked


class Strictness(NamedTuple):
    """Checks beyond required names and top-level types."""

    unknown_wrong: bool = False
    enums: bool = False
    nested: bool = False


MOST_REASONS: Final = 50  # arguments whose faults are listed per sample; the verdict needs one


def schema_reasons(
    signature: Signature, arguments: Mapping[str, JSON], tool: str, strict: Strictness
) -> list[Reason]:
    """Return why arguments do not satisfy a tool's schema; nothing when they do."""
    lost, classes, deeper = [], signature.classes, True in strict
    for name in signature.required:
        if name not in arguments:
            word = signature.words.get(name, "")
            lost.append(
                Reason(
                    code="missing_argument", pointer=pointer_to(name), subject=tool, expected=word
                )
            )
    for name, value in arguments.items():
        if name not in classes:
            if strict.unknown_wrong:
                lost.append(
                    Reason(
                        code="unknown_argument",
                        pointer=pointer_to(name),
                        subject=tool,
                        actual=value,
                    )
                )
            continue
        accepted = classes[name]
        if accepted is not None and type(value) not in accepted and not fits(accepted, value):
            word, place = signature.words[name], pointer_to(name)
            lost.append(
                Reason(code="wrong_type", pointer=place, subject=tool, expected=word, actual=value)
            )
        elif deeper:
            inner = _inner_reasons(
                signature.properties[name], value, (name,), tool, strict, typed=True
            )
            lost += islice(inner, MOST_REASONS)
    return lost[:MOST_REASONS]


def _inner_reasons(
    schema: Any,
    value: JSON,
    path: tuple[str | int, ...],
    tool: str,
    strict: Strictness,
    *,
    typed: bool = False,
) -> Iterator[Reason]:
    """Yield what enumerations and nested schemas have against a value, whose own type may be known
    to be right.
    """
    if not isinstance(schema, Mapping):
        return
    here = Reason(code="wrong_type", pointer=pointer_to(*path), subject=tool, actual=value)
    accepted = None if typed else classes_of(schema.get("type"))
    if accepted is not None and not fits(accepted, value):
        yield replace(here, expected=schema["type"])
        return
    if len(path) > _DEEPEST:
        return
    listed = schema.get("enum") if strict.enums else None
    allowed = [schema["const"]] if strict.enums and "const" in schema else listed
    if isinstance(allowed, list) and not any(_same(value, each) for each in allowed):
        yield replace(here, code="not_in_enum", expected=allowed)
    if strict.nested:
        yield from _nested_reasons(schema, value, path, tool, strict)


def _nested_reasons(  # noqa: C901
    schema: Mapping[str, Any],
    value: JSON,
    path: tuple[str | int, ...],
    tool: str,
    strict: Strictness,
) -> Iterator[Reason]:
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        tried = [
            list(_inner_reasons(each, value, path, tool, strict)) for each in as_list(branches)
        ]
        if tried and all(tried):
            place = pointer_to(*path)
            yield Reason(
                code="no_branch_fits", pointer=place, subject=tool, expected=word, actual=value
            )
    items = schema.get("items")
    properties: Any = schema.get("properties")
    if isinstance(value, list) and isinstance(items, Mapping):
        for at, item in enumerate(value):
            yield from _inner_reasons(items, item, (*path, at), tool, strict)
    if not isinstance(value, Mapping):
        return
    for name in as_list(schema.get("required")):
        if isinstance(name, str) and name not in value:
            yield Reason(code="missing_argument", pointer=pointer_to(*path, name), subject=tool)
    for name, item in value.items() if isinstance(properties, Mapping) else ():
        if name in properties:
            yield from _inner_reasons(properties[name], item, (*path, name), tool, strict)
        elif strict.unknown_wrong:
            yield Reason(
                code="unknown_argument", pointer=pointer_to(*path, name), subject=tool, actual=item
            )


def _same(value: JSON, other: JSON) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and same(value, other)


def values_equal(expected: Mapping[str, JSON], predicted: Mapping[str, JSON]) -> bool:
    """Return whether two argument objects are equal by value (``upstream``, where there is no
    schema to check against).

    The same keys; text equal without case and surrounding space; numbers (bools among them) within
    1e-6; anything else equal as Python compares.
    """
    if expected.keys() != predicted.keys():
        return False
    return all(_equal(value, predicted[name]) for name, value in expected.items())


def _equal(expected: JSON, predicted: JSON) -> bool:
    if isinstance(expected, str) and isinstance(predicted, str):
        return expected.lower().strip() == predicted.lower().strip()
    if isinstance(expected, int | float) and isinstance(predicted, int | float):
        return not abs(float(expected) - float(predicted)) > TOLERANCE
    return bool(expected == predicted)


def value_reasons(
    expected: Mapping[str, JSON], predicted: Mapping[str, JSON], tool: str
) -> Iterator[Reason]:
    """Yield where two argument objects differ by value, as values do that cannot be compared."""
    for name, value in expected.items():
        found, equal = predicted.get(name, ABSENT), False
        if found is ABSENT:
            yield Reason(
                code="missing_argument", pointer=pointer_to(name), subject=tool, expected=value
            )
            continue
        with suppress(OverflowError, RecursionError):
            equal = _equal(value, found)
        if not equal:
            yield Reason(
                code="different_value",
                pointer=pointer_to(name),
                subject=tool,
                expected=value,
                actual=found,
            )
    for name, value in predicted.items():
        if name not in expected:
            yield Reason(
                code="unknown_argument", pointer=pointer_to(name), subject=tool, actual=value
            )
