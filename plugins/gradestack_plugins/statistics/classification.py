"""Accuracy, per-class precision, recall and F1, macro-F1 and the confusion matrix of any grader
that yields labels.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grades,
    Interval,
    Item,
    Numbers,
    Outcome,
    TaskNumbers,
    estimate,
    interval,
    ratio,
    ratio_interval,
)
from gradestack_plugins.statistics.mean import IntervalAggregator, rate_intervals

Cells = tuple[tuple[tuple[str, str | None], int], ...]
"""Gold and predicted label, None for a prediction without one, and how many samples of a task have
them.
"""
_FEW = 20
"""Tasks of a class from which on its F1 is sure enough for the jackknife of a mean."""


class Tally(NamedTuple):
    """Numbers of hits, of gold labels and of predictions of a class."""

    hits: int = 0
    gold: int = 0
    predicted: int = 0

    def add(self, hits: int, gold: int, predicted: int) -> Tally:
        """Return the sums."""
        return Tally(self.hits + hits, self.gold + gold, self.predicted + predicted)

    def without(self, other: Tally) -> Tally:
        """Return the differences."""
        return self.add(-other.hits, -other.gold, -other.predicted)

    @property
    def f1(self) -> float:
        """F1 of counts, 0 of a class that occurs nowhere."""
        below = self.gold + self.predicted
        if below:
            return 2 * self.hits / below
        return 0.0

    def scores(self) -> dict[str, float | None]:
        """Return precision, recall and F1; None where the denominator is 0."""
        precision = ratio(self.hits, self.predicted)
        recall = ratio(self.hits, self.gold)
        f1 = 0.0 if self.predicted or self.gold else None
        if precision and recall:
            f1 = 2 * precision * recall / (precision + recall)
        return {"precision": precision, "recall": recall, "f1": f1}


class _Task(msgspec.Struct, frozen=True):
    """The samples of a task with a gold label of the set, and how many tasks have the same."""

    samples: int
    correct: int
    classes: Mapping[str, Tally]
    times: int


class Counted:
    """Labels of tasks over a label set.

    Their matrix, and the scores made of it with their intervals.
    """

    def __init__(
        self, tasks: Mapping[Cells, int], labels: Sequence[str], confidence: float
    ) -> None:
        """Count the tasks into a confusion matrix and tallies by class; equal tasks come once."""
        self.labels, self.confidence = labels, confidence
        self.matrix = {gold: dict.fromkeys(labels, 0) for gold in labels}
        self.outside = dict.fromkeys(labels, 0)
        """Gold label -> predictions that are none of the labels."""
        self.unknown = 0
        """Samples whose gold label is none of them."""
        self.by_class: dict[str, Counter[Tally]] = {label: Counter() for label in labels}
        self.tasks: list[_Task] = []
        for cells, times in tasks.items():
            self._add_task(cells, times)
        by_class = self.by_class.items()
        self.totals = {label: _total(tallies) for label, tallies in by_class}
        totals = self.totals.items()
        self.scores = {label: tally.scores() for label, tally in totals}
        self.n = sum(tally.gold for tally in self.totals.values())
        self.correct = sum(tally.hits for tally in self.totals.values())

    def _add_task(self, cells: Cells, times: int) -> None:
        """Add the samples of a task, ``times`` over, to the matrix and the tallies of classes."""
        classes = defaultdict[str, Tally](Tally)
        for (gold, predicted), count in cells:
            if gold not in self.matrix:
                self.unknown += count * times
                continue
            classes[gold] = classes[gold].add(count * (predicted == gold), count, 0)
            if predicted is None or predicted not in self.matrix:
                self.outside[gold] += count * times
                continue
            self.matrix[gold][predicted] += count * times
            classes[predicted] = classes[predicted].add(0, 0, count)
        tallies = classes.values()
        samples = sum(tally.gold for tally in tallies)
        correct = sum(tally.hits for tally in classes.values())
        if samples:
            task = _Task(samples, correct, classes, times)
            self.tasks.append(task)
        for label, tally in classes.items():
            self.by_class[label][tally] += times

    def values(self, exclude: Collection[str]) -> dict[str, float | None]:
        """Return accuracy and macro-F1, also that of the classes that are not excluded."""
        values = {
            "accuracy": ratio(self.correct, self.n),
            "macro_f1": self._macro(self.labels),
        }
        if exclude:
            others = [label for label in self.labels if label not in exclude]
            values[f"macro_f1_no_{'_'.join(exclude)}"] = self._macro(others)
        return values

    def _macro(self, labels: Sequence[str]) -> float | None:
        """Return the mean F1 of some classes, an undefined one counting as 0.

        None without classes.
        """
        total = 0.0
        for label in labels:  # left to right: the built-in sum compensates from Python 3.12 on
            score = self.scores[label]
            total += score["f1"] or 0.0
        return total / len(labels) if labels else None

    def accuracy(self) -> Interval:
        """Return the interval of the accuracy."""
        cells = Counter[tuple[float, ...]]()
        for task in self.tasks:
            cells[task.samples, task.correct] += task.times
        return ratio_interval(cells, confidence=self.confidence)

    def of_class(self, label: str) -> dict[str, Interval]:
        """Return the intervals of precision, recall and F1.

        Of the tasks in which the class occurs accordingly.
        """
        hits, gold, predicted = self.totals[label]
        n = {"precision": predicted, "recall": gold, "f1": gold + predicted - hits}
        tasks = self.by_class[label]
        return rate_intervals(tasks, self.confidence, n)

    def macro_f1(self, labels: Sequence[str]) -> Interval:
        """Return the interval of the mean F1 of some classes.

        One that does not occur without a task has 0 without it.

        Where a class is that of few tasks, leaving out one at a time says too little of it. The
        interval is then no narrower than that of the classes' own together,
        ``m -+ sqrt(sum of (F1 - end)^2) / number``; none where a class is in no gold label.
        """
        if not labels or not self.n:
            return {"reason": "undefined"}
        for label in labels:
            if not self.totals[label].gold:
                return {"reason": f"no expected label is “{label}”"}
        f1 = {label: self.totals[label].f1 for label in labels}
        total = 0.0
        for value in f1.values():
            total += value
        left = self._macro_without_each(f1, total)
        value = total / len(labels)
        clusters = sum(task.times for task in self.tasks)
        of_mean = estimate(value, list(left.items()), clusters)
        of_value = interval(of_mean, self.n, confidence=self.confidence)
        if "low" in of_value and min(map(self._tasks_of, labels)) < _FEW:
            below, above = self._class_widths(f1)
            of_value["low"] = min(of_value["low"], value - below)
            of_value["high"] = max(of_value["high"], value + above)
        return of_value

    def _macro_without_each(self, f1: Mapping[str, float], total: float) -> Counter[float]:
        """Return the mean F1 left when a task is taken out -> number of tasks that leave it."""
        left: Counter[float] = Counter()
        for task in self.tasks:
            sum_without_task = total
            for label, tally in task.classes.items():
                if label in f1:
                    sum_without_task += self.totals[label].without(tally).f1 - f1[label]
            left[sum_without_task / len(f1)] += task.times
        return left

    def _tasks_of(self, label: str) -> int:
        """Return the number of tasks in which a class is a gold label."""
        return sum(times for tally, times in self.by_class[label].items() if tally.gold)

    def _class_widths(self, f1: Mapping[str, float]) -> tuple[float, float]:
        """Return the reach of the classes' intervals together, below and above their mean."""
        intervals = {label: self.of_class(label)["f1"] for label in f1}
        below = [f1[label] - intervals[label].get("low", 0.0) for label in f1]
        above = [intervals[label].get("high", 1.0) - f1[label] for label in f1]
        return math.hypot(*below) / len(f1), math.hypot(*above) / len(f1)


def _total(tallies: Mapping[Tally, int]) -> Tally:
    total = Tally()
    for tally, times in tallies.items():
        total = total.add(*[number * times for number in tally])
    return total


Counts = Counter[str]
Names = Mapping[str, Sequence[Any]]
"""Name of a number -> its meaning: ``cell``, set, gold label, predicted label.

``count``, set, state; ``labels`` or ``exclude``, and the labels. The set of the grades themselves
is None.
"""

_LACKING = {
    "precision": "never predicted",
    "recall": "not in the gold labels",
    "f1": "neither in the gold labels nor predicted",
}


def _name(*meaning: JSON) -> str:
    return json.dumps(meaning)


_GRADED = _name("count", None, str(Outcome.GRADED))


def _names(numbers: Iterable[str]) -> Names:
    return {name: json.loads(name) for name in numbers}


def _counters_of(graded: Grade | Item, of: str | None) -> dict[str, int]:
    """Return the counters that a grade or an item raises: of its outcome, and its matrix cell.

    One without a gold label is counted as ``no_gold`` in place of a cell. Items are counted by
    their id (``of``), whole grades under None.
    """
    outcome = str(graded.outcome)
    counters = {_name("count", of, outcome): 1}
    if graded.outcome is Outcome.GRADED:
        if graded.gold is None:
            counters[_name("count", of, "no_gold")] = 1
        else:
            counters[_name("cell", of, graded.gold, graded.label)] = 1
    return counters


def _declared(names: Names, kind: Literal["labels", "exclude"]) -> tuple[str, ...]:
    meanings = names.values()
    labels = [meaning[1] for meaning in meanings if meaning[0] == kind]
    return tuple(dict.fromkeys(label for declared in labels for label in declared))


def _cells_of(tasks: Mapping[TaskNumbers, int], names: Names, of: str | None) -> Counter[Cells]:
    """Return the cells of tasks in one set, and how many tasks have them.

    Those without any are out.
    """
    labels = {
        name: (meaning[2], meaning[3])
        for name, meaning in names.items()
        if meaning[:2] == ["cell", of]
    }
    counted: Counter[Cells] = Counter()
    for numbers, times in tasks.items():
        cells = [(labels[name], int(number)) for name, number in numbers if name in labels]
        if cells:
            counted[tuple(cells)] += times
    return counted


@attrs.frozen(kw_only=True)
class Classification(IntervalAggregator):
    """Classification metrics over grades with a gold label and a predicted label.

    With ``C[gold][predicted]`` the confusion matrix, rows gold and columns predicted, and N the sum
    of its cells:

    - ``accuracy = sum of C[y][y] / N``
    - per class ``precision = tp / (tp + fp)``, ``recall = tp / (tp + fn)``,
      ``f1 = 2 P R / (P + R)``, ``support = tp + fn``
    - ``macro_f1`` = mean of F1 over **all** labels of the label set, also those without support;
      one that occurs nowhere, whose own F1 is null, counts as 0, and ``macro_f1_note`` says so
    - ``macro_f1_no_X`` = mean of F1 over the labels outside ``exclude``, from the same matrix: a
      prediction of an excluded label stays a miss

    N counts grades that have a score. Missing, skipped and failed grades are counted separately.

    The label set is, in this order: the option ``labels``; what the grades declare
    (``metadata.label_set.labels``); else every label seen, sorted. A prediction outside it, or
    without a label, is counted in a predicted-only column named ``invalid`` and is wrong
    everywhere. A gold label outside it is left out of the matrix and counted in ``n_unknown_gold``.
    A class that is itself called ``invalid`` (in the label set given, or among the gold labels) is
    a class like any other, and the column is then ``(invalid)``.

    A figure whose denominator is 0 is null, and ``undefined`` names the reason; a mean takes it as
    0. Figures that are no counts have an interval, which leaves out one task at a time; of several
    models ``models`` has those of each.
    """

    version = "4"
    figures = (
        Figure(
            "accuracy",
            "Accuracy",
            about="predictions equal to the gold label / graded samples",
            divisor=_GRADED,
        ),
        Figure("macro_f1", "Macro-F1", about="mean of F1 over the label set", divisor=_GRADED),
        Figure(
            "macro_f1_no_{class}",
            "Macro-F1 of the other classes",
            about="mean of F1 over them",
            divisor=_GRADED,
        ),
        Figure("per_class.{class}.precision", "Precision", about="tp / (tp + fp)", divisor=_GRADED),
        Figure("per_class.{class}.recall", "Recall", about="tp / (tp + fn)", divisor=_GRADED),
        Figure("per_class.{class}.f1", "F1", about="2 P R / (P + R)", divisor=_GRADED),
    )

    labels: tuple[str, ...] | None = None
    """Label set in display order; default: as declared by the grades, else the labels seen."""
    exclude: tuple[str, ...] | None = None
    """Labels left out of the second macro-F1; default: as declared by the grades, else none."""
    invalid: str = "invalid"
    """Name of the column for predictions outside the label set."""
    items: Literal["declared", "ignore", "sets", "pool"] = "declared"
    """What to do with the labelled items inside a grade.

    ``sets`` gives the items of one id metrics of their own (under ``sets``), ``pool`` counts every
    item instead of the grade, ``declared`` follows ``metadata.label_set.items``.
    """

    def __attrs_post_init__(self) -> None:
        """Refuse labels that are empty or repeated, and excluded labels that are none of them."""
        labels = self.labels
        if labels is None:
            return
        if not labels or len(set(labels)) < len(labels):
            raise ValueError("labels must name at least one label, and each only once")
        unknown = sorted(set(self.exclude or ()) - set(labels))
        if unknown:
            raise ValueError(f"exclude names labels that are not in labels: {', '.join(unknown)}")

    @override
    def contribution(self, grade: Grade) -> Numbers:
        numbers: Counter[str] = Counter()
        declared = grade.metadata.get("label_set")
        mode = str(self.items)
        if isinstance(declared, Mapping):
            for kind in ("labels", "exclude"):
                labels = declared.get(kind)
                if isinstance(labels, list | tuple):
                    texts = [label for label in labels if isinstance(label, str)]
                    numbers[_name(kind, texts)] = 1
            if mode == "declared":
                mode = str(declared.get("items", "ignore"))
        is_pooled = mode == "pool" and bool(grade.items)
        for graded in grade.items if is_pooled else (grade,):
            numbers.update(_counters_of(graded, None))
        for item in grade.items if mode == "sets" else ():
            numbers.update(_counters_of(item, item.id))
        return numbers

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        """Return the figures over the label set given; ``compare`` gives that of the run."""
        if self.labels is None:
            return {}
        names = _names(totals)
        tasks = {tuple(totals.items()): 1}
        cells = _cells_of(tasks, names, None)
        counted = Counted(cells, self.labels, self.confidence)
        values = counted.values(self._excluded(names))
        if values["accuracy"] is None:
            return {}
        return {**values, "per_class": counted.scores}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        totals, (every, models) = grades.totals, grades.task_numbers()
        names = _names(totals)
        counts: dict[str | None, Counts] = {None: Counter()}
        for name, meaning in names.items():
            if meaning[0] == "count":
                of_set = counts.setdefault(meaning[1], Counter())
                of_set[meaning[2]] = int(totals[name])
        cells = {of: _cells_of(every, names, of) for of in counts}
        labels = self._label_set(names, cells.values())
        exclude = self._excluded(names)
        metrics = {of: self._metrics(labels, exclude, cells[of], counts[of]) for of in cells}
        main = metrics.pop(None)
        if metrics:
            main["sets"] = {str(of): metrics[of] for of in metrics}
        of_models = {model: _cells_of(tasks, names, None) for model, tasks in models.items()}
        of_models = {model: tasks for model, tasks in of_models.items() if tasks}
        if len(of_models) > 1:
            main["models"] = {
                model: self._metrics(labels, exclude, tasks, None)
                for model, tasks in of_models.items()
            }
        return main

    def _excluded(self, names: Names) -> tuple[str, ...]:
        if self.exclude is None:
            return _declared(names, "exclude")
        return self.exclude

    def _label_set(self, names: Names, sets: Iterable[Iterable[Cells]]) -> tuple[str, ...]:
        labels = self.labels or _declared(names, "labels")
        if labels:
            return labels
        pairs = [pair for tasks in sets for cells in tasks for pair, _ in cells]
        predicted = {label for _, label in pairs if label is not None}
        golds = {gold for gold, _ in pairs}
        return tuple(sorted(golds | (predicted - {self.invalid})))

    def _metrics(
        self,
        labels: tuple[str, ...],
        exclude: tuple[str, ...],
        tasks: Mapping[Cells, int],
        counts: Counts | None,
    ) -> dict[str, JSON]:
        """Compute averages, figures by class and the confusion matrix.

        ``undefined`` among them has the reason for each figure that is null.
        """
        counted = Counted(tasks, labels, self.confidence)
        undefined: dict[str, JSON] = {}
        metrics = self._averages(counted, exclude, undefined)
        metrics["per_class"] = {
            label: _class_metrics(counted, label, undefined) for label in labels
        }
        if self.invalid in labels:
            column = f"({self.invalid})"
        else:
            column = self.invalid
        matrix = counted.matrix.items()
        metrics["confusion_matrix"] = {
            gold: {**row, column: counted.outside[gold]} for gold, row in matrix
        }
        metrics["labels"] = list(labels)
        if counts is not None:
            outside = counted.outside.values()
            metrics["n_invalid"] = sum(outside)
            for state in (Outcome.MISSING, Outcome.SKIPPED, Outcome.FAILED):
                metrics[f"n_{state}"] = counts[state]
            metrics["n_no_gold"] = counts["no_gold"]
            metrics["n_unknown_gold"] = counted.unknown
        return {**metrics, "undefined": undefined}

    def _averages(
        self, counted: Counted, exclude: tuple[str, ...], undefined: dict[str, JSON]
    ) -> dict[str, JSON]:
        """Return accuracy and macro-F1; reasons of undefined ones are added to ``undefined``."""
        values = counted.values(exclude)
        metrics: dict[str, JSON] = {"n": counted.n, "n_correct": counted.correct}
        accuracy = values.pop("accuracy")
        of_accuracy = counted.accuracy()
        metrics |= _figure("accuracy", accuracy, of_accuracy, "nothing was graded", undefined)
        for name, value in values.items():
            is_whole_set = name == "macro_f1"
            labels = [label for label in counted.labels if is_whole_set or label not in exclude]
            why = "no labels" if is_whole_set else "every label is excluded"
            metrics |= _figure(name, value, counted.macro_f1(labels), why, undefined)
            nowhere = [label for label in labels if counted.scores[label]["f1"] is None]
            if nowhere:
                verb = "counts" if len(nowhere) == 1 else "count"
                note = f"{', '.join(nowhere)} {verb} as 0: {_LACKING['f1']}"
                metrics[f"{name}_note"] = note
        return metrics


def _class_metrics(counted: Counted, label: str, undefined: dict[str, JSON]) -> dict[str, JSON]:
    """Return the figures of a class; reasons of undefined ones are added to ``undefined``."""
    intervals = counted.of_class(label)
    metrics = dict[str, JSON]()
    for name, value in counted.scores[label].items():
        path = f"per_class.{label}."
        why = _LACKING[name]
        metrics |= _figure(name, value, intervals[name], why, undefined, path)
    _, support, predicted = counted.totals[label]
    return {**metrics, "support": support, "predicted": predicted}


def _figure(
    name: str,
    value: float | None,
    of_value: Interval,
    why: str,
    undefined: dict[str, JSON],
    path: str = "",
) -> dict[str, JSON]:
    """Return a figure and its interval; of an undefined one why it has none."""
    if value is None:
        undefined[f"{path}{name}"] = why
        return {name: None, f"{name}_interval": {"reason": why}}
    return {name: value, f"{name}_interval": {**of_value}}
