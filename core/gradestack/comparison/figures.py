"""Figures that are no means of scores, compared: F1, rates over calls, overall scores of a family.

They are computed again from the rows of both sides, over the tasks that both have, and once more without each of these
tasks. With D the difference over all T tasks and D(-t) that without task t, ``T D - (T - 1) D(-t)`` stands for the
difference of task t: of a mean over tasks it is just that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack.api import Aggregator
from gradestack.comparison.paired import Difference, difference
from gradestack.comparison.sides import Failed, Side, differing_parts, task_means, task_of
from gradestack.errors import ConfigError, DataError, suggest
from gradestack.estimates.grades import Grades
from gradestack.gates.paths import NoFigure, beside, figure_at
from gradestack.grading.metrics import (
    Path,
    figures_of,
    grades_of,
    has_numbers,
    known_of,
    leave_one_out,
    nested,
    of_task,
    wanted,
)
from gradestack.grading.plan import Metric
from gradestack.jsonio.values import as_list, as_map, as_text
from gradestack.model import Grade, Key, Outcome, replace
from gradestack.registry import Registry
from gradestack.rows.read import grade_from_json, key_from_row
from gradestack.suites.document import Document
from gradestack.suites.headline import split_path
from gradestack.suites.references import Resolver
from gradestack.table import Table

_WORK = 200_000
"""Tasks looked at, at most, to leave out each where a figure is no estimate of sums."""
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
    metrics: Mapping[str, Metric]
    """Name of the side -> its aggregator."""

    def of(self, found: Mapping[str, Any]) -> tuple[float | None, bool]:
        """Return the figure of what the aggregator computed, and whether it is a share."""
        held, path = {self.grader: {self.metric: found}}, (self.grader, self.metric, *self.rest)
        value, sure = figure_at(held, path, self.metric), beside(held, path, self.metric) or {}
        return value, sure.get("method") != "t" and (value is None or 0 <= value <= 1)

    @property
    def declared(self) -> dict[str, Any]:
        """What the aggregator says of it: label, unit, and which direction is better."""
        figures = next(iter(self.metrics.values())).stage.component.figures
        names = (".".join(self.rest), ".".join((self.metric, *self.rest)), self.metric)
        found = next((each for name in names for each in figures if each.covers(name)), None)
        if found is None:
            return {"label": self.path, "unit": "score", "better_is": "neither"}
        return {"label": found.label, "unit": found.unit, "better_is": found.better}

    def among(self, found: Mapping[str, Any]) -> tuple[float | None, bool]:
        """Return the same of some of the tasks, among which there may be nothing at the path: it is undefined then."""
        try:
            return self.of(found)
        except NoFigure:
            return None, True

    def path_in(self, estimates: Mapping[Path, float | None]) -> bool:
        """Return whether it is among the estimates of a metric's sums."""
        try:
            self.of(nested(estimates))
        except NoFigure:
            return False
        return True


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
    of_sides = {side.name: _metric(side, grader, entries[side.name] or {}, registry, path) for side in sides}
    found = Figure(path, grader, metric, tuple(below.split(".")) if below else (), of_sides)
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


def _metric(side: Side, grader: str, entry: Mapping[str, Any], registry: Registry, path: str) -> Metric:
    resolver = Resolver(Document(data={}, origin=path), registry, None)
    resolver.profile = side.report.header.get("profile", "documented")
    options = {"kind": entry["name"], **entry["options"]}
    stage = resolver.stage("aggregator", str(entry["key"]), options, ("metrics", str(entry["key"])))
    if stage is None or stage.version != entry["version"]:
        resolver.finish()
        msg = f"{path}: the aggregator {entry['name']} is no longer that of the run of {side.name}"
        raise ConfigError(msg)
    labels = as_map(side.report.aggregates[grader].get(entry["key"])).get("labels")
    if isinstance(labels, list) and getattr(stage.component, "labels", labels) is None:
        stage = attrs.evolve(stage, component=attrs.evolve(stage.component, labels=tuple(labels)))
    return Metric(of=grader, stage=stage)  # a class without a task stays a class


@attrs.frozen
class FigureSide:
    """A figure of one side: over all tasks, and without each."""

    value: float | None
    share: bool
    cells: Mapping[str, Any]
    """Task -> what it adds."""
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
    """Return figures of two sides by their paths; those of one aggregator are computed together.

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
        sides = (_sides(side, several, tasks, failed) for side in (a, b))
        for figure, before, after in zip(several, *sides, strict=True):
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


def _sides(side: Side, figures: Sequence[Figure], tasks: Iterable[str], failed: Failed) -> list[FigureSide]:
    """Return figures of one aggregator on one side, over some of its tasks."""
    metric, within = figures[0].metrics[side.name], set(tasks)
    aggregator: Aggregator = metric.stage.component
    keys, grades = _graded(side, figures[0], within, failed)
    table = Table.of(wanted(grades, [metric]), keys, grades)
    rows = grades_of(aggregator, table, metric.of, metric.name)
    everything = figures_of(aggregator, rows)
    found, others = {}, list(figures)
    if has_numbers(aggregator):
        known = known_of(aggregator, rows)
        cells = {task: of_task(aggregator, numbers, known) for task, numbers in rows.numbers_by_task().items()}
        counts = Counter(cells.values())
        whole, left = leave_one_out(aggregator, list(counts), list(counts.values()))
        without = dict(zip(counts, map(nested, left), strict=True))
        for figure in [each for each in figures if each.path_in(whole)]:
            others.remove(figure)
            values = {cell: figure.among(rest)[0] for cell, rest in without.items()}
            left_out = {task: values[cell] for task, cell in cells.items()}
            found[figure.path] = FigureSide(*figure.among(everything), cells, left_out)
    if others:
        codes, rests = _recomputed(aggregator, rows, keys)
        for figure in others:
            of_code = {code: figure.among(rest)[0] for code, rest in (rests or {}).items()}
            each = None if rests is None else {task: of_code.get(code) for task, code in codes.items()}
            found[figure.path] = FigureSide(*figure.among(everything), codes, each)
    return [found[figure.path] for figure in figures]


def _recomputed(
    aggregator: Aggregator, rows: Grades, keys: Sequence[Key]
) -> tuple[dict[str, tuple[int, ...]], dict[tuple[int, ...], dict[str, Any]] | None]:
    """Return task -> its verdicts, and verdicts -> all figures without a task that has them; None where too many."""
    by_task: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        by_task.setdefault(key.id, []).append(row)
    verdicts = rows.table.verdicts[rows.key].codes
    codes = {task: tuple([verdicts[row] for row in of]) for task, of in by_task.items()}
    one = {code: task for task, code in codes.items()}
    if len(one) * len(codes) > _WORK:
        return codes, None
    rests = {
        code: figures_of(aggregator, rows.within([row for row, key in enumerate(keys) if key.id != task]))
        for code, task in (one.items() if len(codes) > 1 else ())
    }
    return codes, rests


def _graded(
    side: Side, figure: Figure, within: Container[str], failed: Failed
) -> tuple[list[Key], dict[str, list[Grade]]]:
    """Return keys and grades of the samples of some tasks; their ids are what compare calls the tasks.

    Raises:
        DataError: A row is not that of a run.
    """
    aggregator, of = figure.metrics[side.name].stage.component, figure.grader
    names = dict.fromkeys((of, *getattr(aggregator, "raters", ())))
    keys: list[Key] = []
    grades: dict[str, list[Grade]] = {name: [] for name in names}
    for ordinal, row in enumerate(side.report.rows()):
        if (row.get("model_name") or "") != side.model or (task := task_of(row, side.match, side.name)) not in within:
            continue
        try:
            made = {name: grade_from_json(row["grades"][name]) for name in names}
            key = replace(key_from_row(row, ordinal), id=task, cluster=None)
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{side.name}: row {ordinal + 1} of its results.jsonl is not that of a run: {error!r}"
            raise DataError(msg) from error
        if failed == "zero" or made[of].outcome is Outcome.GRADED:
            keys.append(key)
            for name, grade in made.items():
                grades[name].append(grade)
    return keys, grades
