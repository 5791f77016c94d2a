"""The grades of one grader as a metric sees them, and what they add up to by task."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import compress
from typing import Any, TypeVar

from gradestack.exact_sums import ExactSums, Sums, SumsByPlace, TaskNumbers
from gradestack.intervals import Cell
from gradestack.model import Grade, Key
from gradestack.table import Numbers, Table

CellT = TypeVar("CellT")
ByModel = dict[str, Counter[CellT]]
"""Model -> how many of its tasks have which cell."""
TasksByModel = Counter[tuple[tuple[str, TaskNumbers], ...]]
"""Numbers under each of several models -> how many tasks have these."""
_KEY_FIELDS = ("id", "cluster", "model", "run")
_GRADE_FIELDS = ("score", "passed", "label", "gold")


class Grades:
    """Grades of one grader, in input order.

    Iterating yields ``(key, grade)``. A grade has outcome, score, passed, label, gold, counts and
    parts; ``fault`` and ``metadata`` only where the aggregator's ``keeps`` names them.
    ``key.facets`` holds the aggregator's ``facets``.
    """

    def __init__(
        self,
        table: Table,
        key: str,
        rows: Sequence[int] | None = None,
        numbers: tuple[Sequence[Numbers | None], Sequence[int]] | None = None,
    ) -> None:
        """Select a grader's grades in a table: all or some rows, with a metric's numbers."""
        self.table = table
        self.key = key
        self._rows = rows
        self._numbers = numbers or ((), ())

    def __len__(self) -> int:
        return len(self.rows)

    def _select(self, codes: Sequence[int]) -> Sequence[int]:
        """Return the codes of the rows, given those of the whole table."""
        if self._rows is None:
            return codes
        return array("I", map(codes.__getitem__, self._rows))

    @property
    def rows(self) -> Sequence[int]:
        """Numbers of the rows."""
        if self._rows is None:
            return range(len(self.table))
        return self._rows

    def __iter__(self) -> Iterator[tuple[Key, Grade]]:
        """Yield key and grade of each row, in the order of the rows."""
        grades = self.table.grades(self.key)
        verdicts = self.table.verdicts[self.key].codes
        columns = [self.table.keys[name] for name in _KEY_FIELDS]
        facets = self.table.facets()
        facet_codes = self.table.keys["facets"].codes
        for row in self.rows:
            name, cluster, model, run = [column.values[column.codes[row]] for column in columns]
            of_row = facets[facet_codes[row]]
            key = Key(id=name, cluster=cluster, model=model, run=run, ordinal=row, facets=of_row)
            yield key, grades[verdicts[row]]

    def of(self, key: str) -> Grades:
        """Return another grader's grades of the same samples.

        Raises:
            KeyError: No grader has this key.
        """
        graders = self.table.verdicts
        if key not in graders:
            raise KeyError(f"no grader has the key {key!r}; there are: {', '.join(graders)}")
        return Grades(self.table, key, self._rows)

    def within(self, rows: Sequence[int]) -> Grades:
        """Return the grades of some rows of the table."""
        return Grades(self.table, self.key, rows, self._numbers)

    @cached_property
    def models(self) -> list[str]:
        """Names of the models, empty for none, in the order of their first samples."""
        column = self.table.keys["model"]
        codes = dict.fromkeys(self._select(column.codes))
        return [column.values[code] or "" for code in codes]

    def of_model(self, name: str) -> Grades:
        """Return the grades of one model."""
        column = self.table.keys["model"]
        is_of_model = [(value or "") == name for value in column.values]
        chosen = map(is_of_model.__getitem__, self._select(column.codes))
        compressed = compress(self.rows, chosen)
        return self.within(array("I", compressed))

    @cached_property
    def by_task(self) -> dict[str, list[tuple[Key, Grade]]]:
        """Task -> its keys and grades."""
        tasks: dict[str, list[tuple[Key, Grade]]] = {}
        for key, grade in self:
            name = key.id if key.cluster is None else key.cluster
            tasks.setdefault(name, []).append((key, grade))
        return tasks

    @cached_property
    def counted(self) -> list[tuple[Grade, int]]:
        """The distinct grades, in the order of their first samples, and how many
        samples have them.
        """
        times: Counter[int] = Counter()
        for (code, _), count in self.table.count_verdicts(self.key, self._rows).items():
            times[code] += count
        grades = self.table.grades(self.key)
        return [(grades[code], count) for code, count in times.items()]

    def columns(self) -> dict[str, list[Any]]:
        """Return the grades as columns of equal length, by name.

        ``id``, ``cluster``, ``model``, ``run``, ``outcome``, ``score`` (None unless graded),
        ``passed``, ``label``, ``gold``, and ``counts.NAME`` and ``parts.NAME`` (None where a grade
        has none).
        """
        keys = [key for key, _ in self]
        grades = [grade for _, grade in self]
        columns: dict[str, list[Any]] = {}
        for name in _KEY_FIELDS:
            columns[name] = [getattr(key, name) for key in keys]
        columns["outcome"] = [str(grade.outcome) for grade in grades]
        for name in _GRADE_FIELDS:
            columns[name] = [getattr(grade, name) for grade in grades]
        for field in ("counts", "parts"):
            for name in sorted(
                {name for grade, _ in self.counted for name in getattr(grade, field)}
            ):
                columns[f"{field}.{name}"] = [getattr(grade, field).get(name) for grade in grades]
        return columns

    @cached_property
    def _exact(self) -> ExactSums:
        """Exact sums of the contributions of grades."""
        return ExactSums(self._numbers[0])

    @cached_property
    def names(self) -> list[str]:
        """Names of all numbers, sorted."""
        return self._exact.names

    @cached_property
    def _by_cell(self) -> SumsByPlace:
        """The sums of each cell of the table."""
        index, codes = self.table.cells(), self._numbers[1]
        if not codes:
            return SumsByPlace([()], [0] * len(index.tasks))
        return self._exact.add_by_cell(
            self._select(index.codes), self._select(codes), len(index.tasks)
        )

    @cached_property
    def _by_task(self) -> SumsByPlace:
        """The sums of each task, over all models."""
        index = self.table.cells()
        if len(index.models) == 1:
            return self._by_cell
        return self._exact.join(index.tasks, self._by_cell, len(index.names))

    @cached_property
    def _tasks(self) -> tuple[Counter[Sums], ByModel[Sums]]:
        """The numbers of tasks by their sums.

        Over all models, and of each model that has any.
        """
        index, by_cell = self.table.cells(), self._by_cell
        kinds: list[list[int]] = [[] for _ in index.models]
        for model, kind in zip(index.of_models, by_cell.places, strict=True):
            kinds[model].append(kind)
        counts = map(by_cell.count, kinds)
        models = {name: count for name, count in zip(index.models, counts, strict=True) if count}
        if len(models) == 1:
            return next(iter(models.values())), models
        return self._by_task.count(self._by_task.places), models

    def _count_cells(
        self, make_cells: Callable[[list[Sums]], Iterable[CellT]]
    ) -> tuple[Counter[CellT], ByModel[CellT]]:
        """Count tasks by cells, which are made of sums.

        Over all models, and of each model's tasks.
        """

        def count(sums: Mapping[Sums, int]) -> Counter[CellT]:
            counts: Counter[CellT] = Counter()
            cells = make_cells(list(sums))
            for cell, times in zip(cells, sums.values(), strict=True):
                counts[cell] += times
            return counts

        over_all, models = self._tasks
        by_model = {model: count(sums) for model, sums in models.items()}
        return (next(iter(by_model.values())) if len(by_model) == 1 else count(over_all)), by_model

    def sums(self, *names: str, whole: bool = False) -> tuple[Counter[Cell], ByModel[Cell]]:
        """Count tasks by their sums of some numbers.

        Over all models, and of each model's tasks.

        Args:
            names: Of the numbers; "" is the number of samples.
            whole: Whether sums are exact, in units of which ``unit(name)`` are 1; default: each is
                rounded once.
        """
        exact = self._exact
        column: Callable[[str, list[Sums]], Sequence[float]]
        column = exact.units_of if whole else exact.numbers_of
        return self._count_cells(
            lambda sums: zip(*[column(name, sums) for name in names], strict=True)
        )

    def unit(self, name: str) -> int:
        """Return the number of units of exact sums that are 1."""
        return self._exact.unit(name)

    def numbers_by_task(self) -> dict[str, TaskNumbers]:
        """Return task -> what its samples add; tasks without any are left out."""
        by_task = self._by_task
        numbers = self._exact.name_sums(by_task.kinds)
        named = zip(self.table.cells().names, by_task.places, strict=True)
        return {task: numbers[kind] for task, kind in named if numbers[kind]}

    def tasks_by_model(self) -> TasksByModel:
        """Count tasks by their numbers under each of several models."""
        index = self.table.cells()
        parts = dict[int, list[tuple[str, TaskNumbers]]]()
        by_cell = self._by_cell
        numbers = self._exact.name_sums(by_cell.kinds)
        for task, model, kind in zip(index.tasks, index.of_models, by_cell.places, strict=True):
            if numbers[kind]:
                parts.setdefault(task, []).append((index.models[model], numbers[kind]))
        return Counter(tuple(sorted(of_models)) for of_models in parts.values())

    def task_numbers(
        self, names: Container[str] | None = None
    ) -> tuple[Counter[TaskNumbers], ByModel[TaskNumbers]]:
        """Count tasks by their numbers by name.

        Over all models, and of each model's tasks.

        The number of samples stands under the empty name.

        Args:
            names: The only ones wanted; default: all.
        """
        return self._count_cells(lambda sums: self._exact.name_sums(sums, names))

    @cached_property
    def totals(self) -> dict[str, int | Fraction]:
        """The exact sums of all numbers, by name."""
        counts = Counter[Sums]()
        codes = self._select(self._numbers[1]) if self._numbers[1] else ()
        for code, times in Counter(codes).items():
            counts[self._exact.contributions[code]] += times
        return self._exact.exact_totals(counts)
