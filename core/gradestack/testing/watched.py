"""Grades that say when a part of them is read that was not asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradestack.model import Grade
from gradestack.table import Table


class WatchedTable(Table):
    """A table whose grades raise AssertionError where a part is read that they do not keep."""

    def grades(self, key: str) -> list[Grade]:
        """Return the distinct grades."""
        kept = {part.partition(":")[0] for part in self.parts[key]}
        return [_watched(grade, kept) for grade in super().grades(key)]


def _watched(grade: Grade, kept: Iterable[str]) -> Grade:
    lacking = {"items", "reasons", "rationale", "fault", "metadata"} - {*kept}

    class Watched(Grade, frozen=True, kw_only=True, gc=False):
        def __getattribute__(self, name: str) -> Any:
            if name in lacking:
                advice = "add it to `keeps`" if name in {"fault", "metadata"} else "count it there"
                where = (
                    "" if name in {"fault", "metadata"} else "; contribution() sees all of a grade"
                )
                raise AssertionError(
                    f"compute() reads Grade.{name}, which is not kept{where}: {advice}"
                )
            return super().__getattribute__(name)

    return Watched(**{name: getattr(grade, name) for name in Grade.__struct_fields__})
