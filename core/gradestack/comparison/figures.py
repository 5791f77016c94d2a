"""Figures of two sides over the tasks that both have.

Means of scores, rates of passing, and what is neither.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gradestack.api import Aggregator, declared_figure, direction_of
from gradestack.comparison.paired import Difference, difference, mean_of
from gradestack.comparison.sides import Failed, Side, differing_parts
from gradestack.copies.files import folder_of_runs
from gradestack.errors import ConfigError, DataError, PluginError, error_text, suggest
from gradestack.estimates import Grades
from gradestack.gates.rules import NoFigure, figure_at, number_at, split_path
from gradestack.grading.metrics import (
    figures_of,
    grades_of,
    has_sums,
    leave_one_out,
    makes_task_contributions,
    task_contribution,
    task_defaults,
)
from gradestack.grading.plan import Metric
from gradestack.jsonio.values import as_list, as_map, as_text, is_number
from gradestack.model import Outcome
from gradestack.registry import Registry
from gradestack.report import Report
from gradestack.suites.code import InFile, with_files

_NOTHING = 1e-9  # share of a figure up to which a task's difference is rounding
_SAME_MEAN = 1e-12  # share of a task's mean up to which another is the same
_FAMILY = 8  # the most figures of a family by k, or by class, that are compared unasked
# tasks looked at, at most, to leave out each where a figure is not made of sums over tasks
_WORK = 1_000_000
_NO_SUMS = "it is not made of sums over tasks, and there are too many tasks to leave out each"


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of two sides, over the tasks that both have a score of."""

    tasks: Sequence[str]
    only: tuple[Sequence[str], Sequence[str]]  # tasks that one side alone has
    a: float | None
    b: float | None
    gaps: Sequence[float] = ()
    """How far each task is apart: its means, or of a figure that is no mean its pseudo-values."""
    gap: float | None = None  # between two figures that are no means
    share: bool
    moved: int = 0  # tasks of a figure that is no mean that changed
    reason: str = ""  # why such a figure has no gaps

    def difference(self, confidence: float) -> Difference:
        """Return how far the figures are apart."""
        if self.reason:
            return Difference(difference=self.gap, tasks=len(self.tasks), reason=self.reason)
        return difference(self.gaps, confidence=confidence, bounded=self.share, value=self.gap)


def mean_pair(a: Side, b: Side, key: str, failed: Failed, *, rate: bool = False) -> Pair:
    """Return the mean scores of a grader, or its rates of passing."""
    before, after = a.means(key, failed, rate=rate), b.means(key, failed, rate=rate)
    return pair_means(before, after, share=rate or (a.is_share(key) and b.is_share(key)))


def pair_means(before: Mapping[str, float], after: Mapping[str, float], *, share: bool) -> Pair:
    """Return the means of tasks over those that both sides have.

    Args:
        before: Task -> mean on the first side.
        after: Task -> mean on the second side.
        share: Whether they lie in [0, 1] by what is known of them; those beyond are none.
    """
    tasks = [task for task in before if task in after]
    lefts, rights = [before[task] for task in tasks], [after[task] for task in tasks]
    values = [*before.values(), *after.values()]
    return Pair(
        tasks=tasks,
        only=(
            [task for task in before if task not in after],
            [task for task in after if task not in before],
        ),
        a=mean_of(lefts) if tasks else None,
        b=mean_of(rights) if tasks else None,
        gaps=[_subtract(left, right) for left, right in zip(lefts, rights, strict=True)],
        share=share and all(0 <= value <= 1 for value in values),
    )


def _subtract(before: float, after: float) -> float:
    """Return how far a task's mean rose; 0 where that is the rounding of its trials' sum."""
    return 0.0 if math.isclose(before, after, rel_tol=_SAME_MEAN) else after - before


class Figure(msgspec.Struct, frozen=True, eq=False):
    """A figure that is no mean of scores, by its path.

    F1, rates over calls, overall scores of a family.
    """

    path: str
    grader: str
    metric: str
    rest: str  # the whole path below the metric
    declared: Mapping[
        str, Any
    ]  # label, unit, and which direction is better, as the aggregator of the first side says
    untested: str = ""
    """Why it has no test, whatever its tasks say."""

    def of(self, made: Mapping[str, Any]) -> tuple[float | None, bool]:
        """Return the figure of what the aggregator made of some of the tasks, and whether it is a
        share.

        Among them there may be nothing at the path: it is undefined then.
        """
        try:
            value, interval = number_at(made, self.rest, (), "")
        except NoFigure:
            return None, True
        return value, (interval or {}).get("method") not in ("t", "skewed_t") and (
            value is None or 0 <= value <= 1
        )


def _headline(report: Report) -> list[Mapping[str, Any]]:
    return [as_map(each) for each in as_list(as_map(report.summary.get("headline")).get("figures"))]


def headline_labels(report: Report) -> dict[str, str]:
    """Return what the figures of a run's headline are called, by their paths."""
    return {as_text(each.get("figure")): as_text(each.get("label")) for each in _headline(report)}


def headline_paths(report: Report) -> list[str]:
    """Return the paths of the headline's figures in its order, of a map those of its figures."""
    paths = []
    for figure in _headline(report):
        path, value = as_text(figure.get("figure")), figure.get("value")
        if "corrects" in figure and value is None:  # uncalibrated
            continue
        if value is None or is_number(value):
            paths.append(path)
        elif isinstance(value, Mapping) and len(value) <= _FAMILY:
            paths += [f"{path}.{name}" for name in value]
    return paths


def headline_figures(report: Report) -> list[str]:
    """Return the paths of the headline's figures that are no means of scores."""
    paths = []
    for path in headline_paths(report):
        entry = _entry(report, *split_path(path, report.aggregates)[:2])
        if entry and entry["name"] != "mean":
            paths.append(path)
    return paths


def _entry(report: Report, grader: str, metric: str) -> Mapping[str, Any] | None:
    entries = (
        each
        for each in report.header.get("components", ())
        if each["kind"] == "aggregator"
        and each["key"] == metric
        and each.get("of") in (None, grader)
    )
    return next(entries, None) if metric in report.aggregates.get(grader, {}) else None


class Aggregators(msgspec.Struct, frozen=True):
    """Aggregators of finished runs, made again from what their headers say."""

    registry: Registry
    allow_code: bool = False

    def metric(self, report: Report, name: str, path: str) -> Metric:
        """Return the metric a path leads to."""
        from gradestack.suites.components import Resolver  # noqa: PLC0415

        # imports yaml, which printing does without
        from gradestack.suites.document import Document  # noqa: PLC0415

        grader, key, _ = split_path(path, report.aggregates)
        if not key:
            known = [
                f"{each}.{metric}"
                for each, metrics in report.aggregates.items()
                for metric in metrics
            ]
            hint = suggest(path, known)
            raise ConfigError(
                f"{name} has no figure {path!r}{hint}; its aggregators: {', '.join(known)}"
            )
        if (entry := _entry(report, grader, key)) is None:
            raise ConfigError(f"{path}: {name} has no such aggregator")
        registry, kind = self.registry, str(entry["name"])
        if entry.get("code"):
            file, reference = self._file(report, entry, path), InFile.parse(kind)
            if reference is None:
                registry = with_files(registry, [str(file)], allow_code=True)
            else:
                kind = f"{file}:{reference.name}"
        folder = folder_of_runs(is_open=self.allow_code)
        resolver = Resolver(
            Document(data={}, origin=path), registry, folder, allow_code=self.allow_code
        )
        options = {"kind": kind, **entry.get("options", {})}
        stage = resolver.stage(
            "aggregator", str(entry["key"]), options, ("metrics", str(entry["key"]))
        )
        if (
            stage is None
            or stage.version != entry.get("version")
            or stage.code != entry.get("code", stage.code)
        ):
            resolver.finish()
            raise ConfigError(
                f"{path}: the aggregator {entry['name']} is no longer that of the run of {name}"
            )
        return with_labels(Metric(of=grader, stage=stage), report.aggregates[grader])

    def metrics(self, report: Report, name: str, paths: Iterable[str]) -> list[Metric]:
        """Return the metrics that figures of a run are computed with, as far as there are any."""
        found: dict[str, Metric] = {}
        for path in paths:
            with contextlib.suppress(ConfigError):  # said where it is asked for
                metric = self.metric(report, name, path)
                found.setdefault(metric.name, metric)
        return list(found.values())

    def _file(self, report: Report, entry: Mapping[str, Any], path: str) -> Path:
        reference, code = InFile.parse(str(entry["name"])), as_map(entry["code"])
        name = reference.file if reference is not None else next(iter(code))
        if not self.allow_code:
            fix = f"pass --allow-code if you trust {name}, which the run used"
            raise ConfigError(f"{path}: {entry['name']} is Python code; {fix}")
        for each in map(as_map, as_list(report.header.get("code"))):
            if Path(as_text(each.get("path"))).name == name and each.get("sha256") == code.get(
                name
            ):
                return Path(as_text(each["path"]))
        raise ConfigError(f"{path}: header.json has no place of {name} is")


def with_labels(metric: Metric, made: Mapping[str, Any]) -> Metric:
    """Return a metric whose classes are those that a run had.

    A class without a task stays a class.
    """
    stage, labels = metric.stage, as_map(made.get(metric.stage.key)).get("labels")
    if (
        not (isinstance(labels, list) and labels)
        or getattr(stage.component, "labels", labels) is not None
    ):
        return metric
    component = attrs.evolve(stage.component, labels=tuple(labels))
    return Metric(of=metric.of, stage=msgspec.structs.replace(stage, component=component))


def figure_of(path: str, sides: Sequence[Side], aggregators: Aggregators) -> Figure:
    """Return the figure at a path, which is the same on all sides."""
    first = sides[0]
    grader, metric, below = split_path(path, first.report.aggregates)
    metrics = [
        side.metrics.get((grader, metric)) or aggregators.metric(side.report, side.name, path)
        for side in sides
    ]
    entry = _entry(first.report, grader, metric) or {}
    kind = as_text(entry.get("name"))
    for side in sides:
        if (other := _entry(side.report, grader, metric)) is None:
            raise ConfigError(f"{path}: {side.name} has no such aggregator")
        if parts := differing_parts(other, entry):
            raise DataError(
                f"{path}: the aggregators of {first.name} and {side.name} differ in "
                f"{', '.join(parts)}"
            )
    where = (
        as_map(first.report.aggregates[grader][metric]),
        below,
        (metric, kind),
        f"{grader}.{metric}",
    )
    try:
        _, interval = number_at(*where)
    except NoFigure as error:
        raise NoFigure(f"{path}: {error}") from error
    is_quantile = as_map(interval).get("reason") == "quantile"
    untested = "a quantile has no test" if is_quantile else ""
    declared = declared_figure(metrics[0].stage.component.figures, metric, below, kind)
    said = {"label": path, "unit": "score", "better_is": "neither"}
    if declared is not None:
        better = direction_of(declared, kind, first.declared(grader)["better_is"])
        said = {"label": declared.label, "unit": declared.unit, "better_is": better}
    return Figure(path, grader, metric, figure_at(*where).path, said, untested)


class _OfSide(msgspec.Struct, frozen=True):
    """A figure of one side, over all tasks that both have."""

    value: float | None
    share: bool
    cells: Mapping[str, Any]  # task -> what it adds
    left: Mapping[str, float | None] | None
    """Task -> the figure without it; a task that adds nothing is left out.

    None where that takes too long.
    """


def figure_pairs(figures: Iterable[Figure], a: Side, b: Side, failed: Failed) -> dict[str, Pair]:
    """Return figures of two sides by their paths; those of one aggregator are computed together."""
    together: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        together.setdefault((figure.grader, figure.metric), []).append(figure)
    found: dict[str, Pair] = {}
    for (grader, metric), several in together.items():
        means = mean_pair(a, b, grader, failed)
        try:
            sides = [_of_side(side, several, means.tasks, failed) for side in (a, b)]
        except (Exception, SystemExit, GeneratorExit) as error:
            raise PluginError(f"{grader}.{metric}: {error_text(error)}") from error
        for figure, before, after in zip(several, *sides, strict=True):
            pair = _pair(means, before, after)
            if figure.untested:
                pair = msgspec.structs.replace(pair, gaps=[], moved=0, reason=figure.untested)
            found[figure.path] = pair
    return found


def _pair(means: Pair, a: _OfSide, b: _OfSide) -> Pair:
    """Return a figure of two sides; a task differs by the difference of its pseudo-values."""
    tasks = means.tasks
    share = a.share and b.share
    pair = msgspec.structs.replace(means, a=a.value, b=b.value, gap=None, gaps=[], share=share)
    if a.value is None or b.value is None:
        reason = "undefined on one side" if tasks else "no task in common"
        return msgspec.structs.replace(pair, reason=reason)
    pair = msgspec.structs.replace(pair, gap=b.value - a.value)
    if a.left is None or b.left is None:
        return msgspec.structs.replace(pair, reason=_NO_SUMS)
    gaps = []
    nothing = _NOTHING * (1.0 if share else max(abs(a.value), abs(b.value)))
    for task in tasks:
        left, right = a.left.get(task, a.value), b.left.get(task, b.value)
        if len(tasks) > 1 and (left is None or right is None):
            return msgspec.structs.replace(pair, reason="undefined without some task")
        before = _pseudo_value(a.value, left, len(tasks))
        after = _pseudo_value(b.value, right, len(tasks))
        gap = after - before
        gaps.append(0.0 if abs(gap) < nothing else gap)
    moved = 0
    for task, gap in zip(tasks, gaps, strict=True):
        moved += bool(gap) and a.cells.get(task) != b.cells.get(task)
    return msgspec.structs.replace(pair, gaps=gaps, moved=moved)


def _pseudo_value(figure: float, without: float | None, tasks: int) -> float:
    return tasks * figure - (tasks - 1) * (without or 0.0)


def _of_side(
    side: Side, figures: Sequence[Figure], tasks: Sequence[str], failed: Failed
) -> list[_OfSide]:
    """Return figures of one aggregator, of a side's samples of some tasks."""
    aggregator, grades, rows = _grades_of_tasks(side, figures[0], tasks, failed)
    made, without = figures_of(aggregator, grades), _without(figures, aggregator, grades, rows)
    return [_OfSide(*each.of(made), *without[each]) for each in figures]


def _grades_of_tasks(
    side: Side, figure: Figure, tasks: Sequence[str], failed: Failed
) -> tuple[Aggregator, Grades, dict[str, list[int]]]:
    """Return the aggregator of a figure, the grades it is made of, and the rows of each task."""
    grader, table = figure.grader, side.samples.table
    metric = side.metrics[grader, figure.metric]
    if metric.name in side.samples.broken:
        raise ValueError(side.samples.broken[metric.name])
    distinct, codes = table.grades(grader), table.verdicts[grader].codes
    counts = [failed == "zero" or grade.outcome is Outcome.GRADED for grade in distinct]
    rows = {task: [row for row in side.tasks[task] if counts[codes[row]]] for task in tasks}
    chosen = array("I", sorted(row for of_task in rows.values() for row in of_task))
    aggregator: Aggregator = metric.stage.component
    return aggregator, grades_of(aggregator, table, grader, metric.name, chosen), rows


def figure_over(figure: Figure, side: Side, tasks: Sequence[str], failed: Failed) -> float | None:
    """Return a figure of some tasks of a side; None where it is not defined."""
    aggregator, grades, _ = _grades_of_tasks(side, figure, tasks, failed)
    return figure.of(figures_of(aggregator, grades))[0]


def _without(
    figures: Sequence[Figure],
    aggregator: Aggregator,
    grades: Grades,
    rows: Mapping[str, Sequence[int]],
) -> dict[Figure, tuple[Mapping[str, Any], Mapping[str, float | None] | None]]:
    """Return what tasks add, and figures without each.

    Estimates of sums at once, others computed anew for each.
    """
    found: dict[Figure, Any] = {}
    if has_sums(aggregator):
        known = task_defaults(aggregator, grades)
        cells = {
            task: task_contribution(aggregator, numbers, known)
            for task, numbers in grades.numbers_by_task().items()
        }
        counts = Counter(cells.values())
        names = () if makes_task_contributions(aggregator) else grades.names
        whole, left = leave_one_out(aggregator, list(counts), list(counts.values()), names)
        paths, rest = {".".join(path): path for path in whole}, dict(zip(counts, left, strict=True))
        for each in figures:
            if (path := paths.get(each.rest)) is not None:
                found[each] = cells, {task: rest[cell].get(path) for task, cell in cells.items()}
    if others := [each for each in figures if each not in found]:
        seen = _seen(aggregator, grades, rows)
        distinct = {cell: {*rows[task]} for task, cell in seen.items()}
        made = {}
        if few := len(distinct) * len(rows) <= _WORK:
            for cell, out in distinct.items() if len(seen) > 1 else ():
                some = grades.within(array("I", [row for row in grades.rows if row not in out]))
                made[cell] = figures_of(aggregator, some)
        for each in others:
            values = {cell: each.of(of)[0] for cell, of in made.items()}
            found[each] = (
                seen,
                {task: values.get(cell) for task, cell in seen.items()} if few else None,
            )
    return found


def _seen(
    aggregator: Aggregator, grades: Grades, rows: Mapping[str, Sequence[int]]
) -> dict[str, tuple[bytes, ...]]:
    """Return task -> all that an aggregator may see of its samples.

    Equal ones are equal on both sides.
    """
    table, keys = grades.table, sorted({grades.key, *getattr(aggregator, "raters", ())})
    columns = [table.keys["facets"], *(table.verdicts[key] for key in keys)]
    return {
        task: tuple([column.values[column.codes[row]] for row in of_task for column in columns])
        for task, of_task in rows.items()
    }
