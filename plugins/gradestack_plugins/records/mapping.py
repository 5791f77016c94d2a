"""Columns by field: what is read of a record, and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gradestack import suggest
from gradestack.jsonio import Query, path_exists, path_steps, path_value
from gradestack_plugins.readers.chat.conversation import kind_of
from gradestack_plugins.records.cells import BELOW, FIELDS, PREDICTED, SEVERAL, Cell, reader_of

DID = ("messages", "turns", "calls", "predicted")
"""Fields that say what a run did, and are seldom the names of columns that mean something else."""


class Mapped(NamedTuple):
    """One field, and where it stands."""

    field: str
    place: str
    steps: tuple[str | int | Query, ...]
    cell: Cell


def check_columns(columns: Mapping[str, str]) -> None:
    """Check a mapping."""
    for field, place in columns.items():
        if reader_of(field) is None:
            known = [*FIELDS, *(f"{name}.NAME" for name in BELOW)]
            hint = suggest(field, known) or f"; known: {', '.join(known)}"
            raise ValueError(
                f"{field!r} is no field of a sample{hint}; put your own data under facets.{field.rpartition('.')[2]}"
            )
        if not place:
            raise ValueError(f"{field}: no column or path is given")
        try:
            path_steps(place)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from error


def mapped(columns: Mapping[str, str]) -> tuple[Mapped, ...]:
    """Return what a mapping maps."""
    found = ((field, place, reader_of(field)) for field, place in columns.items())
    return tuple(Mapped(field, place, path_steps(place), cell) for field, place, cell in found if cell is not None)


def by_name(columns: Iterable[str]) -> dict[str, str]:
    """Return the mapping of columns that are named like fields."""
    return {name: name for name in columns if reader_of(name) is not None}


def missing(fields: Iterable[Mapped], records: Iterable[Any]) -> list[Mapped]:
    """Return the fields that stand in none of some records."""
    left = list(fields)
    for record in records:
        left = [each for each in left if not _leads_on(record, each)]
        if not left:
            break
    return left


def _leads_on(record: Any, field: Mapped) -> bool:
    """Return whether a path leads to something in a record; where that cannot be known, reading it says so."""
    try:
        return path_exists(record, field.steps)
    except (ValueError, RecursionError):
        return True


def lead_nowhere(fields: Iterable[Mapped], rows: Iterable[Mapping[str, Any]]) -> list[Mapped]:
    """Return the fields whose path leads to nothing in any of some rows, although their cells hold something."""
    left = {each: False for each in fields if len(each.steps) > 1}
    for row in rows if left else ():
        for each in list(left):
            held = row.get(each.steps[0]) if isinstance(each.steps[0], str) else None
            if held is not None and held != "":
                if _leads_on(row, each):
                    del left[each]
                else:
                    left[each] = True
    return [each for each, held in left.items() if held]


def form_of(record: Mapping[str, Any], fields: Iterable[Mapped], *, table: bool) -> dict[str, Any]:
    """Return a record in the jsonl form: of every mapped cell that is not empty its value."""
    found: dict[str, Any] = {}
    for each in fields:
        raw = path_value(record, each.steps)
        if isinstance(each.steps[-1], Query) and each.cell not in SEVERAL:
            raw = _only(raw, each.field)
        if raw is None or (table and raw == ""):
            continue
        value = each.cell(raw, each.field)
        if value is None:
            continue
        parent, dot, name = each.field.partition(".")
        if not dot and each.field not in PREDICTED:
            _put(found, parent, value)
            continue
        holder, key = (parent, name) if dot else ("predicted", parent)
        inner = found.setdefault(holder, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{each.field}: {holder} is mapped as well, and is no object: {str(inner)[:60]!r}")  # noqa: TRY004 - what makes a bad record
        inner[key] = value
    return found


def _only(found: list[Any] | None, field: str) -> Any:
    """Return the one value a query found for a field that holds one."""
    if found is not None and len(found) > 1:
        raise ValueError(f"{field}: the path leads to {len(found)} values, where one is meant")
    return found[0] if found else None


def _put(form: dict[str, Any], field: str, value: Any) -> None:
    """Set a whole field; parts of it that were mapped go before."""
    parts = form.get(field)
    if not isinstance(parts, dict):
        form[field] = value
    elif isinstance(value, dict):
        form[field] = {**value, **parts}
    else:
        raise ValueError(f"{field}: parts of it are mapped as well, and it is no object: {str(value)[:60]!r}")  # noqa: TRY004 - what makes a bad record


def left_out(record: Iterable[str], taken: frozenset[Any]) -> dict[str, int]:
    """Return a remark for every column that is not mapped."""
    return Counter(kind_of("column", name) for name in sorted(record) if name not in taken)
