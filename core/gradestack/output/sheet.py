"""CSV and TSV, which people open in a spreadsheet."""

from __future__ import annotations

import csv
import io

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(*values: object, delimiter: str = ",") -> str:
    """Return values as one line of a CSV file, with its line end; what a spreadsheet would calculate becomes a text.

    A text that begins with ``=``, ``+``, ``-``, ``@``, tab or CR gets a ``'`` before it. Numbers stay, also negative
    ones; None is an empty cell. The delimiter of TSV is a tab.

    >>> print(csv_line("=1+1", -0.5, None, "a,b"), end="")
    '=1+1,-0.5,,"a,b"
    """
    file = io.StringIO(newline="")
    cells = [f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value for value in values]
    csv.writer(file, delimiter=delimiter).writerow(cells)  # with CR LF: it quotes what stands in its line end only
    return file.getvalue().removesuffix("\r\n") + "\n"
