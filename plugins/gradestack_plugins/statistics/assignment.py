"""The assignment of rows to columns at the least sum of costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def assign_rows(costs: Sequence[Sequence[float]]) -> list[int]:
    """Return the column that each row of a square matrix is assigned.

    Every column is used once, and the sum of the costs is the least there is (the Hungarian
    method, by shortest augmenting paths). Whole numbers of any size are added exactly.
    """
    size = len(costs)
    start, no_row = size, -1  # the column in which the row to be added waits
    row_potentials: list[Any] = [0] * size
    column_potentials: list[Any] = [0] * (size + 1)
    owners = [no_row] * (size + 1)
    for row in range(size):
        owners[start], column = row, start
        free = list(range(size))
        path = [start]
        gaps: list[Any] = [math.inf] * size
        before = [start] * size
        while owners[column] != no_row:
            owner = owners[column]
            line = costs[owner]
            potential = row_potentials[owner]
            least, nearest = math.inf, start
            for other in free:
                gap = line[other] - potential - column_potentials[other]
                if gap < gaps[other]:
                    gaps[other], before[other] = gap, column
                if gaps[other] < least:
                    least, nearest = gaps[other], other
            for other in path:
                row_potentials[owners[other]] += least
                column_potentials[other] -= least
            for other in free:
                gaps[other] -= least
            free.remove(nearest)
            path.append(nearest)
            column = nearest
        while column != start:
            owners[column] = owners[before[column]]
            column = before[column]
    return sorted(range(size), key=owners.__getitem__)
