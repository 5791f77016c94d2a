"""Options of a class: their JSON Schema, all that is wrong with given ones, and the instance.

Nothing is coerced: a value has the type of its field or is refused.
"""

from __future__ import annotations

import datetime as dt
import sys
import types
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
import msgspec

from gradestack.copies.files import Folder, local_path_of
from gradestack.errors import ConfigError, GradestackError, hint_of, suggest
from gradestack.jsonio.values import json_data
from gradestack.model import JSON
from gradestack.patterns import compile_later

T = TypeVar("T")
Location = tuple[str | int, ...]
"""Path of a value: mapping keys and list positions from the root."""
Schema = dict[str, Any]

_SCALARS: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Path: {"type": "string"},
    types.NoneType: {"type": "null"},
}
_WORDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
}
_OF_CLASS: Schema = {"type": "object", "additionalProperties": False}
_SEQUENCES = (tuple, list, set, frozenset)
_UNIONS = (Union, types.UnionType)
_MOST_HINTS = 100
"""Unknown keys of one mapping for which a known one is looked for, which takes its time."""


def show_location(location: Location) -> str:
    """Return a location as people write it: ``graders.partial.paths[0]``."""
    text = ""
    for step in location:
        shown = f"[{step}]" if isinstance(step, int) else f".{step}"
        text += shown
    return text.removeprefix(".")


class Problems(Exception):
    """All problems of one value, each with its location below that value.

    ``sound`` holds the fields that have none.
    """

    def __init__(
        self, listed: list[tuple[Location, str]], sound: dict[str, Any] | None = None
    ) -> None:
        self.listed = listed
        self.sound = sound or {}
        super().__init__("; ".join(message for _, message in listed))


class Field(msgspec.Struct, frozen=True):
    """An argument a class is made with."""

    owner: Any
    """The class."""
    name: str
    """Name of the class's own field."""
    default: Any
    """attrs.NOTHING when it is required; an attrs.Factory makes it."""

    @property
    def kind(self) -> Any:
        """The type: found out where an option is set, because it takes longer than all else."""
        return _types_of(self.owner).get(self.name, Any)


@cache
def _types_of(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a class of attrs or msgspec."""
    if attrs.has(kind):
        return get_type_hints(kind)
    return {field.name: field.type for field in _struct_fields(kind)}


@cache
def _struct_fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


@cache
def fields_of(kind: Any) -> dict[str, Field] | None:
    """Return the arguments of a class of attrs or msgspec by name; None of another type."""
    if attrs.has(kind):
        written = [field for field in attrs.fields(kind) if field.init]
        return {field.alias: Field(kind, field.name, field.default) for field in written}
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    if not is_struct:
        return None
    fields = {}
    for field in _struct_fields(kind):
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = attrs.Factory(field.default_factory)
        elif default is msgspec.NODEFAULT:
            default = attrs.NOTHING
        fields[field.name] = Field(kind, field.name, default)
    return fields


def type_schema(kind: Any) -> Schema:
    """Return the JSON Schema of an option's type; that of a foreign type allows everything."""
    if kind in _SCALARS:
        return dict(_SCALARS[kind])
    origin = get_origin(kind)
    arguments = get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in _UNIONS:
        return {"anyOf": [type_schema(member) for member in arguments]}
    if origin is Annotated:
        least = getattr(arguments[1], "ge", None)
        schema = type_schema(arguments[0])
        if least is None:
            return schema
        return {**schema, "minimum": least}
    if origin in _SEQUENCES:
        return {"type": "array", "items": type_schema(arguments[0])}
    if origin in (dict, Mapping):
        additional_properties = type_schema(arguments[1])
        return {"type": "object", "additionalProperties": additional_properties}
    if fields_of(kind) is None:
        return {}
    return class_schema(kind)


def class_schema(kind: type, *more: str) -> Schema:
    """Return the JSON Schema of a frozen class: its fields, nothing else allowed.

    ``more`` are required, too.
    """
    names = fields_of(kind) or {}
    schema = _class_schema(kind, names)
    required = [*more, *schema.pop("required")]
    return {**schema, "required": required} if required else schema


def _class_schema(kind: Any, names: Container[Any]) -> Schema:
    """Return the JSON Schema of a class, with the types of the named options alone."""
    properties = dict[str, Any]()
    required = list[str]()
    for name, field in (fields_of(kind) or {}).items():
        properties[name] = type_schema(field.kind) if name in names else {}
        default = _default_data(field.default)
        if default is attrs.NOTHING:
            required.append(name)
        else:
            properties[name]["default"] = default
    return {"properties": properties, "required": required, **_OF_CLASS}


def _default_data(default: Any) -> Any:
    """Return the default of a field as JSON data; attrs.NOTHING where it is required."""
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        default = attrs.NOTHING if default.takes_self else default.factory()
    if default is attrs.NOTHING:
        return default
    return jsonable(default)


def find_problems(
    value: Any, schema: Schema, location: Location = ()
) -> Iterator[tuple[Location, str]]:
    """Yield all that is wrong with a value, each problem with its location."""
    choices = schema.get("anyOf", [schema])
    choices = [choice for choice in choices if _is_of_type(value, choice)]
    if not choices:
        yield location, _mismatch(value, schema)
        return
    problems = [list(_problems_below(value, choice, location)) for choice in choices]
    yield from min(problems, key=len)


_CLASSES: Mapping[str, Any] = {
    "boolean": bool,
    "integer": int,
    "number": int | float,
    "string": str,
    "array": list | tuple,
    "object": Mapping,
    "null": types.NoneType,
}


def _is_of_type(value: Any, schema: Schema) -> bool:
    """Return whether a value is of the type of a schema, whatever its entries are."""
    if "enum" in schema:
        words = [word for word in schema["enum"] if type(word) is type(value)]
        return value in words
    kind = schema.get("type")
    if kind is None:
        return True
    if isinstance(value, bool) and kind != "boolean":
        return False
    if not isinstance(value, _CLASSES[kind]):
        return False
    if kind == "number":
        is_finite = abs(value) <= sys.float_info.max  # neither NaN nor a whole number beyond
        if not is_finite:
            return False
    least = schema.get("minimum")
    return least is None or bool(value >= least)


def _problems_below(
    value: Any, schema: Schema, location: Location
) -> Iterator[tuple[Location, str]]:
    """Yield location and problem for the entries of a mapping or the items of a list."""
    if isinstance(value, Mapping):
        yield from _problems_of_entries(value, schema, location)
    if isinstance(value, list | tuple):
        items = schema.get("items", {})
        for position, item in enumerate(value):
            yield from find_problems(item, items, (*location, position))


def key_text(key: Any) -> str:
    """Return the key of a mapping as text, as YAML has it.

    >>> key_text(None), key_text(True), key_text(1)
    ('null', 'true', '1')
    """
    if key is None or isinstance(key, bool):
        return msgspec.json.encode(key).decode()
    return str(key)


def _problems_of_entries(
    mapping: Mapping[Any, Any], schema: Schema, location: Location
) -> Iterator[tuple[Location, str]]:
    """Yield location and problem for missing, wrong and unknown keys of a mapping."""
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    for key in schema.get("required", ()):
        if key not in mapping:
            yield (*location, key), "missing"
    for key, below in known.items():
        if key in mapping:
            yield from find_problems(mapping[key], below, (*location, key))
    unknown = mapping.keys() - known.keys()
    unknown = sorted(unknown, key=str)
    for number, key in enumerate(unknown):
        at = (*location, key_text(key))
        is_nested = len(location) > 1  # keys of an option itself become text
        if is_nested and "additionalProperties" in schema and not isinstance(key, str):
            yield at, f"a key must be text, got {_show(key)}; put it in quotes"
        elif others is not False:
            yield from find_problems(mapping[key], others, at)
        else:
            hint = ""
            if number < _MOST_HINTS:
                hint = suggest(key, known)
            names = ", ".join(known) or "none"
            hint = hint or f"; known: {names}"
            yield at, f"unknown key{hint}"


def _mismatch(value: Any, schema: Schema) -> str:
    """Return the sentence for a value that is of none of the types of a schema."""
    choices = schema.get("anyOf", [schema])
    lists = [choice.get("enum", ()) for choice in choices]
    words = list(map(str, chain.from_iterable(lists)))
    hint = ""
    if words:
        hint = suggest(value, words)
    kinds = {choice.get("type") for choice in choices}
    is_scalar = not isinstance(value, Mapping | list | None)
    if "string" in kinds and is_scalar:
        hint = "; put it in quotes"
    expected = _describe(schema)
    end = ","
    if "," in expected:
        end = ";"
    got = f"got {_show(value)}{hint}"
    return f"expected {expected}{end} {got}"


def _describe(schema: Schema) -> str:
    """Return the values that a schema allows in words, such as "a number of at least 1"."""
    if "anyOf" in schema:
        null = {"type": "null"}
        choices = [choice for choice in schema["anyOf"] if choice != null]
        words = [_describe(choice) for choice in choices]
        separator = " or "
        if "," in "".join(words):
            separator = ", or "
        return separator.join(words)
    if "enum" in schema:
        words = [str(word) for word in schema["enum"]]
        listed = ", ".join(words)
        if len(words) > 1:
            return f"one of {listed}"
        return listed
    kind = _WORDS[schema["type"]]
    least = schema.get("minimum")
    if least is None:
        return kind
    return f"{kind} of at least {least}"


def _show(value: Any) -> str:
    """Return a value for a message; sets have an order per process, and are not shown."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    is_long = isinstance(value, list | set)
    if is_long:
        return f"a {type(value).__name__}"
    return repr(value)


def structure(data: Any, kind: type[T], base: Folder | None = None) -> T:
    """Return ``data`` as an instance of a class; relative paths are taken from ``base``.

    Raises:
        Problems: All that is wrong with it.
    """
    wanted: Any = kind
    fields = fields_of(wanted)
    is_class = fields is not None and isinstance(data, Mapping)
    schema = _class_schema(wanted, data) if is_class else type_schema(wanted)
    problems = list(find_problems(data, schema))
    wrong_keys = {location[:1] for location, _ in problems}
    arguments: dict[str, Any] = {}
    for name, field in fields.items() if fields is not None and is_class else ():
        if name in data and (name,) not in wrong_keys:
            with _collecting(problems, (name,)):
                arguments[name] = _convert(data[name], field.kind, base)
    if not problems:
        with _collecting(problems, ()):
            instance: T = kind(**arguments) if is_class else _convert(data, kind, base)
            return instance
    raise Problems(problems, arguments)


_PATH = compile_later(r" - at (?:`key` in )?`\$([^`]*)`$")
"""Path of a value at the end of a message of msgspec."""
_STEP = compile_later(r"\.(\w+)|\[(\d+)\]")


@contextmanager
def _collecting(problems: list[tuple[Location, str]], location: Location) -> Iterator[None]:
    """Note what the ``with`` block raises as a problem of the value at a location."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a class refuses its options with
        text = error.line if isinstance(error, GradestackError) else str(error)
        path = _PATH.search(text)
        for name, position in _STEP.findall(path[1]) if path else ():
            location = (*location, name or int(position))
        lines = map(str.strip, _PATH.sub("", text).split("\n"))
        problems.append((location, " ".join(lines) or type(error).__name__))


def _convert(value: Any, kind: Any, base: Folder | None) -> Any:
    """Return a value as its type, paths from a folder; ValueError: its class refuses it."""

    def decode(wanted: type, written: Any) -> Any:
        """Return a path; of another foreign type the value as it is."""
        if wanted is not Path:
            return written
        try:
            return local_path_of(written, base)
        except ConfigError as error:
            raise ValueError(error.line) from error

    members = get_args(kind)
    if Path in members:  # msgspec takes no union with it
        others = [member for member in members if member is not Path]
        kind = Path if isinstance(value, str) else Union[tuple(others)]  # noqa: UP007 - at run time
    if isinstance(value, Mapping):
        value = {key_text(key): item for key, item in value.items()}
    return msgspec.convert(value, kind, dec_hook=decode)


def preset_version(preset: str | None, versions: Mapping[str, str]) -> str | None:
    """Return a preset as ``NAME@VERSION``, None for none.

    Args:
        preset: Its name, with or without the version.
        versions: The presets there are, each with its version.

    Raises:
        ValueError: There is none of that name, or not in that version.
    """
    if preset is None:
        return None
    name, at, version = preset.partition("@")
    if name not in versions:
        raise ValueError(f"unknown preset {name!r}{hint_of(name, versions)}")
    known = versions[name]
    if at and version != known:
        why = f"is there in version {known} only, not in {version!r}"
        raise ValueError(f"preset {name!r} {why}")
    return f"{name}@{known}"


def jsonable(value: Any) -> JSON:
    """Return an option's value as JSON data.

    A type without a JSON form is named, a path is cut to its last part.
    """
    return json_data(value, _json_of)


def _json_of(value: Any) -> JSON:
    """Turn a value that JSON lacks into one that it has: a name, an ISO date, a sorted list."""
    if isinstance(value, Path):
        return value.name
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(map(jsonable, value), key=str)
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name
    return f"({type(value).__qualname__})"
