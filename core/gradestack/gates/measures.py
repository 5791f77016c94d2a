"""Measures: the values that gates compare, and their intervals."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec

from gradestack.api import Grader
from gradestack.gates.coverage import Coverage, measure_coverage
from gradestack.gates.native import NativeFiles
from gradestack.gates.paths import Aggregates, NoFigure, number_at
from gradestack.gates.rules import FigureGate, NativeGate, ScoreGate, WeightedGate
from gradestack.grades import Grades
from gradestack.grading.plan import Success
from gradestack.intervals import Cell, Interval, change_confidence, interval, jackknife
from gradestack.jsonio.values import as_map, as_text, compact
from gradestack.model import JSON, Grade, Outcome
from gradestack.table import Numbers, Table

CALIBRATED = "calibrated"
"""The aggregator of models' verdicts, corrected by labels of people as far as it says."""
_COUNT, _SUM = "count", "sum"
"""What a grade adds to a gate's figure: 1 to the samples, its score to their sum."""
_QUANTILES = {"min": 0, "median": 50, "p50": 50, "p95": 95, "p99": 99, "max": 100}
"""Aggregations that are quantiles, in percent."""
_SHARE, _ANY_NUMBER = (0.0, 1.0), (-math.inf, math.inf)


class Measure(msgspec.Struct, frozen=True):
    """The value that a gate compares, in the unit of its threshold, and its interval."""

    value: float | None
    interval: Interval | None = None
    """Of the value as a fraction, or why there is none; None where nobody asks."""
    reason: str = "no run was graded"
    """Why there is no value."""
    scale: int = 1
    """100 of a percentage."""
    fields: dict[str, Any] = {}
    """What else the verdict says."""

    def ends_of(self, of: Interval) -> list[float]:
        """Return both ends of an interval, in the unit of the threshold."""
        if "low" in of:
            ends = [of["low"], of["high"]]
        else:
            ends = []
        return [self.scale * end for end in ends]


class Scores(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Scores by grader key, in a ``part`` of the rows of the table, default all."""

    table: Table
    part: Sequence[int] | None = None
    graders: Mapping[str, Grader] = {}
    figures: Callable[[Sequence[int] | None], Aggregates] = lambda _rows: {}
    unreadable: int = 0
    min_graded: float = 0.0
    """The least share of a gate's runs that must be graded."""
    native: NativeFiles = NativeFiles()

    @property
    def rows(self) -> Sequence[int]:
        """Numbers of the rows."""
        if self.part is None:
            return range(len(self.table))
        return self.part

    @cached_property
    def aggregates(self) -> Aggregates:
        """The figures of aggregators over these samples."""
        return self.figures(self.part)

    def coverage(self, key: str) -> Coverage:
        """Count the runs of these that a grader graded."""
        return measure_coverage(self.table, key, self.rows, self.unreadable)

    def groups(self, per: str) -> dict[str, Scores]:
        """Return group name -> scores, by model or by a facet, in order of first appearance.

        Nothing where no run has the facet; 1 and "1" are one group.
        """
        is_by_model = per == "model"
        missing = f"no {per}"
        keys = self.table.keys["model" if is_by_model else "facets"]
        values: list[Any]
        if is_by_model:
            values = [model or None for model in keys.values]
        else:
            values = [facets.get(per) for facets in self.table.facets()]
        names = [_name_value(value, missing) for value in values]
        parts: dict[str, list[int]] = {}
        for row in self.rows:
            name = names[keys.codes[row]]
            parts.setdefault(name, []).append(row)
        if parts.keys() == {missing} and not is_by_model:
            return {}
        groups = {}
        for name, rows in parts.items():
            groups[name] = msgspec.structs.replace(self, part=rows, unreadable=0)
        return groups


def _name_value(value: JSON, missing: str) -> str:
    """Return the name of a group: a text as it is, anything else as JSON."""
    if value is None:
        return missing
    if isinstance(value, str):
        return value
    return compact(value)


def measure_number(gate: NativeGate, native: NativeFiles) -> Measure:
    """Return a number of a native file, which has no interval."""
    number, program = native.number_at(gate.figure)
    fields = {"reason": f"as {program} computes it, no interval"}
    return Measure(number, fields=fields)


def measure_figure(gate: FigureGate, scores: Scores) -> Measure:
    """Return the figure at a path, with the interval of its aggregator."""
    grader, metric, rest, component = map(str, gate.figure)
    fields = {"over": "graded"}
    try:
        metric_figures = scores.aggregates[grader][metric]
        figure = number_at(metric_figures, rest, (metric, component), f"{grader}.{metric}")
    except NoFigure as error:
        return Measure(None, reason=str(error), fields=fields)
    uncalibrated_reason = None
    if component == CALIBRATED:
        uncalibrated_reason = as_map(metric_figures).get("uncalibrated")
    if component == CALIBRATED and rest == "raw":  # whatever labels there are
        fields |= {"uncalibrated": "raw is not corrected by labels", "on_uncalibrated": "fail"}
    elif uncalibrated_reason:
        fields |= {"uncalibrated": uncalibrated_reason, "on_uncalibrated": gate.on_uncalibrated}
    if figure.value is None:
        reason = as_text(figure.reason) or "the figure has no value in these runs"
        return Measure(None, reason=reason, fields=fields)
    interval_at_95: Interval = {"reason": "the figure has no interval"}
    if figure.interval is not None:
        interval_at_95 = change_confidence(figure.interval, figure.value, 0.95)
    return Measure(figure.value, interval_at_95, fields=fields)


def measure_scores(gate: ScoreGate, scores: Scores) -> Measure:
    """Return an aggregate of scores, of several graders their weighted average, rounded once."""
    graders = [_contributing_grades(gate, scores, key) for key in gate.parts]
    unreadable = scores.unreadable if gate.counts_lost else 0
    sums = [_exact_sums(gate, grades, unreadable) for grades in graders]
    scale = 100 if gate.is_percent else 1
    over = "total" if gate.counts_lost else "graded"
    fields: dict[str, Any] = {"over": over}
    if isinstance(gate, WeightedGate):
        figures = fields["figures"] = {}
        for key, (count, total) in zip(gate.parts, sums, strict=True):
            figures[key] = float(scale * total / count) if count else None
    parts = gate.parts.values()
    weights = [Fraction(weight) for weight in parts]
    value = _average(weights, [*chain(*sums)])
    if value is None:
        return Measure(None, fields=fields)
    estimated: Interval = {"reason": "quantile"}
    if gate.metric not in _QUANTILES:
        estimated = _interval_of(gate, scores, graders, unreadable)
    return Measure(float(scale * value), estimated, scale=scale, fields=fields)


def _average(weights: Sequence[Any], sums: Sequence[Any]) -> Any:
    """Return the weighted average of means, None where one of them counts no run.

    Args:
        weights: One for each mean.
        sums: For each mean two entries, the count of its runs and the total of their scores.
    """
    counts = sums[::2]
    totals = sums[1::2]
    if not all(counts):
        return None
    means = map(operator.truediv, totals, counts)
    total_weights = sum(map(operator.mul, weights, means))
    return total_weights / sum(weights)


def _contributing_grades(gate: ScoreGate, scores: Scores, key: str) -> Grades:
    """Return a grader's grades, with what each adds to the figure a gate compares."""
    table = scores.table
    grades = table.grades(key)
    contributions = [_contribution(gate, grade) for grade in grades]
    verdict = table.verdicts[key]
    return Grades(table, key, scores.part, (contributions, verdict.codes))


def _contribution(gate: ScoreGate, grade: Grade) -> Numbers | None:
    """Return the numbers of a grade; one without a score may count against the gate."""
    amount = grade.score
    if amount is None:
        is_lost = grade.outcome in (Outcome.FAILED, Outcome.MISSING)
        if not (is_lost and gate.counts_lost):
            return None
        amount = int(gate.lost_passes)
    elif gate.is_percent:
        amount = int(gate.sample_passes(amount))
    return {_COUNT: 1, _SUM: amount}


def _exact_sums(gate: ScoreGate, grades: Grades, unreadable: int) -> tuple[int, Fraction]:
    """Return the count and the exact sum of the scores that a gate takes the mean of.

    For a quantile, return 1 and the quantile; without data, 0 and 0.
    """
    count = int(grades.totals.get(_COUNT, 0))
    if not count:
        return 0, Fraction(0)
    if gate.metric in _QUANTILES:
        scores: list[float] = []
        for grade, times in grades.counted:
            if grade.score is not None:
                scores += [grade.score] * times
        percent = _QUANTILES[gate.metric]
        return 1, quantile(sorted(scores), percent)
    fraction = Fraction(grades.totals[_SUM])
    total = fraction + unreadable * gate.lost_passes
    return count + unreadable, total


def quantile(ordered: Sequence[float], percent: int) -> Fraction:
    """Return a quantile of sorted values, exactly.

    By linear interpolation: position q x (n - 1), as numpy's default.
    """
    last = len(ordered) - 1
    index, share = divmod(last * percent, 100)
    low = Fraction(ordered[index])
    if not share:
        return low
    high = Fraction(ordered[index + 1])
    return low + (high - low) * share / 100


def _interval_of(
    gate: ScoreGate, scores: Scores, graders: Sequence[Grades], unreadable: int
) -> Interval:
    """Return the 95 % interval of a gate's whole formula over all tasks, as a fraction."""
    weights = [*gate.parts.values()]
    tasks = _add_by_task(graders)
    if unreadable:
        number = int(gate.lost_passes)
        lost_task = (1, number) * len(graders)
        tasks[lost_task] += unreadable

    def average(*sums: float) -> dict[str, Any]:
        return {_SUM: _average(weights, sums)}

    width = 2 * len(graders)
    estimates = jackknife(average, tasks, width)
    counts = [int(grades.totals[_COUNT]) for grades in graders]
    ranges = [_SHARE] * len(graders)
    if not gate.is_percent:
        ranges = [_range_of(scores, grades.key) for grades in graders]
    total = sum(weights)
    least, most = (
        sum(map(operator.mul, weights, ends)) / total for ends in zip(*ranges, strict=True)
    )
    is_share = least >= 0 and most <= 1
    is_amount = least >= 0 and math.isinf(most)
    return interval(
        estimates[_SUM],
        max(counts) + unreadable,
        share=is_share,
        least=least,
        most=most,
        amount=is_amount,
    )


def _add_by_task(graders: Sequence[Grades]) -> Counter[Cell]:
    """Count tasks by the numbers that their grades of all graders add."""
    numbers_of_tasks: dict[str, list[float]] = {}
    for index, grades in enumerate(graders):
        for task, numbers in grades.numbers_by_task().items():
            task_numbers = numbers_of_tasks.setdefault(task, [0] * (2 * len(graders)))
            sums = dict(numbers)
            task_numbers[2 * index] = sums[_COUNT]
            task_numbers[2 * index + 1] = sums.get(_SUM, 0)
    return Counter(map(tuple, numbers_of_tasks.values()))


def _range_of(scores: Scores, key: str) -> tuple[float, float]:
    """Return the least and greatest score of a grader; of one with scores beyond, any number."""
    low, high = scores.graders[key].bounds
    for grade in scores.table.grades(key):
        if grade.score is not None and not low <= grade.score <= high:
            return _ANY_NUMBER
    return low, high


def passed_by_task(scores: Scores, key: str) -> dict[str, tuple[int, int]]:
    """Count passed runs and runs by task, in order; a run that could not be graded did not pass.

    A task of several models is a task of each; its name then has the model.
    """
    grader = scores.graders[key]
    success = Success(key, better=grader.better)
    grades = Grades(scores.table, key, scores.part)
    has_models = len(grades.models) > 1
    counts: dict[str, tuple[int, int]] = {}
    for run, grade in grades:
        if grade.outcome == Outcome.SKIPPED:
            continue
        task = run.id
        if has_models:
            task = f"{run.model or 'no model'}: {task}"
        passed, runs = counts.get(task, (0, 0))
        has_passed = bool(success.passed(grade))
        counts[task] = passed + has_passed, runs + 1
    return counts
