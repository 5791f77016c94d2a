"""Tool schemas: DeepFabric's own list form, the OpenAI form, and what the grader checks arguments against.

Conversions follow the rules of DeepFabric's tool definitions (``docs/deepfabric.md``, "Tool schemas").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs
import msgspec

from gradestack import JSON, ToolSpec
from gradestack_plugins.deepfabric.versions import OLD, Rules, Version
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
"""Classes of decoded JSON values each type accepts: nothing is coerced; a bool is no number, 1.0 is no int."""

_JSON_CLASSES: Final = frozenset({str, int, float, bool, list, dict, type(None)})


class SchemaProblem(ValueError):
    """A tool schema the original cannot convert; it makes the whole sample a processing error."""

    def __init__(self, message: str, *, stops: bool = False) -> None:
        super().__init__(message)
        self.stops = stops
        """Whether the newest program stops on it instead of counting it."""


@attrs.frozen
class Signature:
    """What is checked of one tool's arguments: required names, and the classes of each typed parameter."""

    required: tuple[str, ...]
    classes: Mapping[str, frozenset[type] | None]
    """Accepted classes by parameter name; None for a parameter whose type is not declared."""
    words: Mapping[str, str]
    """Declared types by parameter name, for messages."""
    schema: Mapping[str, JSON]
    """The JSON Schema it was made from."""

    def accepts(self, arguments: Mapping[str, JSON]) -> bool:
        """Return whether every required name is there and every known argument has its declared type."""
        for name in self.required:
            if name not in arguments:
                return False
        classes = self.classes
        for name, value in arguments.items():
            accepted = classes.get(name)
            if accepted is not None and type(value) not in accepted and not fits(accepted, value):
                return False
        return True


def fits(accepted: frozenset[type], value: JSON) -> bool:
    """Return whether a value is of an accepted class; values that are not plain JSON count by their base class."""
    kind = type(value)
    if kind in accepted:
        return True
    return kind not in _JSON_CLASSES and isinstance(value, tuple(accepted))


def signature(parameters: Mapping[str, JSON] | None, rules: Rules) -> Signature:
    """Return what is checked of a tool's JSON Schema.

    Args:
        parameters: The tool's JSON Schema; None is "takes no parameters".
        rules: A version of the program reads a missing or unknown type as ``str``, forgets required names without a
            property and drops null properties; from 4.5 on, null ``properties`` and ``required`` are none.
            ``documented`` leaves an undeclared or unknown type unchecked, understands lists of types (null passes only
            where ``null`` is listed) and keeps every required name.

    Raises:
        SchemaProblem: A schema that version of the program fails on.
    """
    return _documented(parameters) if rules == "documented" else _upstream(parameters, rules)


def _upstream(parameters: Mapping[str, JSON] | None, version: Version) -> Signature:
    schema: Any = parameters  # whatever it is, it fails below with the words the original fails with
    try:
        properties, listed = schema.get("properties", {}), schema.get("required", [])
        if version != OLD:
            properties, listed = properties or {}, listed or []
        listed = set(listed)
        classes: dict[str, frozenset[type] | None] = {}
        words: dict[str, str] = {}
        required = []
        for name, declared in properties.items():
            if declared is None:
                continue
            own = OWN_OF_JSON.get(declared.get("type", "string"), "str")
            if not isinstance(declared.get("description", ""), str):
                msg = f"the description of parameter {name!r} is not text"
                raise SchemaProblem(msg)
            classes[name], words[name] = _CLASSES[own], own
            if name in listed:
                required.append(name)
    except (AttributeError, TypeError) as error:
        raise SchemaProblem(str(error), stops=isinstance(error, TypeError)) from error
    return Signature(tuple(required), classes, words, schema)


def _documented(parameters: Mapping[str, JSON] | None) -> Signature:
    schema: Mapping[str, JSON] = parameters if isinstance(parameters, Mapping) else {}
    properties = schema.get("properties")
    listed = schema.get("required")
    classes: dict[str, frozenset[type] | None] = {}
    words: dict[str, str] = {}
    for name, declared in properties.items() if isinstance(properties, Mapping) else ():
        word = declared.get("type") if isinstance(declared, Mapping) else None
        classes[name] = classes_of(word)
        words[name] = " or ".join(map(str, word)) if isinstance(word, list) else str(word)
    required = dict.fromkeys(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else {}
    return Signature(tuple(required), classes, words, schema)


def classes_of(word: JSON) -> frozenset[type] | None:
    """Return the classes a declared type accepts, None when it declares nothing that can be checked.

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


@attrs.define
class _Known:
    """What is known of one tool."""

    spec: ToolSpec
    signature: Signature | None
    problem: SchemaProblem | None = None
    """Why it cannot be converted by a version of the program."""


_MOST_TOOLS = 4096
_LARGEST_TOOL = 8 * 1024
"""Bytes of a tool that is shared: all that are held have a bound."""
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_known: dict[Rules, dict[int, _Known]] = {"documented": {}, "4.13": {}, "4.3": {}}


def _look_up(spec: ToolSpec, rules: Rules) -> _Known:
    """Return what is known of a tool, worked out once per tool object and not anew for every sample.

    Readers share one object among all samples with the same tool, so that looking it up by identity suffices. The entry
    holds the object, so an identity cannot be taken over by another one.
    """
    tools = _known[rules]
    found = tools.get(id(spec))
    if found is not None and found.spec is spec:
        return found
    try:
        found = _Known(spec, signature(spec.parameters or {}, rules))
    except SchemaProblem as error:
        found = _Known(spec, None, error)
    if len(tools) >= _MOST_TOOLS:
        tools.clear()
    tools[id(spec)] = found
    return found


def find(specs: tuple[ToolSpec, ...], name: str, rules: Rules) -> Signature | None:
    """Return the signature of the first tool of that name, None when there is none."""
    for spec in specs:
        if spec.name == name:
            return _look_up(spec, rules).signature
    return None


def conversion_problem(specs: tuple[ToolSpec, ...], version: Version) -> SchemaProblem | None:
    """Return why a version of the program cannot convert a snapshot of tools, None when it can."""
    for spec in specs:
        problem = _look_up(spec, version).problem
        if problem is not None:
            return problem
    return None


def convert(raw: Sequence[Mapping[str, JSON]], rules: Rules) -> tuple[ToolSpec, ...]:
    """Return a record's ``tools`` as tool specifications; records with the same tool share one object.

    Args:
        raw: The entries as recorded, each an object.
        rules: The program understands the OpenAI form only: an entry of the own form becomes a nameless tool without
            parameters, which no call can match. ``documented`` understands both forms (and an OpenAI function without
            its wrapper) and leaves out entries without a name.

    Raises:
        SchemaProblem: An entry that version of the program fails on.
    """
    return tuple(spec for entry in raw if (spec := _shared(entry, rules)) is not None)


def _shared(entry: Mapping[str, JSON], rules: Rules) -> ToolSpec | None:
    """Return a tool; one of the same content met before is the same object again, and is not made again.

    Content is compared as MessagePack, which unlike ``==`` tells true from 1 and 1.0.
    """
    try:
        packed = _pack(entry)
        if len(packed) <= _LARGEST_TOOL:
            return _held(packed, rules)
    except (ValueError, OverflowError, RecursionError):  # lone surrogates, huge integers, deep nesting
        pass
    return _spec(entry, rules)


@lru_cache(_MOST_TOOLS)
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
        raise SchemaProblem(str(error)) from error
    signature(parameters, version)
    for what, text in (("name", name), ("description", description)):
        if not isinstance(text, str):
            msg = f"the {what} of a tool must be text, got {json.dumps(text)[:80]}"
            raise SchemaProblem(msg)
    return ToolSpec(name=name, description=description, parameters=parameters)
