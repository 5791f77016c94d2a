"""What tasks add to sums, equal ones counted: from it figures and their intervals are computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from typing_extensions import override

from gradestack.estimates.interval import Cell, Interval, interval, jackknife
from gradestack.table import Numbers

WholeCell = tuple[int, ...]
"""What a task adds, without rounding: so many units of each number."""
TaskNumbers = tuple[tuple[str, float], ...]
"""What a task has, by name and in the order of names; 0 is left out."""


class Packing:
    """Numbers of grades side by side in one integer each, so that one addition adds all of them, exactly.

    Floats are multiples of the smallest power of two among them. The lowest bits count up to ``most`` additions.
    """

    def __init__(self, numbers: Sequence[Numbers], most: int) -> None:
        self.names = sorted({name for each in numbers for name in each})
        self.packed: list[Any] = [1] * len(numbers)
        room = shift = most.bit_length()
        self._count = (1 << room) - 1
        self._fields: dict[str, tuple[int, int, int, int | None]] = {}
        """Name -> its place, mask, least value, and of floats the units in 1."""
        for name in self.names:
            given, unit = [each.get(name, 0) for each in numbers], None
            ratios = [value.as_integer_ratio() for value in given]
            if not all(isinstance(value, int) for value in given):
                unit = max(below for _, below in ratios)
            values = [above * ((unit or 1) // below) for above, below in ratios]
            low = min(0, *values)
            width = (max(0, *values) - low).bit_length() + room
            self._fields[name] = shift, (1 << width) - 1, low, unit
            self.packed = [have | (value - low) << shift for have, value in zip(self.packed, values, strict=True)]
            shift += width

    def added(self, places: Iterable[int], packed: Iterable[Any], size: int) -> list[Any]:
        """Return what is added at each of so many places, in packed form; what is falsy where nothing is."""
        found = [0] * size
        for place, each in zip(places, packed, strict=True):
            found[place] += each
        return found

    def total(self, counted: Mapping[Any, int]) -> Any:
        """Return what packed sums come to, each so many times."""
        return sum(each * times for each, times in counted.items())

    def exact(self, name: str, sums: Iterable[Any]) -> list[int | Fraction]:
        """Return what a number comes to in packed sums; "" is how many were added."""
        whole, unit = self.whole(name, sums)
        return whole if unit is None else [Fraction(value, unit) for value in whole]  # type: ignore[return-value]

    def rounded(self, name: str, sums: Iterable[Any]) -> list[float]:
        """Return the same, sums of floats rounded once."""
        whole, unit = self.whole(name, sums)
        return whole if unit is None else [value / unit for value in whole]  # type: ignore[return-value]

    def whole(self, name: str, sums: Iterable[Any]) -> tuple[list[int], int | None]:
        """Return the same in units, and how many of them are 1; None for whole numbers."""
        if not name:
            return [each & self._count for each in sums], None
        if name not in self._fields:
            return [0 for _ in sums], None
        shift, mask, low, unit = self._fields[name]
        return [(each >> shift & mask) + low * (each & self._count) for each in sums], unit

    def named(self, sums: Sequence[Any], names: Container[str] | None = None) -> list[TaskNumbers]:
        """Return sums by name, rounded, default of all names; with the number of what was added under the empty one."""
        wanted = ["", *[name for name in self.names if names is None or name in names]]
        columns = [self.rounded(name, sums) for name in wanted]
        return [
            tuple([pair for pair in zip(wanted, each, strict=True) if pair[1]]) for each in zip(*columns, strict=True)
        ]


MOST_PACKED = 64
"""Numbers packed side by side at most: of more, those of each of many tools say, a grade has few."""


class Sparse(Packing):
    """The same of many numbers of which each grade has few: pairs of a number's place among the names and its units."""

    def __init__(self, numbers: Sequence[Numbers]) -> None:  # no super().__init__: nothing is packed
        self.names = sorted({name for each in numbers for name in each})
        units: dict[str, int | None] = dict.fromkeys(self.names)
        for name, value in (pair for each in numbers for pair in each.items()):
            if not isinstance(value, int):
                units[name] = max(units[name] or 1, value.as_integer_ratio()[1])
        self._units, self._places = units, {name: at for at, name in enumerate(["", *self.names])}
        self.packed = [
            ((0, 1), *((self._places[name], self._in_units(name, value)) for name, value in each.items()))
            for each in numbers
        ]

    def _in_units(self, name: str, value: float) -> int:
        above, below = value.as_integer_ratio()
        return above * ((self._units[name] or 1) // below)

    @override
    def added(self, places: Iterable[int], packed: Iterable[Any], size: int) -> list[Any]:
        found: list[dict[int, int]] = [{} for _ in range(size)]
        for place, pairs in zip(places, packed, strict=True):
            into = found[place]
            for at, value in pairs or ():
                into[at] = into.get(at, 0) + value
        return [tuple(sorted(each.items())) for each in found]

    @override
    def total(self, counted: Mapping[Any, int]) -> Any:
        pairs = [[(at, value * times) for at, value in each or ()] for each, times in counted.items()]
        return self.added([0] * len(pairs), pairs, 1)[0]

    @override
    def whole(self, name: str, sums: Iterable[Any]) -> tuple[list[int], int | None]:
        at = self._places.get(name)
        return [next((value for place, value in each or () if place == at), 0) for each in sums], self._units.get(name)

    @override
    def named(self, sums: Sequence[Any], names: Container[str] | None = None) -> list[TaskNumbers]:
        of = [("", None), *self._units.items()]
        return [
            tuple(
                (of[at][0], value if of[at][1] is None else value / of[at][1])
                for at, value in each or ()
                if value and (not at or names is None or of[at][0] in names)
            )
            for each in sums
        ]


class TaskSums:
    """How many tasks have which cells, numbers of these names, over all models and of each model."""

    def __init__(
        self,
        names: tuple[str, ...],
        packing: Packing,
        every: Mapping[int, int],
        models: Mapping[str, Mapping[int, int]],
    ) -> None:
        self.names, self._packing, self._every, self._models = names, packing, every, models

    @cached_property
    def units(self) -> tuple[int, ...]:
        """How many units of ``whole`` are 1, of each number."""
        return tuple([self._packing.whole(name, ())[1] or 1 for name in self.names])

    @cached_property
    def whole(self) -> tuple[Counter[WholeCell], dict[str, Counter[WholeCell]]]:
        """How many tasks have which sums, over all models and of each model, exact: in ``units``."""
        return self._cells(lambda name, sums: self._packing.whole(name, sums)[0])

    @cached_property
    def rounded(self) -> tuple[Counter[Cell], dict[str, Counter[Cell]]]:
        """The same with every sum rounded, once."""
        return self._cells(self._packing.rounded)

    def _cells(self, column: Callable[[str, Iterable[int]], list[Any]]) -> tuple[Counter[Any], dict[str, Counter[Any]]]:
        def cells(sums: Mapping[int, int]) -> Counter[Any]:
            found: Counter[Any] = Counter()
            columns = [column(name, sums) for name in self.names]
            for cell, times in zip(zip(*columns, strict=True), sums.values(), strict=True):
                found[cell] += times
            return found

        models = {model: cells(sums) for model, sums in self._models.items()}
        return (next(iter(models.values())) if len(models) == 1 else cells(self._every)), models


def ratio_interval(
    tasks: Mapping[Cell, int],
    *,
    n: int | None = None,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
    most: float = math.inf,
) -> Interval:
    """Return the interval of a ratio of sums over tasks, for ``summary.json``.

    A task that adds nothing to the divisor has no part in the figure.

    Args:
        tasks: Divisor and dividend of a task -> how many tasks have them; the figure is the sum of the dividends over
            that of the divisors.
        n: Number of samples; default: the divisor.
        confidence: Of the interval.
        share: Whether the figure is bound to [0, 1].
        least: What a figure that is no share cannot be below.
        most: What it cannot be above.
    """
    parts = {cell: times for cell, times in tasks.items() if cell[0]}
    divisor = sum(int(cell[0]) * times for cell, times in parts.items())
    estimated = jackknife(lambda below, above: {"ratio": ratio(above, below)}, parts, 2)["ratio"]
    return interval(estimated, divisor if n is None else n, confidence=confidence, share=share, least=least, most=most)


def ratio(above: float, below: float) -> float | None:
    """Return ``above / below``; None where ``below`` is 0."""
    return above / below if below else None
