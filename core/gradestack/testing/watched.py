"""Grades that say when a part of them is read that was not asked for."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from gradestack.model import Grade
from gradestack.table import Table

_DEFERRED = {"items", "reasons", "rationale", "fault", "metadata"}
"""Parts of a grade that a table has only where an aggregator keeps them."""
_KEPT_BY_NAME = {"fault", "metadata"}


class WatchedTable(Table):
    """A table whose grades raise AssertionError where a part is read that they do not keep."""

    def grades(self, key: str) -> list[Grade]:
        """Return the distinct grades."""
        parts = {part.partition(":")[0] for part in self.parts[key]}
        return [_watched(grade, _DEFERRED - parts) for grade in super().grades(key)]


def _watched(grade: Grade, lacking: Container[str]) -> Grade:
    """Copy a grade into one that raises when a field that is not kept is read."""

    class Watched(Grade, frozen=True, kw_only=True, gc=False):
        def __getattribute__(self, name: str) -> Any:
            if name in lacking:
                advice = "; contribution() sees all of a grade: count it there"
                if name in _KEPT_BY_NAME:
                    advice = ": add it to `keeps`"
                raise AssertionError(f"compute() reads Grade.{name}, which is not kept{advice}")
            return super().__getattribute__(name)

    return Watched(**{name: getattr(grade, name) for name in Grade.__struct_fields__})
