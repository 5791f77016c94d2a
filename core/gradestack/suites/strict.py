"""Strict structuring of plain data into frozen attrs classes, every problem reported with its place.

A value has the right type or is refused: ``"false"`` is no truth value, and 2.9 is no whole number.
"""

from __future__ import annotations

import math
import os
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs

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

_HINTS = 100
"""Unknown keys of one mapping for which a known one is looked for."""
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_LISTS: Mapping[Any, type] = {tuple: tuple, list: list, Sequence: tuple, set: set, frozenset: frozenset}
"""Annotations that are written as a list, and what is made of one."""


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


def _literal(value: Any, choices: Sequence[Any]) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return value
    names = ", ".join(str(choice) for choice in choices)
    raise ValueError(f"expected one of {names}; got {_kind_of(value)}{suggest(value, map(str, choices))}")


def _value(value: Any, kind: Any, base: Path | None) -> Any:
    """Return a value as an instance of an annotation's type.

    Raises:
        Exception: It is none; where it holds several values that are none, :class:`Problems`.
    """
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (Any, None):
        return value
    if origin in _WORDS:
        return _scalar(value, origin)
    if origin is Literal:
        return _literal(value, inner)
    if origin in (Union, types.UnionType):
        return _one_of(value, inner, base)
    if origin is Path:
        return local_path_of(_scalar(value, str), base)
    if origin in _LISTS:
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected a list, got {_kind_of(value)}")
        each = inner[0] if inner else Any
        return _LISTS[origin](_each(((position, item, each) for position, item in enumerate(value)), base))
    if origin in (dict, Mapping) or attrs.has(origin):
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a mapping, got {_kind_of(value)}")
        if attrs.has(origin):
            return _instance(value, origin, base)
        each = inner[1] if inner else Any
        return dict(zip(map(str, value), _each(((str(k), v, each) for k, v in value.items()), base), strict=True))
    if not isinstance(value, origin):
        raise ValueError(f"expected {origin.__name__}, got {_kind_of(value)}")  # noqa: TRY004
    return value


def _one_of(value: Any, members: Sequence[Any], base: Path | None) -> Any:
    if value is None and type(None) in members:
        return None
    others = [member for member in members if member is not type(None)]
    if len(others) == 1:  # its problems keep their places
        return _value(value, others[0], base)
    said: list[str] = []
    for member in others:
        try:
            return _value(value, member, base)
        except AddressGivenError:  # whatever else it might have been, it is not to be shown
            raise
        except Exception as error:  # noqa: BLE001 - every member is tried, all refusals are told
            said += [text for _, text in _problems_of(error)]
    raise ValueError(", or ".join(dict.fromkeys(said)))


def _instance(value: Mapping[Any, Any], kind: type[T], base: Path | None) -> T:
    """Return an instance of an attrs class; keys it does not have are refused."""
    if any(isinstance(field.type, str) for field in attrs.fields(kind)):  # type: ignore[arg-type]
        attrs.resolve_types(kind)  # type: ignore[type-var]
    fields = {field.alias: field for field in attrs.fields(kind) if field.init}  # type: ignore[arg-type]
    options: dict[str, Any] = {}
    found: list[tuple[Place, str]] = []
    for key, field in fields.items():
        if key not in value:
            found += [((key,), "missing")] * (field.default is attrs.NOTHING)
            continue
        try:
            options[key] = _value(value[key], field.type, base)
        except Exception as error:  # noqa: BLE001 - all problems are collected
            found += [((key, *place), message) for place, message in _problems_of(error)]
    for number, key in enumerate(sorted(value.keys() - fields.keys(), key=str)):
        hint = suggest(key, fields) if number < _HINTS else ""  # which takes its time
        also = hint or f"; known: {', '.join(fields) or 'none'}"
        found.append(((str(key),), f"unknown key{also}"))
    if found:
        raise Problems(found)
    return kind(**options)


def _each(entries: Iterable[tuple[str | int, Any, Any]], base: Path | None) -> list[Any]:
    """Return values as what stands beside them, or raise the problems of all, each with its place."""
    done: list[Any] = []
    found: list[tuple[Place, str]] = []
    for step, value, kind in entries:
        try:
            done.append(_value(value, kind, base))
        except Exception as error:  # noqa: BLE001 - all problems are collected
            found += [((step, *place), message) for place, message in _problems_of(error)]
    if found:
        raise Problems(found)
    return done


def _problems_of(error: Exception) -> list[tuple[Place, str]]:
    return error.found if isinstance(error, Problems) else [((), str(error) or type(error).__name__)]


def structure(data: Any, kind: type[T], base: Path | None = None) -> T:
    """Return ``data`` as an instance of a class; relative paths are taken from ``base``."""
    try:
        found: T = _value(data, kind, base)
    except Exception as error:
        raise Problems(_problems_of(error)) from error
    return found
