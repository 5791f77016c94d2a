"""Exact sums of what grades add, by name.

A float is an integer number of units, the smallest power of two among its name's values: sums of
units are exact, whatever their order, and are rounded once when they are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from gradestack.table import Numbers

TaskNumbers = tuple[tuple[str, float], ...]
"""What a task has, by name and in the order of names; 0 is left out."""
Sums = tuple[tuple[int, int], ...]
"""Pairs of a name's index and its units; index 0 counts what was added. Empty: nothing was."""
_COUNT = ""
"""Name of how many were added."""


class SumsByPlace(msgspec.Struct, frozen=True):
    """The sums of places, such as tasks: many have the same."""

    kinds: list[Sums]
    """Sums, each of those that came about in the same way once."""
    places: list[int]
    """The index of the sums of each place."""

    @classmethod
    def of(
        cls, parts_of_places: Iterable[list[int]], add_up: Callable[[Sequence[int]], Sums]
    ) -> SumsByPlace:
        """Add up the parts of each place, equal ones once."""
        kinds: list[Sums] = []
        places: list[int] = []
        known: dict[tuple[int, ...], int] = {}
        for parts in parts_of_places:
            given = tuple(parts)
            kind = known.get(given)
            if kind is None:
                kind = known[given] = len(kinds)
                kinds.append(add_up(given))
            places.append(kind)
        return cls(kinds, places)

    def count(self, places: Iterable[int]) -> Counter[Sums]:
        """Count the sums of places, given the index of each; places without any are left out."""
        counts = Counter[Sums]()
        for kind, times in Counter(places).items():
            if self.kinds[kind]:
                counts[self.kinds[kind]] += times
        return counts


class ExactSums:
    """Adds up numbers by name.

    Attributes:
        names: Names of all numbers, sorted.
        contributions: The sums that each of the given numbers is alone; empty for None.
    """

    def __init__(self, contributions: Sequence[Numbers | None]) -> None:
        """Find a common divisor per name and turn the contributions into whole numbers."""
        numbers = [contribution for contribution in contributions if contribution is not None]
        self.names = sorted({name for contribution in numbers for name in contribution})
        self._indexes = {name: index for index, name in enumerate([_COUNT, *self.names])}
        self._units: dict[str, int | None] = dict.fromkeys(self._indexes)
        """Name -> how many units are 1; None for whole numbers."""
        for contribution in numbers:
            for name, value in contribution.items():
                if not isinstance(value, int):
                    divisor = value.as_integer_ratio()[1]
                    self._units[name] = max(self._units[name] or 1, divisor)
        self.contributions = [self._sums_of(contribution) for contribution in contributions]

    def _sums_of(self, numbers: Numbers | None) -> Sums:
        """Turn a contribution into pairs (index of the name, whole number of units)."""
        if numbers is None:
            return ()
        pairs = [(0, 1)]
        for name, value in numbers.items():
            above, below = value.as_integer_ratio()
            pairs.append((self._indexes[name], above * (self.unit(name) // below)))
        return tuple(sorted(pairs))

    def add_by_cell(self, cells: Iterable[int], codes: Iterable[int], size: int) -> SumsByPlace:
        """Add up contributions by cell; return the totals of cells 0 to ``size`` - 1.

        Many cells are given the same contributions: these are added up once.

        Args:
            cells: The cell of each row.
            codes: The contribution of each row, by its index among ``contributions``.
            size: The number of cells.
        """
        codes_of_cells: list[list[int]] = [[] for _ in range(size)]
        for cell, code in zip(cells, codes, strict=True):
            codes_of_cells[cell].append(code)
        for of_cell in codes_of_cells:
            of_cell.sort()
        return SumsByPlace.of(codes_of_cells, self._add_up)

    def join(self, places: Iterable[int], sums: SumsByPlace, size: int) -> SumsByPlace:
        """Return the totals of places 0 to ``size`` - 1 that each have some of these sums."""
        kinds_of_places: list[list[int]] = [[] for _ in range(size)]
        for place, kind in zip(places, sums.places, strict=True):
            kinds_of_places[place].append(kind)
        return SumsByPlace.of(
            kinds_of_places, lambda kinds: self.add_sums([sums.kinds[kind] for kind in kinds])
        )

    def _add_up(self, codes: Sequence[int]) -> Sums:
        """Return the sums of some contributions, which may come several times."""
        units: dict[int, int] = {}
        for code, times in Counter(codes).items():
            for index, added in self.contributions[code]:
                units[index] = units.get(index, 0) + times * added
        return tuple(sorted(units.items()))

    def add_sums(self, sums: Sequence[Sums]) -> Sums:
        """Return the total of sums; one alone is its own."""
        if len(sums) == 1:
            return sums[0]
        units: dict[int, int] = {}
        for pairs in sums:
            for index, added in pairs:
                units[index] = units.get(index, 0) + added
        return tuple(sorted(units.items()))

    def exact_totals(self, counts: Mapping[Sums, int]) -> dict[str, int | Fraction]:
        """Add up sums, each multiplied by its count; return exact totals by name."""
        totals = Counter[int]()
        for sums, times in counts.items():
            for index, units in sums:
                totals[index] += units * times
        exact: dict[str, int | Fraction] = {}
        for name in self.names:
            units, unit = totals[self._indexes[name]], self._units[name]
            exact[name] = units if unit is None else Fraction(units, unit)
        return exact

    def unit(self, name: str) -> int:
        """Return the number of units of a name that are 1."""
        return self._units.get(name) or 1

    def units_of(self, name: str, sums: Iterable[Sums]) -> list[int]:
        """Return the units that a name has in sums; "" is how many were added."""
        index = self._indexes.get(name, -1)
        return [dict(pairs).get(index, 0) for pairs in sums]

    def numbers_of(self, name: str, sums: Iterable[Sums]) -> list[float]:
        """Return the same as numbers, of floats rounded once."""
        unit, units = self._units.get(name), self.units_of(name, sums)
        if unit is None:
            return [*units]
        return [number / unit for number in units]

    def name_sums(
        self, sums: Iterable[Sums], names: Container[str] | None = None
    ) -> list[TaskNumbers]:
        """Return sums by name, rounded, with how many were added under the empty name.

        Args:
            sums: What to name.
            names: The only ones wanted; default: all.
        """
        known = list(self._units.items())
        named: list[TaskNumbers] = []
        for pairs in sums:
            numbers: list[tuple[str, float]] = []
            for index, units in pairs:
                name, unit = known[index]
                if units and (not index or names is None or name in names):
                    numbers.append((name, units if unit is None else units / unit))
            named.append(tuple(numbers))
        return named
