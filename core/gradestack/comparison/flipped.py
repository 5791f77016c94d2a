"""The tasks that changed most, with the rows of a trial of each side: what both runs did, to be put side by side."""

from __future__ import annotations

from typing import Any

from gradestack.comparison.compared import Comparison
from gradestack.comparison.sides import Side

_MOST = 5
"""Tasks whose rows are read."""


def flipped(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the first tasks that changed, each with a trial that passed on one side and one that did not on the other.

    Each has its ``task``, how many trials passed (``a`` and ``b``), and two ``sides`` with ``name``, ``passed``,
    ``position`` and ``row``, without its trajectory. Trials of one number are preferred.
    """
    key, failed = comparison.data["headline"], comparison.data["failed"]
    sides = comparison.sides[:2]
    left, right = (side.trial_verdicts(key, failed) for side in sides)
    found = []
    for each in comparison.data["flips"]["tasks"][:_MOST]:
        before, after = left[each["task"]], right[each["task"]]
        apart = ((one, other) for one in before for other in after if before[one][0] != after[other][0])
        trials = min(apart, key=lambda pair: pair[0] != pair[1], default=None)
        if trials is not None:
            shown = [_shown(sides[0], *before[trials[0]]), _shown(sides[1], *after[trials[1]])]
            found.append({**each, "sides": shown})
    return found


def _shown(side: Side, passed: bool, position: int) -> dict[str, Any]:
    ((number, _, line),) = side.report.lines([(position, side.samples.places[position])])
    row = side.report.row(number, line)
    row.pop("trajectory", None)
    return {"name": side.name, "passed": passed, "position": position, "row": row}
