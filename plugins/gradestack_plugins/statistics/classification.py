"""Accuracy, per-class precision, recall and F1, macro-F1 and the confusion matrix of any grader
that yields labels.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import attrs
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
from gradestack_plugins.statistics.mean import IntervalAggregator

Cells = tuple[tuple[tuple[str, str | None], int], ...]
"""Gold and predicted label, None for a prediction without one, and how many samples of a task have
them.
"""
_FEW = 20
"""Tasks of a class from which on its F1 is sure enough for the jackknife of a mean."""


class Tally(NamedTuple):
    """How often a class is hit, in the gold labels, and predicted."""

    hits: int = 0
    gold: int = 0
    predicted: int = 0

    def add(self, hits: int, gold: int, predicted: int) -> Tally:
        """Return the sums."""
        return Tally(self.hits + hits, self.gold + gold, self.predicted + predicted)

    @property
    def f1(self) -> float:
        """F1 of counts, 0 of a class that occurs nowhere."""
        return 2 * self.hits / (self.gold + self.predicted) if self.gold + self.predicted else 0.0

    def scores(self) -> dict[str, float | None]:
        """Return precision, recall and F1; None where the denominator is 0."""
        precision, recall = ratio(self.hits, self.predicted), ratio(self.hits, self.gold)
        f1 = 0.0 if self.predicted or self.gold else None
        if precision and recall:
            f1 = 2 * precision * recall / (precision + recall)
        return {"precision": precision, "recall": recall, "f1": f1}


class Counted:
    """Labels of tasks over a label set.

    Their matrix, and the scores made of it with their intervals.
    """

    def __init__(
        self, tasks: Mapping[Cells, int], labels: Sequence[str], confidence: float
    ) -> None:
        self.labels, self.confidence = labels, confidence
        self.matrix = {gold: dict.fromkeys(labels, 0) for gold in labels}
        self.outside = dict.fromkeys(labels, 0)
        """Gold label -> predictions that are none of the labels."""
        self.unknown = 0
        """Samples whose gold label is none of them."""
        self.by_class: dict[str, Counter[Tally]] = {label: Counter() for label in labels}
        self.parts: list[tuple[int, int, dict[str, Tally], int]] = []
        """Samples, right ones and classes of a task, and how many tasks add that.

        Those that add nothing are out.
        """
        for cells, times in tasks.items():
            classes = defaultdict[str, Tally](Tally)
            for (gold, predicted), count in cells:
                if gold not in self.matrix:
                    self.unknown += count * times
                    continue
                classes[gold] = classes[gold].add(count * (predicted == gold), count, 0)
                if predicted is None or predicted not in self.matrix:
                    self.outside[gold] += count * times
                else:
                    self.matrix[gold][predicted] += count * times
                    classes[predicted] = classes[predicted].add(0, 0, count)
            if size := sum(tally.gold for tally in classes.values()):
                self.parts.append(
                    (size, sum(tally.hits for tally in classes.values()), classes, times)
                )
            for label, tally in classes.items():
                self.by_class[label][tally] += times
        self.totals = dict.fromkeys(labels, Tally())
        for label, tallies in self.by_class.items():
            for tally, times in tallies.items():
                self.totals[label] = self.totals[label].add(*(each * times for each in tally))
        self.scores = {label: tally.scores() for label, tally in self.totals.items()}
        self.n = sum(tally.gold for tally in self.totals.values())
        self.correct = sum(tally.hits for tally in self.totals.values())

    def values(self, exclude: Collection[str]) -> dict[str, float | None]:
        """Return accuracy and macro-F1, also that of the classes that are not excluded."""
        kept = [label for label in self.labels if label not in exclude]
        without = {"macro_f1_no_" + "_".join(exclude): self._macro(kept)} if exclude else {}
        return {
            "accuracy": ratio(self.correct, self.n),
            "macro_f1": self._macro(self.labels),
            **without,
        }

    def _macro(self, labels: Sequence[str]) -> float | None:
        """Return the mean F1 of some classes, an undefined one counting as 0.

        None without classes.
        """
        total = 0.0
        for label in labels:  # left to right: the built-in sum compensates from Python 3.12 on
            total += self.scores[label]["f1"] or 0.0
        return total / len(labels) if labels else None

    def accuracy(self) -> Interval:
        """Return the interval of the accuracy."""
        cells = Counter[tuple[float, ...]]()
        for size, correct, _, times in self.parts:
            cells[size, correct] += times
        return ratio_interval(cells, confidence=self.confidence)

    def of_class(self, label: str) -> dict[str, Interval]:
        """Return the intervals of precision, recall and F1.

        Of the tasks in which the class occurs accordingly.
        """
        hits, gold, predicted = self.totals[label]
        n = {"precision": predicted, "recall": gold, "f1": gold + predicted - hits}
        cells = {name: Counter[tuple[float, ...]]() for name in n}
        for (a, b, c), times in self.by_class[label].items():
            cells["precision"][c, a] += times
            cells["recall"][b, a] += times
            cells["f1"][b + c, 2 * a] += times
        return {
            name: ratio_interval(each, n=n[name], confidence=self.confidence)
            for name, each in cells.items()
        }

    def macro_f1(self, labels: Sequence[str]) -> Interval:
        """Return the interval of the mean F1 of some classes.

        One that does not occur without a task has 0 without it.

        Where a class is that of few tasks, leaving out one at a time says too little of it. The
        interval is then no narrower than that of the classes' own together,
        ``m -+ sqrt(sum of (F1 - end)^2) / number``; none where a class is in no gold label.
        """
        if not labels or not self.n:
            return {"reason": "undefined"}
        if absent := next((label for label in labels if not self.totals[label].gold), None):
            return {"reason": f"no gold label is {absent}"}
        whole, total = {label: self.totals[label].f1 for label in labels}, 0.0
        for each in whole.values():
            total += each
        left: Counter[float] = Counter()
        for _, _, classes, times in self.parts:
            without = total
            for label, tally in classes.items():
                if label in whole:
                    without += self.totals[label].add(*(-each for each in tally)).f1 - whole[label]
            left[without / len(labels)] += times
        value, clusters = total / len(labels), sum(times for *_, times in self.parts)
        found = interval(
            estimate(value, list(left.items()), clusters), self.n, confidence=self.confidence
        )
        tasks = [
            sum(times for tally, times in self.by_class[label].items() if tally.gold)
            for label in labels
        ]
        if "low" in found and min(tasks) < _FEW:
            own = [(whole[label], self.of_class(label)["f1"]) for label in labels]
            below = math.hypot(*[f1 - of.get("low", 0.0) for f1, of in own]) / len(labels)
            above = math.hypot(*[of.get("high", 1.0) - f1 for f1, of in own]) / len(labels)
            found["low"], found["high"] = (
                min(found["low"], value - below),
                max(found["high"], value + above),
            )
        return found


Counts = Counter[str]
Names = Mapping[str, Sequence[Any]]
"""Name of a number -> what it says: ``cell``, set, gold label, predicted label.

``count``, set, what; ``labels`` or ``exclude``, and the labels. The set of the grades themselves is
None.
"""

_LACKING = {
    "precision": "never predicted",
    "recall": "not in the gold labels",
    "f1": "neither in the gold labels nor predicted",
}


def _name(*said: JSON) -> str:
    return json.dumps(said)


_GRADED = _name("count", None, str(Outcome.GRADED))


def _names(numbers: Iterable[str]) -> Names:
    return {name: json.loads(name) for name in numbers}


def _numbers(graded: Grade | Item, of: str | None) -> dict[str, int]:
    numbers = {_name("count", of, str(graded.outcome)): 1}
    if graded.outcome is Outcome.GRADED:
        is_cell = graded.gold is not None
        cell = _name("cell", of, graded.gold, graded.label)
        numbers[cell if is_cell else _name("count", of, "no_gold")] = 1
    return numbers


def _declared(names: Names, what: Literal["labels", "exclude"]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(label for said in names.values() if said[0] == what for label in said[1])
    )


def _cells_of(tasks: Mapping[TaskNumbers, int], names: Names, of: str | None) -> Counter[Cells]:
    """Return the cells of tasks in one set, and how many tasks have them.

    Those without any are out.
    """
    wanted = {name: (said[2], said[3]) for name, said in names.items() if said[:2] == ["cell", of]}
    found: Counter[Cells] = Counter()
    for numbers, times in tasks.items():
        if cells := tuple(
            [(wanted[name], int(number)) for name, number in numbers if name in wanted]
        ):
            found[cells] += times
    return found


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

    N counts grades that have a score: missing, skipped and failed ones stand beside it.

    The label set is, in this order: the option ``labels``; what the grades declare
    (``metadata.label_set.labels``); else every label seen, sorted. A prediction outside it, or
    without a label, is counted in a predicted-only column named ``invalid`` and is wrong
    everywhere; a gold label outside it is left out of the matrix and counted in ``n_unknown_gold``.
    A class that is itself called ``invalid`` (in the label set given, or among the gold labels) is
    a class like any other, and the column is then ``(invalid)``.

    A figure whose denominator is 0 is null, and ``undefined`` names the reason; a mean takes it as
    0. Every figure has its interval, which leaves out one task at a time; of several models
    ``models`` has those of each.
    """

    version = "4"
    figures: ClassVar = (
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
        if self.labels is not None and len(set(self.labels)) < max(1, len(self.labels)):
            raise ValueError("labels must name at least one label, and each only once")
        if self.labels is not None and (
            unknown := sorted(set(self.exclude or ()) - set(self.labels))
        ):
            raise ValueError(f"exclude names labels that are not in labels: {', '.join(unknown)}")

    @override
    def contribution(self, grade: Grade) -> Numbers:
        found: Counter[str] = Counter()
        declared, mode = grade.metadata.get("label_set"), self.items
        if isinstance(declared, Mapping):
            for what in ("labels", "exclude"):
                if isinstance(labels := declared.get(what), list | tuple):
                    found[_name(what, [label for label in labels if isinstance(label, str)])] = 1
            mode = str(declared.get("items", "ignore")) if mode == "declared" else mode  # type: ignore[assignment]
        for graded in grade.items if mode == "pool" and grade.items else (grade,):
            found.update(_numbers(graded, None))
        for item in grade.items if mode == "sets" else ():
            found.update(_numbers(item, item.id))
        return found

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Any]:
        """Return the figures over the label set given; ``compare`` gives that of the run."""
        if self.labels is None:
            return {}
        names = _names(totals)
        counted = Counted(
            _cells_of({tuple(totals.items()): 1}, names, None), self.labels, self.confidence
        )
        values = counted.values(self._excluded(names))
        return {} if values["accuracy"] is None else {**values, "per_class": counted.scores}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        totals, (every, models) = grades.totals, grades.task_numbers()
        names = _names(totals)
        counts: dict[str | None, Counts] = {None: Counter()}
        for name, said in names.items():
            if said[0] == "count":
                counts.setdefault(said[1], Counter())[said[2]] = int(totals[name])
        cells = {of: _cells_of(every, names, of) for of in counts}
        labels, exclude = self._label_set(names, cells.values()), self._excluded(names)
        main, *sets = [
            self._metrics(labels, exclude, each, counts[of]) for of, each in cells.items()
        ]
        if sets:
            main["sets"] = dict(zip(list(counts)[1:], sets, strict=True))
        of_models = {
            model: found
            for model, tasks in models.items()
            if (found := _cells_of(tasks, names, None))
        }
        if len(of_models) > 1:
            main["models"] = {
                model: self._metrics(labels, exclude, each, None)
                for model, each in of_models.items()
            }
        return main

    def _excluded(self, names: Names) -> tuple[str, ...]:
        return _declared(names, "exclude") if self.exclude is None else self.exclude

    def _label_set(self, names: Names, sets: Iterable[Iterable[Cells]]) -> tuple[str, ...]:
        if known := self.labels or _declared(names, "labels"):
            return known
        pairs = [pair for tasks in sets for cells in tasks for pair, _ in cells]
        predicted = {label for _, label in pairs if label is not None}
        return tuple(sorted({gold for gold, _ in pairs} | (predicted - {self.invalid})))

    def _metrics(
        self,
        labels: tuple[str, ...],
        exclude: tuple[str, ...],
        tasks: Mapping[Cells, int],
        counts: Counts | None,
    ) -> dict[str, JSON]:
        counted, undefined = Counted(tasks, labels, self.confidence), dict[str, str]()

        def figure(
            name: str, value: float | None, reason: str, sure: Interval, place: str = ""
        ) -> dict[str, JSON]:
            """Return a figure and its interval; of an undefined one why it has none."""
            if value is None:
                sure = {"reason": reason}
                undefined[place + name] = reason
            return {name: value, f"{name}_interval": {**sure}}

        values = counted.values(exclude)
        accuracy = figure(
            "accuracy", values.pop("accuracy"), "nothing was graded", counted.accuracy()
        )
        result: dict[str, JSON] = {"n": counted.n, "n_correct": counted.correct, **accuracy}
        for name, value in values.items():
            kept = [label for label in labels if name == "macro_f1" or label not in exclude]
            why = "no labels" if name == "macro_f1" else "every label is excluded"
            result |= figure(name, value, why, counted.macro_f1(kept))
            nowhere = [label for label in kept if counted.scores[label]["f1"] is None]
            if nowhere:
                many = "counts" if len(nowhere) == 1 else "count"
                result[f"{name}_note"] = (
                    f"{', '.join(nowhere)} {many} as 0: neither in the gold labels nor predicted"
                )
        classes: dict[str, JSON] = {}
        for label in labels:
            sure, place, found = counted.of_class(label), f"per_class.{label}.", dict[str, JSON]()
            for name, value in counted.scores[label].items():
                found |= figure(name, value, _LACKING[name], sure[name], place)
            _, support, predicted = counted.totals[label]
            classes[label] = {**found, "support": support, "predicted": predicted}
        column = f"({self.invalid})" if self.invalid in labels else self.invalid
        result |= {
            "per_class": classes,
            "confusion_matrix": {
                gold: {**row, column: counted.outside[gold]} for gold, row in counted.matrix.items()
            },
            "labels": list(labels),
        }
        if counts is not None:
            result |= {
                "n_invalid": sum(counted.outside.values()),
                "n_missing": counts[Outcome.MISSING],
                "n_skipped": counts[Outcome.SKIPPED],
                "n_failed": counts[Outcome.FAILED],
                "n_no_gold": counts["no_gold"],
                "n_unknown_gold": counted.unknown,
            }
        return {**result, "undefined": {**undefined}}
