"""The forms of states and references, declared: converted once, with plain code behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from gradestack import Fault, Grade, failed

Row = Mapping[str, Any]
RowList = list[dict[str, Any]]
Tables = dict[str, RowList | dict[str, dict[str, Any]]]
"""Table -> its rows, which may be given by key."""
Form = TypeVar("Form")


class Unusable(ValueError):
    """A state or a reference that is not of its form; the message says where and what."""


def convert(value: Any, form: type[Form], name: str) -> Form:
    """Convert a JSON value to its form.

    Raises:
        Unusable: It is not of the form.
    """
    try:
        return msgspec.convert(value, form)
    except ValueError as error:  # msgspec's own is one; so is a key that is half a character
        raise Unusable(f"{name}: {error}") from error


def rows_by_table(tables: Tables) -> dict[str, list[Row]]:
    """Return the rows of each table as a list."""
    listed: dict[str, list[Row]] = {}
    for table, rows in tables.items():
        listed[table] = [*rows.values()] if isinstance(rows, dict) else [*rows]
    return listed


def unusable_state(problem: Unusable | RecursionError) -> Grade:
    """Return the grade of a sample whose state or reference cannot be used."""
    message = str(problem) if isinstance(problem, Unusable) else "nested too deeply"
    return failed(Fault(category="data", code="unusable_state", message=message))
