"""What tasks add to sums, equal ones counted: from it figures and their intervals are computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain, repeat
from typing import TypeVar

from gradestack.estimates.interval import Cell, Figures, Interval, interval, jackknife
from gradestack.exact import exact_parts
from gradestack.model import JSON

ExactCell = tuple[float | tuple[float, ...], ...]
"""A cell, with what no float holds as the parts of an exact sum."""
CellT = TypeVar("CellT", ExactCell, Cell)
Notes = Sequence[Sequence[float]]
"""What was noted of one task: cells, of which a note may hold several, one after the other."""
Counted = Sequence[tuple[Notes, int]]
"""Notes of a task, and how many tasks have them; or how many of those that do."""


class TaskSums:
    """How many tasks have which cells, over all models and of each model.

    Args:
        names: What the numbers of a cell are.
        every: Notes of tasks; a task's are those of all models. Not read where there is one model.
        models: Model -> the same of its own tasks.
    """

    def __init__(self, names: tuple[str, ...], every: Counted, models: Mapping[str, Counted]) -> None:
        self.names, self._every, self._models = names, every, models
        self._totals: dict[str, dict[str, Fraction]] = {}

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return list(self._models)

    @cached_property
    def exact(self) -> tuple[Counter[ExactCell], dict[str, Counter[ExactCell]]]:
        """How many tasks have which sums, over all models and of each model."""
        return self._summed(_exact)

    @cached_property
    def rounded(self) -> tuple[Counter[Cell], dict[str, Counter[Cell]]]:
        """The same with every sum rounded, once; faster, where nothing is to be computed exactly from them."""
        return self._summed(rounded)

    def _summed(self, sum_of: Callable[[Notes, int], CellT]) -> tuple[Counter[CellT], dict[str, Counter[CellT]]]:
        models = {model: _sums(cells, len(self.names), sum_of) for model, cells in self._models.items()}
        if len(models) == 1:
            return next(iter(models.values())), models
        return _sums(self._every, len(self.names), sum_of), models

    def totals(self, model: str | None = None) -> dict[str, Fraction]:
        """Return the exact sums of all cells, or those of a model, by name."""
        if model is None:
            several = [self.totals(each) for each in self._models]
            return {name: sum((sums[name] for sums in several), Fraction(0)) for name in self.names}
        if model not in self._totals:
            counts: Counter[Cell] = Counter()
            for notes, times in self._models[model]:
                for cell in _cells(notes, len(self.names)):
                    counts[tuple(cell)] += times
            columns = zip(*counts, strict=True) if counts else [()] * len(self.names)
            sums = [exact_parts([*chain.from_iterable(map(repeat, each, counts.values()))]) for each in columns]
            self._totals[model] = {
                name: sum(map(Fraction, parts), Fraction(0)) for name, parts in zip(self.names, sums, strict=True)
            }
        return self._totals[model]

    def figures(
        self, figures: Callable[..., Figures], *, confidence: float = 0.95, share: bool = True
    ) -> dict[str, JSON]:
        """Return ``n`` samples, ``clusters`` (tasks), and figures, each with its interval under ``NAME_interval``.

        Of several models ``models`` holds the same for each.

        Args:
            figures: Called with the sums of a cell's numbers, of which the first counts samples, over all tasks and
                over all but one; returns figures by name, None where one is undefined.
            confidence: Of the intervals.
            share: Whether the figures are bound to [0, 1].
        """
        every, models = self.rounded
        found = self._estimated(every, figures, confidence, share=share)
        if len(models) > 1:
            found["models"] = {
                model: self._estimated(cells, figures, confidence, share=share) for model, cells in models.items()
            }
        return found

    def ratios(
        self, of: Mapping[str, tuple[str, str]], *, confidence: float = 0.95, unbounded: Container[str] = ()
    ) -> dict[str, JSON]:
        """Return the intervals of ratios of sums over all models, each under ``NAME_interval``.

        A task that adds nothing to the divisor has no part in the figure. ``n`` is the divisor.

        Args:
            of: Figure -> what is divided, and by what: names of a cell's numbers.
            confidence: Of the intervals.
            unbounded: Figures that are not bound to [0, 1].
        """
        return self._ratios(self.rounded[0], of, confidence, unbounded)

    def model_ratios(
        self, of: Mapping[str, tuple[str, str]], *, confidence: float = 0.95, unbounded: Container[str] = ()
    ) -> dict[str, JSON]:
        """Return ``{"models": {model: figures}}``: ratios and their intervals within each of several models.

        Empty for one model, whose figures are those of :meth:`ratios`; which takes the same arguments.
        """
        if len(self._models) < 2:
            return {}
        found: dict[str, JSON] = {}
        for model, cells in self.rounded[1].items():
            sums = self.totals(model)
            values = {
                name: float(sums[above] / sums[below]) if sums[below] else None for name, (above, below) in of.items()
            }
            found[model] = {**values, **self._ratios(cells, of, confidence, unbounded)}
        return {"models": found}

    def _ratios(
        self,
        cells: Mapping[Cell, int],
        of: Mapping[str, tuple[str, str]],
        confidence: float,
        unbounded: Container[str],
    ) -> dict[str, JSON]:
        found: dict[str, JSON] = {}
        for name, (above, below) in of.items():
            at, by = self.names.index(above), self.names.index(below)
            parts: Counter[Cell] = Counter()
            for cell, times in cells.items():
                parts[cell[by], cell[at]] += times
            share = name not in unbounded
            found[f"{name}_interval"] = {**ratio_interval(parts, confidence=confidence, share=share)}
        return found

    def _estimated(
        self, cells: Mapping[Cell, int], figures: Callable[..., Figures], confidence: float, *, share: bool
    ) -> dict[str, JSON]:
        n = sum(int(cell[0]) * times for cell, times in cells.items())
        found: dict[str, JSON] = {"n": n, "clusters": sum(cells.values())}
        for name, estimate in jackknife(figures, cells, len(self.names)).items():
            found[name] = estimate.value
            found[f"{name}_interval"] = {**interval(estimate, n, confidence=confidence, share=share)}
        return found


def ratio_interval(
    tasks: Mapping[Cell, int],
    *,
    n: int | None = None,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
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
    """
    parts = {cell: times for cell, times in tasks.items() if cell[0]}
    divisor = sum(int(cell[0]) * times for cell, times in parts.items())
    estimated = jackknife(_ratio, parts, 2)["ratio"]
    return interval(estimated, divisor if n is None else n, confidence=confidence, share=share, least=least)


def _ratio(below: float, above: float) -> Figures:
    return {"ratio": ratio(above, below)}


def ratio(above: float, below: float) -> float | None:
    """Return ``above / below``; None where ``below`` is 0."""
    return above / below if below else None


def rounded_cells(cells: Mapping[ExactCell, int]) -> Counter[Cell]:
    """Return cells with their sums rounded, once."""
    found: Counter[Cell] = Counter()
    for cell, times in cells.items():
        found[tuple([math.fsum(each) if isinstance(each, tuple) else each for each in cell])] += times
    return found


def _cells(notes: Notes, width: int) -> Iterable[Sequence[float]]:
    """Return the cells of notes."""
    if {width}.issuperset(map(len, notes)):
        return notes
    return zip(*[chain.from_iterable(notes)] * width, strict=True)


def _exact(notes: Notes, width: int) -> ExactCell:
    """Return the sum of all cells of notes."""
    if len(notes) == 1 and len(notes[0]) == width:
        return tuple(notes[0])
    sums = [exact_parts(numbers) for numbers in zip(*_cells(notes, width), strict=True)]
    return tuple([parts[0] if len(parts) == 1 else tuple(parts) for parts in sums])


def rounded(notes: Notes, width: int) -> Cell:
    """Return the sum of all cells of notes, each number rounded once."""
    if len(notes) == 1 and len(notes[0]) == width:
        return tuple(notes[0])
    return tuple(map(math.fsum, zip(*_cells(notes, width), strict=True)))


def _sums(counted: Counted, width: int, sum_of: Callable[[Notes, int], CellT]) -> Counter[CellT]:
    found: Counter[CellT] = Counter()
    for notes, times in counted:
        found[sum_of(notes, width)] += times
    return found
