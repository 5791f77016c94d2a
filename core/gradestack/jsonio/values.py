"""JSON values in and out, read as the standard library reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec


class JsonProblem(ValueError):
    """Text that is not JSON, or too deeply nested to be read. The message says where and what."""


_decode = msgspec.json.Decoder().decode


def loads(text: str | bytes) -> Any:
    """Return the value :func:`json.loads` returns.

    msgspec decodes what it can: it accepts less (no NaN, no lone surrogates, no number beyond a float), and what
    it accepts has the same value. Everything else is the standard library's.

    Raises:
        JsonProblem: Not JSON, not UTF-8, or nested too deeply for the interpreter.
    """
    try:
        return _decode(text)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        return _loads_slowly(text)


def _loads_slowly(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        msg = f"not JSON: {error.msg} at character {error.pos}"
        raise JsonProblem(msg) from error
    except UnicodeDecodeError as error:
        msg = f"not UTF-8: byte {error.start} cannot be decoded"
        raise JsonProblem(msg) from error
    except RecursionError as error:
        msg = "nested too deeply"
        raise JsonProblem(msg) from error
    except ValueError as error:  # integers over the interpreter's digit limit
        raise JsonProblem(str(error)) from error


def _no_nan(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124
    if isinstance(value, Mapping):
        return {key: _no_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_no_nan(item) for item in value]
    return value


@cache
def _encoder(indent: int | None, *, escaped: bool) -> json.JSONEncoder:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.JSONEncoder(ensure_ascii=escaped, sort_keys=True, indent=indent, separators=separators, allow_nan=False)


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Return strict JSON with sorted keys, the form of every file gradestack writes in its own name.

    Numbers are written as Python writes them. NaN and infinities, which JSON lacks, become the texts ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"``. Non-ASCII text is kept, except in a value holding lone surrogates, which UTF-8
    cannot carry: that one is escaped.
    """
    encoder = _encoder(indent, escaped=False)
    try:
        text = encoder.encode(value)
    except ValueError:
        value = _no_nan(value)
        text = encoder.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _encoder(indent, escaped=True).encode(value)
    return text


_compact = json.JSONEncoder(ensure_ascii=False).encode


def compact(value: Any) -> str:
    """Return one-line JSON in the value's own key order, for messages."""
    try:
        return _compact(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
