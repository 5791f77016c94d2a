"""CSV and TSV, which people open in a spreadsheet."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_cell(value: object) -> object:
    """Return a value for a cell of a CSV file: what a spreadsheet would take for a formula gets a ``'`` before it.

    That is a text which begins with ``=``, ``+``, ``-``, ``@``, tab or CR. Numbers and None stay what they are; quotes
    and line ends are the CSV writer's work.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
