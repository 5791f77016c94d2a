"""Assignments of heaviest weight: any to any, or in order; ties always broken the same way.

Weights are whole numbers, so that ties are ties. Of all heaviest assignments the one is returned whose columns, read
row by row, are the smallest (no column after every column).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Weights = Sequence[Sequence[int]]
Chosen = list[int | None]
"""Row -> column, None where the row has none."""


def heaviest(weights: Weights) -> Chosen:
    """Return the heaviest assignment of rows to columns, each used once; a weight of 0 assigns nothing.

    Shortest augmenting paths (Hungarian method) with dual prices; every heaviest assignment uses only pairs that are
    tight for those prices, so that ties are broken among them.
    """
    rows, columns = len(weights), len(weights[0]) if weights else 0
    if not rows or not columns:
        return [None] * rows
    most = max(map(max, weights))
    if not most:
        return [None] * rows
    size = max(rows, columns)
    blank = [most] * size
    costs = [[most - weight for weight in row] + [most] * (size - columns) for row in weights]
    costs += [blank] * (size - rows)
    owners, prices, offers = _cheapest(costs)
    return _first(weights, costs, owners, prices, offers)


def _cheapest(costs: Sequence[Sequence[int]]) -> tuple[list[int], list[int], list[int]]:
    """Return the cheapest assignment of a square: the row of each column, and the prices of rows and of columns."""
    size = len(costs)
    offers = [min(column) for column in zip(*costs, strict=True)]
    prices = [min(map(int.__sub__, row, offers)) for row in costs]
    owners = [-1] * size
    waiting = []
    for row, line in enumerate(costs):
        price = prices[row]
        for column in range(size):
            if owners[column] < 0 and line[column] == price + offers[column]:
                owners[column] = row
                break
        else:
            waiting.append(row)
    far = 4 * (max(map(max, costs)) + 1) * (size + 1) ** 2  # beyond any path
    for row in waiting:
        _augment(row, costs, owners, prices, offers, far)
    return owners, prices, offers


def _augment(
    start: int, costs: Sequence[Sequence[int]], owners: list[int], prices: list[int], offers: list[int], far: int
) -> None:
    """Give a row a column, along the cheapest path over rows that have one; prices are kept right."""
    size = len(costs)
    free = list(range(size))
    distance, before = [far] * size, [-1] * size
    reached: list[int] = []
    row, least, end = start, 0, -1
    while end < 0:
        line, base = costs[row], least - prices[row]
        came = reached[-1] if reached else -1
        best, place = far, -1
        for column in free:
            found = base + line[column] - offers[column]
            held = distance[column]
            if found < held:
                distance[column], before[column], held = found, came, found
            if held < best:
                best, place = held, column
        least = best
        free.remove(place)
        reached.append(place)
        if owners[place] < 0:
            end = place
        else:
            row = owners[place]
    prices[start] += least
    for column in reached[:-1]:
        prices[owners[column]] += least - distance[column]
        offers[column] -= least - distance[column]
    column = end
    while column >= 0:
        previous = before[column]
        owners[column] = owners[previous] if previous >= 0 else start
        column = previous


def _first(
    weights: Weights, costs: Sequence[Sequence[int]], owners: list[int], prices: list[int], offers: list[int]
) -> Chosen:
    """Return the first in order of all assignments over tight pairs."""
    size, columns = len(costs), len(weights[0])
    tight = [
        [column for column in range(size) if line[column] == price + offers[column]]
        for line, price in zip(costs, prices, strict=True)
    ]
    taken = [-1] * size
    for column, row in enumerate(owners):
        taken[row] = column
    fixed = [False] * size
    for row, line in enumerate(weights):
        for column in tight[row]:
            if column >= columns or not line[column] or fixed[column]:
                continue
            if column == taken[row] or _moved(row, column, tight, owners, taken, fixed):
                fixed[column] = True
                break
    return [
        column if (column := taken[row]) < columns and weights[row][column] else None for row in range(len(weights))
    ]


def _moved(
    row: int, column: int, tight: Sequence[Sequence[int]], owners: list[int], taken: list[int], fixed: Sequence[bool]
) -> bool:
    """Give a row another column, if the one that has it can be given yet another, and so on; return whether it can."""
    left, loser = taken[row], owners[column]
    before: dict[int, int] = {}
    """Column -> row that would move to it."""
    waiting = [loser]
    while waiting:
        mover = waiting.pop()
        for other in tight[mover]:
            if other == column or fixed[other] or other in before:
                continue
            before[other] = mover
            if other == left:
                _passed_on(other, mover, loser, before, owners, taken)
                owners[column], taken[row] = row, column
                return True
            waiting.append(owners[other])
    return False


def _passed_on(
    column: int, mover: int, last: int, before: Mapping[int, int], owners: list[int], taken: list[int]
) -> None:
    """Let rows move on: one to a column, the next to the one that it leaves, up to the last."""
    while mover != last:
        owners[column], taken[mover], column = mover, column, taken[mover]
        mover = before[column]
    owners[column], taken[mover] = mover, column


def in_order(weights: Weights) -> Chosen:
    """Return the heaviest assignment in which columns rise with rows: a weighted longest common subsequence."""
    rows, columns = len(weights), len(weights[0]) if weights else 0
    rest = [[0] * (columns + 1)]
    """Of the rows from one on (last first): heaviest from each column on."""
    for line in reversed(weights):
        below, best = rest[-1], [0] * (columns + 1)
        for column in range(columns - 1, -1, -1):
            found = max(below[column], best[column + 1])
            weight = line[column]
            best[column] = max(found, weight + below[column + 1]) if weight else found
        rest.append(best)
    chosen: Chosen = [None] * rows
    start = 0
    for row, line in enumerate(weights):
        here, below = rest[rows - row], rest[rows - row - 1]
        for column in range(start, columns):
            if line[column] and line[column] + below[column + 1] == here[start]:
                chosen[row], start = column, column + 1
                break
    return chosen


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
    best: list[tuple[int, list[int], Chosen]] = [(0, [], [])] * (columns + 1)
    """Of the groups from one on, from each column on: weight (less is more), order, and columns."""
    for rows in reversed(groups):
        best = [_best_stretch(weights, rows, start, best) for start in range(columns + 1)]
    chosen: Chosen = [None] * len(weights)
    for row, place in zip((row for rows in groups for row in rows), best[0][2], strict=True):
        chosen[row] = place
    return chosen


def _best_stretch(
    weights: Weights, rows: Rows, start: int, later: Sequence[tuple[int, list[int], Chosen]]
) -> tuple[int, list[int], Chosen]:
    columns = len(later) - 1
    found = []
    for end in range(start, columns + 1):
        chosen = heaviest([weights[row][start:end] for row in rows])
        weight = sum(weights[row][start + at] for row, at in zip(rows, chosen, strict=True) if at is not None)
        places: Chosen = [None if at is None else start + at for at in chosen]
        order = [columns if at is None else at for at in places]
        found.append((later[end][0] - weight, order + later[end][1], places + later[end][2]))
    return min(found, key=lambda each: each[:2])
