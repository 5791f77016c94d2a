"""Plain data structured into frozen classes, every problem reported with its place; and as JSON data again.

The default cattrs converter turns ``"false"`` into True and 2.9 into 2; here a value has the right type or is refused.
"""

from __future__ import annotations

import datetime as dt
import math
import types
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
import cattrs
import msgspec

from gradestack.copies.files import AddressGivenError, local_path_of
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
    """All problems found in one value, each with its place below that value, and its entries that have none."""

    def __init__(self, found: list[tuple[Place, str]], sound: dict[Any, Any] | None = None) -> None:
        self.found, self.sound = found, sound or {}
        super().__init__("; ".join(message for _, message in found))


def _kind_of(value: Any) -> str:
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    for kind, words in ((Mapping, "a mapping"), (list, "a list"), (set, "a set")):  # sets have an order per process
        if isinstance(value, kind):
            return words
    return repr(value)


def _scalar(value: Any, kind: type) -> Any:
    exact = type(value) is kind or (kind is float and type(value) is int)
    if not exact or (kind is float and not math.isfinite(value)):
        quote = "; put it in quotes" if kind is str and not isinstance(value, Mapping | list | None) else ""
        raise ValueError(f"expected {_WORDS[kind]}, got {_kind_of(value)}{quote}")
    return float(value) if kind is float else value


def _literal(value: Any, kind: Any) -> Any:
    choices = get_args(kind)
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return value
    if len(choices) == 1:  # beside another type, whose problem says what was got
        raise ValueError(f"expected {choices[0]}")
    names = ", ".join(str(choice) for choice in choices)
    raise ValueError(f"expected one of {names}; got {_kind_of(value)}{suggest(value, map(str, choices))}")


class Field(NamedTuple):
    """What a class is made with."""

    kind: Any
    default: Any
    """attrs.NOTHING when it is required; an attrs.Factory makes it."""


def is_class(kind: Any) -> bool:
    """Return whether a type is a class of attrs or msgspec, which a mapping is structured into."""
    return attrs.has(kind) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def fields_of(kind: type) -> dict[str, Field]:
    """Return the fields a class of attrs or msgspec is made with, by name, in their order; any other has none."""
    if attrs.has(kind):
        hints, written = get_type_hints(kind), [each for each in attrs.fields(kind) if each.init]
        return {each.alias: Field(hints.get(each.name, each.type or Any), each.default) for each in written}
    missing, found = msgspec.NODEFAULT, {}
    for each in msgspec.structs.fields(kind) if is_class(kind) else ():
        default = attrs.NOTHING if each.default is missing else each.default
        made = each.default_factory is not missing
        found[each.name] = Field(each.type, attrs.Factory(each.default_factory) if made else default)
    return found


class _Converter(cattrs.Converter):
    def __init__(self, base: Path | None) -> None:
        super().__init__()
        for scalar in _WORDS:
            self.register_structure_hook(scalar, _scalar)
        self.register_structure_hook(Path, lambda value, _: local_path_of(_scalar(value, str), base))
        self.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: value)
        self._hook(_literal, Literal)
        self._hook(self._sequence, tuple, list, set, frozenset)
        self._hook(self._mapping, dict, Mapping)
        self._hook(self._union, Union, types.UnionType)
        self._hook(self._at_least, Annotated)
        self.register_structure_hook_factory(is_class, self._class)

    def _hook(self, hook: Callable[[Any, Any], Any], *origins: Any) -> None:
        self.register_structure_hook_func(lambda kind: get_origin(kind) in origins, hook)

    def _each(self, entries: Iterable[tuple[str | int, Any, Any]]) -> dict[Any, Any]:
        """Return (step, value, type) as instances by their steps; or raise what is wrong with any of them."""
        values: dict[str | int, Any] = {}
        problems: list[tuple[Place, str]] = []
        for step, value, kind in entries:
            try:
                values[step] = self.structure(value, kind)
            except Exception as error:  # noqa: BLE001 - all problems are collected
                problems += [((step, *place), message) for place, message in _problems_of(error)]
                if isinstance(error, Problems) and get_origin(kind) is dict:
                    values[step] = error.sound
        if problems:
            raise Problems(problems, values)
        return values

    def _sequence(self, value: Any, kind: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected a list, got {_kind_of(value)}")  # noqa: TRY004
        return get_origin(kind)(self._each(((at, each, get_args(kind)[0]) for at, each in enumerate(value))).values())

    def _mapping(self, value: Any, kind: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a mapping, got {_kind_of(value)}")  # noqa: TRY004 - one kind of problem for all
        inner = (get_args(kind) or (str, Any))[1]
        return self._each((str(key), each, inner) for key, each in value.items())

    def _union(self, value: Any, kind: Any) -> Any:
        members = [member for member in get_args(kind) if member is not type(None)]
        if value is None and len(members) < len(get_args(kind)):
            return None
        if len(members) == 1:  # its problems keep their places
            return self.structure(value, members[0])
        refusals: list[str] = []
        for member in members:
            try:
                return self.structure(value, member)
            except AddressGivenError:  # whatever else it might have been, it is not to be shown
                raise
            except Exception as error:  # noqa: BLE001 - every member is tried
                refusals += [text for _, text in _problems_of(error)]
        raise ValueError(", or ".join(dict.fromkeys(refusals)))

    def _at_least(self, value: Any, kind: Any) -> Any:
        """Return a number with a lower bound, written as ``Annotated[int, msgspec.Meta(ge=1)]``."""
        inner, bound, *_ = get_args(kind)
        number = self.structure(value, inner)
        if bound.ge is not None and number < bound.ge:
            raise ValueError(f"expected at least {bound.ge}, got {number:g}")
        return number

    def _class(self, kind: Any) -> Callable[[Any, Any], Any]:
        fields = fields_of(kind)

        def structured(given: Any, _: Any) -> Any:
            if not isinstance(given, Mapping):
                raise ValueError(f"expected a mapping, got {_kind_of(given)}")  # noqa: TRY004
            problems: list[tuple[Place, str]] = []
            try:
                values = self._each((name, given[name], each.kind) for name, each in fields.items() if name in given)
            except Problems as found:
                problems, values = found.found, found.sound
            lacking = [name for name, each in fields.items() if each.default is attrs.NOTHING and name not in given]
            problems += [((name,), "missing") for name in lacking]
            known = ", ".join(fields) or "none"
            for number, key in enumerate(sorted(given.keys() - fields.keys(), key=str)):
                hint = suggest(key, fields) if number < _HINTS else ""  # which takes its time
                problems.append(((str(key),), f"unknown key{hint or f'; known: {known}'}"))
            if problems:
                raise Problems(problems, values)
            return kind(**values)

        return structured


_converter = lru_cache(maxsize=16)(_Converter)


def _problems_of(error: BaseException) -> list[tuple[Place, str]]:
    if isinstance(error, Problems):
        return error.found
    if isinstance(error, BaseExceptionGroup):  # of a type that is cattrs' own to structure
        return [problem for inner in error.exceptions for problem in _problems_of(inner)]
    return [((), " ".join(map(str.strip, str(error).split("\n"))) or type(error).__name__)]


def structure(data: Any, kind: type[T], base: Path | None = None) -> T:
    """Return ``data`` as an instance of a class; relative paths are taken from ``base``."""
    try:
        return _converter(base).structure(data, kind)
    except Exception as error:
        raise Problems(_problems_of(error), getattr(error, "sound", None)) from error


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
        raise ValueError(f"preset {name!r} is there in version {versions[name]} only, not in {version!r}")
    return f"{name}@{versions[name]}"


def jsonable(value: Any) -> JSON:
    """Return an option's value as JSON data; what has no JSON form is named by its type, paths by their last part."""
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
