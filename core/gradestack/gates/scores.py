"""Rows read back: the scores gates beyond the flat form are computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from gradestack.gates.verdicts import Series
from gradestack.jsonio.lines import iter_lines
from gradestack.jsonio.values import loads
from gradestack.model import Outcome, Status
from gradestack.rows.read import Row


def iter_rows(path: Path) -> Iterator[tuple[bytes, Row]]:
    """Yield the lines of a results file with their rows."""
    for line in iter_lines(path):
        yield line.data, loads(line.data)


class RowSeries:
    """Scores of graded samples, read from rows when first asked for.

    Args:
        read: Yields the rows anew each time it is called.
        run: Leave out the rows of other runs.
    """

    def __init__(self, read: Callable[[], Iterator[Row]], run: Any = ...) -> None:
        self._read, self._run = read, run

    def _rows(self) -> Iterator[Row]:
        for row in self._read():
            if self._run is ... or row["run"] == self._run:
                yield row

    @cached_property
    def everything(self) -> Series:
        """Scores by grader key, in input order."""
        found = Series()
        for row in self._rows():
            _add_scores(found, row)
        return found

    def groups(self, per: str) -> Mapping[str, Series]:
        """Return group name -> series, by model or by a facet, in order of first appearance.

        A facet that no row has gives no groups, so that a mistyped one does not pass for a group of everything. A group
        in which nothing could be graded is there too, with no scores: a gate has no data about it.
        """
        found: dict[str, Series] = {}
        known = False
        for row in self._rows():
            value = row["model_name"] if per == "model" else row["facets"].get(per)
            name = value if isinstance(value, str) else "none" if value is None else str(value)
            _add_scores(found.setdefault(name, Series()), row)
            known = known or value is not None
        return found if known or per == "model" else {}


def _add_scores(into: Series, row: Row) -> None:
    graded = {key: grade["score"] for key, grade in row["grades"].items() if grade["state"] == Outcome.GRADED}
    into.add(graded, ran=row["status"] == Status.OK)
