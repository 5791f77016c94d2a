"""Cells of numbers per task: sums from which figures and their intervals are computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain, zip_longest
from typing import TypeVar

from typing_extensions import override

from gradestack.exact import exact_parts
from gradestack.intervals.interval import Cell, Figures, Interval, interval, jackknife
from gradestack.intervals.tasks import PerTask, Tasks, mappings
from gradestack.model import JSON

ExactCell = tuple[float | tuple[float, ...], ...]
"""A cell, with what no float holds as the parts of an exact sum."""
CellsState = dict[str, Tasks[list[float]]]
"""JSON state: model (empty where none is named) -> its tasks' cells. Those of one task stand one after the other."""

_ROWS = 4
"""Cells of one task that are kept before they are added up."""


CellT = TypeVar("CellT", ExactCell, Cell)


class TaskCells(PerTask[list[float]]):
    """Cells of numbers per model and task, for figures with intervals: an aggregator's whole state.

    A task is the sample's cluster, else its id; what several samples of it bring is added, exactly.

    >>> from gradestack import Aggregator, TaskCells
    >>> cells = TaskCells("samples", "passed")
    >>> class Passed(Aggregator):
    ...     memory = "per_key"
    ...
    ...     def start(self):
    ...         return cells.start()
    ...
    ...     def add(self, state, key, grade):
    ...         return state if grade.score is None else cells.add(state, key, [1, int(grade.score >= 0.5)])
    ...
    ...     def merge(self, left, right):
    ...         return cells.merge(left, right)
    ...
    ...     def finish(self, state):
    ...         return cells.finish(state, lambda samples, passed: {"passed": passed / samples if samples else None})

    Args:
        names: What the numbers of a cell are. The first is how many samples it is of; the others are whatever adds up.
    """

    def __init__(self, *names: str) -> None:
        self.names = names

    @override
    def join(self, left: list[float], right: list[float]) -> list[float]:
        both = left + right
        return both if len(both) <= _ROWS * len(self.names) else self.added(both)

    def added(self, cells: list[float]) -> list[float]:
        """Return cells of one task as few as hold their exact sums: the same ones, however they came together."""
        width = len(self.names)
        sums = [exact_parts(cells[place::width]) for place in range(width)]
        return [number for row in zip_longest(*sums, fillvalue=0) for number in row]

    def totals(self, state: CellsState) -> dict[str, Fraction]:
        """Return the exact sums of all cells, by name."""
        sums: list[list[float]] = [[] for _ in self.names]
        for parts in mappings(list(state.values()), self.join):
            numbers = list(chain.from_iterable(chain.from_iterable(cells.values() for cells in parts)))
            sums = [exact_parts(held + numbers[place :: len(sums)]) for place, held in enumerate(sums)]
        return {name: sum(map(Fraction, held), Fraction(0)) for name, held in zip(self.names, sums, strict=True)}

    def counted(self, state: CellsState) -> tuple[Counter[ExactCell], dict[str, Counter[ExactCell]]]:
        """Return how many tasks have each cell: over all models, where a task's cells are added, and of each model."""
        return self._counted(state, _exact)

    def rounded(
        self, state: CellsState, of: Callable[[str, Cell], Cell] | None = None
    ) -> tuple[Counter[Cell], dict[str, Counter[Cell]]]:
        """Return the same with every sum rounded, once; faster, where nothing is to be computed exactly from them.

        Args:
            state: The cells.
            of: Returns what is wanted of a model's cell; called once for equal ones.
        """
        return self._counted(state, _rounded, of)

    def _counted(
        self,
        state: CellsState,
        sum_of: Callable[[tuple[float, ...], int], CellT],
        of: Callable[[str, Cell], Cell] | None = None,
    ) -> tuple[Counter[CellT], dict[str, Counter[CellT]]]:
        every: Counter[CellT] = Counter()
        models: dict[str, Counter[CellT]] = {model: Counter() for model in state}
        for parts in mappings(list(state.values()), self.join):
            width = len(self.names)
            wanted = parts
            if of is not None:
                wanted = [_wanted(cells, partial(of, model), width) for model, cells in zip(state, parts, strict=True)]
                width = next((len(cell) for cells in wanted for cell in cells.values()), width)
            for model, cells in zip(state, wanted, strict=True):
                _count(models[model], cells.values(), width, sum_of)
            if len(state) > 1:
                _count(every, _pooled(wanted), width, sum_of)
        return every if len(state) != 1 else next(iter(models.values())), models

    def finish(
        self, state: CellsState, figures: Callable[..., Figures], *, confidence: float = 0.95, share: bool = True
    ) -> dict[str, JSON]:
        """Return ``n`` samples, ``clusters`` (tasks), and figures, each with its interval under ``NAME_interval``.

        Of several models ``models`` holds the same for each; what stands beside it is over all of them, where what one
        task brings under several models is one cell.

        Args:
            state: The cells.
            figures: Called with the sums of a cell's numbers, over all tasks and over all but one; returns figures by
                name, None where one is undefined.
            confidence: Of the intervals.
            share: Whether the figures are bound to [0, 1].
        """
        every, models = self.rounded(state)
        found = self._estimated(every, figures, confidence, share=share)
        if len(models) > 1:
            found["models"] = {
                model: self._estimated(cells, figures, confidence, share=share) for model, cells in models.items()
            }
        return found

    def ratios(
        self,
        state: CellsState,
        of: Mapping[str, tuple[str, str]],
        *,
        confidence: float = 0.95,
        unbounded: Container[str] = (),
    ) -> dict[str, JSON]:
        """Return the intervals of ratios of sums over all models, clustered by task, each under ``NAME_interval``.

        A task that adds nothing to the divisor has no part in the figure. ``n`` is the divisor.

        Args:
            state: The cells.
            of: Figure -> what is divided, and by what: names of a cell's numbers.
            confidence: Of the intervals.
            unbounded: Figures that are not bound to [0, 1].
        """
        return self._ratios(self.rounded(state)[0], of, confidence, unbounded)

    def model_ratios(
        self,
        state: CellsState,
        of: Mapping[str, tuple[str, str]],
        *,
        confidence: float = 0.95,
        unbounded: Container[str] = (),
    ) -> dict[str, JSON]:
        """Return ``{"models": {model: figures}}``: ratios and their intervals within each of several models.

        Empty for one model, whose figures are those of :meth:`ratios`; which takes the same arguments.
        """
        if len(state) < 2:
            return {}
        found: dict[str, JSON] = {}
        for model, cells in self.rounded(state)[1].items():
            sums = self.totals({model: state[model]})
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
    return {"ratio": above / below if below else None}


def rounded_cells(cells: Mapping[ExactCell, int]) -> Counter[Cell]:
    """Return cells with their sums rounded, once."""
    found: Counter[Cell] = Counter()
    for cell, times in cells.items():
        found[tuple([math.fsum(each) if isinstance(each, tuple) else each for each in cell])] += times
    return found


def _exact(numbers: tuple[float, ...], width: int) -> ExactCell:
    """Return the sum of cells that stand one after the other."""
    if len(numbers) == width:
        return numbers
    sums = [exact_parts(numbers[place::width]) for place in range(width)]
    return tuple([parts[0] if len(parts) == 1 else tuple(parts) for parts in sums])


def _rounded(numbers: tuple[float, ...], width: int) -> Cell:
    """Return the same, each sum rounded once."""
    if len(numbers) == width:
        return numbers
    return tuple([math.fsum(numbers[place::width]) for place in range(width)])


def _count(
    into: Counter[CellT], cells: Iterable[list[float]], width: int, sum_of: Callable[[tuple[float, ...], int], CellT]
) -> None:
    for numbers, times in Counter(map(tuple, cells)).items():
        into[sum_of(numbers, width)] += times


def _wanted(cells: Mapping[str, list[float]], of: Callable[[Cell], Cell], width: int) -> dict[str, list[float]]:
    known: dict[tuple[float, ...], list[float]] = {}
    for numbers in map(tuple, cells.values()):
        if numbers not in known:
            known[numbers] = list(of(_rounded(numbers, width)))
    return {task: known[tuple(numbers)] for task, numbers in cells.items()}


def _pooled(models: Sequence[Mapping[str, list[float]]]) -> Iterable[list[float]]:
    """Return the cells of every task over all models."""
    found: dict[str, list[float]] = {}
    for cells in models:
        for task, numbers in cells.items():
            found[task] = found[task] + numbers if task in found else numbers
    return found.values()
