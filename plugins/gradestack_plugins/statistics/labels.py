"""Labels of people: files of an id and a label in each line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gradestack import ConfigError, DataError, Input, read_records
from gradestack.jsonio import compact
from gradestack_plugins.readers.tables import csv_columns, csv_table


def read_labels(path: Path) -> dict[str, str]:
    """Return labels by id: JSON Lines of ``id`` and ``label``, or CSV with these columns."""
    return {key[0]: label for _, key, label in label_rows(path)}


def label_rows(path: Path, *more: str) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """Yield file and line of each label, its key, and the label.

    The key is the id, and the fields of ``more``, None where empty.

    Raises:
        ConfigError: The file cannot be read, is of another form, or labels a key twice.
    """
    keys = set[tuple[Any, ...]]()
    try:
        file = Input(path=path, name=path.stem, shown=path.name)
        for at, row in _rows(file):
            identifier = _text(at, row, "id")
            label = _text(at, row, "label")
            fields = [None if row.get(name) in (None, "") else str(row[name]) for name in more]
            key = (identifier, *fields)
            if key in keys:
                raise ConfigError(f"{at}: the id {identifier[:80]!r} has a label already")
            keys.add(key)
            yield at, key, label
    except DataError as error:
        raise ConfigError(str(error)) from error
    if not keys:
        raise ConfigError(f"{path.name}: holds no label; expected lines of id and label")


def _rows(file: Input) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a file, each with its place; those of a table without a label are out."""
    is_table = file.path.suffix.lower() == ".csv"
    if is_table:
        csv_columns(file)  # refuses a name that stands twice
    for element in csv_table(file) if is_table else read_records(file, layout="lines"):
        at = f"{file.shown}:{element.line}"
        row = element.value
        if element.problem is not None:
            raise ConfigError(f"{at}: {element.problem}")
        if not isinstance(row, dict):
            shown = compact(row)[:60]
            raise ConfigError(f"{at}: expected an object with id and label, found {shown}")
        if is_table:
            row = {name: cell.strip() for name, cell in row.items()}
        if not is_table or row.get("label") != "":
            yield at, row


def _text(at: str, row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if type(value) is int:
        return str(value)
    if isinstance(value, str) and value:
        return value
    problem = "it is missing"
    if name in row:
        problem = f"found {compact(value)[:60]}"
    raise ConfigError(f"{at}: expected id and label: {name} is to be a text, {problem}")
