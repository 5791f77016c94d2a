"""Metrics that forget samples when ranges are put together: found on the first rows of a run, and left out by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from gradestack.api import Aggregator
from gradestack.grading.merging import Merged
from gradestack.grading.plan import Plan
from gradestack.jsonio.values import loads
from gradestack.model import Grade, Key
from gradestack.rows.read import Row, grade_from_json, key_from_row

_ROWS = 16
"""That many are looked at."""
_BYTES = 1 << 20
"""Of one row at most: what is longer is not read again."""


def leave_out_forgetful(plan: Plan, merged: Merged, rows: IO[bytes]) -> None:
    """Count metrics as broken whose parts, put together, are not the whole.

    A merge that forgets samples raises nothing: its figures are of fewer samples than were added, down to none.

    Args:
        plan: What was run.
        merged: What it came to.
        rows: results.jsonl.
    """
    first = list(_first(rows))
    keys = [key_from_row(row, number) for number, row in enumerate(first)]
    for metric in plan.metrics:
        grades = [grade_from_json(row["grades"][metric.of]) for row in first]
        if metric.name not in merged.broken and _forgets(metric.stage.component, keys, grades):
            merged.broken[metric.name] = (
                f"its merge forgets samples: of the first {len(first)}, put together from two parts, it makes other "
                "figures than of all in a row"
            )


def _first(rows: IO[bytes]) -> Iterator[Row]:
    for _ in range(_ROWS):
        line = rows.readline(_BYTES)
        if not line.endswith(b"\n"):
            return
        yield loads(line)


def _forgets(aggregator: Aggregator[Any], keys: Sequence[Key], grades: Sequence[Grade]) -> bool:
    size = len(keys)

    def fold(start: int, end: int) -> Any:
        return aggregator.add_many(aggregator.start(), keys[start:end], grades[start:end])

    try:
        whole = aggregator.finish(fold(0, size))
        cuts = {size // 4, size // 2, 3 * size // 4}  # a single one may happen to part what is counted apart
        return any(
            not _alike(aggregator.finish(aggregator.merge(fold(0, cut), fold(cut, size))), whole)
            for cut in sorted(cuts)
        )
    except (Exception, SystemExit):  # noqa: BLE001 - one that raises is found where its figures are made
        return False


def _alike(one: Any, other: Any) -> bool:
    """Return whether figures are the same, but for how their sums were rounded."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)
