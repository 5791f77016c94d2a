"""Grades of one grader as a metric sees them: columns of the table, and sums by task."""

from __future__ import annotations

import importlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from gradestack.errors import ConfigError
from gradestack.estimates.sums import Notes, TaskSums
from gradestack.model import Grade, Key, Outcome
from gradestack.table import Groups, Numbers, Table

Codes = Sequence[int]
Profile = tuple[int, ...]
"""What the samples of a task add: places among the distinct numbers, sorted."""
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
        """Return another grader's grades of the same samples.

        Raises:
            KeyError: No grader has this key.
        """
        if key not in self.table.verdicts:
            msg = f"no grader has the key {key!r}; there are: {', '.join(self.table.verdicts)}"
            raise KeyError(msg)
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
    def _added_by(self) -> tuple[list[Numbers], list[int]]:
        """The distinct numbers, and for each row of the table which of them its grade adds; -1 for none."""
        values, codes = self._numbers or ((), ())
        known: dict[tuple[tuple[str, float], ...], int] = {}
        distinct: list[Numbers] = []
        place = []
        for value in values:
            at = -1
            if value is not None:
                at = known.setdefault(tuple(value.items()), len(known))
                if at == len(distinct):
                    distinct.append(value)
            place.append(at)
        return distinct, [place[code] for code in codes]

    @cached_property
    def names(self) -> list[str]:
        """Names of all numbers, sorted."""
        return sorted({name for value in self._added_by[0] for name in value})

    def _profiles(self, groups: Groups) -> Counter[Profile]:
        """Return how many tasks have which numbers, each task given by its rows."""
        added = self._added_by[1].__getitem__
        found = Counter([tuple(sorted(map(added, rows))) for rows in groups])
        if all(profile[0] >= 0 for profile in found):
            return found
        kept: Counter[Profile] = Counter()
        for profile, times in found.items():
            kept[tuple([at for at in profile if at >= 0])] += times
        kept.pop((), None)
        return kept

    @cached_property
    def _tasks(self) -> tuple[Counter[Profile], dict[str, Counter[Profile]]]:
        """How many tasks have which numbers: over all models, and of each model that has any."""
        every, models = self.table.grouped(self._rows)
        by_model = {name: found for name, groups in models.items() if (found := self._profiles(groups))}
        return (next(iter(by_model.values())) if len(by_model) == 1 else self._profiles(every)), by_model

    def sums(self, *names: str) -> TaskSums:
        """Return the sums by task of some of the numbers, for figures with intervals; "" is the number of samples."""
        cells = [[value.get(name, 0) if name else 1 for name in names] for value in self._added_by[0]]

        def notes(profiles: Counter[Profile]) -> list[tuple[Notes, int]]:
            return [([cells[at] for at in profile], times) for profile, times in profiles.items()]

        every, models = self._tasks
        return TaskSums(names, notes(every), {model: notes(each) for model, each in models.items()})

    def _total_of(self, names: Container[str] | None = None) -> Callable[[Profile], TaskNumbers]:
        """Return a function that adds up the numbers of a task: of all names, or of some."""
        wanted = [
            [(name, number) for name, number in value.items() if names is None or name in names]
            for value in self._added_by[0]
        ]
        whole = [[pair for pair in pairs if type(pair[1]) is int] for pairs in wanted]
        floats = [[pair for pair in pairs if type(pair[1]) is not int] for pairs in wanted]
        any_floats = any(floats)

        def total(profile: Profile) -> TaskNumbers:
            added: dict[str, float] = {"": len(profile)}
            for at in profile:
                for name, number in whole[at]:
                    added[name] = added.get(name, 0) + number
            if any_floats:
                parts: dict[str, list[float]] = {}
                for at in profile:
                    for name, number in floats[at]:
                        parts.setdefault(name, []).append(number)
                for name, several in parts.items():
                    whole_sum = int(added.get(name, 0))
                    high = float(whole_sum)  # and what no float holds of it
                    added[name] = math.fsum([*several, high, whole_sum - int(high)])
            return tuple(sorted([pair for pair in added.items() if pair[1]]))

        return total

    def numbers_by_task(self) -> dict[str, TaskNumbers]:
        """Return task -> what its samples add; tasks without any are left out."""
        names, tasks = self.table.tasks()
        _, added = self._added_by
        found: dict[str, list[int]] = {}
        for row in self.rows:
            if (at := added[row]) >= 0:
                found.setdefault(names[tasks[row]], []).append(at)
        total = self._total_of()
        return {task: total(tuple(several)) for task, several in found.items()}

    def tasks_by_model(self) -> Counter[tuple[tuple[str, TaskNumbers], ...]]:
        """Return how many tasks have which numbers under each of several models."""
        _, added = self._added_by
        tasks, models = self.table.tasks()[1], self.table.keys["model"]
        parts: dict[int, dict[str, list[int]]] = {}
        for row in self.rows:
            if (at := added[row]) >= 0:
                parts.setdefault(tasks[row], {}).setdefault(models.values[models.codes[row]] or "", []).append(at)
        counted = Counter(
            [tuple(sorted([(model, tuple(sorted(each))) for model, each in of.items()])) for of in parts.values()]
        )
        total = self._total_of()
        found: Counter[tuple[tuple[str, TaskNumbers], ...]] = Counter()
        for several, times in counted.items():
            found[tuple([(model, total(profile)) for model, profile in several])] += times
        return found

    def task_numbers(
        self, names: Container[str] | None = None
    ) -> tuple[Counter[TaskNumbers], dict[str, Counter[TaskNumbers]]]:
        """Return how many tasks have which numbers by name: over all models, and of each model's tasks.

        The number of samples stands under the empty name.

        Args:
            names: The only ones wanted; default: all.
        """
        total = self._total_of(names)

        def named(profiles: Counter[Profile]) -> Counter[TaskNumbers]:
            found: Counter[TaskNumbers] = Counter()
            for profile, times in profiles.items():
                found[total(profile)] += times
            return found

        every, models = self._tasks
        by_model = {model: named(each) for model, each in models.items()}
        return (next(iter(by_model.values())) if len(by_model) == 1 else named(every)), by_model

    @cached_property
    def totals(self) -> dict[str, int | Fraction]:
        """The exact sums of all numbers, by name."""
        distinct, added = self._added_by
        found: dict[str, int | Fraction] = {}
        for at, times in Counter(added if self._rows is None else [added[row] for row in self._rows]).items():
            for name, number in distinct[at].items() if at >= 0 else ():
                exact = number if type(number) is int else Fraction(number)
                found[name] = found.get(name, 0) + exact * times
        return found


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        msg = f"{name} is not installed: pip install {name}"
        raise ConfigError(msg) from error
