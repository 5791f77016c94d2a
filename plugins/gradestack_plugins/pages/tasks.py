"""Tasks over trials: how reliable they are, the table of scores, the map of what became of each trial."""

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

from gradestack_plugins.pages.draw import Histogram, bars
from gradestack_plugins.pages.index import RowEntry, RowIndex, name_of, names_of, shade, shown_as, verdict
from gradestack_plugins.pages.text import clean, counted, natural, number


@attrs.frozen
class Reliability:
    """Tasks by the share of their trials that are a success.

    Attributes:
        tasks: Number of tasks; those of different models are different.
        trials: Trials of every task; None where they differ.
        passes: Successes of a task -> number of such tasks; empty without an outcome, or where trials differ.
        models: Number of models.
    """

    tasks: int
    trials: int | None
    passes: Mapping[int, int]
    models: int = 1

    @property
    def noun(self) -> str:
        """What its samples are: ``runs`` where every task has several, else ``samples``."""
        return "runs" if self.trials is not None and self.trials > 1 else "samples"

    @property
    def always(self) -> int:
        """Tasks that are solved in every trial."""
        return self.passes.get(self.trials or 0, 0)

    @property
    def never(self) -> int:
        """Tasks that are solved in no trial."""
        return self.passes.get(0, 0)

    @property
    def sometimes(self) -> int:
        """Tasks that are solved in some trials only."""
        return sum(self.passes.values()) - self.always - self.never

    @property
    def about(self) -> str:
        """How many tasks are a success in every trial, in none and in some; "" where that is not known."""
        if not self.passes or (self.trials or 1) < 2:
            return ""
        shares = f"in every trial {number(self.always)}, in none {number(self.never)}, in some {number(self.sometimes)}"
        return f"Of {counted(self.tasks, 'tasks')}: {shares}."


def by_task(entries: Sequence[RowEntry]) -> Mapping[tuple[str, str], list[RowEntry]]:
    """Return the samples of each task of each model, in the order they were recorded."""
    found: dict[tuple[str, str], list[RowEntry]] = {}
    for entry in entries:
        found.setdefault((entry.model, entry.id), []).append(entry)
    return found


def reliability_of(index: RowIndex, *, outcome: bool) -> Reliability:
    """Return the reliability of the tasks of an index."""
    models: dict[str, int] = {}
    marks = sorted(  # of model and task, and whether it is a success
        2 * (models.setdefault(entry.model, len(models)) * len(index.names) + task) + (entry.passed is True)
        for entry, task in zip(index.entries, index.tasks, strict=True)
    )
    ends = [place for place, (mark, after) in enumerate(pairwise((*marks, -1)), start=1) if mark >> 1 != after >> 1]
    passed = [0, *accumulate(mark & 1 for mark in marks)]
    found = Counter((stop - start, passed[stop] - passed[start]) for start, stop in pairwise((0, *ends)))
    tasks, sizes = found.total(), {trials for trials, _ in found}
    if len(sizes) != 1:
        return Reliability(tasks, None, {})
    (trials,) = sizes
    passes = {passed: times for (_, passed), times in sorted(found.items())} if outcome else {}
    return Reliability(tasks, trials, passes, len(models))


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
    """Return the table of the first ``most`` tasks; tasks and trials in natural order, models as first seen."""
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
    heading = f"Tasks by number of trials “{word}”, of {most}"
    return bars(heading, labels, counts, [passed / most for passed in range(most + 1)])


def _spans(columns: Sequence[Column]) -> tuple[tuple[str, int], ...]:
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and spans[-1][0] == column.model:
            spans[-1] = (column.model, spans[-1][1] + 1)
        else:
            spans.append((column.model, 1))
    return tuple(spans)


MOST_CELLS = 800
_TALLEST, _LOWEST, _WIDTH, _ROOM = 25, 8, 22, 200
_LONGEST_ID, _LONGEST_LEVEL = 4, 3
"""Characters of an id that is written below its column, upright; shorter ones are level."""
_LEVEL_ROOM, _TURNED_ROOM = 16, 32


@attrs.frozen
class MapCell:
    """One trial: what became of it, and how full its cell is."""

    kind: str
    """``passed``, ``lost``, ``graded``, ``error``, ``missing`` or ``skipped``."""
    y: int
    fill: float
    """Height of the filled part, in the units of the cell."""
    fill_y: float
    title: str
    position: int


@attrs.frozen
class MapColumn:
    """One task."""

    label: str
    """Its id where ids are short, else ""."""
    cells: tuple[MapCell, ...]


@attrs.frozen
class MapGroup:
    """Tasks solved equally often."""

    title: str
    count: int
    columns: tuple[MapColumn, ...]


@attrs.frozen
class TaskMap:
    """The map of one model's tasks."""

    model: str
    groups: tuple[MapGroup, ...]
    size: int
    """Height of a cell."""
    height: int
    """Height of a column with its label."""
    turned: bool = False
    """Whether labels are written upright, since they are wider than a column."""


def maps_of(index: RowIndex, words: Mapping[str, str], *, outcome: bool) -> tuple[TaskMap, ...]:
    """Return a map for each model; none where there would be too many elements, and the page's script draws it."""
    if not 1 < len(index.entries) <= MOST_CELLS:
        return ()
    tasks = by_task(index.entries)
    models = list(dict.fromkeys(model for model, _ in tasks))
    longest = max(len(id_) for _, id_ in tasks)
    short, turned = longest <= _LONGEST_ID, _LONGEST_LEVEL < longest <= _LONGEST_ID
    most = max(map(len, tasks.values()))
    size = max(_LOWEST, min(_TALLEST, _ROOM // most))
    height = most * (size + 2) + (_TURNED_ROOM if turned else _LEVEL_ROOM if short else 2)
    found = []
    for model in models:
        own = {id_: entries for (owner, id_), entries in tasks.items() if owner == model}
        groups = _groups(own, words, short=short, size=size, outcome=outcome)
        found.append(TaskMap(name_of(model) if len(models) > 1 else "", groups, size, height, turned))
    return tuple(found)


def _groups(
    tasks: Mapping[str, list[RowEntry]], words: Mapping[str, str], *, short: bool, size: int, outcome: bool
) -> tuple[MapGroup, ...]:
    trials = {len(entries) for entries in tasks.values()}
    groups: dict[float, list[str]] = {}
    for id_, entries in tasks.items():
        groups.setdefault(_level(entries, trials) if outcome else 0, []).append(id_)
    found = []
    for level in sorted(groups):
        ids = sorted(groups[level], key=lambda id_: (_mean_score(tasks[id_]), natural(id_)))
        columns = tuple(_column(id_, tasks[id_], words, short=short, size=size) for id_ in ids)
        found.append(MapGroup(_title(level, trials, words) if outcome else "", len(ids), columns))
    return tuple(found)


def _level(entries: Sequence[RowEntry], trials: set[int]) -> float:
    """Return how often a task is a success, as a share where tasks have different numbers of trials; -1 if unknown."""
    if all(entry.passed is None for entry in entries):
        return -1
    passed = sum(entry.passed is True for entry in entries)
    return passed / len(entries) if len(trials) > 1 else passed


def _title(level: float, trials: set[int], words: Mapping[str, str]) -> str:
    if level < 0:
        return "no grade"
    if trials == {1}:
        return words["passed"] if level else words["lost"]
    if level == 0:
        return "never"
    if len(trials) > 1:
        return "always" if level == 1 else f"{100 * level:.0f}%"
    (most,) = trials
    return "always" if level == most else f"{level:.0f} of {most}"


def _mean_score(entries: Sequence[RowEntry]) -> float:
    scores = [entry.score for entry in entries if entry.score is not None]
    return math.fsum(scores) / len(scores) if scores else 0.0


def _column(id_: str, entries: Sequence[RowEntry], words: Mapping[str, str], *, short: bool, size: int) -> MapColumn:
    ordered = sorted(entries, key=lambda entry: natural(entry.run))
    cells = tuple(_cell(entry, place * (size + 2) + 1, words, size) for place, entry in enumerate(ordered))
    return MapColumn(clean(id_) if short else "", cells)


def _cell(entry: RowEntry, y: int, words: Mapping[str, str], size: int) -> MapCell:
    kind, inner = verdict(entry), size - 2
    filled = min(1.0, max(0.0, entry.score or 0.0)) if kind in ("lost", "graded") else 0.0
    trial = f", trial {name_of(entry.run)}" if entry.run else ""
    score = f", {shown_as(entry)}" if entry.score is not None else ""
    title = f"task {name_of(entry.id)}{trial}: {words[kind]}{score}"
    return MapCell(kind, y, round(filled * inner, 1), round(y + 1 + inner - filled * inner, 1), title, entry.position)
