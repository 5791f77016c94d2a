"""Figures that are no means of scores, compared: F1, rates over calls, overall scores of a family.

They are folded again from the rows of both sides, over the tasks that both have, and once more without each of these
tasks. With D the difference over all T tasks and D(-t) that without task t, ``T D - (T - 1) D(-t)`` stands for the
difference of task t: of a mean over tasks it is just that.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from gradestack.api import Aggregator
from gradestack.comparison.paired import Difference, difference
from gradestack.comparison.sides import Failed, Side, differing_parts, task_means, task_of
from gradestack.errors import ConfigError, DataError, suggest
from gradestack.gates.paths import NoFigure, beside, figure_at
from gradestack.jsonio.lenient import as_list, as_map, as_text
from gradestack.jsonio.values import dumps
from gradestack.model import Grade, Key, Outcome, replace
from gradestack.registry import Registry
from gradestack.rows.read import grade_from_json, key_from_row
from gradestack.suites.document import Document
from gradestack.suites.headline import split_path
from gradestack.suites.references import Resolver

_WORK = 200_000
"""Tasks folded, at most, to leave out each of those that are unlike each other."""
_NOTHING = 1e-9
"""A task's difference that is rounding."""
_MEANS = frozenset({"mean"})
"""Aggregators whose figures are means of scores, which are compared as such."""


@attrs.frozen
class Figure:
    """A figure by its path, and the aggregator that computes it on each side."""

    path: str
    grader: str
    metric: str
    rest: tuple[str, ...]
    folds: Mapping[str, Aggregator[Any]]
    """Name of the side -> its aggregator."""

    def of(self, found: Mapping[str, Any]) -> tuple[float | None, bool]:
        """Return the figure of what the aggregator computed, and whether it is a share."""
        held, path = {self.grader: {self.metric: found}}, (self.grader, self.metric, *self.rest)
        value, sure = figure_at(held, path, self.metric), beside(held, path, self.metric) or {}
        return value, sure.get("method") != "t" and (value is None or 0 <= value <= 1)

    def among(self, found: Mapping[str, Any]) -> tuple[float | None, bool]:
        """Return the same of some of the tasks, among which there may be nothing at the path: it is undefined then."""
        try:
            return self.of(found)
        except NoFigure:
            return None, True


def headline_figures(side: Side) -> list[str]:
    """Return the paths of the single figures of a run's headline that are no means of scores."""
    found = []
    metrics = side.report.aggregates
    for each in as_list(as_map(side.report.summary.get("headline")).get("figures")):
        path = as_text(as_map(each).get("figure")) or ""
        grader, rest = split_path(path, metrics)
        metric, _ = split_path(rest, metrics.get(grader, {}))
        entry = _entry(side, grader, metric)
        if entry and entry["name"] not in _MEANS and isinstance(each.get("value"), int | float | None):
            found.append(path)
    return found


def figure_of(path: str, sides: Sequence[Side], registry: Registry) -> Figure:
    """Return the figure at a path, which is the same on all sides.

    Raises:
        ConfigError: There is no such figure, or its aggregator cannot be used any more.
        DataError: The aggregators of two sides differ.
    """
    metrics = sides[0].report.aggregates
    grader, rest = split_path(path, metrics)
    metric, below = split_path(rest, metrics.get(grader, {}))
    if not metric:
        known = [f"{key}.{each}" for key, held in metrics.items() for each in held]
        msg = f"{sides[0].name} has no figure {path!r}{suggest(path, known)}; its aggregators: {', '.join(known)}"
        raise ConfigError(msg)
    entries = {side.name: _entry(side, grader, metric) for side in sides}
    first = entries[sides[0].name]
    for name, entry in entries.items():
        if entry is None:
            msg = f"{path}: {name} has no such aggregator"
            raise ConfigError(msg)
        if first is not None and differing_parts(entry, first):
            parts = ", ".join(differing_parts(entry, first))
            msg = f"{path}: the aggregators of {sides[0].name} and {name} differ in {parts}"
            raise DataError(msg)
    folds = {side.name: _fold(side, entries[side.name] or {}, registry, path) for side in sides}
    found = Figure(path, grader, metric, tuple(below.split(".")) if below else (), folds)
    try:
        found.of(metrics[grader][metric])
    except NoFigure as error:
        msg = f"{path}: {error}"
        raise ConfigError(msg) from error
    return found


def _entry(side: Side, grader: str, metric: str) -> Mapping[str, Any] | None:
    """Return what header.json says of an aggregator of a grader."""
    found = [
        each
        for each in side.report.header.get("components", ())
        if each["kind"] == "aggregator" and each["key"] == metric and each.get("of") in (None, grader)
    ]
    return found[0] if found and metric in side.report.aggregates.get(grader, {}) else None


def _fold(side: Side, entry: Mapping[str, Any], registry: Registry, path: str) -> Aggregator[Any]:
    resolver = Resolver(Document(data={}, origin=path), registry, None)
    resolver.profile = side.report.header.get("profile", "documented")
    options = {"kind": entry["name"], **entry["options"]}
    stage = resolver.stage("aggregator", str(entry["key"]), options, ("metrics", str(entry["key"])))
    if stage is None or stage.version != entry["version"]:
        resolver.finish()
        msg = f"{path}: the aggregator {entry['name']} is no longer that of the run of {side.name}"
        raise ConfigError(msg)
    fold: Aggregator[Any] = stage.component
    labels = as_map(side.report.aggregates[entry.get("of") or path.partition(".")[0]].get(entry["key"])).get("labels")
    if isinstance(labels, list) and getattr(fold, "labels", labels) is None:
        fold = attrs.evolve(fold, labels=tuple(labels))  # type: ignore[misc] # a class without a task stays a class
    return fold


@attrs.frozen
class FigureSide:
    """A figure of one side: over all tasks, and without each."""

    value: float | None
    share: bool
    cells: Mapping[str, str]
    """Task -> what it adds, whatever its name."""
    without: Mapping[str, float | None] | None
    """None where it would take too long."""


@attrs.frozen
class Pair:
    """A figure of two sides, over the tasks that both have a score of."""

    tasks: Sequence[str]
    a: FigureSide
    b: FigureSide

    @property
    def share(self) -> bool:
        """Whether both figures are shares."""
        return self.a.share and self.b.share

    def difference(self, confidence: float) -> Difference:
        """Return how far the figures are apart."""
        return _difference(self.a, self.b, self.tasks, confidence)


def figure_pairs(figures: Iterable[Figure], a: Side, b: Side, failed: Failed) -> dict[str, Pair]:
    """Return figures of two sides by their paths; those of one aggregator are folded together.

    Raises:
        DataError: Rows cannot be read.
    """
    together: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        together.setdefault((figure.grader, figure.metric), []).append(figure)
    found = {}
    for (grader, _), several in together.items():
        left, right = (task_means(side.tasks, grader, failed) for side in (a, b))
        tasks = [task for task in left if task in right]
        folded = (_folded(side, several, tasks, failed) for side in (a, b))
        for figure, before, after in zip(several, *folded, strict=True):
            found[figure.path] = Pair(tasks, before, after)
    return found


def _difference(before: FigureSide, after: FigureSide, tasks: Sequence[str], confidence: float) -> Difference:
    count = len(tasks)
    empty = Difference(count, None, None, None, None, None, None, 0, 0, 0)
    if before.value is None or after.value is None:
        return attrs.evolve(empty, reason="undefined on one side" if count else "no task in common")
    gap, values = after.value - before.value, []
    if before.without is None or after.without is None:
        reason = "too many tasks to leave each of them out"
        return attrs.evolve(empty, difference=gap, reason=reason)
    for task in tasks:
        left, right = before.without.get(task), after.without.get(task)
        if count > 1 and (left is None or right is None):
            return attrs.evolve(empty, difference=gap, reason="undefined without some task")
        each = gap if left is None or right is None else count * gap - (count - 1) * (right - left)
        values.append(0.0 if abs(each) < _NOTHING else each)
    bounded = before.share and after.share
    found = difference(values, confidence=confidence, bounded=bounded, value=gap)
    moved = [
        value for task, value in zip(tasks, values, strict=True) if before.cells.get(task) != after.cells.get(task)
    ]
    better, worse = sum(each > 0 for each in moved), sum(each < 0 for each in moved)
    return attrs.evolve(found, better=better, worse=worse, same=count - better - worse)


def _folded(side: Side, figures: Sequence[Figure], tasks: Iterable[str], failed: Failed) -> list[FigureSide]:
    """Return figures of one aggregator on one side.

    A figure that is the same when all samples are taken for those of one task, which most are, is one of sums: then
    leaving a task out takes no fold of all others.
    """
    fold, wanted = figures[0].folds[side.name], set(tasks)
    states: dict[str, Any] = {}
    alike: dict[str, Any] = {}
    for task, key, grade in _graded(side, figures[0]):
        if task in wanted and (failed == "zero" or grade.outcome is Outcome.GRADED):
            states[task] = fold.add(states.get(task, fold.start()), key, grade)
            nobody = replace(key, id="", cluster=None, ordinal=0)
            alike[task] = fold.add(alike.get(task, fold.start()), nobody, grade)
    cells = {task: dumps(state) for task, state in alike.items()}
    whole, summed = (fold.finish(_merged(fold, each.values())) for each in (states, alike))
    of_sums = [figure for figure in figures if _same(figure.among(whole)[0], figure.among(summed)[0])]
    others = [figure for figure in figures if figure not in of_sums]
    without: dict[str, Mapping[str, float | None] | None] = {}
    if len(cells) < 2:
        without = {figure.path: {} for figure in figures}
    else:
        without |= _without_each(of_sums, fold, alike) if of_sums else {}
        without |= _without_cells(others, fold, states, cells) if others else {}
    return [FigureSide(*figure.among(whole), cells, without[figure.path]) for figure in figures]


def _same(value: float | None, summed: float | None) -> bool:
    if value is None or summed is None:
        return value is summed
    return math.isclose(value, summed, rel_tol=_NOTHING, abs_tol=_NOTHING)


def _merged(fold: Aggregator[Any], states: Iterable[Any]) -> Any:
    found = fold.start()
    for state in states:
        found = fold.merge(found, state)
    return found


def _without_each(
    figures: Sequence[Figure], fold: Aggregator[Any], states: Mapping[str, Any]
) -> dict[str, dict[str, float | None]]:
    """Return figures by path without each of some states: of those before it and those after it."""
    after = [fold.start()]
    for state in reversed(list(states.values())):
        after.append(fold.merge(fold.merge(fold.start(), state), after[-1]))
    before = fold.start()
    found: dict[str, dict[str, float | None]] = {figure.path: {} for figure in figures}
    for task, state in states.items():
        after.pop()
        rest = fold.finish(fold.merge(copy.deepcopy(before), after[-1]))
        for figure in figures:
            found[figure.path][task] = figure.among(rest)[0]
        before = fold.merge(before, state)
    return found


def _without_cells(
    figures: Sequence[Figure], fold: Aggregator[Any], states: Mapping[str, Any], cells: Mapping[str, str]
) -> dict[str, dict[str, float | None] | None]:
    """Return figures by path without each of some states, those of equal cells once; None where that takes too long."""
    one = {cell: task for task, cell in cells.items()}
    if len(one) * len(cells) > _WORK:
        return dict.fromkeys((figure.path for figure in figures), None)
    rests = {
        cell: fold.finish(_merged(fold, [each for name, each in states.items() if name != task]))
        for cell, task in one.items()
    }
    found: dict[str, dict[str, float | None] | None] = {}
    for figure in figures:
        values = {cell: figure.among(rest)[0] for cell, rest in rests.items()}
        found[figure.path] = {task: values[cell] for task, cell in cells.items()}
    return found


def _graded(side: Side, figure: Figure) -> Iterator[tuple[str, Key, Grade]]:
    """Yield task, key and grade of the samples of a side.

    Raises:
        DataError: A row is not that of a run.
    """
    fold, of = figure.folds[side.name], figure.grader
    keys = {of, *getattr(fold, "raters", ())}
    for ordinal, row in enumerate(side.report.rows()):
        if (row.get("model_name") or "") != side.model:
            continue
        try:
            columns = {key: (grade_from_json(row["grades"][key]),) for key in keys if key in row["grades"]}
            (grade,) = fold.together(of, columns)
            yield task_of(row, side.match, side.name), key_from_row(row, ordinal), grade
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{side.name}: row {ordinal + 1} of its results.jsonl is not that of a run: {error!r}"
            raise DataError(msg) from error
