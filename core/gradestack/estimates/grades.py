"""Grades of one grader as a metric sees them: columns of the table, and sums by task."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from gradestack.estimates.sums import MOST_PACKED, Packing, Sparse, TaskNumbers, TaskSums
from gradestack.model import Grade, Key
from gradestack.table import Numbers, Table

Codes = Sequence[int]


class Grades:
    """Grades of one grader, in input order.

    Iterating yields ``(key, grade)``. A grade has outcome, score, passed, labels, counts and parts; ``items``,
    ``reasons``, ``fault`` and ``metadata`` only where the aggregator's ``keeps`` names them. ``key.facets`` holds the
    aggregator's ``facets``.
    """

    def __init__(
        self,
        table: Table,
        key: str,
        rows: Sequence[int] | None = None,
        numbers: tuple[Sequence[Numbers | None], Codes] | None = None,
    ) -> None:
        self.table, self.key, self._rows = table, key, rows
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self.table) if self._rows is None else len(self._rows)

    def _of(self, codes: Codes) -> Codes:
        return codes if self._rows is None else array("I", map(codes.__getitem__, self._rows))

    @property
    def rows(self) -> Sequence[int]:
        """Numbers of the rows."""
        return range(len(self.table)) if self._rows is None else self._rows

    def __iter__(self) -> Iterator[tuple[Key, Grade]]:
        distinct = self.table.grades(self.key)
        verdicts = self.table.verdicts[self.key].codes
        columns = self.table.keys
        ids, clusters, models, runs = (columns[name] for name in ("id", "cluster", "model", "run"))
        facets, of_facets = self.table.facets(), columns["facets"].codes
        for row in self.rows:
            key = Key(
                id=ids.values[ids.codes[row]],
                cluster=clusters.values[clusters.codes[row]],
                model=models.values[models.codes[row]],
                run=runs.values[runs.codes[row]],
                ordinal=row,
                facets=facets[of_facets[row]],
            )
            yield key, distinct[verdicts[row]]

    def of(self, key: str) -> Grades:
        """Return another grader's grades of the same samples.

        Raises:
            KeyError: No grader has this key.
        """
        if key not in self.table.verdicts:
            raise KeyError(f"no grader has the key {key!r}; there are: {', '.join(self.table.verdicts)}")
        return Grades(self.table, key, self._rows)

    def within(self, rows: Sequence[int]) -> Grades:
        """Return the grades of some rows of the table."""
        return Grades(self.table, self.key, rows, self._numbers)

    @cached_property
    def models(self) -> list[str]:
        """Names of the models, empty for none, in the order of their first samples."""
        values = self.table.keys["model"].values
        return [values[code] or "" for code in dict.fromkeys(self._of(self.table.keys["model"].codes))]

    def of_model(self, name: str) -> Grades:
        """Return the grades of one model."""
        column = self.table.keys["model"]
        wanted = {code for code, value in enumerate(column.values) if (value or "") == name}
        return self.within(array("I", [row for row in self.rows if column.codes[row] in wanted]))

    @cached_property
    def by_task(self) -> dict[str, list[tuple[Key, Grade]]]:
        """Task -> its keys and grades."""
        found: dict[str, list[tuple[Key, Grade]]] = {}
        for key, grade in self:
            found.setdefault(key.id if key.cluster is None else key.cluster, []).append((key, grade))
        return found

    @cached_property
    def counted(self) -> list[tuple[Grade, int]]:
        """The distinct grades, in the order of their first samples, and how many samples have them."""
        distinct = self.table.grades(self.key)
        return [
            (distinct[code], times) for code, times in Counter(self._of(self.table.verdicts[self.key].codes)).items()
        ]

    def columns(self) -> dict[str, list[Any]]:
        """Return the grades as columns of equal length, by name.

        ``id``, ``cluster``, ``model``, ``run``, ``outcome``, ``score`` (None unless graded), ``passed``, ``label``,
        ``gold``, and ``counts.NAME`` and ``parts.NAME`` (None where a grade has none).
        """
        pairs = list(self)
        found: dict[str, list[Any]] = {
            name: [getattr(key, name) for key, _ in pairs] for name in ("id", "cluster", "model", "run")
        }
        found["outcome"] = [str(grade.outcome) for _, grade in pairs]
        found |= {name: [getattr(grade, name) for _, grade in pairs] for name in ("score", "passed", "label", "gold")}
        for of in ("counts", "parts"):
            names = sorted({name for grade, _ in self.counted for name in getattr(grade, of)})
            found |= {f"{of}.{name}": [getattr(grade, of).get(name) for _, grade in pairs] for name in names}
        return found

    @cached_property
    def _packing(self) -> tuple[Packing, list[int]]:
        """What grades add to sums, side by side in one integer: how, and that of each distinct grade; 0 for no part."""
        values, _ = self._numbers or ((), ())
        added = [value for value in values if value is not None]
        few = len({name for each in added for name in each}) <= MOST_PACKED
        packing = Packing(added, len(self.table)) if few else Sparse(added)
        packed = iter(packing.packed)
        return packing, [0 if value is None else next(packed) for value in values]

    @cached_property
    def names(self) -> list[str]:
        """Names of all numbers, sorted."""
        return self._packing[0].names

    @cached_property
    def _by_cell(self) -> list[int]:
        """The packed sum of what samples add, of each cell of the table; 0 where none adds anything."""
        packed, (_, codes) = self._packing[1], self._numbers or ((), ())
        cells = self.table.cells()
        if not codes:
            return [0] * len(cells.tasks)
        rows = map(packed.__getitem__, self._of(codes))
        return self._packing[0].added(self._of(cells.codes), rows, len(cells.tasks))

    def _by_task(self, sums: Sequence[int]) -> list[int]:
        cells = self.table.cells()
        if len(cells.models) == 1:
            return list(sums)
        return self._packing[0].added(cells.tasks, sums, len(cells.names))

    @cached_property
    def _tasks(self) -> tuple[Counter[int], dict[str, Counter[int]]]:
        """How many tasks have which packed sums: over all models, and of each model that has any."""
        cells, sums = self.table.cells(), self._by_cell
        of_model: list[list[int]] = [[] for _ in cells.models]
        for model, added in zip(cells.of_models, sums, strict=True):
            if added:
                of_model[model].append(added)
        models = {name: Counter(found) for name, found in zip(cells.models, of_model, strict=True) if found}
        if len(models) == 1:
            return next(iter(models.values())), models
        return Counter(filter(None, self._by_task(sums))), models

    def sums(self, *names: str) -> TaskSums:
        """Return the sums by task of some of the numbers, for figures with intervals; "" is the number of samples."""
        return TaskSums(names, self._packing[0], *self._tasks)

    def numbers_by_task(self) -> dict[str, TaskNumbers]:
        """Return task -> what its samples add; tasks without any are left out."""
        sums = self._by_task(self._by_cell)
        named = zip(self.table.cells().names, self._packing[0].named(sums), strict=True)
        return {task: numbers for task, numbers in named if numbers}

    def tasks_by_model(self) -> Counter[tuple[tuple[str, TaskNumbers], ...]]:
        """Return how many tasks have which numbers under each of several models."""
        cells, parts = self.table.cells(), dict[int, list[tuple[str, int]]]()
        for task, model, added in zip(cells.tasks, cells.of_models, self._by_cell, strict=True):
            if added:
                parts.setdefault(task, []).append((cells.models[model], added))
        counted = Counter([tuple(sorted(each)) for each in parts.values()])
        distinct = list({added: None for each in counted for _, added in each})
        named = dict(zip(distinct, self._packing[0].named(distinct), strict=True))
        found: Counter[tuple[tuple[str, TaskNumbers], ...]] = Counter()
        for several, times in counted.items():
            found[tuple([(model, named[added]) for model, added in several])] += times
        return found

    def task_numbers(
        self, names: Container[str] | None = None
    ) -> tuple[Counter[TaskNumbers], dict[str, Counter[TaskNumbers]]]:
        """Return how many tasks have which numbers by name: over all models, and of each model's tasks.

        The number of samples stands under the empty name.

        Args:
            names: The only ones wanted; default: all.
        """
        packing = self._packing[0]

        def named(sums: Counter[int]) -> Counter[TaskNumbers]:
            found: Counter[TaskNumbers] = Counter()
            for numbers, times in zip(packing.named(list(sums), names), sums.values(), strict=True):
                found[numbers] += times
            return found

        every, models = self._tasks
        by_model = {model: named(each) for model, each in models.items()}
        return (next(iter(by_model.values())) if len(by_model) == 1 else named(every)), by_model

    @cached_property
    def totals(self) -> dict[str, int | Fraction]:
        """The exact sums of all numbers, by name."""
        packing, packed = self._packing
        codes = self._of(self._numbers[1]) if self._numbers else ()
        counted = Counter[Any]()
        for code, times in Counter(codes).items():
            counted[packed[code]] += times
        total = packing.total(counted)
        return {name: packing.exact(name, [total])[0] for name in packing.names}
