"""The map of tasks and trials: every task a column, every trial a cell, sorted by how often a task is a success."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from gradestack import RowEntry, RowIndex
from gradestack_plugins.reporters.index import name_of, shown_as, verdict
from gradestack_plugins.reporters.lede import Part
from gradestack_plugins.reporters.phrases import counted, verb
from gradestack_plugins.reporters.reliability import Reliability, by_task
from gradestack_plugins.reporters.text import clean, natural, number

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


def about(reliable: Reliability, words: Mapping[str, str]) -> tuple[Part, ...]:
    """Return how many tasks are a success always, never and sometimes, in parts of a sentence."""
    if not reliable.passes or (reliable.trials or 1) < 2:
        return ()
    always = reliable.always
    said = verb(words["passed"], single=always == 1)
    return (
        Part(f"{counted(always, 'tasks')} {said} every time, {number(reliable.never)} never, and "),
        Part(f"{number(reliable.sometimes)} only sometimes", "b"),
        Part("."),
    )


def maps_of(index: RowIndex, words: Mapping[str, str], *, outcome: bool) -> tuple[TaskMap, ...]:
    """Return a map for each model; none where there would be too many elements, and the page's script draws it.

    Args:
        index: The index.
        words: The run's words for success and its opposite.
        outcome: Whether the run has an outcome.
    """
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
        ids = sorted(groups[level], key=lambda id_: (_mean(tasks[id_]), natural(id_)))
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


def _mean(entries: Sequence[RowEntry]) -> float:
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
