"""Names of a run's samples, and single samples, without an index of all: runs may have millions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from gradestack.jsonio.values import as_map, compact
from gradestack.rows.index import RowEntry, RowIndex
from gradestack.rows.read import Row

NumberedLine = tuple[int, int, bytes]
"""Number, first byte and bytes of a line."""


class RowName(NamedTuple):
    """What one row is called.

    Attributes:
        position: Zero-based number of the row.
        place: Its first byte.
        id: Id of its sample, as text; "" when the row names none, as of model and run.
        model: The model's name.
        run: The run's name or number.
    """

    position: int
    place: int
    id: str
    model: str
    run: str


class _Task(Struct, frozen=True, gc=False):
    id: str | int | None = None


class _Named(Struct, frozen=True, gc=False):
    sample: _Task = _Task()
    run: str | int | None = None
    model_name: str | None = None


_named = msgspec.json.Decoder(_Named).decode


def names_of(lines: Iterable[NumberedLine], loads: Callable[[int, bytes], Any]) -> Iterator[RowName]:
    """Yield the names of rows, of which little else is decoded."""
    position = 0
    for number, place, line in lines:
        try:
            row = _named(line)
            found = (row.sample.id, row.model_name, row.run)
        except (ValueError, RecursionError):
            odd = loads(number, line)
            if not isinstance(odd, dict):
                continue
            found = (as_map(odd.get("sample")).get("id"), odd.get("model_name"), odd.get("run"))
        yield RowName(position, place, *map(_text, found))
        position += 1


def samples_of(
    lines: Iterable[tuple[int, NumberedLine]], loads: Callable[[int, bytes], Any], outcome: str | None
) -> Iterator[tuple[RowEntry, Row]]:
    """Yield what an index says of single rows, and these rows."""
    for position, line in lines:
        row = loads(line[0], line[2])
        if isinstance(row, dict):
            (entry,) = RowIndex.of([line], loads, outcome).entries
            yield msgspec.structs.replace(entry, position=position), row


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else compact(value)
