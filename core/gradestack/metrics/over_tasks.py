"""Figures of sums over tasks, with intervals: each task is left out once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import sub
from typing import Any

from gradestack.aggregator import Aggregator, Figure, declared_at
from gradestack.errors import suggest
from gradestack.exact_sums import TaskNumbers
from gradestack.grades import Grades
from gradestack.intervals import estimate, interval, total
from gradestack.model import JSON
from gradestack.table import Numbers

Path = tuple[str, ...]
"""Names that lead to a figure, one below the other."""
FiguresByPath = dict[Path, float | None]
COUNT = ""
"""Name under which samples are counted."""


class UnknownSumError(ValueError):
    """Figures are made of a sum that is not there."""


class Totals(dict[str, Any]):
    """Sums over tasks by name; one that no grade contributed is an error, not 0.

    Where no grade counts at all, every sum is 0.
    """

    def __missing__(self, name: str) -> int:
        if not self:
            return 0
        hint, known = suggest(name, self), ", ".join(self)
        raise UnknownSumError(
            f"figures_of() reads {name!r}, which no grade contributed{hint}; there are: {known}"
        )


class ReadTotals(Mapping[str, Any]):
    """Totals that remember which names are read; whoever iterates over them reads all.

    Attributes:
        names: Names that were read.
    """

    def __init__(self, totals: Mapping[str, Any]) -> None:
        self._totals, self.names = Totals(totals), set[str]()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return self._totals[name]

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return name in self._totals

    def get(self, name: str, default: Any = None) -> Any:
        """Return a total, or the default where there is none."""
        return self._totals[name] if name in self else default

    def __iter__(self) -> Iterator[str]:
        self.names.update(self._totals)
        return iter(self._totals)

    def __len__(self) -> int:
        return len(self._totals)


def figures_over_tasks(aggregator: Aggregator, grades: Grades) -> dict[str, Any]:
    """Compute the figures of a metric's sums with their intervals.

    Of several models ``models`` has those of each.
    """
    try:
        return TaskFigures(aggregator, grades).compute()
    except UnknownSumError:  # one that figures of all tasks did not read, or none at all
        return TaskFigures(aggregator, grades, set(grades.names)).compute()


class TaskFigures:
    """Figures of a metric's sums, over all models and of each."""

    def __init__(
        self, aggregator: Aggregator, grades: Grades, names: set[str] | None = None
    ) -> None:
        """Collect each task's contributions to the aggregator's figures, in all and by model."""
        self.aggregator, self.grades = aggregator, grades
        self.confidence: float = getattr(aggregator, "confidence", 0.95)
        if makes_task_contributions(aggregator):
            self._over_all, self._by_model = self._contributions()
            tasks = [self._over_all, *self._by_model.values()]
            self._names = {name for counts in tasks for task in counts for name, _ in task}
        else:
            self._names = names_read(aggregator, grades) if names is None else names
            self._over_all, self._by_model = grades.task_numbers(self._names)

    def _contributions(self) -> tuple[Counter[TaskNumbers], dict[str, Counter[TaskNumbers]]]:
        """Make what the metric makes of each task, in place of the task's sums."""
        aggregator, grades = self.aggregator, self.grades
        _, sums_by_model = grades.task_numbers()
        has_models = len(sums_by_model) > 1
        defaults, by_model = {}, {}
        for model, sums in sums_by_model.items():
            of_model = grades.of_model(model) if has_models else grades
            defaults[model] = task_defaults(aggregator, of_model)
            by_model[model] = Counter[TaskNumbers]()
            for task, times in sums.items():
                by_model[model][task_contribution(aggregator, task, defaults[model])] += times
        if not has_models:
            return next(iter(by_model.values()), Counter()), by_model
        over_all = Counter[TaskNumbers]()
        for parts, times in grades.tasks_by_model().items():
            contributions = [
                task_contribution(aggregator, sums, defaults[model]) for model, sums in parts
            ]
            over_all[_add_up(contributions)] += times
        return over_all, by_model

    def compute(self) -> dict[str, Any]:
        """Return the figures over all models, where they can be pooled, and of each of several."""
        has_models = len(self._by_model) > 1
        is_pooled = not has_models or all(figure.pooled for figure in self.aggregator.figures)
        figures = self._figures_of(self._over_all) if is_pooled else {}
        models = self._figures_by_model() if has_models else {}
        if models:
            figures["models"] = models
        return figures

    def _figures_by_model(self) -> dict[str, dict[str, Any]]:
        """Return the figures of each model that has some.

        Of models whose tasks add the same they are computed once.
        """
        by_model = {}
        known: dict[frozenset[tuple[TaskNumbers, int]], dict[str, Any]] = {}
        for model, counts in self._by_model.items():
            key = frozenset(counts.items())
            if key not in known:
                known[key] = self._figures_of(counts)
            if known[key]:
                by_model[model] = _copy_maps(known[key])
        return by_model

    def _figures_of(self, counts: Mapping[TaskNumbers, int]) -> dict[str, Any]:
        """Return figures with their intervals, given how many tasks add what."""
        counts = {task: times for task, times in counts.items() if task}
        tasks, times = list(counts), list(counts.values())
        values, figures_without_task = leave_one_out(self.aggregator, tasks, times, self._names)
        added = [*zip(map(dict, tasks), times, strict=True)]
        figures: dict[str, Any] = {}
        if any(not figure.divisor for figure in self.aggregator.figures):
            figures["n"] = sum(int(numbers[COUNT]) * count for numbers, count in added)
            figures["clusters"] = sum(times)
        for path, value in values.items():
            figure = self._declared(path)
            values_without_task = [figures_left.get(path) for figures_left in figures_without_task]
            _put(figures, path, value)
            _put(
                figures,
                interval_path(figure, path),
                self._interval(figure, path, value, added, values_without_task),
            )
        return figures

    def _declared(self, path: Path) -> Figure:
        name = ".".join(path)
        figure = declared_at(self.aggregator.figures, name)
        if figure is None:
            raise ValueError(f"figures_of() gave {name!r}, which is not among its figures")
        return figure

    def _interval(
        self,
        figure: Figure,
        path: Path,
        value: float | None,
        tasks: Sequence[tuple[Mapping[str, float], int]],
        without: Sequence[float | None],
    ) -> JSON:
        """Return the interval of a figure, given what tasks add, and the figure without each."""
        if value is None:
            return {"reason": figure.undefined}
        name = ".".join(path)
        divisor = figure.divisor_of(name) or COUNT
        values_without_task, samples = [], 0
        for (numbers, times), value_without_task in zip(tasks, without, strict=True):
            if numbers.get(divisor):
                values_without_task.append((value_without_task, times))
                samples += int(numbers.get(figure.samples or divisor, 0)) * times
        if not values_without_task:
            raise ValueError(f"the figure {name} is divided by {divisor!r}, which no task has")
        clusters = sum(times for _, times in values_without_task)
        least, most = figure.bounds
        computed = interval(
            estimate(value, values_without_task, clusters),
            samples,
            confidence=self.confidence,
            share=figure.unit == "share",
            least=least,
            most=most,
            amount=figure.amount,
        )
        return {**computed}


def makes_task_contributions(aggregator: Aggregator) -> bool:
    """Check whether a metric makes something of its own of a task's sums."""
    return type(aggregator).task_contribution is not Aggregator.task_contribution


def task_defaults(aggregator: Aggregator, grades: Grades) -> Numbers:
    """Return the sums that any task of a model has: zeros, and model totals."""
    totals = check_mapping("model_totals()", aggregator.model_totals(grades))
    return {**dict.fromkeys(grades.names, 0), **totals}


def task_contribution(
    aggregator: Aggregator, numbers: TaskNumbers, defaults: Numbers
) -> TaskNumbers:
    """Return the numbers that a task adds, made of the sums of its samples and of
    ``task_defaults``.
    """
    if not makes_task_contributions(aggregator):
        return numbers
    sums = {**defaults, **dict(numbers)}
    samples = sums.pop(COUNT)
    contribution = aggregator.task_contribution(sums)
    if contribution is None:
        return ()
    added: Mapping[str, Any] = check_mapping("task_contribution()", contribution)
    return tuple(sorted([(COUNT, samples), *added.items()]))


def _add_up(parts: Iterable[TaskNumbers]) -> TaskNumbers:
    added: dict[str, float] = {}
    for numbers in parts:
        for name, number in numbers:
            added[name] = added.get(name, 0) + number
    return tuple(sorted(added.items()))


def names_read(aggregator: Aggregator, grades: Grades) -> set[str]:
    """Return the names of the sums that a metric's figures read or are divided by.

    A metric may contribute thousands of others for its ``compute``.
    """
    totals = ReadTotals(grades.totals)
    aggregator.figures_of(totals)
    divisors = {name for figure in aggregator.figures for name in (figure.divisor, figure.samples)}
    if any("{" in name for name in divisors):
        return set(grades.names)
    return (totals.names | divisors).intersection(grades.names)


def leave_one_out(
    aggregator: Aggregator,
    tasks: Sequence[TaskNumbers],
    times: Sequence[int],
    names: Iterable[str] = (),
) -> tuple[FiguresByPath, list[FiguresByPath]]:
    """Compute the figures of all tasks, and those without one task of each kind.

    Args:
        aggregator: The metric.
        tasks: What tasks add, each kind of task once.
        times: How many tasks are of each kind.
        names: Names of sums that may be 0 in all of these tasks.
    """
    added = {name for task in tasks for name, _ in task}
    known = sorted({*added, *names} - {COUNT}) if tasks else []
    vectors = [[numbers.get(name, 0) for name in known] for numbers in map(dict, tasks)]
    sums = [total(column, times) for column in zip(*vectors, strict=True)]
    values = _compute_figures(aggregator, known, sums)
    if sum(times) < 2:
        return values, [{} for _ in vectors]
    without = [
        _compute_figures(aggregator, known, list(map(sub, sums, vector))) for vector in vectors
    ]
    return values, without


def _compute_figures(
    aggregator: Aggregator, names: Sequence[str], sums: Sequence[Any]
) -> FiguresByPath:
    totals = Totals(zip(names, sums, strict=True))
    figures = check_mapping("figures_of()", aggregator.figures_of(totals))
    return dict(_flatten(figures))


def _flatten(figures: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, float | None]]:
    """Yield path and value of each figure in nested mappings; refuse infinities and NaN."""
    for name, value in figures.items():
        path = (*above, name)
        if isinstance(value, Mapping):
            yield from _flatten(value, path)
        elif value is None or is_finite(value):
            yield path, value
        else:
            shown = ".".join(path)
            raise ValueError(f"the figure {shown} is {value!r}, not a finite number or None")


def is_finite(value: Any) -> bool:
    """Check whether a value is a finite number, and no boolean."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def check_mapping(method: str, returned: Any) -> Mapping[str, Any]:
    """Check that a method of a metric returned a mapping of names to figures, and return it.

    Raises:
        TypeError: It is no mapping.
        ValueError: A name is empty.
    """
    if not isinstance(returned, Mapping):
        raise TypeError(f"{method} gave {returned!r:.200}, not a mapping of names to figures")
    if COUNT in returned:
        raise ValueError(f"{method} gave an empty name")
    return returned


def _copy_maps(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _copy_maps(value) if isinstance(value, dict) else value
        for name, value in figures.items()
    }


def interval_path(figure: Figure, path: Path) -> Path:
    """Return the path of a figure's interval: beside it, or beside its family."""
    if figure.name.endswith("}") and len(path) > 1:
        return (*path[:-2], f"{path[-2]}_interval", path[-1])
    return (*path[:-1], f"{path[-1]}_interval")


def _put(figures: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        figures = figures.setdefault(name, {})
    figures[path[-1]] = value
