"""Figures of two sides over the tasks that both have.

Means of scores, rates of passing, and what is neither.
"""

from __future__ import annotations

import math
import operator
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gradestack.aggregator import Aggregator
from gradestack.comparison.paired import Difference, difference, mean_of
from gradestack.comparison.problems import differing_parts
from gradestack.comparison.sides import Failed, Side
from gradestack.copies.files import folder_of_runs
from gradestack.declared import Declarations
from gradestack.errors import ConfigError, DataError, PluginError, error_text, suggest
from gradestack.gates.paths import NoFigure, number_at, split_path
from gradestack.grades import Grades
from gradestack.grading.plan import Metric
from gradestack.jsonio.values import as_list, as_map, as_text, is_number
from gradestack.metrics.computed import compute_figures, select_grades
from gradestack.metrics.over_tasks import (
    leave_one_out,
    makes_task_contributions,
    task_contribution,
    task_defaults,
)
from gradestack.model import Outcome, replace
from gradestack.registry import Registry
from gradestack.report import Report
from gradestack.suites.code import InFile, with_files

Fields = Mapping[str, Any]
_NOTHING = 1e-9  # share of a figure up to which a task's difference is rounding
_SAME_MEAN = 1e-12  # share of a task's mean up to which another is the same
_BY_K = {
    "pass^k": "{word} in all {k} trials (pass^{k})",
    "pass@k": "{word} in at least one of {k} trials (pass@{k})",
}
"""Label of a figure by k -> label of one of them."""
_FAMILY = 8  # the most figures of a family by k, or by class, that are compared unasked
# tasks looked at, at most, to leave out each where a figure is not made of sums over tasks
_WORK = 1_000_000
_NO_SUMS = "it is not made of sums over tasks, and there are too many tasks to leave out each"


class Pair(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A figure of two sides, over the tasks that both have a score of.

    Attributes:
        tasks: These tasks.
        only: Tasks that one side alone has.
        a: The figure of the first side.
        b: The figure of the second side.
        is_share: Whether it lies in [0, 1].
        gaps: How far each task is apart: its means, or of a figure that is no mean its
            pseudo-values.
        gap: How far two figures are apart that are no means.
        reason: Why such a figure has no gaps.
    """

    tasks: Sequence[str]
    only: tuple[Sequence[str], Sequence[str]]
    a: float | None
    b: float | None
    is_share: bool
    gaps: Sequence[float] = ()
    gap: float | None = None
    reason: str = ""

    def difference(self) -> Difference:
        """Test the distance between the figures."""
        if self.reason:
            tasks = len(self.tasks)
            return Difference(difference=self.gap, tasks=tasks, reason=self.reason)
        limit = 1.0 if self.is_share else sys.float_info.max
        return difference(self.gaps, value=self.gap, limit=limit)


def mean_pair(a: Side, b: Side, key: str, failed: Failed, *, rate: bool = False) -> Pair:
    """Return the mean scores of a grader, or its rates of passing."""
    before = a.means(key, failed, rate=rate)
    after = b.means(key, failed, rate=rate)
    is_share = rate or (a.is_share(key) and b.is_share(key))
    return pair_means(before, after, is_share=is_share)


def pair_means(before: Mapping[str, float], after: Mapping[str, float], *, is_share: bool) -> Pair:
    """Compute the means of two sides over the tasks that both have, and the gaps between them.

    Args:
        before: Task -> mean on the first side.
        after: Task -> mean on the second side.
        is_share: Whether they lie in [0, 1] by what is known of them; those beyond are none.
    """
    tasks = [task for task in before if task in after]
    only_before = [task for task in before if task not in after]
    only_after = [task for task in after if task not in before]
    values_a = [before[task] for task in tasks]
    values_b = [after[task] for task in tasks]
    a = mean_of(values_a) if tasks else None
    b = mean_of(values_b) if tasks else None
    values = [*before.values(), *after.values()]
    is_share = is_share and all(0 <= value <= 1 for value in values)
    only = (only_before, only_after)
    gaps = [*map(_subtract, values_a, values_b)]
    return Pair(tasks=tasks, only=only, a=a, b=b, gaps=gaps, is_share=is_share)


def _subtract(before: float, after: float) -> float:
    """Return the rise of a task's mean; 0 where that is the rounding of its trials' sum."""
    is_same = math.isclose(before, after, rel_tol=_SAME_MEAN)
    return 0.0 if is_same else after - before


class Figure(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A figure that is no mean of scores, by its path.

    F1, rates over calls, overall scores of a family.

    Attributes:
        path: Its path as it was named.
        grader: Key of its grader.
        metric: Key of its aggregator.
        rest: The whole path below the aggregator.
        declared: Path, label, unit, and which values are better.
        untested: Why it has no test, whatever its tasks say.
    """

    path: str
    grader: str
    metric: str
    rest: str
    declared: Fields
    untested: str

    def value_in(self, figures: Fields) -> tuple[float | None, bool]:
        """Find this figure among those of some tasks.

        Returns:
            Its value, None where there is none at its path; and whether it is a share, which lies
            between 0 and 1.
        """
        try:
            value, _, _, interval = number_at(figures, self.rest, (), "")
        except NoFigure:
            return None, True
        method = as_map(interval).get("method")
        in_range = value is None or 0 <= value <= 1
        return value, in_range and method not in ("t", "skewed_t")


def _headline(report: Report) -> dict[str, Fields]:
    """Return the figures of a run's headline by their paths."""
    headline = as_map(report.summary.get("headline"))
    figures = [as_map(figure) for figure in as_list(headline.get("figures"))]
    return {as_text(figure.get("figure")): figure for figure in figures}


def headline_label(report: Report, path: str) -> str:
    """Return the headline's label of the figure at a path, or of one of a family; else ""."""
    headline = _headline(report).items()
    labels = {known: figure.get("label") for known, figure in headline}
    family, _, name = path.rpartition(".")
    if path in labels or family not in labels:
        return as_text(labels.get(path))
    label = as_text(labels[family])
    if label in _BY_K:
        word = word_for_passed(report)
        return _BY_K[label].format(word=word, k=name)
    return f"{label} {name}"


def word_for_passed(report: Report) -> str:
    """Return the word of a run's outcome for what passed, with a capital."""
    outcome = as_map(report.summary.get("outcome"))
    words = as_map(outcome.get("words"))
    passed = words.get("passed")
    word = as_text(passed) or "passed"
    return word.capitalize()


def headline_paths(report: Report) -> list[str]:
    """Return the paths of the headline's figures in its order; for a map, those of its members."""
    paths = []
    for path, figure in _headline(report).items():
        value = figure.get("value")
        is_uncalibrated = value is None and "corrects" in figure
        if isinstance(value, Mapping) and len(value) <= _FAMILY:
            paths += [f"{path}.{name}" for name in value]
        elif is_number(value) or (value is None and not is_uncalibrated):
            paths.append(path)
    return paths


def headline_figures(report: Report) -> list[str]:
    """Return the paths of the headline's figures that are no means of scores."""
    paths = []
    for path in headline_paths(report):
        entry = _find_entry(report, path)
        if entry is not None and entry["name"] != "mean":
            paths.append(path)
    return paths


def _find_entry(report: Report, path: str) -> Fields | None:
    """Return the entry in header.json of the aggregator that a path leads to."""
    grader, metric, _ = split_path(path, report.aggregates)
    for entry in report.header.get("components", ()):
        if (entry["kind"], entry["key"]) != ("aggregator", metric):
            continue
        if entry.get("of") in (None, grader):
            return as_map(entry)
    return None


def _entry_of(report: Report, name: str, path: str) -> Fields:
    """Return the summary entry of the figure at a path; refuse paths that do not exist."""
    entry = _find_entry(report, path)
    if entry is None:
        known = []
        for grader, metrics in report.aggregates.items():
            known += [f"{grader}.{metric}" for metric in metrics]
        hint = suggest(path, known)
        names = ", ".join(known)
        raise ConfigError(f"{name} has no figure {path!r}{hint}; its aggregators: {names}")
    return entry


class Aggregators(msgspec.Struct, frozen=True):
    """Aggregators of finished runs, made again from what their headers say."""

    registry: Registry
    allow_code: bool = False

    def metric(self, report: Report, name: str, path: str) -> Metric:
        """Return the metric a path leads to."""
        from gradestack.suites.components import Resolver  # noqa: PLC0415

        # imports yaml, which printing does without
        from gradestack.suites.document import Document  # noqa: PLC0415

        entry = _entry_of(report, name, path)
        grader, key, _ = split_path(path, report.aggregates)
        registry, kind = self._find_code(report, entry, path)
        folder = folder_of_runs(is_open=self.allow_code)
        document = Document(data={}, origin=path)
        resolver = Resolver(document, registry, folder, allow_code=self.allow_code)
        options = {"kind": kind, **entry.get("options", {})}
        stage = resolver.stage("aggregator", key, options, ("metrics", key))
        resolver.finish()
        is_same = stage is not None and stage.version == entry.get("version")
        if stage is None or not is_same or stage.code != as_map(entry.get("code")):
            changed = f"the aggregator {entry['name']} is no longer that of the run of {name}"
            raise ConfigError(f"{path}: {changed}")
        metric = Metric(of=grader, stage=stage)
        return with_labels(metric, report.aggregates[grader])

    def _find_code(self, report: Report, entry: Fields, path: str) -> tuple[Registry, str]:
        """Return where an aggregator is registered, and its name or file there."""
        kind = str(entry["name"])
        code = as_map(entry.get("code"))
        if not code:
            return self.registry, kind
        reference = InFile.parse(kind)
        file = next(iter(code)) if reference is None else reference.file
        if not self.allow_code:
            fix = f"pass --allow-code if you trust {file}, which the run used"
            raise ConfigError(f"{path}: {kind} is Python code; {fix}")
        paths = [used["path"] for used in report.header["code"]]
        by_name = {Path(used).name: used for used in paths}
        if reference is None:
            files = [by_name[file]]
            return with_files(self.registry, files, allow_code=True), kind
        return self.registry, f"{by_name[file]}:{reference.name}"

    def metrics(
        self, report: Report, name: str, figures: Sequence[str] | None = None
    ) -> list[Metric]:
        """Return the metrics of a run, or of named figures, as far as they can be made again."""
        if figures is None:
            aggregates = report.aggregates.items()
            paths = [f"{key}.{metric}" for key, of in aggregates for metric in of]
        else:
            parts = [split_path(path, report.aggregates) for path in figures]
            paths = [f"{grader}.{metric}" for grader, metric, _ in dict.fromkeys(parts)]
        metrics = {}
        for path in paths:
            with suppress(ConfigError):  # said where a figure of it is asked for
                metrics[path] = self.metric(report, name, path)
        return [*metrics.values()]


def with_labels(metric: Metric, made: Fields) -> Metric:
    """Return a metric whose classes are those that a run had.

    A class without a task stays a class.
    """
    stage = metric.stage
    figures = as_map(made.get(stage.key))
    labels = as_list(figures.get("labels"))
    if not labels or getattr(stage.component, "labels", labels) is not None:
        return metric
    component = attrs.evolve(stage.component, labels=tuple(labels))
    return Metric(of=metric.of, stage=replace(stage, component=component))


def figure_of(path: str, sides: Sequence[Side], aggregators: Aggregators) -> Figure:
    """Return the figure at a path, which is the same on all sides."""
    report = sides[0].report
    grader, metric, below = split_path(path, report.aggregates)
    for side in sides:
        if (grader, metric) not in side.metrics:
            aggregators.metric(side.report, side.name, path)  # raises why
    entry = _check_aggregators(path, sides)
    metric_figures = report.aggregates[grader][metric]
    at = f"{grader}.{metric}"
    _, rest, _, interval = number_at(metric_figures, below, (metric, entry["name"]), at)
    declared = {"path": path, "label": path, "unit": "score", "better_is": "neither"}
    declarations = Declarations(report.header)
    meaning = declarations.at(f"{at}.{rest}")
    if meaning is not None:
        declared |= {"label": meaning.label, "unit": meaning.unit, "better_is": meaning.better}
    declared["label"] = headline_label(report, path) or declared["label"]
    reason = as_map(interval).get("reason")
    is_quantile = reason == "quantile"
    untested = "a quantile has no test" if is_quantile else ""
    return Figure(
        path=path, grader=grader, metric=metric, rest=rest, declared=declared, untested=untested
    )


def _check_aggregators(path: str, sides: Sequence[Side]) -> Fields:
    """Return the baseline's entry of a figure's aggregator; raise where another side's differs."""
    baseline = sides[0]
    entry = _entry_of(baseline.report, baseline.name, path)
    for side in sides:
        side_entry = _entry_of(side.report, side.name, path)
        parts = ", ".join(differing_parts(side_entry, entry))
        if parts:
            names = f"{baseline.name} and {side.name}"
            raise DataError(f"{path}: the aggregators of {names} differ in {parts}")
    return entry


Without = Mapping[str, float | None]
"""Task -> a figure without it; a task that adds nothing is left out."""


class _SideFigure(msgspec.Struct, frozen=True, eq=False):
    """A figure of one side, over all tasks that both have.

    Attributes:
        value: The figure.
        is_share: Whether it is a share.
        without: The figure without each task; None where that takes too long.
    """

    value: float | None
    is_share: bool
    without: Without | None


def figure_pairs(figures: Iterable[Figure], a: Side, b: Side, failed: Failed) -> dict[str, Pair]:
    """Return figures of two sides by their paths; those of one aggregator are computed together."""
    by_metric: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        of_metric = by_metric.setdefault((figure.grader, figure.metric), [])
        of_metric.append(figure)
    pairs: dict[str, Pair] = {}
    for (grader, metric), of_metric in by_metric.items():
        means = mean_pair(a, b, grader, failed)
        try:
            before = _compute(a, of_metric, means.tasks, failed)
            after = _compute(b, of_metric, means.tasks, failed)
        except (Exception, SystemExit, GeneratorExit) as error:
            raise PluginError(f"{grader}.{metric}: {error_text(error)}") from error
        for figure, of_a, of_b in zip(of_metric, before, after, strict=True):
            pairs[figure.path] = _pair_figure(figure, means, of_a, of_b)
    return pairs


def _pair_figure(figure: Figure, means: Pair, a: _SideFigure, b: _SideFigure) -> Pair:
    """Return a figure of two sides; a task differs by the difference of its pseudo-values."""
    number = len(means.tasks)
    is_share = a.is_share and b.is_share
    pair = replace(means, a=a.value, b=b.value, gaps=(), is_share=is_share)
    if a.value is None or b.value is None:
        return replace(pair, reason="undefined on one side" if number else "no task in common")
    pair = replace(pair, gap=b.value - a.value)
    if figure.untested or a.without is None or b.without is None:
        reason = figure.untested or _NO_SUMS
        return replace(pair, reason=reason)
    before = _pseudo_values(a.value, a.without, means.tasks)
    after = _pseudo_values(b.value, b.without, means.tasks)
    if before is None or after is None:
        return replace(pair, reason="undefined without some task")
    largest = 1.0 if is_share else max(abs(a.value), abs(b.value))
    nothing = _NOTHING * largest
    gaps = [*map(operator.sub, after, before)]
    return replace(pair, gaps=[0.0 if abs(gap) < nothing else gap for gap in gaps])


def _pseudo_values(value: float, without: Without, tasks: Sequence[str]) -> list[float] | None:
    """Return each task's contribution to a figure: N · value − (N − 1) · value without the task.

    None where it is undefined without some task.
    """
    number = len(tasks)
    values = []
    for task in tasks:
        value_without_task = without.get(task, value)
        if value_without_task is None and number > 1:
            return None
        values.append(number * value - (number - 1) * (value_without_task or 0.0))
    return values


def figure_over(figure: Figure, side: Side, tasks: Sequence[str], failed: Failed) -> float | None:
    """Return a figure of some tasks of a side; None where it is not defined."""
    aggregator, grades, _ = _grades_of_tasks(side, figure, tasks, failed)
    figures = compute_figures(aggregator, grades)
    return figure.value_in(figures)[0]


def _compute(
    side: Side, figures: Sequence[Figure], tasks: Sequence[str], failed: Failed
) -> list[_SideFigure]:
    """Compute figures of one aggregator of a side's samples of some tasks, and without each.

    Those of sums over tasks at once, others anew without each task.
    """
    aggregator, grades, rows = _grades_of_tasks(side, figures[0], tasks, failed)
    figures_of_all = compute_figures(aggregator, grades)
    without_by_path = _leave_out_sums(aggregator, grades) if aggregator.has_sums else {}
    figures_by_task: dict[str, Fields] = {}
    computed = []
    for figure in figures:
        without = without_by_path.get(figure.rest)
        if without is None and len(rows) ** 2 <= _WORK:
            figures_by_task = figures_by_task or _compute_without_each(aggregator, grades, rows)
            without = {
                task: figure.value_in(figures_without_task)[0]
                for task, figures_without_task in figures_by_task.items()
            }
        value, is_share = figure.value_in(figures_of_all)
        computed.append(_SideFigure(value, is_share, without))
    return computed


def _grades_of_tasks(
    side: Side, figure: Figure, tasks: Sequence[str], failed: Failed
) -> tuple[Aggregator, Grades, dict[str, list[int]]]:
    """Return the aggregator of a figure, the grades it is made of, and the rows of each task."""
    grader, table = figure.grader, side.samples.table
    metric = side.metrics[grader, figure.metric]
    if metric.name in side.samples.broken:
        raise ValueError(side.samples.broken[metric.name])
    grades = table.grades(grader)
    codes = table.verdicts[grader].codes
    counts = [failed == "zero" or grade.outcome is Outcome.GRADED for grade in grades]
    rows: dict[str, list[int]] = {}
    for task in tasks:
        rows[task] = [row for row in side.tasks[task] if counts[codes[row]]]
    chosen = array("I", sorted(chain.from_iterable(rows.values())))
    aggregator: Aggregator = metric.stage.component
    return aggregator, select_grades(aggregator, table, grader, metric.name, chosen), rows


def _leave_out_sums(aggregator: Aggregator, grades: Grades) -> dict[str, Without]:
    """Return figures made of sums over tasks by path, without each task."""
    defaults = task_defaults(aggregator, grades)
    contributions = {}
    for task, numbers in grades.numbers_by_task().items():
        contributions[task] = task_contribution(aggregator, numbers, defaults)
    counts = Counter(contributions.values())
    names = () if makes_task_contributions(aggregator) else grades.names
    times = list(counts.values())
    figures, figures_without_one = leave_one_out(aggregator, list(counts), times, names)
    without_by_contribution = dict(zip(counts, figures_without_one, strict=True))
    by_path: dict[str, Without] = {}
    for path in figures:
        of_task = {
            task: without_by_contribution[contribution].get(path)
            for task, contribution in contributions.items()
        }
        by_path[".".join(path)] = of_task
    return by_path


def _compute_without_each(
    aggregator: Aggregator, grades: Grades, rows: Mapping[str, Sequence[int]]
) -> dict[str, Fields]:
    """Compute an aggregator's figures without each task; equal tasks are left out once."""
    if len(rows) < 2:
        return {}
    table = grades.table
    keys = {grades.key, *getattr(aggregator, "raters", ())}
    columns = [table.keys["facets"].codes]
    columns += [table.verdicts[key].codes for key in sorted(keys)]
    figures_by_content: dict[Any, Fields] = {}
    figures_by_task = {}
    for task, of_task in rows.items():
        content = tuple(codes[row] for row in of_task for codes in columns)
        if content not in figures_by_content:
            other_rows = array("I", [row for row in grades.rows if row not in of_task])
            figures_by_content[content] = compute_figures(aggregator, grades.within(other_rows))
        figures_by_task[task] = figures_by_content[content]
    return figures_by_task
