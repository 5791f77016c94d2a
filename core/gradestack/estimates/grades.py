"""Grades of one grader as a metric sees them: columns of the table, and sums by task."""

from __future__ import annotations

import importlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

from gradestack.errors import ConfigError
from gradestack.estimates.sums import Notes, TaskSums
from gradestack.model import Grade, Key, Outcome
from gradestack.table import Numbers, Table

Codes = Sequence[int]
TaskNumbers = tuple[tuple[str, float], ...]
"""What a task has, by name and in the order of names; 0 is left out."""


class Grades:
    """Grades of one grader, in input order.

    Iterating yields ``(key, grade)``. A grade has outcome, score, passed, labels, counts and parts; ``items``,
    ``reasons``, ``fault`` and ``metadata`` only where the aggregator's ``keeps`` names them. ``key.facets`` holds the
    aggregator's ``facets``.

    Args:
        table: The table of the run.
        key: The grader's key.
        rows: Numbers of the rows; default: all.
        numbers: What each distinct grade adds to sums, and the code of each row of the table.
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
        """Return the codes of these rows."""
        return codes if self._rows is None else array("I", [codes[row] for row in self._rows])

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
        """Return another grader's grades of the same samples."""
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

    @cached_property
    def tasks(self) -> list[str]:
        """Names of the tasks."""
        names, codes = self.table.tasks()
        return [names[code] for code in dict.fromkeys(self._of(codes))]

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

    def to_pandas(self) -> Any:
        """Return :meth:`columns` as a pandas DataFrame.

        Raises:
            ConfigError: pandas is not installed.
        """
        return _library("pandas").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """Return :meth:`columns` as a pyarrow Table.

        Raises:
            ConfigError: pyarrow is not installed.
        """
        columns = self.columns()
        columns["run"] = [None if run is None else str(run) for run in columns["run"]]
        return _library("pyarrow").table(columns)

    @property
    def trials(self) -> int:
        """Number of distinct trials: names of runs; samples without one are numbered within their task.

        Skipped and missing samples are none.
        """
        outcomes = [grade.outcome for grade in self.table.grades(self.key)]
        verdicts, runs = self.table.verdicts[self.key].codes, self.table.keys["run"]
        none = {code for code, each in enumerate(outcomes) if each in {Outcome.SKIPPED, Outcome.MISSING}}
        rows = [row for row in self.rows if verdicts[row] not in none] if none else self.rows
        names = {runs.codes[row] for row in rows}
        unnamed = {code for code in names if runs.values[code] is None}
        if not unnamed:
            return len(names)
        tasks = self.table.tasks()[1]
        of_task = Counter([tasks[row] for row in rows if runs.codes[row] in unnamed])
        return max(len(names - unnamed), *of_task.values())

    @cached_property
    def _profiles(self) -> tuple[Counter[tuple[int, ...]], dict[str, Counter[tuple[int, ...]]]]:
        """How many tasks have which numbers, as sorted codes: over all models, and of each model's tasks."""
        assert self._numbers is not None, "a metric without numbers has no sums"  # noqa: S101
        values, codes = self._numbers
        if all(value is None for value in values):
            return Counter(), {}
        kept = [row for row in self.rows if values[codes[row]] is not None]
        tasks, models = self.table.tasks()[1], self.table.keys["model"]
        by_model: dict[str, list[int]] = {}
        for row in kept:
            by_model.setdefault(models.values[models.codes[row]] or "", []).append(row)
        parts = {
            name: _profiles(zip([tasks[row] for row in rows], [codes[row] for row in rows], strict=True))
            for name, rows in by_model.items()
        }
        if len(parts) == 1:
            return next(iter(parts.values())), parts
        return _profiles(zip([tasks[row] for row in kept], [codes[row] for row in kept], strict=True)), parts

    def sums(self, *names: str) -> TaskSums:
        """Return the sums by task of some of the numbers, for figures with intervals; "" is the number of samples."""
        values = self._numbers[0] if self._numbers is not None else ()
        cells = [None if value is None else [value.get(name, 0) if name else 1 for name in names] for value in values]

        def notes(profiles: Counter[tuple[int, ...]]) -> list[tuple[Notes, int]]:
            return [([cells[code] for code in codes], times) for codes, times in profiles.items()]  # type: ignore[misc]

        every, models = self._profiles
        return TaskSums(names, notes(every), {model: notes(each) for model, each in models.items()})

    def numbers_by_task(self) -> dict[str, TaskNumbers]:
        """Return task -> what its samples add; tasks without any are left out."""
        assert self._numbers is not None  # noqa: S101
        values, codes = self._numbers
        names, tasks = self.table.tasks()
        found: dict[str, list[Numbers]] = {}
        for row in self.rows:
            if (numbers := values[codes[row]]) is not None:
                found.setdefault(names[tasks[row]], []).append(numbers)
        return {task: _added(several) for task, several in found.items()}

    def tasks_by_model(self) -> Counter[tuple[tuple[str, TaskNumbers], ...]]:
        """Return how many tasks have which numbers under each of several models."""
        assert self._numbers is not None  # noqa: S101
        values, codes = self._numbers
        tasks, models = self.table.tasks()[1], self.table.keys["model"]
        parts: dict[int, dict[str, list[Numbers]]] = {}
        for row in self.rows:
            if (numbers := values[codes[row]]) is not None:
                model = models.values[models.codes[row]] or ""
                parts.setdefault(tasks[row], {}).setdefault(model, []).append(numbers)
        tasks_of = ([(model, _added(numbers)) for model, numbers in each.items()] for each in parts.values())
        return Counter([tuple(sorted(each)) for each in tasks_of])

    def task_numbers(self) -> tuple[Counter[TaskNumbers], dict[str, Counter[TaskNumbers]]]:
        """Return how many tasks have which numbers by name: over all models, and of each model's tasks.

        The number of samples stands under the empty name.
        """
        values = self._numbers[0] if self._numbers is not None else ()
        every, models = self._profiles
        return _named(every, values), {model: _named(each, values) for model, each in models.items()}

    @cached_property
    def totals(self) -> dict[str, int | Fraction]:
        """The exact sums of all numbers, by name."""
        values, codes = self._numbers or ((), ())
        found: dict[str, int | Fraction] = {}
        for code, times in Counter(self._of(codes)).items():
            for name, number in (values[code] or {}).items():
                exact = number if type(number) is int else Fraction(number)
                found[name] = found.get(name, 0) + exact * times
        return found


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        msg = f"{name} is not installed: pip install {name}"
        raise ConfigError(msg) from error


def _profiles(pairs: Iterable[tuple[int, int]]) -> Counter[tuple[int, ...]]:
    by_task: dict[int, list[int]] = {}
    for task, code in pairs:
        held = by_task.get(task)
        if held is None:
            by_task[task] = [code]
        else:
            held.append(code)
    return Counter([tuple(codes) if len(codes) == 1 else tuple(sorted(codes)) for codes in by_task.values()])


def _named(profiles: Mapping[tuple[int, ...], int], values: Sequence[Numbers | None]) -> Counter[TaskNumbers]:
    found: Counter[TaskNumbers] = Counter()
    for codes, times in profiles.items():
        found[_added([values[code] or {} for code in codes])] += times
    return found


def _added(several: Sequence[Numbers]) -> TaskNumbers:
    """Return the sums of numbers by name, each rounded once, and how many were summed."""
    by_name: dict[str, list[float]] = {"": [1] * len(several)}
    for name, number in chain.from_iterable(each.items() for each in several):
        by_name.setdefault(name, []).append(number)
    added: list[tuple[str, Any]] = [
        (name, sum(each) if all(type(one) is int for one in each) else math.fsum(each))
        for name, each in by_name.items()
    ]
    return tuple(sorted([(name, number) for name, number in added if number]))
