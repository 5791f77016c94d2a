"""Whose the results are that name no model, where others of the same recording name one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs
import msgspec
from msgspec import Raw

from gradestack import ConfigError, Input, read_records
from gradestack.jsonio import check_depth, loads
from gradestack_plugins.letta import own_rows
from gradestack_plugins.letta.layout import SUITE, ResultFile, place_of, result_files, unwrapped
from gradestack_plugins.letta.records import Context, identity, model_of

_NOTHING = Raw(b"")
_SEVERAL = 2


class _Task(msgspec.Struct, gc=False):
    id: str | int | None = None


class _Result(msgspec.Struct, gc=False):
    """What of a result says whose it is; the rest is passed over, which is many times faster than decoding it."""

    sample: _Task | None = None
    sample_id: str | int | None = None
    model_name: str | None = None
    model_handle: str | None = None
    predicted: Raw = _NOTHING
    expected: Raw = _NOTHING


class _Line(_Result, gc=False):
    type: str | None = None
    result: _Result | None = None


_line = msgspec.json.Decoder(_Line).decode


@attrs.frozen(kw_only=True)
class Models:
    """What the results of one recording say of their models."""

    named: tuple[str, ...] = ()
    """At most two: more are told apart no further."""
    unnamed: int = 0
    """Results that name none."""
    first: str = ""
    """Where the first of these stands."""


def _brief(line: bytes) -> Any:
    try:
        found = _line(line)
        check_depth(line)
    except (ValueError, RecursionError):  # of another type than usual, or no JSON
        return loads(line)
    return found


def _model(record: Any) -> str | None:
    """Return the model a line's result names, "" for one that names none; None for what is no such result."""
    if not isinstance(record, _Line):
        result = unwrapped(record)
        if identity(result) is None or own_rows.is_own(result):
            return None
        return model_of(result, Context()) or ""
    found = record if record.type is None else record.result if record.type == "result" else None
    if found is None or (_is_object(found.predicted) and _is_object(found.expected)):
        return None
    if found.sample_id is None and (found.sample is None or found.sample.id is None):
        return None
    return found.model_name or found.model_handle or ""


def _is_object(value: Raw) -> bool:
    return bytes(memoryview(value)[:1]) == b"{"


def only_model(given: Input) -> str | None:
    """Return the model of a recording's results that name none: the only one the others name; None where none does.

    Raises:
        ConfigError: The others name several.
        DataError: The recording cannot be read.
    """
    found = models_of(given)
    if not found.unnamed or not found.named:
        return None
    if len(found.named) > 1:
        names = " and ".join(map(repr, found.named))
        msg = f"{found.first}: the result names no model, and others name several, such as {names}"
        raise ConfigError(msg, "say whose such results are with --set reader.model=NAME, or name it in the file")
    return found.named[0]


def models_of(given: Input) -> Models:
    """Return what a recording says of its models; none of a layout whose files are named by model.

    Raises:
        DataError: It cannot be read.
    """
    if given.path.is_dir() and (given.path / SUITE).is_file():
        return Models()
    files = tuple(file for file in result_files(given.path) if file.model is None)
    return _models_in(given, files, tuple(map(_stamp, files)))


def _stamp(file: ResultFile) -> tuple[int, ...]:
    try:
        stat = file.path.stat()
    except OSError:  # reading it says so
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=256)
def _models_in(given: Input, files: tuple[ResultFile, ...], stamps: tuple[tuple[int, ...], ...]) -> Models:  # noqa: ARG001
    """Return what files say; asked for before grading and again by the reader, they are read once."""
    named: dict[str, None] = {}
    unnamed, first = 0, ""
    for file in files:
        place = place_of(given, file.relative)
        for each in read_records(place, layout="lines", decode=_brief):
            model = None if each.problem is not None else _model(each.value)
            if model == "":
                unnamed, first = unnamed + 1, first or f"{place.shown}:{each.line}"
            elif model is not None and len(named) < _SEVERAL:
                named[model] = None
    return Models(named=tuple(named), unnamed=unnamed, first=first)
