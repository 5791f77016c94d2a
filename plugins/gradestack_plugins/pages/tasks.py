"""Tasks over trials: how reliable they are, and the map of what became of each trial."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import attrs

from gradestack_plugins.pages.draw import Histogram, bars
from gradestack_plugins.pages.index import RowEntry, RowIndex, name_of, shown_as, verdict
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


def passes_of(reliable: Reliability, word: str) -> Histogram | None:
    """Return tasks by how many of their trials are a success; None where trials differ, are one, or nobody judged."""
    most = reliable.trials or 1
    if most < 2 or not reliable.passes:
        return None
    counts = [reliable.passes.get(passed, 0) for passed in range(most + 1)]
    heading = f"Tasks by number of trials “{word}”, of {most}"
    return bars(heading, list(map(str, range(most + 1))), counts, [passed / most for passed in range(most + 1)])


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
