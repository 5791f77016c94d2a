"""Labels of people in a file of their own, by id."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gradestack import ConfigError
from gradestack.jsonio import JsonProblem, compact, loads

_COLUMNS = ("id", "label")


def read_labels(path: Path) -> dict[str, str]:
    """Return labels by id: JSON Lines of ``id`` and ``label``, or CSV with these columns.

    A row of a CSV file whose label is empty has none; blank lines are skipped.

    Raises:
        ConfigError: It cannot be read, holds no label, gives an id two, or a line is not of its form.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name}: byte {error.object[error.start]:#04x} is not UTF-8") from error
    found: dict[str, str] = {}
    try:
        for line, row in _table(text) if path.suffix.lower() == ".csv" else _lines(text):
            identifier, label = (_text(row, name, line) for name in _COLUMNS)
            if identifier in found:
                raise _wrong(line, f"the id {identifier[:80]!r} has a label already")
            found[identifier] = label
    except ConfigError as error:
        raise ConfigError(f"{path.name}:{error}") from error
    if not found:
        raise ConfigError(f"{path.name}: holds no label; expected lines of id and label")
    return found


def _wrong(line: int, what: str) -> ConfigError:
    return ConfigError(f"{line}: {what}")


def _text(row: Mapping[str, Any], name: str, line: int) -> str:
    value = row.get(name)
    if type(value) is int:
        return str(value)
    if not isinstance(value, str) or not value:
        what = f"found {compact(value)[:60]}" if name in row else "it is missing"
        raise _wrong(line, f"expected id and label: {name} is to be a text, {what}")
    return value


def _lines(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = loads(line.encode())
        except JsonProblem as error:
            raise _wrong(number, str(error)) from error
        if not isinstance(row, dict):
            raise _wrong(number, f"expected an object with id and label, found {compact(row)[:60]}")
        yield number, row


def _table(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    line = 1
    try:
        names = [name.strip() for name in next(rows, [])]
        if any(names.count(name) != 1 for name in _COLUMNS):
            raise _wrong(1, f"expected the columns id and label once each, found: {', '.join(names)[:60] or 'none'}")
        line = rows.line_num + 1
        for cells in rows:
            if cells and len(cells) != len(names):
                raise _wrong(line, f"{len(cells)} cells where the table has {len(names)} columns")
            row = dict(zip(names, cells, strict=False))
            if row.get("label", "").strip():
                yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise _wrong(line, f"no CSV: {error}") from error
