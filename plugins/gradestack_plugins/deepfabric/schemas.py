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
_Path = tuple[str | int, ...]


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


def is_accepted(accepted: Classes, value: JSON) -> bool:
    """Return whether a value is of an accepted class; a bool is no number, 1.0 is no integer."""
    if type(value) in accepted:
        return True
    return not isinstance(value, bool) and isinstance(value, accepted)


def type_words(schema: JSON) -> str:
    """Return the declared type of a value, for messages."""
    declared = as_map(schema).get("type")
    if isinstance(declared, list):
        return " or ".join(map(str, declared))
    return str(declared)


class Check(msgspec.Struct, frozen=True, gc=False):
    """A check of the arguments of a call: required names and types, and what is asked for."""

    tool: str
    unknown: bool = False
    """Whether arguments the schema does not know are wrong."""
    enums: bool = False
    """Whether values are held against ``enum`` and ``const``."""
    nested: bool = False
    """Whether nested objects, list items and alternatives are checked, too."""

    def list_reasons(self, schema: JSON, arguments: Mapping[str, JSON]) -> list[Reason]:
        """Return why arguments do not satisfy a tool's schema; nothing when they do."""
        members = self._check_members(as_map(schema), arguments, ())
        return members[:MOST_REASONS]

    def _reason(self, code: str, path: _Path, **values: JSON) -> Reason:
        pointer = pointer_to(*path)
        return Reason(code=code, pointer=pointer, subject=self.tool, **values)

    def _check_members(
        self, schema: Mapping[str, Any], members: Mapping[str, JSON], path: _Path
    ) -> list[Reason]:
        """Return the required members that are missing, then what is wrong with the others."""
        declared = schema.get("properties")
        properties = as_map(declared)
        reasons: list[Reason] = []
        required = as_list(schema.get("required"))
        missing = [name for name in required if isinstance(name, str) and name not in members]
        for name in dict.fromkeys(missing):
            expected = ""
            if name in properties:
                expected = type_words(properties[name])
            reason = self._reason("missing_argument", (*path, name), expected=expected)
            reasons.append(reason)
        is_closed = self.unknown and (isinstance(declared, Mapping) or not path)
        for name, value in members.items():
            if name in properties:
                reasons += self._check_value(properties[name], value, (*path, name))
            elif is_closed:
                reasons.append(self._reason("unknown_argument", (*path, name), actual=value))
        return reasons

    def _check_value(self, declared: JSON, value: JSON, path: _Path) -> Sequence[Reason]:
        """Return the faults of a value by a schema, that of its type alone if there is one."""
        schema = as_map(declared)
        accepted = accepted_classes(schema.get("type"))
        if accepted is not None and not is_accepted(accepted, value):
            expected = type_words(schema)
            return [self._reason("wrong_type", path, expected=expected, actual=value)]
        if not (self.enums or self.nested) or len(path) > _DEEPEST:
            return ()
        reasons: list[Reason] = []
        if self.enums:
            reasons += self._check_enum(schema, value, path)
        if self.nested:
            reasons += self._check_content(schema, value, path)
        return reasons

    def _check_enum(self, schema: Mapping[str, Any], value: JSON, path: _Path) -> Sequence[Reason]:
        allowed = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(allowed, list) or any(_is_same(value, entry) for entry in allowed):
            return ()
        return [self._reason("not_in_enum", path, expected=allowed, actual=value)]

    def _check_content(self, schema: Mapping[str, Any], value: JSON, path: _Path) -> list[Reason]:
        """Return the alternatives of which none fits, then what is wrong inside of a value."""
        reasons: list[Reason] = []
        for keyword in ("anyOf", "oneOf"):
            branches = as_list(schema.get(keyword))
            if branches and all(self._check_value(branch, value, path) for branch in branches):
                reason = self._reason("no_branch_fits", path, expected=keyword, actual=value)
                reasons.append(reason)
        if isinstance(value, Mapping):
            reasons += self._check_members(schema, value, path)
        elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            for index, item in enumerate(value):
                declared = schema["items"]
                reasons += self._check_value(declared, item, (*path, index))
        return reasons


def _is_same(value: JSON, other: JSON) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and same(value, other)
