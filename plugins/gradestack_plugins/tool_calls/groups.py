"""Assignments in order, where calls of one group may come in any order among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gradestack_plugins.tool_calls.assignment import Chosen, Weights, heaviest

Rows = tuple[int, ...]


def rows_by_group(groups: Sequence[int | None]) -> list[Rows]:
    """Return the rows of each group, in order of their first calls; a call without a group is one of its own."""
    found: dict[tuple[str, int], list[int]] = {}
    for row, group in enumerate(groups):
        found.setdefault(("row", row) if group is None else ("group", group), []).append(row)
    return list(map(tuple, found.values()))


def in_groups(weights: Weights, groups: Sequence[Rows]) -> Chosen:
    """Return the heaviest assignment in which the columns of a group lie before those of the next.

    Of several the one whose columns are the smallest, read group by group. Every stretch of columns is tried for every
    group, so that the work grows with groups times columns squared.
    """
    columns = len(weights[0]) if weights else 0

    def stretch(rows: Rows, start: int, end: int) -> tuple[int, list[int], Chosen]:
        chosen = heaviest([weights[row][start:end] for row in rows])
        weight = sum(weights[row][start + at] for row, at in zip(rows, chosen, strict=True) if at is not None)
        places: Chosen = [None if at is None else start + at for at in chosen]
        return -weight, [columns if at is None else at for at in places], places

    @cache
    def best(group: int, start: int) -> tuple[int, list[int], Chosen]:
        if group == len(groups):
            return 0, [], []
        found = []
        for end in range(start, columns + 1):
            weight, order, places = stretch(groups[group], start, end)
            rest, later, more = best(group + 1, end)
            found.append((weight + rest, order + later, places + more))
        return min(found, key=lambda each: each[:2])

    for group in range(len(groups), -1, -1):  # from the last on, so that nothing is nested
        for start in range(columns, -1, -1):
            best(group, start)
    chosen: Chosen = [None] * len(weights)
    for row, place in zip((row for rows in groups for row in rows), best(0, 0)[2], strict=True):
        chosen[row] = place
    return chosen
