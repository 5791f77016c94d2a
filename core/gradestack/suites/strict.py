"""Strict structuring of plain data into frozen classes: a value has the right type, or is refused with its place."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
import msgspec

from gradestack.copies.addresses import AddressGivenError, local_path_of
from gradestack.errors import suggest

T = TypeVar("T")
Place = tuple[str | int, ...]
"""Path of a value: mapping keys and list positions from the root."""

_HINTS = 100
"""Unknown keys of one mapping for which a known one is looked for."""
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class Problems(Exception):
    """All problems found in one value, each with its place below that value."""

    def __init__(self, found: list[tuple[Place, str]]) -> None:
        self.found = found
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


def _in_yaml(value: Any) -> str:
    """Return how to write a number such as 1e-6, which YAML takes for text: its numbers with an exponent have a dot."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]{1,20}[eE][-+]?[0-9]{1,3}", value):
        with suppress(ValueError):
            number = float(value)
            text = repr(number) if "." in repr(number) else repr(number).replace("e", ".0e")
            return f"; write {text}" if math.isfinite(number) else ""
    return ""


def _scalar(value: Any, kind: type) -> Any:
    exact = type(value) is kind or (kind is float and type(value) is int)
    if not exact or (kind is float and not math.isfinite(value)):
        quote = "; put it in quotes" if kind is str and not isinstance(value, Mapping | list | None) else ""
        hint = _in_yaml(value) if kind is float else quote
        raise ValueError(f"expected {_WORDS[kind]}, got {_kind_of(value)}{hint}")
    return float(value) if kind is float else value


def _literal(value: Any, choices: tuple[Any, ...]) -> Any:
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


@cache
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


def _mapping(value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a mapping, got {_kind_of(value)}")  # noqa: TRY004 - one kind of problem for all
    return value


def _each(entries: Iterable[tuple[str | int, Any, Any]], base: Path | None) -> dict[Any, Any]:
    """Return (step, value, type) as instances by their steps; or raise what is wrong with any of them."""
    values: dict[str | int, Any] = {}
    problems: list[tuple[Place, str]] = []
    for step, value, kind in entries:
        try:
            values[step] = _structured(value, kind, base)
        except Exception as error:  # noqa: BLE001 - all problems are collected
            problems += [((step, *place), message) for place, message in _problems_of(error)]
    if problems:
        raise Problems(problems)
    return values


def _structured(value: Any, kind: Any, base: Path | None) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        return _structured(value, arguments[0], base)
    if origin is Literal:
        return _literal(value, arguments)
    if origin in (Union, types.UnionType):
        return _union(value, arguments, base)
    if origin in (tuple, list, set, frozenset):
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected a list, got {_kind_of(value)}")
        return origin(_each(((at, each, arguments[0]) for at, each in enumerate(value)), base).values())
    if origin in (dict, Mapping):
        return _each(((str(key), each, arguments[1]) for key, each in _mapping(value).items()), base)
    if kind in _WORDS:
        return _scalar(value, kind)
    if kind is Path:
        return local_path_of(_scalar(value, str), base)
    return _instance(_mapping(value), kind, base) if is_class(kind) else msgspec.convert(value, kind)


def _union(value: Any, kinds: tuple[Any, ...], base: Path | None) -> Any:
    members = [member for member in kinds if member is not type(None)]
    if value is None and len(members) < len(kinds):
        return None
    if len(members) == 1:  # its problems keep their places
        return _structured(value, members[0], base)
    refusals: list[str] = []
    for member in members:
        try:
            return _structured(value, member, base)
        except AddressGivenError:  # whatever else it might have been, it is not to be shown
            raise
        except Exception as error:  # noqa: BLE001 - every member is tried
            refusals += [text for _, text in _problems_of(error)]
    raise ValueError(", or ".join(dict.fromkeys(refusals)))


def _instance(given: Mapping[Any, Any], kind: Any, base: Path | None) -> Any:
    fields = fields_of(kind)
    problems: list[tuple[Place, str]] = []
    try:
        values = _each(((name, given[name], each.kind) for name, each in fields.items() if name in given), base)
    except Problems as found:
        problems = found.found
    lacking = [name for name, each in fields.items() if each.default is attrs.NOTHING and name not in given]
    problems += [((name,), "missing") for name in lacking]
    known = ", ".join(fields) or "none"
    for number, key in enumerate(sorted(given.keys() - fields.keys(), key=str)):
        hint = suggest(key, fields) if number < _HINTS else ""  # which takes its time
        problems.append(((str(key),), f"unknown key{hint or f'; known: {known}'}"))
    if problems:
        raise Problems(problems)
    return kind(**values)


def _problems_of(error: BaseException) -> list[tuple[Place, str]]:
    if isinstance(error, Problems):
        return error.found
    return [((), " ".join(map(str.strip, str(error).split("\n"))) or type(error).__name__)]


def structure(data: Any, kind: type[T], base: Path | None = None) -> T:
    """Return ``data`` as an instance of a class; relative paths are taken from ``base``."""
    try:
        return _structured(data, kind, base)  # type: ignore[no-any-return]
    except Exception as error:
        raise Problems(_problems_of(error)) from error


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
