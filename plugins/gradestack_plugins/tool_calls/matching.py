"""The matching of expected calls with calls that were made, by assignments of heaviest weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import lcm
from typing import Literal, NamedTuple

import attrs

from gradestack_plugins.tool_calls.diff import (
    NOTHING,
    Diff,
    Equality,
    Expected,
    Made,
    Mode,
    Share,
    Terms,
    ToolTerms,
    diff_of,
    share_of,
    value_of,
)

Weights = Sequence[Sequence[int]]
Chosen = list[int | None]
"""Row -> column, None where the row has none."""


def heaviest(weights: Weights) -> Chosen:
    """Return the heaviest assignment of rows to columns, each used once.

    A weight of 0 assigns nothing.

    Of several the first in order: each row, one after the other, has the smallest column it can
    have. So a pair's profit is its weight, with the place of its column in digits of a base behind
    it that no sum carries over.
    """
    rows, columns = len(weights), len(weights[0]) if weights else 0
    base, size = columns + 1, max(rows, columns)
    profits = [[0] * size for _ in range(size)]
    for row, line in enumerate(weights):
        place = base ** (rows - 1 - row)
        for column, weight in enumerate(line):
            if weight:
                profits[row][column] = weight * base**rows + (columns - column) * place
    chosen: Chosen = [None] * rows
    for column, row in enumerate(_most_profitable(profits) if columns else ()):
        if row < rows and profits[row][column]:
            chosen[row] = column
    return chosen


def _most_profitable(profits: Sequence[Sequence[int]]) -> list[int]:
    """Return the row of each column of a square, at the greatest sum.

    Shortest augmenting paths (Hungarian method).
    """
    size = len(profits)
    labels, others, owners = [max(line) for line in profits], [0] * size, [-1] * size
    for start in range(size):
        row, column = start, -1
        gaps: list[int | None] = [None] * size
        before, free, reached = [-1] * size, list(range(size)), list[int]()
        while row >= 0:
            line, label, least, place = profits[row], labels[row], -1, -1
            for other in free:
                gap, held = label + others[other] - line[other], gaps[other]
                if held is None or gap < held:
                    gaps[other], before[other], held = gap, column, gap
                if least < 0 or held < least:
                    least, place = held, other
            if least:
                labels[start] -= least
                for other in reached:
                    labels[owners[other]] -= least
                    others[other] += least
                gaps = [None if gap is None else gap - least for gap in gaps]
            free.remove(place)
            reached.append(place)
            column, row = place, owners[place]
        while column >= 0:
            owners[column] = owners[before[column]] if before[column] >= 0 else start
            column = before[column]
    return owners


def in_order(weights: Weights) -> Chosen:
    """Return the heaviest assignment in which columns rise with rows.

    A weighted longest common subsequence.
    """
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
    """Return the rows of each group, in order of their first calls.

    A call without a group is one of its own.
    """
    found: dict[tuple[str, int], list[int]] = {}
    for row, group in enumerate(groups):
        found.setdefault(("row", row) if group is None else ("group", group), []).append(row)
    return list(map(tuple, found.values()))


def in_groups(weights: Weights, groups: Sequence[Rows]) -> Chosen:
    """Return the heaviest assignment in which the columns of a group lie before those of the next.

    Of several the one whose columns are the smallest, read group by group. Every stretch of columns
    is tried for every group, so that the work grows with groups times columns squared.
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
        weight = sum(
            weights[row][start + at] for row, at in zip(rows, chosen, strict=True) if at is not None
        )
        places: Chosen = [None if at is None else start + at for at in chosen]
        order = [columns if at is None else at for at in places]
        found.append((later[end][0] - weight, order + later[end][1], places + later[end][2]))
    return min(found, key=lambda each: each[:2])


Order = Literal["strict", "in_order", "any"]
FigureName = Literal["f1", "precision", "recall"]
WIDE = 16
"""How many times ``max_pairs`` all pairs of a sample may be where their order counts."""


class TooManyCalls(Exception):
    """More pairs would have to be compared than are allowed."""


@attrs.frozen(kw_only=True)
class Options:
    """How calls are matched, and what extra and missing ones cost.

    The grader's options of these names.
    """

    order: Order
    extra: Literal["allow", "forbid", "penalise"]
    missing: Literal["forbid", "penalise"]
    arguments: Mode
    per_tool: Mapping[str, ToolTerms]
    equality: Equality
    assignment: Literal["optimal", "first_fit"]
    credit: Literal["none", "call", "path"]
    score: FigureName
    max_pairs: int
    _terms: Terms = attrs.field(init=False)
    _by_tool: Mapping[str, Terms] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Work out the terms of each tool."""
        by_tool = {
            name: Terms(mode=tool.arguments or self.arguments, equality=self.equality, tool=tool)
            for name, tool in self.per_tool.items()
        }
        object.__setattr__(self, "_by_tool", by_tool)
        object.__setattr__(
            self, "_terms", by_tool.get("*") or Terms(mode=self.arguments, equality=self.equality)
        )

    def terms(self, name: str) -> Terms:
        """Return how the calls of a tool are compared."""
        return self._by_tool.get(name, self._terms)


class Pair(NamedTuple):
    """An expected call and a call that was made."""

    expected: Expected
    made: Made
    diff: Diff
    share: Share
    code: str = ""
    """Of the reason that is not an argument's."""


class Matching:
    """Which call was made for which expected one."""

    def __init__(
        self, options: Options, expected: Sequence[Expected], made: Sequence[Made]
    ) -> None:
        self.options, self._expected, self._made = options, expected, made

    def pair(self, expected: Expected, made: Made) -> Pair:
        """Return two calls of one tool compared.

        Without credit for parts, all of it is right or nothing.
        """
        terms = self.options.terms(made.name)
        diff = diff_of(expected, made, terms)
        share = share_of(expected, made, diff, terms)
        return Pair(
            expected,
            made,
            diff,
            share if self.options.credit == "path" or share[0] == share[1] else NOTHING,
        )

    def share(self, expected: Expected, made: Made) -> Share:
        """Return how much of two calls is right."""
        return self.pair(expected, made).share if made.name in expected.names else NOTHING

    def pairs(self) -> list[Pair]:
        """Return the pairs of the heaviest matching, in order of the expected calls.

        None has nothing right.
        """
        if self.options.order == "strict":
            both = list(zip(self._expected, self._made, strict=False))
        elif self.options.order == "in_order":
            both = self._in_order()
        else:
            both = [
                pair
                for expected, made in self._blocks()
                for pair in self._in_any_order(expected, made)
            ]
            both.sort(key=lambda pair: pair[0].index)
        pairs = [
            self.pair(expected, made) for expected, made in both if made.name in expected.names
        ]
        return [pair for pair in pairs if pair.share[0]]

    def _blocks(self) -> list[tuple[list[Expected], list[Made]]]:
        """Return expected and made calls by name.

        Names that an expected call lets choose from are one.
        """
        linked: dict[str, str] = {}
        for call in self._expected:
            for name in call.names[1:]:
                linked[_root(name, linked)] = _root(call.name, linked)
        blocks: dict[str, tuple[list[Expected], list[Made]]] = {}
        for call in self._expected:
            name = _root(call.name, linked) if linked else call.name
            blocks.setdefault(name, ([], []))[0].append(call)
        for other in self._made:
            if (
                block := blocks.get(_root(other.name, linked) if linked else other.name)
            ) is not None:
                block[1].append(other)
        return [block for block in blocks.values() if block[1]]

    def _in_any_order(
        self, expected: list[Expected], made: list[Made]
    ) -> list[tuple[Expected, Made]]:
        if len(expected) == len(made) == 1:
            return [(expected[0], made[0])]
        equal: dict[int, Made] = {}
        if len(expected) * len(made) > self.options.max_pairs:
            equal = self._equal(expected, made)
            self._check((len(expected) - len(equal)) * (len(made) - len(equal)))
        if self.options.assignment == "first_fit":
            return self._first_fit(expected, made)
        used = {other.index for other in equal.values()}
        rest = [call for call in expected if call.index not in equal]
        free = [other for other in made if other.index not in used]
        exact = [(call, equal[call.index]) for call in expected if call.index in equal]
        return exact + self._chosen(rest, free, heaviest)

    def _in_order(self) -> list[tuple[Expected, Made]]:
        expected, made = list(self._expected), list(self._made)
        if any(call.group is not None for call in expected):
            groups = rows_by_group([call.group for call in expected])
            self._check(len(expected) * len(made))
            self._check(len(groups) * (len(made) + 1) ** 2)
            return self._chosen(expected, made, lambda weights: in_groups(weights, groups))
        if self.options.assignment == "first_fit":
            return self._first_fit(expected, made)
        start = 0  # calls that are made as expected from the first on take none of max_pairs
        for one, other in zip(expected, made, strict=False):
            right, of = self.share(one, other)
            if right != of:
                break
            start += 1
        exact = list(zip(expected[:start], made[:start], strict=True))
        expected, made = expected[start:], made[start:]
        if len(expected) * len(made) > WIDE * self.options.max_pairs:
            self._check(len(expected) * len(made))
        for block in self._blocks() if expected and made else ():
            if len(block[0]) * len(block[1]) > self.options.max_pairs:
                equal = len(self._equal(*block))
                self._check((len(block[0]) - equal) * (len(block[1]) - equal))
        return exact + self._chosen(expected, made, in_order)

    def _check(self, pairs: int) -> None:
        most = self.options.max_pairs
        if pairs > most:
            raise TooManyCalls(
                f"{pairs} pairs of calls are left to compare, more than max_pairs: {most}"
            )

    def _equal(self, expected: Sequence[Expected], made: Sequence[Made]) -> dict[int, Made]:
        """Return the expected calls, by index, for which an equal one was made.

        Each is used once, the first first.
        """
        waiting: dict[object, list[Made]] = {}
        for other in reversed(made):
            waiting.setdefault(value_of(other, self.options.terms(other.name)), []).append(other)
        equal: dict[int, Made] = {}
        for call in expected:
            terms = self.options.terms(call.name)
            if len(call.names) > 1 or call.rules or call.requestor is not None or not call.compared:
                continue
            if terms.tool.defaults or (call.raw is not None and terms.mode != "ignore"):
                continue
            if same := waiting.get(value_of(call, terms)):
                equal[call.index] = same.pop()
        return equal

    def _first_fit(
        self, expected: Sequence[Expected], made: Sequence[Made]
    ) -> list[tuple[Expected, Made]]:
        """Return each expected call with the first call left, in order the first after the one
        before, that fits.
        """
        pairs, free = [], list(made)
        for call in expected:
            for place, other in enumerate(free):
                if self.share(call, other)[0]:
                    pairs.append((call, other))
                    free = (
                        free[place + 1 :]
                        if self.options.order == "in_order"
                        else free[:place] + free[place + 1 :]
                    )
                    break
        return pairs

    def _chosen(
        self,
        expected: Sequence[Expected],
        made: Sequence[Made],
        choose: Callable[[Weights], Chosen],
    ) -> list[tuple[Expected, Made]]:
        """Return the pairs of an assignment by shares, as whole numbers over a common denominator.

        Ties are ties.
        """
        shares = [[self.share(call, other) for other in made] for call in expected]
        common = lcm(*{of for row in shares for _, of in row})
        places = choose([[right * (common // of) for right, of in row] for row in shares])
        return [
            (call, made[at]) for call, at in zip(expected, places, strict=True) if at is not None
        ]


def _root(name: str, linked: Mapping[str, str]) -> str:
    while (above := linked.get(name, name)) != name:
        name = above
    return name
