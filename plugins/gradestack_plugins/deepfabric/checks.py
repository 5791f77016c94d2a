"""Comparing arguments: against a schema, against expected values, and why they fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from gradestack import ABSENT, JSON, Reason
from gradestack_plugins.deepfabric.schemas import Signature, classes_of, fits

TOLERANCE: Final = 1e-6
"""Largest difference of two numbers that count as equal."""
_DEEPEST: Final = 64
"""Nested values below this depth are not checked."""


@attrs.frozen
class Strictness:
    """Checks beyond required names and top-level types; all off by default."""

    unknown_wrong: bool = False
    enums: bool = False
    nested: bool = False

    @property
    def any(self) -> bool:
        """Whether one of them is on."""
        return self.unknown_wrong or self.enums or self.nested


def pointer(*path: str | int) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def schema_reasons(
    signature: Signature, arguments: Mapping[str, JSON], tool: str, strict: Strictness
) -> Iterator[Reason]:
    """Yield why arguments do not satisfy a tool's schema; nothing when they do."""
    for name in signature.required:
        if name not in arguments:
            yield Reason(
                code="missing_argument", pointer=pointer(name), subject=tool, expected=signature.words.get(name, "")
            )
    properties = signature.schema.get("properties")
    for name, value in arguments.items():
        if name not in signature.classes:
            if strict.unknown_wrong:
                yield Reason(code="unknown_argument", pointer=pointer(name), subject=tool, actual=value)
            continue
        accepted = signature.classes[name]
        if accepted is not None and not fits(accepted, value):
            declared = signature.words[name]
            yield Reason(code="wrong_type", pointer=pointer(name), subject=tool, expected=declared, actual=value)
        elif strict.any and isinstance(properties, Mapping):
            yield from _value_reasons(properties.get(name), value, (name,), tool, strict)


def _value_reasons(
    schema: Any, value: JSON, path: tuple[str | int, ...], tool: str, strict: Strictness
) -> Iterator[Reason]:
    """Yield what enumerations and nested schemas have against a value whose own type is right."""
    if not isinstance(schema, Mapping) or len(path) > _DEEPEST:
        return
    if strict.enums:
        yield from _enum_reasons(schema, value, path, tool)
    if not strict.nested:
        return
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, list) and branches:
            tried = [list(_typed_reasons(branch, value, path, tool, strict)) for branch in branches]
            if all(tried):
                yield Reason(code="no_branch_fits", pointer=pointer(*path), subject=tool, expected=word, actual=value)
    if isinstance(value, Mapping):
        yield from _object_reasons(schema, value, path, tool, strict)
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for at, item in enumerate(value):
            yield from _typed_reasons(schema["items"], item, (*path, at), tool, strict)


def _typed_reasons(
    schema: Any, value: JSON, path: tuple[str | int, ...], tool: str, strict: Strictness
) -> Iterator[Reason]:
    accepted = classes_of(schema.get("type")) if isinstance(schema, Mapping) else None
    if accepted is not None and not fits(accepted, value):
        declared = schema["type"]
        yield Reason(code="wrong_type", pointer=pointer(*path), subject=tool, expected=declared, actual=value)
    else:
        yield from _value_reasons(schema, value, path, tool, strict)


def _object_reasons(
    schema: Mapping[str, Any], value: Mapping[str, JSON], path: tuple[str | int, ...], tool: str, strict: Strictness
) -> Iterator[Reason]:
    properties, required = schema.get("properties"), schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in value:
            yield Reason(code="missing_argument", pointer=pointer(*path, name), subject=tool)
    if not isinstance(properties, Mapping):
        return
    for name, item in value.items():
        if name in properties:
            yield from _typed_reasons(properties[name], item, (*path, name), tool, strict)
        elif strict.unknown_wrong:
            yield Reason(code="unknown_argument", pointer=pointer(*path, name), subject=tool, actual=item)


def _enum_reasons(schema: Mapping[str, Any], value: JSON, path: tuple[str | int, ...], tool: str) -> Iterator[Reason]:
    listed = schema.get("enum")
    allowed = [schema["const"]] if "const" in schema else listed if isinstance(listed, list) else None
    if allowed is not None and not any(_same(value, one) for one in allowed):
        yield Reason(code="not_in_enum", pointer=pointer(*path), subject=tool, expected=allowed, actual=value)


def _same(left: JSON, right: JSON) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true is not 1."""
    try:
        return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
    except RecursionError:
        return False


def values_equal(expected: Mapping[str, JSON], predicted: Mapping[str, JSON]) -> bool:
    """Return whether two argument objects are equal by value (``upstream``, where there is no schema to check against).

    The same keys; text equal without case and surrounding space; numbers (bools among them) within 1e-6; anything else
    equal as Python compares.

    Raises:
        OverflowError: A whole number too large for a float, on which the original fails too.
        RecursionError: Values nested too deeply to be compared, likewise.
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


def _comparable_and_equal(expected: JSON, predicted: JSON) -> bool:
    """Return whether two values are equal; those that cannot be compared, which the verdict did not need, are not."""
    try:
        return _equal(expected, predicted)
    except (OverflowError, RecursionError):
        return False


def value_reasons(expected: Mapping[str, JSON], predicted: Mapping[str, JSON], tool: str) -> Iterator[Reason]:
    """Yield where two argument objects differ by value."""
    for name, value in expected.items():
        found = predicted.get(name, ABSENT)
        if found is ABSENT:
            yield Reason(code="missing_argument", pointer=pointer(name), subject=tool, expected=value)
        elif not _comparable_and_equal(value, found):
            yield Reason(code="different_value", pointer=pointer(name), subject=tool, expected=value, actual=found)
    for name, value in predicted.items():
        if name not in expected:
            yield Reason(code="unknown_argument", pointer=pointer(name), subject=tool, actual=value)
