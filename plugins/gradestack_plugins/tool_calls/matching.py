"""The matching of expected calls with calls that were made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import lcm
from typing import Literal, NamedTuple

import attrs

from gradestack_plugins.tool_calls.assignment import Chosen, Weights, heaviest, in_groups, in_order, rows_by_group
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

Order = Literal["strict", "in_order", "any"]
FigureName = Literal["f1", "precision", "recall"]
WIDE = 16
"""How many times ``max_pairs`` all pairs of a sample may be where their order counts."""


class TooManyCalls(Exception):
    """More pairs would have to be compared than are allowed."""


@attrs.frozen(kw_only=True)
class Options:
    """How calls are matched, and what extra and missing ones cost."""

    order: Order
    mode: Mode
    equality: Equality
    first_fit: bool
    partial: bool
    """Whether a pair can be right in part."""
    max_pairs: int
    per_tool: Mapping[str, ToolTerms]
    extra: Literal["allow", "forbid", "penalise"]
    missing: Literal["forbid", "penalise"]
    verdict_only: bool
    """Whether the score is the verdict, 1 or 0."""
    figure: FigureName
    _terms: Terms = attrs.field(init=False)
    _by_tool: Mapping[str, Terms] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Work out the terms of each tool."""
        by_tool = {
            name: Terms(mode=tool.arguments or self.mode, equality=self.equality, tool=tool)
            for name, tool in self.per_tool.items()
        }
        object.__setattr__(self, "_by_tool", by_tool)
        object.__setattr__(self, "_terms", by_tool.get("*") or Terms(mode=self.mode, equality=self.equality))

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

    def __init__(self, options: Options, expected: Sequence[Expected], made: Sequence[Made]) -> None:
        self.options, self._expected, self._made = options, expected, made

    def pair(self, expected: Expected, made: Made) -> Pair:
        """Return two calls of one tool compared; without credit for parts, all of it is right or nothing."""
        terms = self.options.terms(made.name)
        diff = diff_of(expected, made, terms)
        share = share_of(expected, made, diff, terms)
        return Pair(expected, made, diff, share if self.options.partial or share[0] == share[1] else NOTHING)

    def share(self, expected: Expected, made: Made) -> Share:
        """Return how much of two calls is right."""
        return self.pair(expected, made).share if made.name in expected.names else NOTHING

    def pairs(self) -> list[Pair]:
        """Return the pairs of the heaviest matching, in order of the expected calls; none has nothing right."""
        if self.options.order == "strict":
            both = list(zip(self._expected, self._made, strict=False))
        elif self.options.order == "in_order":
            both = self._in_order()
        else:
            both = [pair for expected, made in self._blocks() for pair in self._in_any_order(expected, made)]
            both.sort(key=lambda pair: pair[0].index)
        pairs = [self.pair(expected, made) for expected, made in both if made.name in expected.names]
        return [pair for pair in pairs if pair.share[0]]

    def _blocks(self) -> list[tuple[list[Expected], list[Made]]]:
        """Return expected and made calls by name; names that an expected call lets choose from are one."""
        linked: dict[str, str] = {}
        for call in self._expected:
            for name in call.names[1:]:
                linked[_root(name, linked)] = _root(call.name, linked)
        blocks: dict[str, tuple[list[Expected], list[Made]]] = {}
        for call in self._expected:
            name = _root(call.name, linked) if linked else call.name
            blocks.setdefault(name, ([], []))[0].append(call)
        for other in self._made:
            if (block := blocks.get(_root(other.name, linked) if linked else other.name)) is not None:
                block[1].append(other)
        return [block for block in blocks.values() if block[1]]

    def _in_any_order(self, expected: list[Expected], made: list[Made]) -> list[tuple[Expected, Made]]:
        if len(expected) == len(made) == 1:
            return [(expected[0], made[0])]
        equal: dict[int, Made] = {}
        if len(expected) * len(made) > self.options.max_pairs:
            equal = self._equal(expected, made)
            self._check((len(expected) - len(equal)) * (len(made) - len(equal)))
        if self.options.first_fit:
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
        if self.options.first_fit:
            return self._first_fit(expected, made)
        start = 0  # calls that are made as expected from the first on take none of max_pairs
        while start < min(len(expected), len(made)) and self._is_all(self.share(expected[start], made[start])):
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

    @staticmethod
    def _is_all(share: Share) -> bool:
        return share[0] == share[1]

    def _check(self, pairs: int) -> None:
        most = self.options.max_pairs
        if pairs > most:
            raise TooManyCalls(f"{pairs} pairs of calls are left to compare, more than max_pairs: {most}")

    def _equal(self, expected: Sequence[Expected], made: Sequence[Made]) -> dict[int, Made]:
        """Return the expected calls, by index, for which an equal one was made; each is used once, the first first."""
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

    def _first_fit(self, expected: Sequence[Expected], made: Sequence[Made]) -> list[tuple[Expected, Made]]:
        """Return each expected call with the first call left, in order the first after the one before, that fits."""
        pairs, free = [], list(made)
        for call in expected:
            for place, other in enumerate(free):
                if self.share(call, other)[0]:
                    pairs.append((call, other))
                    free = free[place + 1 :] if self.options.order == "in_order" else free[:place] + free[place + 1 :]
                    break
        return pairs

    def _chosen(
        self, expected: Sequence[Expected], made: Sequence[Made], choose: Callable[[Weights], Chosen]
    ) -> list[tuple[Expected, Made]]:
        """Return the pairs of an assignment by shares, as whole numbers over a common denominator: ties are ties."""
        shares = [[self.share(call, other) for other in made] for call in expected]
        common = lcm(*{of for row in shares for _, of in row})
        places = choose([[right * (common // of) for right, of in row] for row in shares])
        return [(call, made[at]) for call, at in zip(expected, places, strict=True) if at is not None]


def _root(name: str, linked: Mapping[str, str]) -> str:
    while (above := linked.get(name, name)) != name:
        name = above
    return name
