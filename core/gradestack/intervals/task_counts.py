"""Numbers by name of every task, for figures whose numbers are not known beforehand: the cells of a matrix, tools."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from typing_extensions import override

from gradestack.exact import add_exact
from gradestack.intervals.counted_cells import ratio_interval
from gradestack.intervals.interval import Interval
from gradestack.intervals.tasks import PerTask, Tasks, mappings, pooled

Number = int | float | list[float]
"""A number, or the parts of an exact sum of floats."""
CountsState = dict[str, Tasks[dict[str, Number]]]
"""JSON state: model (empty where none is named) -> its tasks' numbers by name."""
TaskNumbers = tuple[tuple[str, float], ...]
"""What a task has, by name and in the order of names; 0 is left out."""


def _joined(notes: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for note in notes:
        for name, number in note.items():
            held = found.get(name)
            found[name] = number if held is None else _added(held, number)
    return found


def _added(a: Number, b: Number) -> Number:
    if type(a) is int and type(b) is int:
        return a + b
    parts = a.copy() if isinstance(a, list) else [float(a)]
    for value in b if isinstance(b, list) else (float(b),):
        add_exact(parts, value)
    return parts[0] if len(parts) == 1 else parts


class TaskCounts(PerTask[dict[str, Number]]):
    """Numbers by name per model and task, for figures with intervals; :class:`TaskCells` where the names are known.

    A task is the sample's cluster, else its id; what several samples of it bring is added, exactly.
    """

    @override
    def fewer(self, notes: list[dict[str, Number]], most: int) -> list[dict[str, Number]]:
        return notes if len(notes) <= most else [_joined(notes)]

    def tasks(self, state: CountsState) -> tuple[Counter[TaskNumbers], dict[str, Counter[TaskNumbers]]]:
        """Return how many tasks have which numbers: over all models, where a task's are added, and of each model."""
        every: Counter[TaskNumbers] = Counter()
        models: dict[str, Counter[TaskNumbers]] = {model: Counter() for model in state}
        for parts in mappings(list(state.values()), self.fewer):
            for model, tasks in zip(state, parts, strict=True):
                models[model].update(_rounded(_joined(notes)) for notes in tasks.values())
            if len(parts) > 1:
                every.update(_rounded(_joined(notes)) for notes in pooled(parts))
        return every if len(state) != 1 else next(iter(models.values())), models


def _rounded(numbers: Mapping[str, Number]) -> TaskNumbers:
    found = [(name, math.fsum(each) if isinstance(each, list) else each) for name, each in numbers.items() if each]
    return tuple(sorted(found))


def counts_interval(
    tasks: Mapping[TaskNumbers, int],
    above: str,
    below: Iterable[str],
    *,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
) -> Interval:
    """Return the interval of one number over the sum of others, as :func:`ratio_interval` has it.

    Args:
        tasks: Numbers by name -> how many tasks have them.
        above: Name of what is divided.
        below: Names of what it is divided by.
        confidence: Of the interval.
        share: Whether the figure is bound to [0, 1].
        least: What a figure that is no share cannot be below.
    """
    parts: Counter[tuple[float, ...]] = Counter()
    divisors = tuple(below)
    for numbers, times in tasks.items():
        known = dict(numbers)
        divisor = math.fsum(known.get(name, 0) for name in divisors)
        parts[divisor, known.get(above, 0)] += times
    return ratio_interval(parts, confidence=confidence, share=share, least=least)
