"""The matching of expected calls with calls that were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from typing import Literal, NamedTuple

import attrs

from gradestack_plugins.tool_calls.assignment import heaviest, in_order
from gradestack_plugins.tool_calls.comparison import (
    ALL,
    NOTHING,
    Differences,
    Given,
    Share,
    Wanted,
    differences,
    settled,
    share,
    share_of,
    surely_equal,
    value_of,
)
from gradestack_plugins.tool_calls.groups import in_groups, rows_by_group
from gradestack_plugins.tool_calls.leaves import Equality
from gradestack_plugins.tool_calls.terms import Mode, Terms, ToolTerms, terms_of

Order = Literal["strict", "in_order", "any"]
_FEW = 8
"""Calls of one name that are looked at one by one."""
WIDE = 16
"""How many times ``max_pairs`` all pairs of a sample may be where their order counts."""


class TooManyCalls(Exception):
    """More pairs would have to be compared than are allowed."""


@attrs.frozen(kw_only=True)
class Manner:
    """How calls are matched."""

    order: Order
    mode: Mode
    equality: Equality
    first_fit: bool
    partial: bool
    """Whether a pair can be right in part."""
    max_pairs: int
    per_tool: Mapping[str, ToolTerms]

    terms: Terms = attrs.field(init=False)
    """Of every tool that has none of its own."""

    @terms.default
    def _own_terms(self) -> Terms:
        return Terms(mode=self.mode, equality=self.equality, tool=ToolTerms())


class Pair(NamedTuple):
    """An expected call and the call that was made for it."""

    wanted: Wanted
    given: Given
    share: Share

    @property
    def exact(self) -> bool:
        """Whether nothing of it is wrong."""
        return self.share[0] == self.share[1]


class Matching:
    """Which call was made for which expected one.

    Args:
        manner: How calls are matched.
        wanted: The expected calls.
        given: The calls that were made.
    """

    def __init__(self, manner: Manner, wanted: Sequence[Wanted], given: Sequence[Given]) -> None:
        self._manner, self._wanted, self._given = manner, wanted, given
        self._terms: dict[str, Terms] = {}
        self._known: dict[tuple[int, int], Share] = {}
        self._apart: dict[tuple[int, int], Differences] = {}

    def terms(self, name: str) -> Terms:
        """Return how the calls of a tool are compared."""
        if not self._manner.per_tool:
            return self._manner.terms
        return terms_of(name, self._manner.mode, self._manner.equality, self._manner.per_tool, self._terms)

    def differences(self, wanted: Wanted, given: Given) -> Differences:
        """Return how each argument of two calls of one tool fares."""
        place = (wanted.index, given.index)
        found = self._apart.get(place)
        if found is None:
            found = self._apart[place] = differences(wanted, given, self.terms(given.name))
        return found

    def _only(self, wanted: Wanted, given: Given) -> Pair:
        """Return the pair of calls that none other competes for."""
        right = NOTHING
        if given.name in wanted.names:
            known = settled(wanted, given, self.terms(given.name))
            right = self._credited(share_of(self.differences(wanted, given)) if known is None else known)
        return Pair(wanted, given, right)

    def _credited(self, right: Share) -> Share:
        return right if self._manner.partial or right[0] == right[1] else NOTHING

    def share(self, wanted: Wanted, given: Given) -> Share:
        """Return how much of a pair is right; without credit for parts, all or nothing."""
        if given.name not in wanted.names:
            return NOTHING
        place = (wanted.index, given.index)
        found = self._known.get(place)
        if found is None:
            terms = self.terms(given.name)
            found = ALL if surely_equal(wanted, given, terms) else share(wanted, given, terms)
            found = self._known[place] = self._credited(found)
        return found

    def pairs(self) -> list[Pair]:
        """Return the pairs of the heaviest matching, in order of the expected calls; those with nothing right are none.

        Raises:
            TooManyCalls: There are more pairs of one name than ``max_pairs``, those of equal calls not counted.
        """
        if self._manner.order == "strict":
            found = [Pair(e, a, self.share(e, a)) for e, a in zip(self._wanted, self._given, strict=False)]
        elif self._manner.order == "in_order":
            found = self._ordered()
        else:
            found = [pair for wanted, given in self._blocks() for pair in self._block(wanted, given)]
            found.sort(key=lambda pair: pair.wanted.index)
        return [pair for pair in found if pair.share[0]]

    def _blocks(self) -> list[tuple[list[Wanted], list[Given]]]:
        """Return expected and made calls by name; names that an expected call lets choose from are one."""
        linked: dict[str, str] = {}
        for call in self._wanted:
            for name in call.names[1:]:
                linked[_root(name, linked)] = _root(call.name, linked)
        blocks: dict[str, tuple[list[Wanted], list[Given]]] = {}
        for call in self._wanted:
            name = _root(call.name, linked) if linked else call.name
            block = blocks.get(name)
            if block is None:
                block = blocks[name] = ([], [])
            block[0].append(call)
        for made in self._given:
            block = blocks.get(_root(made.name, linked) if linked else made.name)
            if block is not None:
                block[1].append(made)
        return [block for block in blocks.values() if block[1]]

    def _block(self, wanted: list[Wanted], given: list[Given]) -> list[Pair]:
        if len(wanted) == len(given) == 1:
            return [self._only(wanted[0], given[0])]
        if self._manner.first_fit:
            return self._first_fit(wanted, given)
        if len(wanted) * len(given) <= min(_FEW, self._manner.max_pairs):
            return self._heaviest(wanted, given)
        settled = self._settled(wanted, given)
        left = [call for call in wanted if call.index not in settled]
        used = {made.index for made in settled.values()}
        free = [made for made in given if made.index not in used]
        exact = [Pair(call, settled[call.index], ALL) for call in wanted if call.index in settled]
        if not left or not free:
            return exact
        self._check(len(left) * len(free))
        if len(wanted) * len(given) <= self._manner.max_pairs:
            return self._heaviest(wanted, given)  # equal calls too: where there is a tie, the first come first
        return exact + self._heaviest(left, free)

    def _check(self, pairs: int) -> None:
        if pairs > self._manner.max_pairs:
            told = f"{pairs} pairs of calls are left to compare, more than max_pairs: {self._manner.max_pairs}"
            raise TooManyCalls(told)

    def _settled(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> dict[int, Given]:
        """Return the expected calls, by index, for which an equal one was made; each is used once, the first first."""
        at_a_look = self._at_a_look(wanted, given)
        if at_a_look is not None:
            return at_a_look
        found: dict[int, Given] = {}
        waiting: dict[object, list[Given]] = {}
        for made in reversed(given):
            waiting.setdefault(value_of(made, self.terms(made.name)), []).append(made)
        for call in wanted:
            terms = self.terms(call.name)
            if len(call.names) > 1 or call.rules or call.requestor is not None or not call.compared:
                continue
            if terms.tool.defaults or (call.raw is not None and terms.mode != "ignore"):
                continue
            equal = waiting.get(value_of(call, terms))
            if equal:
                found[call.index] = equal.pop()
        return found

    def _at_a_look(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> dict[int, Given] | None:
        """Return the same where that can be told without taking arguments apart: most runs repeat what is expected."""
        if len(wanted) > _FEW or len(given) > _FEW:
            return None
        found: dict[int, Given] = {}
        free = list(given)
        for call in wanted:
            for place, made in enumerate(free):
                if made.name in call.names and call.arguments == made.arguments:
                    if not surely_equal(call, made, self.terms(made.name)):
                        return None
                    found[call.index] = made
                    free.pop(place)
                    break
            else:
                return None
        return found

    def _first_fit(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> list[Pair]:
        self._check_unequal(wanted, given)
        free = list(given)
        found = []
        for call in wanted:
            for place, made in enumerate(free):
                right = self.share(call, made)
                if right[0]:
                    found.append(Pair(call, made, right))
                    free.pop(place)
                    break
        return found

    def _check_unequal(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> None:
        if len(wanted) * len(given) > self._manner.max_pairs:
            settled = len(self._settled(wanted, given))
            self._check((len(wanted) - settled) * (len(given) - settled))

    def _heaviest(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> list[Pair]:
        weights = self._weights(wanted, given)
        chosen = heaviest(weights)
        return [
            Pair(call, given[column], self.share(call, given[column]))
            for call, column in zip(wanted, chosen, strict=True)
            if column is not None
        ]

    def _weights(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> list[list[int]]:
        """Return the shares of all pairs as whole numbers: over a common denominator."""
        shares = [[self.share(call, made) for made in given] for call in wanted]
        common = lcm(*{of for row in shares for _, of in row})
        return [[agree * (common // of) for agree, of in row] for row in shares]

    def _ordered(self) -> list[Pair]:
        wanted, given = list(self._wanted), list(self._given)
        if any(call.group is not None for call in wanted):
            return self._grouped(wanted, given)
        if self._manner.first_fit:
            return self._greedy(wanted, given)
        start = 0
        while start < min(len(wanted), len(given)) and self._equal(wanted[start], given[start]):
            start += 1
        exact = [Pair(e, a, ALL) for e, a in zip(wanted[:start], given[:start], strict=True)]
        wanted, given = wanted[start:], given[start:]
        if not wanted or not given:
            return exact
        if len(wanted) * len(given) > WIDE * self._manner.max_pairs:
            self._check(len(wanted) * len(given))
        for block in self._blocks():
            self._check_unequal(*block)
        chosen = in_order(self._weights(wanted, given))
        pairs = zip(wanted, chosen, strict=True)
        return exact + [Pair(e, given[at], self.share(e, given[at])) for e, at in pairs if at is not None]

    def _grouped(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> list[Pair]:
        groups = rows_by_group([call.group for call in wanted])
        self._check(len(wanted) * len(given))
        self._check(len(groups) * (len(given) + 1) ** 2)
        chosen = in_groups(self._weights(wanted, given), groups)
        pairs = zip(wanted, chosen, strict=True)
        return [Pair(e, given[at], self.share(e, given[at])) for e, at in pairs if at is not None]

    def _equal(self, wanted: Wanted, given: Given) -> bool:
        return given.name in wanted.names and surely_equal(wanted, given, self.terms(given.name))

    def _greedy(self, wanted: Sequence[Wanted], given: Sequence[Given]) -> list[Pair]:
        """Return each expected call with the first call after the one before it that has anything right."""
        found, start = [], 0
        for call in wanted:
            for place in range(start, len(given)):
                right = self.share(call, given[place])
                if right[0]:
                    found.append(Pair(call, given[place], right))
                    start = place + 1
                    break
        return found


def _root(name: str, linked: Mapping[str, str]) -> str:
    while (above := linked.get(name, name)) != name:
        name = above
    return name
