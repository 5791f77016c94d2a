"""The tasks that changed most, with the rows of a trial of each side: what both runs did, to be put side by side."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gradestack.comparison.compared import Comparison
from gradestack.comparison.sides import Failed, Side, Task, Trial, score_of
from gradestack.report import Report

_MOST = 5
"""Tasks whose rows are read."""


def flipped(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the first tasks that changed, each with a trial that passed on one side and one that did not on the other.

    Each has its ``task``, how many trials passed (``a`` and ``b``), and two ``sides`` with ``name``, ``passed``,
    ``position`` and ``row``, without its trajectory. Trials of one number are preferred.

    Args:
        comparison: A comparison; of more than two runs, tasks changed between the first two.

    Raises:
        DataError: The rows cannot be read again.
    """
    key, failed = comparison.data["headline"], comparison.data["failed"]
    a, b = comparison.sides[:2]
    found = []
    for each in comparison.data["flips"]["tasks"][:_MOST]:
        pair = _pair(a.tasks[each["task"]], b.tasks[each["task"]], key, failed)
        if pair is not None:
            found.append((each, pair))
    rows = [_rows(side.report, {pair[place].position for _, pair in found}) for place, side in enumerate((a, b))]
    return [
        {
            **each,
            "sides": [
                _shown(side, trial, key, rows[place][trial.position])
                for place, (side, trial) in enumerate(zip((a, b), pair, strict=True))
            ],
        }
        for each, pair in found
    ]


def _pair(a: Task, b: Task, key: str, failed: Failed) -> tuple[Trial, Trial] | None:
    """Return a trial of each side of which one passed, of one number where there are such; None where there is none."""
    left, right = ([trial for trial in task.trials if score_of(trial, key, failed) is not None] for task in (a, b))
    apart = ((one, other) for one in left for other in right if one.grades[key].passed != other.grades[key].passed)
    return min(apart, key=lambda pair: pair[0].run != pair[1].run, default=None)


def _rows(report: Report, positions: Collection[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    if positions:
        last = max(positions)
        for position, row in enumerate(report.rows()):
            if position in positions:
                found[position] = {name: value for name, value in row.items() if name != "trajectory"}
            if position == last:
                break
    return found


def _shown(side: Side, trial: Trial, key: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"name": side.name, "passed": trial.grades[key].passed, "position": trial.position, "row": row}
