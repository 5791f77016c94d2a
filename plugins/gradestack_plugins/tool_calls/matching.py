"""The matching of expected calls with calls that were made, by assignments of heaviest weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import lcm
from typing import Any, Literal, NamedTuple

import msgspec

from gradestack_plugins.statistics.assignment import assign_rows
from gradestack_plugins.tool_calls.diff import (
    NOTHING,
    Diff,
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
from gradestack_plugins.tool_calls.values import Equality

Weights = Sequence[Sequence[int]]
Columns = list[int | None]
"""The column of each row, None of a row without one."""


def heaviest(weights: Weights) -> Columns:
    """Return the heaviest assignment of rows to columns, each used once.

    A weight of 0 assigns nothing.

    Of several the first in order: each row, one after the other, has the smallest column it can
    have. So a pair's profit is its weight, with the place of its column in digits of a base behind
    it that no sum carries over.
    """
    rows = len(weights)
    columns = len(weights[0]) if weights else 0
    if not columns:
        return [None] * rows
    base = columns + 1
    size = max(rows, columns)
    costs = [[0] * size for _ in range(size)]
    for row, line in enumerate(weights):
        digit = base ** (rows - 1 - row)
        for column, weight in enumerate(line):
            if weight:
                profit = weight * base**rows + (columns - column) * digit
                costs[row][column] = -profit
    assigned = assign_rows(costs)[:rows]
    return [column if costs[row][column] else None for row, column in enumerate(assigned)]


def in_order(weights: Weights) -> Columns:
    """Return the heaviest assignment in which columns rise with rows.

    A weighted longest common subsequence.
    """
    columns = len(weights[0]) if weights else 0
    best = [[0] * (columns + 1)]
    """Of the rows from one on, the last first: the heaviest weight from each column on."""
    for line in reversed(weights):
        below = best[-1]
        here = [0] * (columns + 1)
        for column in reversed(range(columns)):
            taken_here = line[column] + below[column + 1]
            here[column] = max(below[column], here[column + 1], taken_here)
        best.append(here)
    best.reverse()
    chosen: Columns = [None] * len(weights)
    start = 0
    for row, line in enumerate(weights):
        most = best[row][start]
        below = best[row + 1]
        for column in range(start, columns):
            weight = line[column]
            if weight and weight + below[column + 1] == most:
                chosen[row], start = column, column + 1
                break
    return chosen


Rows = tuple[int, ...]


def rows_by_group(groups: Iterable[int | None]) -> list[Rows]:
    """Return the rows of each group, in order of their first calls.

    A call without a group is one of its own.
    """
    rows_of: dict[tuple[str, int], list[int]] = {}
    for row, group in enumerate(groups):
        key = ("row", row) if group is None else ("group", group)
        rows_of.setdefault(key, []).append(row)
    return list(map(tuple, rows_of.values()))


class _Stretch(NamedTuple):
    """An assignment of some rows; of several the least is the best one."""

    negative_weight: int
    order: list[int]
    columns: Columns


def in_groups(weights: Weights, groups: Sequence[Rows]) -> Columns:
    """Return the heaviest assignment in which the columns of a group lie before those of the next.

    Of several the one whose columns are the smallest, read group by group. Every stretch of columns
    is tried for every group, so that the work grows with groups times columns squared.
    """
    columns = len(weights[0]) if weights else 0
    stretch = _Stretch(0, [], [])
    best = [stretch] * (columns + 1)
    """Of the groups from one on, from each column on."""
    for rows in reversed(groups):
        best = [_best_stretch(weights, rows, start, best) for start in range(columns + 1)]
    chosen: Columns = [None] * len(weights)
    in_order_of_groups = (row for rows in groups for row in rows)
    for row, column in zip(in_order_of_groups, best[0].columns, strict=True):
        chosen[row] = column
    return chosen


def _best_stretch(weights: Weights, rows: Rows, start: int, later: Sequence[_Stretch]) -> _Stretch:
    """Choose where the stretch of calls ends that a group of rows is assigned, by weight of all.

    ``later`` are the best stretches that begin at each column, for the groups behind this one.
    """
    columns = len(later) - 1
    stretches = []
    for end in range(start, columns + 1):
        assigned = heaviest([weights[row][start:end] for row in rows])
        places: Columns = [None if column is None else start + column for column in assigned]
        pairs = zip(rows, places, strict=True)
        weight = sum(weights[row][column] for row, column in pairs if column is not None)
        order = [columns if column is None else column for column in places]
        rest = later[end]
        negative = rest.negative_weight - weight
        stretches.append(_Stretch(negative, order + rest.order, places + rest.columns))
    return min(stretches, key=lambda stretch: stretch[:2])


def first_fits(
    expected: Iterable[Any],
    made: Sequence[Any],
    is_fit: Callable[[Any, Any], bool],
    *,
    in_order: bool = False,
) -> Iterator[tuple[Any, Any]]:
    """Yield each expected call with the first call left that fits it, None where none does.

    Args:
        expected: The expected calls.
        made: The calls that were made; each is used once.
        is_fit: Whether an expected call and a call that was made fit.
        in_order: Whether a call has to come after the one used before.
    """
    left = list(made)
    for call in expected:
        index = next((at for at, other in enumerate(left) if is_fit(call, other)), None)
        if index is None:
            yield call, None
            continue
        yield call, left[index]
        if in_order:
            left = left[index + 1 :]
        else:
            left = left[:index] + left[index + 1 :]


def all_fit(
    expected: Iterable[Any],
    made: Sequence[Any],
    is_fit: Callable[[Any, Any], bool],
    *,
    in_order: bool = False,
) -> bool:
    """Return whether each expected call has a call of its own that fits it, first fit."""
    pairs = first_fits(expected, made, is_fit, in_order=in_order)
    return all(other is not None for _, other in pairs)


Order = Literal["strict", "in_order", "any"]
Extra = Literal["allow", "forbid", "penalise"]
Missing = Literal["forbid", "penalise"]
Repeats = Literal["multiset", "set"]
Assignment = Literal["optimal", "first_fit"]
Credit = Literal["none", "call", "path"]
Unit = Literal["sample", "turn"]
Requestor = Literal["stated", "any", "assistant", "user"]
Count = Literal["attempted", "executed"]
FigureName = Literal["f1", "precision", "recall"]
WIDE = 16
"""How many times ``max_pairs`` all pairs of a sample may be where their order counts."""


class TooManyCalls(Exception):
    """More pairs would have to be compared than are allowed."""


class Empty(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of samples without calls on one side, or on both."""

    both: Literal[0, 1, "skip"] = 1
    """Nothing expected, nothing made."""
    expected_only: Literal[0, "skip"] = 0
    """Something expected, nothing made."""
    made_only: Literal[0, 1, "skip"] = 0
    """Nothing expected, something made."""


class Options(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Options of the matching, and of the price of extra and missing calls.

    The grader's options of these names; the defaults are those of our own rule.
    """

    order: Order = "any"
    extra: Extra = "penalise"
    missing: Missing = "penalise"
    arguments: Mode = "rules"
    per_tool: Mapping[str, ToolTerms] = {}
    equality: Equality = "json"
    repeats: Repeats = "multiset"
    assignment: Assignment = "optimal"
    credit: Credit = "path"
    unit: Unit = "sample"
    requestor: Requestor = "stated"
    count: Count = "attempted"
    empty: Empty = Empty()
    score: FigureName = "f1"
    max_pairs: int

    @cached_property
    def _by_tool(self) -> dict[str, Terms]:
        mode, equality = self.arguments, self.equality
        per_tool = self.per_tool.items()
        return {
            name: Terms(mode=tool.arguments or mode, equality=equality, tool=tool)
            for name, tool in per_tool
        }

    @cached_property
    def _terms(self) -> Terms:
        """The terms of tools that have none of their own."""
        return self._by_tool.get("*") or Terms(mode=self.arguments, equality=self.equality)

    def terms(self, name: str) -> Terms:
        """Return the terms on which calls of a tool are compared."""
        return self._by_tool.get(name, self._terms)


class Pair(NamedTuple):
    """An expected call and a call that was made."""

    expected: Expected
    made: Made
    diff: Diff
    share: Share
    code: str = ""
    """Of the reason that is not an argument's."""


Calls = tuple[Expected, Made]
Block = tuple[list[Expected], list[Made]]
"""Calls that may be matched with each other."""


class Matching:
    """The calls that were made for expected ones."""

    def __init__(
        self, options: Options, expected: Sequence[Expected], made: Sequence[Made]
    ) -> None:
        self.options = options
        self._expected = expected
        self._made = made

    def pair(self, expected: Expected, made: Made) -> Pair:
        """Return two calls of one tool compared.

        Without credit for parts, all of it is right or nothing.
        """
        terms = self.options.terms(made.name)
        diff = diff_of(expected, made, terms)
        share = share_of(expected, made, diff, terms)
        credit = self.options.credit
        if credit != "path" and share[0] != share[1]:
            share = NOTHING
        return Pair(expected, made, diff, share)

    def share(self, expected: Expected, made: Made) -> Share:
        """Return the share of two calls that is right."""
        if made.name in expected.names:
            return self.pair(expected, made).share
        return NOTHING

    def _has_credit(self, expected: Expected, made: Made) -> bool:
        return self.share(expected, made)[0] > 0

    def pairs(self) -> list[Pair]:
        """Return the pairs of the heaviest matching, in order of the expected calls.

        None has nothing right.
        """
        order = self.options.order
        matched_calls = list[Calls]()
        if order == "strict":
            matched_calls = list(zip(self._expected, self._made, strict=False))
        elif order == "in_order":
            matched_calls = self._match_in_order()
        else:
            for expected, made in self._blocks():
                matched_calls += self._match_block(expected, made)
            matched_calls.sort(key=lambda calls: calls[0].index)
        pairs = [
            self.pair(call, other) for call, other in matched_calls if other.name in call.names
        ]
        return [pair for pair in pairs if pair.share[0]]

    def _blocks(self) -> list[Block]:
        """Return expected and made calls by name.

        Names that an expected call lets choose from are one.
        """
        linked: dict[str, str] = {}
        for call in self._expected:
            for name in call.names[1:]:
                linked[_root(name, linked)] = _root(call.name, linked)
        blocks: dict[str, Block] = {}
        for call in self._expected:
            root = _root(call.name, linked)
            block = blocks.setdefault(root, ([], []))
            block[0].append(call)
        for other in self._made:
            name = _root(other.name, linked)
            if name in blocks:
                blocks[name][1].append(other)
        return [block for block in blocks.values() if block[1]]

    def _match_block(self, expected: list[Expected], made: list[Made]) -> list[Calls]:
        """Pair a block's expected calls with calls made; if there are many, equal ones first."""
        if len(expected) == len(made) == 1:
            return [(expected[0], made[0])]
        equal: dict[int, Made] = {}
        max_pairs = self.options.max_pairs
        if len(expected) * len(made) > max_pairs:
            equal = self._equal(expected, made)
            self._check((len(expected) - len(equal)) * (len(made) - len(equal)))
        if self.options.assignment == "first_fit":
            return self._first_fit(expected, made)
        others = equal.values()
        used = {other.index for other in others}
        rest = [call for call in expected if call.index not in equal]
        free = [other for other in made if other.index not in used]
        exact = [(call, equal[call.index]) for call in expected if call.index in equal]
        chosen = self._chosen(rest, free, heaviest)
        return exact + chosen

    def _match_in_order(self) -> list[Calls]:
        """Pair expected calls with calls made so that both are in the same order."""
        expected = list(self._expected)
        made = list(self._made)
        if any(call.group is not None for call in expected):
            groups = rows_by_group(call.group for call in expected)
            self._check(len(expected) * len(made))
            self._check(len(groups) * (len(made) + 1) ** 2)
            return self._chosen(expected, made, lambda weights: in_groups(weights, groups))
        if self.options.assignment == "first_fit":
            return self._first_fit(expected, made)
        # calls that are made as expected from the first on take none of max_pairs
        start = self._equal_at_start()
        exact = list(zip(expected[:start], made[:start], strict=True))
        expected = expected[start:]
        made = made[start:]
        max_pairs = self.options.max_pairs
        if len(expected) * len(made) > WIDE * max_pairs:
            self._check(len(expected) * len(made))
        for block in self._blocks() if expected and made else ():
            self._check_block(block)
        chosen = self._chosen(expected, made, in_order)
        return exact + chosen

    def _equal_at_start(self) -> int:
        number = 0
        for call, other in zip(self._expected, self._made, strict=False):
            right, leaves = self.share(call, other)
            if right != leaves:
                break
            number += 1
        return number

    def _check_block(self, block: Block) -> None:
        """Check the number of pairs in a block; those of equal calls do not count."""
        expected = len(block[0])
        made = len(block[1])
        if expected * made > self.options.max_pairs:
            equal = len(self._equal(*block))
            self._check((expected - equal) * (made - equal))

    def _check(self, pairs: int) -> None:
        most = self.options.max_pairs
        if pairs > most:
            problem = f"{pairs} pairs of calls are left to compare"
            raise TooManyCalls(f"{problem}, more than max_pairs: {most}")

    def _equal(self, expected: Iterable[Expected], made: Sequence[Made]) -> dict[int, Made]:
        """Return the expected calls, by index, for which an equal one was made.

        Each is used once, the first first.
        """
        waiting: dict[object, list[Made]] = {}
        for other in reversed(made):
            value = value_of(other, self.options.terms(other.name))
            waiting.setdefault(value, []).append(other)
        equal: dict[int, Made] = {}
        for call in filter(self._is_plain, expected):
            same = waiting.get(value_of(call, self.options.terms(call.name)))
            if same:
                equal[call.index] = same.pop()
        return equal

    def _is_plain(self, call: Expected) -> bool:
        """Return whether an expected call is met by equal calls, and fully by no others."""
        terms = self.options.terms(call.name)
        name_count = len(call.names)
        if name_count > 1 or call.rules or call.requestor is not None:
            return False
        is_decoded = call.raw is None or terms.mode == "ignore"
        return call.compared and is_decoded and not terms.tool.defaults

    def _first_fit(self, expected: Sequence[Expected], made: Sequence[Made]) -> list[Calls]:
        is_ordered = self.options.order == "in_order"
        pairs = first_fits(expected, made, self._has_credit, in_order=is_ordered)
        return [(call, other) for call, other in pairs if other is not None]

    def _chosen(
        self,
        expected: Sequence[Expected],
        made: Sequence[Made],
        choose: Callable[[Weights], Columns],
    ) -> list[Calls]:
        """Return the pairs of an assignment by shares, as whole numbers over a common denominator.

        Ties are ties.
        """
        shares = [[self.share(call, other) for other in made] for call in expected]
        common = lcm(*{leaves for row in shares for _, leaves in row})
        weights = [[right * (common // leaves) for right, leaves in row] for row in shares]
        columns = zip(expected, choose(weights), strict=True)
        return [(call, made[column]) for call, column in columns if column is not None]


def _root(name: str, linked: Mapping[str, str]) -> str:
    while (above := linked.get(name, name)) != name:
        name = above
    return name
