"""The table of tasks over trials."""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import attrs

from gradestack import RowEntry, RowIndex
from gradestack_plugins.reporters.blocks import Histogram
from gradestack_plugins.reporters.charts import bars
from gradestack_plugins.reporters.index import name_of, names_of, shade
from gradestack_plugins.reporters.text import natural, number

MOST_COLUMNS = 32


class Column(NamedTuple):
    """One trial, of one model."""

    model: str
    run: str
    """"" where runs have no names: then one column per occurrence."""
    occurrence: int = 0

    @property
    def label(self) -> str:
        """Heading without the model."""
        return self.run or str(self.occurrence + 1)


Cells = dict[Column, list[RowEntry]]
"""The samples of a task by trial."""
_Trial = tuple[str, str]
"""Model and run of a sample."""


@attrs.frozen
class Task:
    """One line of the table."""

    id: str
    cells: tuple[Sequence[RowEntry], ...]
    """Per column the samples there: none, one, or several for duplicates."""
    mean: str
    """Mean score over graded trials."""
    shade: str
    passed: int
    trials: int


@attrs.frozen
class Tasks:
    """The whole table."""

    columns: tuple[Column, ...]
    rows: tuple[Task, ...]
    models: tuple[tuple[str, int], ...]
    """Model and number of its columns, in order; empty when there is at most one."""
    means: tuple[tuple[str, str], ...]
    """Per column the mean score of its graded trials, over all tasks, and its shade."""
    passes: Histogram | None
    """Tasks by how many of their trials are a success; None when tasks have different numbers of trials, or one, or
    the run has no outcome."""
    left_out: int
    """Tasks not in the table."""
    columns_left_out: int

    @property
    def single(self) -> bool:
        """Whether every task was run once, so that a map of cells says it all."""
        return len(self.columns) <= 1


@attrs.frozen
class _Groups:
    """The samples of an index by task: positions, eight bytes each, since there may be as many tasks as samples."""

    names: Sequence[str]
    """Name of each task, by number; ids that read alike are one, and some numbers stand for none."""
    positions: array[int]
    """Of all samples, those of one task together."""
    starts: array[int]
    """Where those of each task begin, and one more."""

    def entries(self, number: int, of: RowIndex) -> list[RowEntry]:
        """Return the samples of a task, in the order of the rows."""
        return [of.entries[position] for position in self.positions[self.starts[number] : self.starts[number + 1]]]

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of the tasks."""
        return (number for number, (start, stop) in enumerate(pairwise(self.starts)) if start < stop)


@attrs.frozen
class _Trials:
    """The samples of an index by task and trial: what its tables of any length share."""

    groups: _Groups
    tasks: int
    trials: Mapping[_Trial, Column]
    columns: tuple[Column, ...]
    columns_left_out: int
    models: tuple[tuple[str, int], ...]
    means: tuple[tuple[str, str], ...]
    passes: Histogram | None
    first: list[int] = attrs.field(factory=list)
    """Numbers of the first tasks, as many as the longest table had."""


_known: WeakKeyDictionary[RowIndex, _Trials] = WeakKeyDictionary()


def table(index: RowIndex, most: int, word: str) -> Tasks:
    """Return the table of the first ``most`` tasks; tasks and trials in natural order, models as first seen.

    Args:
        index: The index of a run's rows.
        most: Tasks in the table.
        word: The run's word for success, "" where it has no outcome.
    """
    found = _known.get(index)
    if found is None:
        found = _known[index] = _trials(index, word)
    groups = found.groups
    if len(found.first) < min(most, found.tasks):
        found.first[:] = heapq.nsmallest(most, groups.numbers(), key=lambda number: natural(groups.names[number]))
    return Tasks(
        columns=found.columns,
        rows=tuple(
            _task(groups.names[number], _cells(groups.entries(number, index), found.trials), found.columns)
            for number in found.first[:most]
        ),
        models=found.models,
        means=found.means,
        passes=found.passes,
        left_out=max(0, found.tasks - most),
        columns_left_out=found.columns_left_out,
    )


def _trials(index: RowIndex, word: str) -> _Trials:
    entries = index.entries
    models, trials = _columns(entries)
    groups = _grouped(index)
    scores = _scores(index, groups, trials)
    before = array("q", accumulate([entries[position].passed is True for position in groups.positions], initial=0))
    spans = [(start, stop) for start, stop in pairwise(groups.starts) if start < stop]
    sizes = {stop - start for start, stop in spans}
    passes = Counter([before[stop] - before[start] for start, stop in spans])
    order = {model: place for place, model in enumerate(models)}
    columns = sorted(scores, key=lambda column: (order[column.model], natural(column.run), column.occurrence))
    shown = tuple(columns[:MOST_COLUMNS])
    return _Trials(
        groups=groups,
        tasks=passes.total(),
        trials=trials,
        columns=shown,
        columns_left_out=len(columns) - len(shown),
        models=_spans(shown) if len(models) > 1 else (),
        means=tuple(_mean(scores[column]) for column in shown),
        passes=_passes(sizes, passes, word) if word else None,
    )


def _columns(entries: Sequence[RowEntry]) -> tuple[Collection[str], Mapping[_Trial, Column]]:
    """Return the models, as first seen, and the trials as columns."""
    name = cache(name_of)
    named = {name(model) for model in {entry.model for entry in entries}} - {""}
    (only,) = named if len(named) == 1 else ("",)  # samples nobody ran have no model; with one model they are its own
    pairs = dict.fromkeys([(entry.model, entry.run) for entry in entries])
    trials = {(model, run): Column(name(model) or only, name(run)) for model, run in pairs}
    return dict.fromkeys(column.model for column in trials.values()), trials


def _scores(index: RowIndex, groups: _Groups, trials: Mapping[_Trial, Column]) -> dict[Column, list[float]]:
    """Return the scores of each column."""
    found: dict[Column, list[float]] = {column: [] for column in trials.values() if column.run}
    lists = {trial: found.get(column, []) for trial, column in trials.items()}
    for entry in index.entries:
        if entry.score is not None:
            lists[entry.model, entry.run].append(entry.score)
    if all(column.run for column in trials.values()):
        return found
    for task in groups.numbers():  # the cells of one at a time: of very many they would not fit
        for column, cell in _cells(groups.entries(task, index), trials).items():
            if not column.run:
                found.setdefault(column, []).extend([entry.score for entry in cell if entry.score is not None])
    return found


def _grouped(index: RowIndex) -> _Groups:
    names = names_of(index.names)
    shortened = {name for name, whole in zip(names, index.names, strict=True) if name != whole}
    first: dict[str, int] = {}
    numbers = [first.setdefault(name, number) if name in shortened else number for number, name in enumerate(names)]
    starts = array("q", bytes(8 * (len(names) + 1)))
    for task in index.tasks:
        starts[numbers[task] + 1] += 1
    starts = array("q", accumulate(starts))
    positions, free = array("q", bytes(8 * len(index.tasks))), starts[:]
    for position, task in enumerate(index.tasks):
        number = numbers[task]
        positions[free[number]] = position
        free[number] += 1
    return _Groups(names, positions, starts)


def _cells(entries: Iterable[RowEntry], trials: Mapping[_Trial, Column]) -> Cells:
    """Return the samples of a task by trial; those of runs without a name by their occurrence."""
    cells: Cells = {}
    for entry in entries:
        column = trials[entry.model, entry.run]
        if cells and not column.run:
            column = column._replace(occurrence=sum(known.model == column.model for known in cells))
        cells.setdefault(column, []).append(entry)
    return cells


def _task(name: str, cells: Cells, columns: Sequence[Column]) -> Task:
    entries = [entry for found in cells.values() for entry in found]
    mean, shading = _mean([entry.score for entry in entries if entry.score is not None])
    return Task(
        id=name,
        cells=tuple(cells.get(column, ()) for column in columns),
        mean=mean,
        shade=shading,
        passed=_passed(entries),
        trials=len(entries),
    )


def _passed(entries: Iterable[RowEntry]) -> int:
    return sum(entry.passed is True for entry in entries)


def _mean(scores: Sequence[float]) -> tuple[str, str]:
    if not scores:
        return "–", "none"
    mean = math.fsum(scores) / len(scores)
    return number(mean), shade(mean)


def _passes(trials: Collection[int], found: Mapping[int, int], word: str) -> Histogram | None:
    if len(trials) != 1 or 1 in trials:
        return None
    (most,) = trials
    counts = [found.get(passed, 0) for passed in range(most + 1)]
    labels = [str(passed) for passed in range(most + 1)]
    heading = f"Tasks by number of trials {word}, of {most}"
    return bars(heading, labels, counts, [passed / most for passed in range(most + 1)])


def _spans(columns: Sequence[Column]) -> tuple[tuple[str, int], ...]:
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and spans[-1][0] == column.model:
            spans[-1] = (column.model, spans[-1][1] + 1)
        else:
            spans.append((column.model, 1))
    return tuple(spans)
