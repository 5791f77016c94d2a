"""JSON values in and out, read as the standard library of Python 3.11 reads them, whatever Python
this is.

Python 3.11 counts each level of a list or an object that is read as it counts a function that is
called, and has one limit for both. Later ones count functions alone and read thousands of levels,
how many depends on the version and from 3.14 on on the size of the stack. What was read here would
then be refused there, so the levels are counted again.
"""

from __future__ import annotations

import codecs
import contextlib
import enum
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FrameType
from typing import Any, Self

import attrs
import msgspec

from gradestack.interpreter import IN_FORCE
from gradestack.model import is_amount

_COUNTED = sys.version_info < (3, 12)  # whether the interpreter counts levels itself
_ALWAYS = 500  # levels that fit wherever records are read
_texts = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_depth(text: str | bytes) -> None:
    """Refuse JSON that is nested more deeply than the stack has room for.

    What follows a broken string is not looked at.

    Raises:
        RecursionError: It is.
    """
    if _COUNTED or len(text) <= _ALWAYS:
        return
    data = text.encode(errors="replace") if isinstance(text, str) else text
    opening = data.count(b"[") + data.count(b"{")
    if opening <= _ALWAYS or opening <= (room := _room()):
        return
    before_broken_text = _texts.sub(b"", data).partition(b'"')[0]
    depth = 0
    for bracket in before_broken_text.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > room:
            raise RecursionError("nested too deeply")


def _room() -> int:
    used = -2  # this function and the check
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the one way to know
    while frame is not None:
        used, frame = used + 1, frame.f_back
    return sys.getrecursionlimit() - used


def standard_loads(text: str | bytes) -> Any:
    """Decode JSON as ``json.loads`` does.

    Raises:
        RecursionError: It is nested too deeply, in front of what is no JSON if there is any.
        ValueError: As that function.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        check_depth(error.doc[: error.pos])
        raise
    check_depth(text)
    return value


class JsonProblem(ValueError):
    """Text that is not JSON, or too deeply nested to be read. The message says where and what."""


class TooLong(bytes):
    """In place of text that is longer than the limit.

    Its first byte, and what makes it no JSON for anybody.
    """

    size: int

    def __new__(cls, first: bytes, size: int) -> Self:  # noqa: D102
        text = super().__new__(cls, first[:1] + b"\0")
        text.size = size
        return text

    def removeprefix(self, _: object) -> Self:  # noqa: D102
        return self

    removesuffix = removeprefix


def exceeds_limit(size: int) -> bool:
    """Return whether a record of so many bytes is above ``limits.record_bytes``."""
    most = IN_FORCE.get().limits.record_bytes
    return most is not None and size > most


def too_long(size: int) -> str:
    """Return the message about a record of so many bytes."""
    return (
        f"{size:,} bytes long, more than {IN_FORCE.get().limits.record_bytes:,} "
        "(limits.record_bytes)"
    )


_decode = msgspec.json.Decoder().decode
_LONG = 1 << 18


def loads(text: str | bytes) -> Any:
    """Return the value ``json.loads`` returns.

    msgspec decodes what it can: it accepts less (no NaN, no lone surrogates, no number beyond a
    float), and what it accepts has the same value. Everything else is the standard library's.

    Raises:
        JsonProblem: Not JSON, not UTF-8, or nested too deeply for the interpreter.
    """
    try:
        value = _decode(text)
        if len(text) > _ALWAYS:  # most texts are arguments of calls, and short
            check_depth(text)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        pass
    else:
        return value
    if isinstance(text, TooLong):
        raise JsonProblem(too_long(text.size))
    try:
        return standard_loads(text)
    except json.JSONDecodeError as error:
        raise JsonProblem(
            f"not JSON: {error.msg.removesuffix(' starting at')} at character {error.pos}"
        ) from error
    except UnicodeDecodeError as error:
        raise JsonProblem(f"not UTF-8: byte {error.start} cannot be decoded") from error
    except RecursionError as error:
        raise JsonProblem("nested too deeply") from error
    except ValueError as error:  # integers over the interpreter's digit limit
        raise JsonProblem(
            f"a whole number of more than {sys.get_int_max_str_digits()} digits is not read"
        ) from error


def loads_long(text: bytes) -> Any:
    """Decode JSON as ``loads`` does.

    Of a long text with less memory: equal long texts in it are one object.
    """
    if len(text) > _LONG:
        with contextlib.suppress(ValueError, RecursionError):  # the other way decides
            return _shared(text, [])
    return loads(text)


def _shared(text: Any, known: list[tuple[Any, Any]]) -> Any:
    """Decode JSON so that long values of equal text become one object, kept in ``known``."""
    view = memoryview(text)
    if len(view) <= _LONG:
        return _decode(text)
    if view[0] == ord("["):
        return [
            _shared(member, known) for member in msgspec.json.decode(text, type=list[msgspec.Raw])
        ]
    if view[0] == ord("{"):
        parts = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return {key: _shared(member, known) for key, member in parts.items()}
    value = next((value for other, value in known if other == text), None)
    if value is None:
        known.append((text, value := _decode(text)))
    return value


def check_utf8(data: bytes) -> None:
    """Check that bytes are UTF-8.

    What is skipped while decoding, or kept raw, is not looked at otherwise. Of long ones no copy as
    long as they is made.

    Raises:
        UnicodeDecodeError: They are not.
    """
    if data.isascii():
        return
    if len(data) <= _LONG:
        data.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(data)
    for start in range(0, len(data), _LONG):
        decoder.decode(view[start : start + _LONG])
    decoder.decode(b"", final=True)


_AS_IS = frozenset({str, int, float, bool, type(None)})


def _refused(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    """Map the fields of a struct class to the defaults that its JSON omits, or to UNSET."""
    if not kind.__struct_config__.omit_defaults:
        return dict.fromkeys(kind.__struct_fields__, msgspec.UNSET)
    empty: dict[Any, Any] = {dict: {}, list: []}
    return {
        field.name: empty.get(field.default_factory, msgspec.UNSET)
        if field.default is msgspec.NODEFAULT
        else field.default
        for field in msgspec.structs.fields(kind)
    }


def json_data(value: Any, other: Callable[[Any], Any] = _refused) -> Any:
    """Return a value as JSON data.

    Objects become mappings without their absent fields, enums their values.
    """
    kind = type(value)
    if kind in _AS_IS:
        return value
    if isinstance(value, Mapping):
        data = {}
        for (
            key,
            item,
        ) in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            data[str(key)] = json_data(item, other)
        return data
    if isinstance(value, list | tuple):
        items = []
        for item in value:
            items.append(json_data(item, other))
        return items
    if isinstance(value, enum.Enum):
        return json_data(value.value, other)
    if isinstance(value, msgspec.Struct):
        fields = (
            (name, getattr(value, name), default)
            for name, default in _defaults(type(value)).items()
        )
        present = (
            member
            for member in fields
            if member[1] is not msgspec.UNSET and member[1] is not member[2]
        )
        return {
            name: json_data(item, other)
            for name, item, to in present
            if type(item) is not type(to) or item != to
        }
    if attrs.has(kind):
        members = ((name, getattr(value, name)) for name in attrs.fields_dict(kind))
        return {name: json_data(item, other) for name, item in members if item is not msgspec.UNSET}
    if isinstance(value, str | int | float):  # of a class of its own
        return value
    return other(value)


_sorted = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
).encode
_compact = json.JSONEncoder(ensure_ascii=False).encode


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Return strict JSON with sorted keys, the form of every file gradestack writes in its own
    name.

    Numbers are written as Python writes them. NaN and infinities, which JSON lacks, become the
    texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. Non-ASCII text is kept, except in a value
    holding lone surrogates, which UTF-8 cannot carry: that one is escaped.
    """
    try:
        text = _sorted(value)
    except ValueError:
        value = json.loads(_compact(value), parse_constant=str)
        text = _sorted(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        separators = (",", ":" if indent is None else ": ")
        return json.dumps(value, sort_keys=True, indent=indent, separators=separators)
    return text if indent is None else msgspec.json.format(text, indent=indent)  # ten times as fast


def compact(value: Any) -> str:
    """Return one-line JSON in the value's own key order, for messages."""
    try:
        text = _compact(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    check_depth(text)
    return text


_LISTS, _NUMBERS = (list, tuple), (int, float)


def as_map(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, an empty one for anything else."""
    # asking for a mapping alone takes long
    return (
        value
        if isinstance(value, dict) or (value is not None and isinstance(value, Mapping))
        else {}
    )


def as_list(value: Any) -> Sequence[Any]:
    """Return a list or tuple as it is, an empty one for anything else."""
    return () if value is None or not isinstance(value, _LISTS) else value


def as_text(value: Any) -> str:
    """Return a text as it is, "" for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Return an integer as it is, 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def as_number(value: Any) -> float | None:
    """Return a finite number as float, None for anything else (booleans are no numbers)."""
    if value is None or isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_amount(value: Any) -> float | None:
    """Return a cost, time or count as float: finite and at least 0. None for anything else."""
    return float(value) if is_number(value) and is_amount(value) else None


def is_number(value: Any) -> bool:
    """Return whether the value is an integer or float, booleans excluded."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def is_beyond_json(value: Any) -> bool:
    """Return whether a value is NaN or infinite, as a number too large for a float is read."""
    return isinstance(value, float) and not math.isfinite(value)


def same(left: Any, right: Any) -> bool:
    """Return ``left == right``; values too deep to compare are different."""
    try:
        return bool(left == right)
    except RecursionError:
        return False
