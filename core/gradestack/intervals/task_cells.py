"""Cells of numbers per task: sums from which figures and their intervals are computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from fractions import Fraction
from itertools import chain, zip_longest

from typing_extensions import override

from gradestack.exact import exact_parts
from gradestack.intervals.counted_cells import CountedCells, ExactCell, Notes, rounded
from gradestack.intervals.interval import Cell, Figures
from gradestack.intervals.tasks import PerTask, Tasks, mappings, no_tasks, noted, pooled
from gradestack.model import JSON

CellsState = dict[str, Tasks[list[float]]]
"""JSON state: model (empty where none is named) -> its tasks' cells. A note may hold several, one after the other."""


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
        names: What the numbers of a cell are. The first is how many samples it is of; the others are whatever adds up:
            floats, and whole numbers that floats hold.
    """

    def __init__(self, *names: str) -> None:
        self.names = names

    @override
    def same(self, note: list[float]) -> tuple[float, ...]:
        return tuple(note)

    @override
    def fewer(self, notes: list[list[float]], most: int) -> list[list[float]]:
        return notes if len(notes) <= most else [self.added(notes)]

    def added(self, notes: list[list[float]]) -> list[float]:
        """Return one note that holds the exact sums of several: the same one, however they came together."""
        if len(notes) == 1 and len(notes[0]) == len(self.names):
            return notes[0]
        cells = zip(*[chain.from_iterable(notes)] * len(self.names), strict=True)
        sums = [exact_parts(numbers) for numbers in zip(*cells, strict=True)]
        return [number for row in zip_longest(*sums, fillvalue=0) for number in row]

    def settled(self, state: CellsState) -> CellsState:
        """Return the same cells, every task noted once but for those put away; for when several questions follow."""
        found: CellsState = {}
        for model, tasks in state.items():
            by_task = noted(tasks, self.fewer)
            same = list(map(_identity, by_task.values()))
            known = dict(zip(same, by_task.values(), strict=True))
            cells = {each: self.added(notes) for each, notes in known.items()}
            notes = [cells[each] for each in same]
            found[model] = {**no_tasks(), "tasks": list(by_task), "notes": notes, "away": tasks["away"]}
        return found

    def together(self, state: CellsState) -> CountedCells:
        """Return the cells of a state by task, equal ones counted; worth keeping where more than one thing is asked."""
        every: list[tuple[Notes, int]] = []
        models: dict[str, list[tuple[Notes, int]]] = {model: [] for model in state}
        counted = _counted_read if any(tasks["away"] for tasks in state.values()) else _counted
        for parts in mappings(list(state.values()), self.fewer):
            for model, tasks in zip(state, parts, strict=True):
                models[model] += counted(tasks.values())
            if len(state) > 1:
                every += counted(pooled(parts))
        return CountedCells(self.names, every, models)

    def totals(self, state: CellsState) -> dict[str, Fraction]:
        """Return the exact sums of all cells, by name."""
        return self.together(state).totals()

    def counted(self, state: CellsState) -> tuple[Counter[ExactCell], dict[str, Counter[ExactCell]]]:
        """Return how many tasks have each cell: over all models, where a task's cells are added, and of each model."""
        return self.together(state).exact

    def rounded(self, state: CellsState) -> tuple[Counter[Cell], dict[str, Counter[Cell]]]:
        """Return the same with every sum rounded, once; faster, where nothing is to be computed exactly from them."""
        return self.together(state).rounded

    def mapped(
        self, state: CellsState, of: Callable[[str, Cell], Cell]
    ) -> tuple[Counter[Cell], dict[str, Counter[Cell]]]:
        """Return how many tasks have what is made of a model's cell: over all models, where it is added, and of each.

        Args:
            state: The cells.
            of: Returns what is wanted of a model and a cell; called once for equal ones.
        """
        every: Counter[Cell] = Counter()
        models: dict[str, Counter[Cell]] = {model: Counter() for model in state}
        for parts in mappings(list(state.values()), self.fewer):
            wanted: dict[str, list[Cell]] = {}
            for model, tasks in zip(state, parts, strict=True):
                known: dict[tuple[float, ...], Cell] = {}
                for task, notes in tasks.items():
                    cells = tuple(chain.from_iterable(notes))
                    if cells not in known:
                        known[cells] = of(model, rounded([cells], len(self.names)))
                    wanted.setdefault(task, []).append(known[cells])
                    models[model][known[cells]] += 1
            every.update([_sum(each) for each in wanted.values()])
        return every, models

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
        return self.together(state).figures(figures, confidence=confidence, share=share)

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
        return self.together(state).ratios(of, confidence=confidence, unbounded=unbounded)

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
        return self.together(state).model_ratios(of, confidence=confidence, unbounded=unbounded)


def _identity(notes: list[list[float]]) -> tuple[int, ...]:
    """Return what tells notes of a task from others while they are held: equal cells are for the most part one.

    Their order is left out, as sums have none: five runs that pass or fail are six cases instead of 32.
    """
    return tuple(sorted(map(id, notes)))


def _counted_read(tasks: Collection[list[list[float]]]) -> Iterable[tuple[Notes, int]]:
    """Count what was put away, of which no two cells are one object."""
    counts = Counter([tuple(chain.from_iterable(notes)) for notes in tasks])
    return [([numbers], times) for numbers, times in counts.items()]


def _counted(tasks: Collection[list[list[float]]]) -> Iterable[tuple[Notes, int]]:
    same = list(map(_identity, tasks))
    known = dict(zip(same, tasks, strict=True))
    return [(known[each], times) for each, times in Counter(same).items()]


def _sum(cells: list[Cell]) -> Cell:
    return cells[0] if len(cells) == 1 else tuple([math.fsum(numbers) for numbers in zip(*cells, strict=True)])
