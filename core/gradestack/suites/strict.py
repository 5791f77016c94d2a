"""Strict structuring of plain data into frozen classes, every problem reported with its place.

The default cattrs converter turns ``"false"`` into True and 2.9 into 2; here a value has the right type or is refused.
"""

from __future__ import annotations

import math
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import AttributeValidationNote, ForbiddenExtraKeysError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn

from gradestack.copies.addresses import is_address, shown_address
from gradestack.errors import suggest


def path_of(text: str, base: Path | None = None) -> Path:
    """Return a path, ``~`` expanded, a relative one taken from ``base``."""
    if "\0" in text:
        raise ValueError("a path holds no NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ValueError(f"{text!r} is no path: it holds half of a surrogate pair") from error
    path = Path(text)
    with suppress(RuntimeError):  # no such user: a file may be called ~x
        path = path.expanduser()
    return path if base is None else base / path


class AddressGivenError(ValueError):
    """An address stands where a local file is wanted."""


def local_path_of(text: str, base: Path | None = None) -> Path:
    """Return a path as :func:`path_of` does, of a file that is never fetched from elsewhere."""
    path = path_of(text, base)
    if is_address(text):
        with suppress(OSError):  # a name too long
            if path.exists():
                return path
        raise AddressGivenError(
            f"{shown_address(text)} is an address; here a local file is wanted; only inputs and datasets may be remote"
        )
    return path


T = TypeVar("T")
Place = tuple[str | int, ...]
"""Path of a value: mapping keys and list positions from the root."""

_origin: Callable[[Any], Any] = get_origin
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
        return f"{str(value).lower()}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "a set" if isinstance(value, set) else repr(value)  # which has an order of its own in every process


def _in_yaml(value: Any) -> str:
    """Return how to write a number such as 1e-6, which YAML takes for text: its numbers with an exponent have a dot."""
    if not isinstance(value, str) or not re.fullmatch(r"[-+]?[0-9.]{1,20}[eE][-+]?[0-9]{1,3}", value):
        return ""
    try:
        number = float(value)
    except ValueError:
        return ""
    text = repr(number)
    dotted = text if "." in text else text.replace("e", ".0e")
    return f"; write {dotted}" if math.isfinite(number) else ""


def _scalar(value: Any, kind: type) -> Any:
    exact = type(value) is kind or (kind is float and type(value) is int)
    if not exact or (kind is float and not math.isfinite(value)):
        quote = "; put it in quotes" if kind is str and not isinstance(value, Mapping | list | None) else ""
        raise ValueError(
            f"expected {_WORDS[kind]}, got {_kind_of(value)}{quote}{_in_yaml(value) if kind is float else ''}"
        )
    return float(value) if kind is float else value


def _literal(value: Any, kind: Any) -> Any:
    choices = get_args(kind)
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return value
    names = ", ".join(str(choice) for choice in choices)
    raise ValueError(f"expected one of {names}; got {_kind_of(value)}{suggest(value, map(str, choices))}")


def _attrs_hook(converter: cattrs.Converter, kind: Any) -> Any:
    """Return what structures a frozen class; keys it does not have are refused."""
    inner = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True)

    def checked(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a mapping, got {_kind_of(value)}")  # noqa: TRY004
        return inner(dict(value), kind)

    return checked


@lru_cache(maxsize=16)
def make_converter(base: Path | None = None) -> cattrs.Converter:
    """Return a strict converter; relative paths are resolved against ``base``."""
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (bool, int, float, str):
        converter.register_structure_hook(kind, _scalar)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is Literal, _literal)
    converter.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: value)

    def path(value: Any, _: Any) -> Path:
        return local_path_of(_scalar(value, str), base)

    def sequence(value: Any, kind: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected a list, got {_kind_of(value)}")  # noqa: TRY004 - one kind of problem for all
        inner = get_args(kind)[0]
        return _each(converter, ((position, item, inner) for position, item in enumerate(value)))

    def mapping(value: Any, kind: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a mapping, got {_kind_of(value)}")  # noqa: TRY004
        _, inner = get_args(kind) or (str, Any)
        return dict(zip(map(str, value), _each(converter, ((str(k), v, inner) for k, v in value.items())), strict=True))

    def union(value: Any, kind: Any) -> Any:
        members = get_args(kind)
        if value is None and type(None) in members:
            return None
        others = [member for member in members if member is not type(None)]
        if len(others) == 1:  # its problems keep their places
            return converter.structure(value, others[0])
        said: list[str] = []
        for member in others:
            try:
                return converter.structure(value, member)
            except AddressGivenError:  # whatever else it might have been, it is not to be shown
                raise
            except Exception as error:  # noqa: BLE001 - every member is tried, all refusals are told
                said += [text for _, text in problems_of(error)]
        raise ValueError(", or ".join(dict.fromkeys(said)))

    converter.register_structure_hook(Path, path)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is tuple, sequence)
    converter.register_structure_hook_func(lambda kind: _origin(kind) in (dict, Mapping), mapping)
    converter.register_structure_hook_func(lambda kind: _origin(kind) in (Union, types.UnionType), union)

    converter.register_structure_hook_factory(attrs.has, partial(_attrs_hook, converter))
    return converter


def _each(converter: cattrs.Converter, entries: Iterator[tuple[str | int, Any, Any]]) -> tuple[Any, ...]:
    done: list[Any] = []
    found: list[tuple[Place, str]] = []
    for step, value, kind in entries:
        try:
            done.append(converter.structure(value, kind))
        except Exception as error:  # noqa: BLE001 - all problems are collected
            found += [((step, *place), message) for place, message in problems_of(error)]
    if found:
        raise Problems(found)
    return tuple(done)


def problems_of(error: BaseException) -> Iterator[tuple[Place, str]]:
    """Yield (place, message) for every leaf of a structuring error."""
    if isinstance(error, Problems):
        yield from error.found
    elif isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            step: Place = ()
            for note in getattr(inner, "__notes__", ()):
                if isinstance(note, AttributeValidationNote):
                    step = (note.name,)
                elif isinstance(note, IterableValidationNote):
                    step = (note.index,)
            for place, message in problems_of(inner):
                yield (*step, *place), message
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [field.alias or field.name for field in attrs.fields(error.cl) if field.init]
        for number, key in enumerate(sorted(error.extra_fields, key=str)):
            hint = suggest(key, known) if number < _HINTS else ""  # which takes its time
            also = hint or f"; known: {', '.join(known) or 'none'}"
            yield (str(key),), f"unknown key{also}"
    elif isinstance(error, KeyError):
        yield (), "missing"
    else:
        yield (), str(error) or type(error).__name__


def structure(data: Any, kind: type[T], base: Path | None = None) -> T:
    """Return ``data`` as an instance of ``kind``."""
    try:
        return make_converter(base).structure(data, kind)
    except Exception as error:
        raise Problems(list(problems_of(error))) from error
