"""Numbers by name of every task, for figures whose numbers are not known beforehand: the cells of a matrix, tools."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from gradestack.intervals.interval import Interval
from gradestack.intervals.task_cells import Number, PerTask, Tasks, added, mappings, ratio_interval

CountsState = dict[str, Tasks[dict[str, Number]]]
"""JSON state: model (empty where none is named) -> its tasks' numbers by name."""
TaskNumbers = tuple[tuple[str, float], ...]
"""What a task has, by name and in the order of names; 0 is left out."""


def _joined(left: Mapping[str, Number], right: Mapping[str, Number]) -> dict[str, Number]:
    found = dict(left)
    for name, number in right.items():
        held = found.get(name)
        found[name] = number if held is None else added(held, number)
    return found


class TaskCounts(PerTask[dict[str, Number]]):
    """Numbers by name per model and task, for figures with intervals; :class:`TaskCells` where the names are known.

    A task is the sample's cluster, else its id; what several samples of it bring is added, exactly.
    """

    join = staticmethod(_joined)

    def tasks(self, state: CountsState) -> tuple[Counter[TaskNumbers], dict[str, Counter[TaskNumbers]]]:
        """Return how many tasks have which numbers: over all models, where a task's are added, and of each model."""
        every: Counter[TaskNumbers] = Counter()
        models: dict[str, Counter[TaskNumbers]] = {model: Counter() for model in state}
        for parts in mappings(list(state.values()), _joined):
            for model, tasks in zip(state, parts, strict=True):
                models[model].update(map(_rounded, tasks.values()))
            if len(parts) > 1:
                every.update(_rounded(numbers) for numbers in _pooled(parts))
        return every if len(state) != 1 else next(iter(models.values())), models


def _rounded(numbers: Mapping[str, Number]) -> TaskNumbers:
    found = [(name, math.fsum(each) if isinstance(each, list) else each) for name, each in numbers.items() if each]
    return tuple(sorted(found))


def _pooled(models: Iterable[Mapping[str, dict[str, Number]]]) -> Iterable[Mapping[str, Number]]:
    found: dict[str, dict[str, Number]] = {}
    for tasks in models:
        for task, numbers in tasks.items():
            found[task] = _joined(found.get(task, {}), numbers)
    return found.values()


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
