"""Plain data structured into frozen classes, every problem reported with its place.

And as JSON data again.

The default cattrs converter turns ``"false"`` into True and 2.9 into 2; here a value has the right
type or is refused.
"""

from __future__ import annotations

import datetime as dt
import math
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
import msgspec

from gradestack.copies.files import AddressGivenError, Folder, OutsideError, local_path_of
from gradestack.errors import suggest
from gradestack.jsonio.values import json_data
from gradestack.model import JSON

T = TypeVar("T")
Place = tuple[str | int, ...]
"""Path of a value: mapping keys and list positions from the root."""

_HINTS = 100
"""Unknown keys of one mapping for which a known one is looked for."""
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class Problems(Exception):
    """All problems found in one value, each with its place below that value, and its entries that
    have none.
    """

    def __init__(self, found: list[tuple[Place, str]], sound: dict[Any, Any] | None = None) -> None:
        self.found, self.sound = found, sound or {}
        super().__init__("; ".join(message for _, message in found))


def _expected(what: str, value: Any, hint: str = "") -> ValueError:
    """Return that a value is of another kind; sets have an order per process, and are not shown."""
    kinds = ((bool, str(value).lower()), (Mapping, "a mapping"), (list, "a list"), (set, "a set"))
    got = next((words for kind, words in kinds if isinstance(value, kind)), repr(value))
    end = ";" if "," in what else ","
    return ValueError(
        f"expected {what}{end} got {'nothing (null)' if value is None else got}{hint}"
    )


class Field(NamedTuple):
    """What a class is made with."""

    kind: Any
    default: Any
    """attrs.NOTHING when it is required; an attrs.Factory makes it."""


@cache
def fields_of(kind: Any) -> dict[str, Field] | None:
    """Return the fields a class of attrs or msgspec is made with, by name, in their order.

    None of another type.
    """
    if attrs.has(kind):
        hints, written = get_type_hints(kind), [each for each in attrs.fields(kind) if each.init]
        return {
            each.alias: Field(hints.get(each.name, each.type or Any), each.default)
            for each in written
        }
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return None
    missing, found = msgspec.NODEFAULT, {}
    for each in msgspec.structs.fields(kind):
        default = attrs.NOTHING if each.default is missing else each.default
        made = each.default_factory is not missing
        found[each.name] = Field(
            each.type, attrs.Factory(each.default_factory) if made else default
        )
    return found


def _each(entries: Iterable[tuple[str | int, Any, Any]], base: Folder | None) -> dict[Any, Any]:
    """Return (step, value, type) as instances by their steps.

    Or raise what is wrong with any of them.
    """
    values: dict[str | int, Any] = {}
    problems: list[tuple[Place, str]] = []
    for step, value, kind in entries:
        try:
            values[step] = _structured(value, kind, base)
        except Exception as error:  # noqa: BLE001 - all problems are collected
            problems += [((step, *place), message) for place, message in _problems_of(error)]
            if isinstance(error, Problems) and get_origin(kind) is dict:
                values[step] = error.sound
    if problems:
        raise Problems(problems, values)
    return values


def _structured(value: Any, kind: Any, base: Folder | None) -> Any:  # noqa: C901
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _WORDS or kind is Path:
        wanted = str if kind is Path else kind
        exact = type(value) is wanted or (kind is float and type(value) is int)
        if not exact or (kind is float and not math.isfinite(value)):
            quote = wanted is str and not isinstance(value, Mapping | list | None)
            raise _expected(_WORDS[wanted], value, "; put it in quotes" * quote)
        return local_path_of(value, base) if kind is Path else kind(value)
    if origin in (Union, types.UnionType):
        return _union(value, arguments, base)
    if origin is Literal:
        if any(type(each) is type(value) and each == value for each in arguments):
            return value
        raise _not_one_of(arguments, value)
    if (
        origin is Annotated
    ):  # a number with a lower bound, as ``Annotated[int, msgspec.Meta(ge=1)]``
        number = _structured(value, arguments[0], base)
        if (least := arguments[1].ge) is not None and number < least:
            raise ValueError(f"expected at least {least}, got {number:g}")
        return number
    if origin in (tuple, list, set, frozenset):
        if not isinstance(value, list | tuple):
            raise _expected("a list", value)
        return origin(
            _each(((at, each, arguments[0]) for at, each in enumerate(value)), base).values()
        )
    if (fields := fields_of(kind)) is not None or origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise _expected("a mapping", value)
        if fields is not None:
            return kind(**_arguments(value, fields, base))
        return _each(((str(key), each, arguments[1]) for key, each in value.items()), base)
    return value if kind is Any else _converter(base).structure(value, kind)


def _not_one_of(choices: Sequence[Any], value: Any) -> ValueError:
    if len(choices) == 1:  # beside another type, whose problem says what was got
        return ValueError(f"expected {choices[0]}")
    names = ", ".join(map(str, choices))
    return _expected(f"one of {names}", value, suggest(value, map(str, choices)))


def _union(value: Any, members: Sequence[Any], base: Folder | None) -> Any:
    if value is None and type(None) in members:
        return None
    members = [member for member in members if member is not type(None)]
    members = [each for each in members if type(value) is (get_origin(each) or each)] or members
    refusals: list[str] = []
    for member in members:
        try:
            return _structured(value, member, base)
        except Exception as error:  # every member is tried
            if len(members) == 1 or isinstance(error, AddressGivenError | OutsideError):
                # one's problems keep their places; an address, whatever else it might have been, is
                # not shown
                raise
            refusals += [text for _, text in _problems_of(error)]
    raise ValueError(", or ".join(dict.fromkeys(refusals)))


def _arguments(
    given: Mapping[Any, Any], fields: Mapping[str, Field], base: Folder | None
) -> dict[str, Any]:
    problems: list[tuple[Place, str]] = []
    try:
        values = _each(
            ((name, given[name], each.kind) for name, each in fields.items() if name in given), base
        )
    except Problems as found:
        problems, values = found.found, found.sound
    lacking = [
        name for name, each in fields.items() if each.default is attrs.NOTHING and name not in given
    ]
    problems += [((name,), "missing") for name in lacking]
    known = ", ".join(fields) or "none"
    for number, key in enumerate(sorted(given.keys() - fields.keys(), key=str)):
        hint = suggest(key, fields) if number < _HINTS else ""  # which takes its time
        problems.append(((str(key),), f"unknown key{hint or f'; known: {known}'}"))
    if problems:
        raise Problems(problems, values)
    return values


@cache
def _converter(base: Folder | None) -> Any:
    """Return what structures types that are of neither kind, such as an enum, or a data class of
    somebody else.
    """
    import cattrs  # noqa: PLC0415 - hardly ever needed, and takes its time

    converter, ours = cattrs.Converter(), partial(_structured, base=base)
    for scalar in (*_WORDS, Path):
        converter.register_structure_hook(scalar, ours)
    origins: tuple[Any, ...] = (
        Union,
        types.UnionType,
        Literal,
        Annotated,
        tuple,
        list,
        set,
        frozenset,
        dict,
        Mapping,
    )
    converter.register_structure_hook_func(
        lambda kind: kind is Any or get_origin(kind) in origins or fields_of(kind) is not None, ours
    )
    return converter


def _problems_of(error: BaseException) -> list[tuple[Place, str]]:
    if isinstance(error, Problems):
        return error.found
    if isinstance(error, BaseExceptionGroup):  # of a type that is cattrs' own to structure
        return [problem for inner in error.exceptions for problem in _problems_of(inner)]
    return [((), " ".join(map(str.strip, str(error).split("\n"))) or type(error).__name__)]


def structure(data: Any, kind: type[T], base: Folder | None = None) -> T:
    """Return ``data`` as an instance of a class; relative paths are taken from ``base``."""
    try:
        made: T = _structured(data, kind, base)
    except Exception as error:
        raise Problems(_problems_of(error), getattr(error, "sound", None)) from error
    return made


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
        hint = suggest(name, versions) or f"; there are: {', '.join(versions)}"
        raise ValueError(f"unknown preset {name!r}{hint}")
    if at and version != versions[name]:
        raise ValueError(
            f"preset {name!r} is there in version {versions[name]} only, not in {version!r}"
        )
    return f"{name}@{versions[name]}"


def jsonable(value: Any) -> JSON:
    """Return an option's value as JSON data.

    What has no JSON form is named by its type, paths by their last part.
    """
    return json_data(value, _json_of)


def _json_of(value: Any) -> JSON:
    if isinstance(value, Path):
        return value.name
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(map(jsonable, value), key=str)
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else f"({type(value).__qualname__})"
