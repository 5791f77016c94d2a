"""Checks of arguments by JSON Schema, as far as the metric goes into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from gradestack import JSON, Reason, ToolSpec
from gradestack.jsonio import as_list, as_map, pointer_to, same
from gradestack_plugins.readers import chat

Classes = tuple[type, ...]
CLASSES: Final[dict[str, Classes]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
"""Classes of decoded values that each type of a schema accepts: nothing is coerced."""
_KNOWN_CLASSES: Final[dict[str, Classes]] = {
    **CLASSES,
    "null": (type(None),),
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}
"""The same with null, and with DeepFabric's own words."""
MOST_REASONS: Final = 50
"""Faults that are listed of the arguments of a call; the verdict needs one."""
_DEEPEST: Final = 64
"""Nested values below this depth are not checked."""
_Place = tuple[str | int, ...]
"""The name of a tool, and the steps from its arguments to a value."""


def convert(tools: Sequence[Mapping[str, JSON]]) -> tuple[ToolSpec, ...]:
    """Return a record's tools as tool specifications, without those that have no name."""
    specs = map(chat.tool_spec, tools)
    return tuple(spec for spec in specs if spec is not None and spec.name)


def accepted_classes(declared: JSON) -> Classes | None:
    """Return the classes a declared type accepts, None where it declares nothing to check.

    A type is a word, or a list of words.
    """
    if isinstance(declared, str):
        return _KNOWN_CLASSES.get(declared)
    if not isinstance(declared, list):
        return None
    classes = [_KNOWN_CLASSES.get(word, ()) for word in declared if isinstance(word, str)]
    if not classes or len(classes) < len(declared) or () in classes:
        return None
    return tuple(chain(*classes))


def type_words(schema: JSON) -> str:
    """Return the declared type of a value, for messages."""
    declared = as_map(schema).get("type")
    if isinstance(declared, list):
        return " or ".join(map(str, declared))
    return str(declared)


class Check(msgspec.Struct, frozen=True, gc=False):
    """A check of the arguments of calls: required names and types, and what is asked for."""

    unknown: bool = False
    """Whether arguments the schema does not know are wrong."""
    enums: bool = False
    """Whether values are held against ``enum`` and ``const``."""
    nested: bool = False
    """Whether nested objects, list items and alternatives are checked, too."""

    def list_reasons(self, tool: str, schema: JSON, arguments: Mapping[str, JSON]) -> list[Reason]:
        """Return why arguments do not satisfy a tool's schema; nothing when they do."""
        known = schema if type(schema) is dict else as_map(schema)
        return self._check_members(known, arguments, (tool,))[:MOST_REASONS]

    def _check_members(
        self, schema: Mapping[str, Any], members: Mapping[str, JSON], place: _Place
    ) -> list[Reason]:
        """Return the required members that are missing, then what is wrong with the others."""
        declared = schema.get("properties")
        properties = declared if type(declared) is dict else as_map(declared)
        required = schema.get("required")
        missing: dict[str, None] = {}
        for name in required if type(required) is list else as_list(required):
            if isinstance(name, str) and name not in members:
                missing[name] = None
        reasons: list[Reason] = []
        for name in missing:
            expected = ""
            if name in properties:
                expected = type_words(properties[name])
            reasons.append(_reason("missing_argument", (*place, name), expected=expected))
        is_closed = self.unknown and (isinstance(declared, Mapping) or len(place) == 1)
        for name, value in members.items():
            if name in properties:
                reasons += self._check_value(properties[name], value, place, name)
            elif is_closed:
                reasons.append(_reason("unknown_argument", (*place, name), actual=value))
        return reasons

    def _check_value(
        self, declared: JSON, value: JSON, parent: _Place, step: str | int
    ) -> Sequence[Reason]:
        """Return the faults of a value by a schema, that of its type alone if there is one.

        A bool is no number, and 1.0 is no integer.
        """
        schema = declared if type(declared) is dict else as_map(declared)
        word = schema.get("type")
        accepted = _KNOWN_CLASSES.get(word) if type(word) is str else accepted_classes(word)
        if accepted is not None and type(value) not in accepted:
            is_of_subclass = not isinstance(value, bool) and isinstance(value, accepted)
            if not is_of_subclass:
                place, expected = (*parent, step), type_words(schema)
                return [_reason("wrong_type", place, expected=expected, actual=value)]
        if not (self.enums or self.nested) or len(parent) > _DEEPEST:
            return ()
        reasons: list[Reason] = []
        if self.enums:
            reasons += _check_enum(schema, value, (*parent, step))
        if self.nested:
            reasons += self._check_content(schema, value, parent, step)
        return reasons

    def _check_content(
        self, schema: Mapping[str, Any], value: JSON, parent: _Place, step: str | int
    ) -> list[Reason]:
        """Return the alternatives of which none fits, then what is wrong inside of a value."""
        place = (*parent, step)
        reasons: list[Reason] = []
        for keyword in ("anyOf", "oneOf"):
            branches = as_list(schema.get(keyword))
            if branches and all(
                self._check_value(branch, value, parent, step) for branch in branches
            ):
                reason = _reason("no_branch_fits", place, expected=keyword, actual=value)
                reasons.append(reason)
        if isinstance(value, Mapping):
            reasons += self._check_members(schema, value, place)
        elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            for index, item in enumerate(value):
                declared = schema["items"]
                reasons += self._check_value(declared, item, place, index)
        return reasons


def _check_enum(schema: Mapping[str, Any], value: JSON, place: _Place) -> Sequence[Reason]:
    """Return the fault of a value that is none of those a schema lists."""
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(allowed, list) or any(_is_same(value, entry) for entry in allowed):
        return ()
    return [_reason("not_in_enum", place, expected=allowed, actual=value)]


def _reason(code: str, place: _Place, **values: JSON) -> Reason:
    tool, *steps = place
    return Reason(code=code, pointer=pointer_to(*steps), subject=str(tool), **values)


def _is_same(value: JSON, other: JSON) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and same(value, other)
