"""Exact sums of what grades add, by name.

A float is an integer number of units, the smallest power of two among its name's values: sums of
units are exact, whatever their order, and are rounded once when they are read.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction

from gradestack.table import Numbers

TaskNumbers = tuple[tuple[str, float], ...]
"""What a task has, by name and in the order of names; 0 is left out."""
Sums = tuple[tuple[int, int], ...]
"""Pairs of a name's place and its units; place 0 counts what was added. Empty: nothing was."""


class ExactSums:
    """Adds up numbers by name.

    Attributes:
        names: Names of all numbers, sorted.
        contributions: The sums that each of the given numbers is alone; empty for None.
    """

    def __init__(self, numbers: Sequence[Numbers | None]) -> None:
        given = [each for each in numbers if each is not None]
        self.names = sorted({name for each in given for name in each})
        self._places = {name: place for place, name in enumerate(["", *self.names])}
        self._units: dict[str, int | None] = dict.fromkeys(["", *self.names])
        """Name -> how many units are 1; None for whole numbers."""
        for each in given:
            for name, value in each.items():
                if not isinstance(value, int):
                    self._units[name] = max(self._units[name] or 1, value.as_integer_ratio()[1])
        self.contributions = [self._sums_of(each) for each in numbers]

    def _sums_of(self, numbers: Numbers | None) -> Sums:
        if numbers is None:
            return ()
        pairs = [(0, 1)]
        for name, value in numbers.items():
            above, below = value.as_integer_ratio()
            pairs.append((self._places[name], above * ((self._units[name] or 1) // below)))
        return tuple(sorted(pairs))

    def added(self, places: Iterable[int], sums: Iterable[Sums], size: int) -> list[Sums]:
        """Return what is added at each of so many places."""
        alone: list[Sums] = [()] * size
        several: dict[int, dict[int, int]] = {}
        for place, pairs in zip(places, sums, strict=True):
            if not alone[place]:
                alone[place] = pairs  # shared by all to whom nothing else is added
                continue
            into = several.get(place)
            if into is None:
                into = several[place] = dict(alone[place])
            for at, units in pairs:
                into[at] = into.get(at, 0) + units
        for place, into in several.items():
            alone[place] = tuple(sorted(into.items()))
        return alone

    def exact_totals(self, counted: Mapping[Sums, int]) -> dict[str, int | Fraction]:
        """Return what sums come to, each so many times, by name."""
        totals = dict.fromkeys(range(len(self._places)), 0)
        for sums, times in counted.items():
            for place, units in sums:
                totals[place] += units * times
        found: dict[str, int | Fraction] = {}
        for name in self.names:
            total, unit = totals[self._places[name]], self._units[name]
            found[name] = total if unit is None else Fraction(total, unit)
        return found

    def unit(self, name: str) -> int:
        """Return how many units of a name are 1."""
        return self._units.get(name) or 1

    def units_of(self, name: str, sums: Iterable[Sums]) -> list[int]:
        """Return the units that a name has in sums; "" is how many were added."""
        place = self._places.get(name)
        return [next((units for at, units in each if at == place), 0) for each in sums]

    def numbers_of(self, name: str, sums: Iterable[Sums]) -> list[float]:
        """Return the same as numbers, of floats rounded once."""
        unit, units = self._units.get(name), self.units_of(name, sums)
        return [*units] if unit is None else [each / unit for each in units]

    def named(self, sums: Iterable[Sums], names: Container[str] | None = None) -> list[TaskNumbers]:
        """Return sums by name, rounded, with how many were added under the empty name.

        Args:
            sums: What to name.
            names: The only ones wanted; default: all.
        """
        known = list(self._units.items())
        found: list[TaskNumbers] = []
        for each in sums:
            numbers: list[tuple[str, float]] = []
            for at, units in each:
                name, unit = known[at]
                if units and (not at or names is None or name in names):
                    numbers.append((name, units if unit is None else units / unit))
            found.append(tuple(numbers))
        return found
