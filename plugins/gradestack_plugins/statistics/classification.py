"""Accuracy, per-class precision, recall and F1, macro-F1 and the confusion matrix of any grader that yields labels."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grade,
    Grades,
    Interval,
    Item,
    Numbers,
    Outcome,
    Profile,
    TaskNumbers,
    estimate,
    interval,
    ratio_interval,
    valid_confidence,
)

Cells = tuple[tuple[tuple[str, str | None], int], ...]
"""Gold and predicted label, None for a prediction without one, and how many samples of a task have them."""


@attrs.frozen
class Part:
    """What one task adds to a matrix."""

    size: int
    correct: int
    classes: Mapping[str, tuple[int, int, int]]
    """Class -> hits, gold, predicted; those of the label set that occur."""


def parts_of(tasks: Mapping[Cells, int], labels: Collection[str]) -> list[tuple[Part, int]]:
    """Return what tasks add to the matrix over a label set, and how many add that; those that add nothing are out."""
    found = []
    for cells, times in tasks.items():
        classes: dict[str, list[int]] = {}
        size = correct = 0
        for (gold, predicted), count in cells:
            if gold not in labels:
                continue
            size += count
            classes.setdefault(gold, [0, 0, 0])[1] += count
            if predicted is not None and predicted in labels:
                classes.setdefault(predicted, [0, 0, 0])[2] += count
            if predicted == gold:
                correct += count
                classes[gold][0] += count
        if size:
            found.append((Part(size, correct, {label: (a, b, c) for label, (a, b, c) in classes.items()}), times))
    return found


_FEW = 20
"""Tasks of a class from which on its F1 is sure enough for the jackknife of a mean."""


class MatrixIntervals:
    """Intervals of accuracy, precision, recall, F1 and macro-F1.

    Args:
        tasks: Cells of a task -> how many tasks have them.
        labels: The label set.
        confidence: Of the intervals.
    """

    def __init__(self, tasks: Mapping[Cells, int], labels: Collection[str], confidence: float) -> None:
        self.parts, self.confidence = parts_of(tasks, frozenset(labels)), confidence
        self.clusters = sum(times for _, times in self.parts)
        self.n = sum(part.size * times for part, times in self.parts)
        self.totals = dict.fromkeys(labels, (0, 0, 0))
        self.by_class: dict[str, Counter[tuple[int, int, int]]] = {label: Counter() for label in labels}
        for part, times in self.parts:
            for label, counts in part.classes.items():
                self.by_class[label][counts] += times
        for label, tallies in self.by_class.items():
            for (hits, gold, predicted), times in tallies.items():
                a, b, c = self.totals[label]
                self.totals[label] = (a + hits * times, b + gold * times, c + predicted * times)

    def accuracy(self) -> Interval:
        """Return the interval of the accuracy."""
        cells: Counter[tuple[float, ...]] = Counter()
        for part, times in self.parts:
            cells[part.size, part.correct] += times
        return ratio_interval(cells, confidence=self.confidence)

    def of_class(self, label: str) -> dict[str, Interval]:
        """Return the intervals of precision, recall and F1; of the tasks in which the class occurs accordingly."""
        hits, gold, predicted = self.totals[label]
        cells: dict[str, Counter[tuple[float, ...]]] = {"precision": Counter(), "recall": Counter(), "f1": Counter()}
        for (a, b, c), times in self.by_class[label].items():
            cells["precision"][c, a] += times
            cells["recall"][b, a] += times
            cells["f1"][b + c, 2 * a] += times
        n = {"precision": predicted, "recall": gold, "f1": gold + predicted - hits}
        return {name: ratio_interval(each, n=n[name], confidence=self.confidence) for name, each in cells.items()}

    def macro_f1(self, labels: Sequence[str]) -> Interval:
        """Return the interval of the mean F1 of some classes; one that does not occur without a task has 0 without it.

        Where a class is that of few tasks, leaving out one at a time says too little of it. The interval is then no
        narrower than that of the classes' own together, ``m -+ sqrt(sum of (F1 - end)^2) / number``; none where a class
        is in no gold label.
        """
        if not labels or not self.n:
            return {"reason": "undefined"}
        if absent := next((label for label in labels if not self.totals[label][1]), None):
            return {"reason": f"no gold label is {absent}"}
        whole = {label: _f1(self.totals[label]) for label in labels}
        total = 0.0
        for each in whole.values():
            total += each
        left: Counter[float] = Counter()
        for part, times in self.parts:
            without = total
            for label, (hits, gold, predicted) in part.classes.items():
                if label in whole:
                    a, b, c = self.totals[label]
                    without += _f1((a - hits, b - gold, c - predicted)) - whole[label]
            left[without / len(labels)] += times
        value = total / len(labels)
        found = interval(estimate(value, list(left.items()), self.clusters), self.n, confidence=self.confidence)
        if "low" in found and any(self._tasks_of(label) < _FEW for label in labels):
            own = [(whole[label], *_ends(self.of_class(label)["f1"])) for label in labels]
            below = math.hypot(*[f1 - low for f1, low, _ in own]) / len(labels)
            above = math.hypot(*[high - f1 for f1, _, high in own]) / len(labels)
            found["low"], found["high"] = min(found["low"], value - below), max(found["high"], value + above)
        return found

    def _tasks_of(self, label: str) -> int:
        """Return how many tasks have a class among their gold labels."""
        return sum(times for (_, gold, _), times in self.by_class[label].items() if gold)


def _ends(share: Interval) -> tuple[float, float]:
    return (share["low"], share["high"]) if "low" in share else (0.0, 1.0)


def _f1(counts: tuple[int, int, int]) -> float:
    hits, gold, predicted = counts
    return 2 * hits / (gold + predicted) if gold + predicted else 0.0


Matrix = dict[str, dict[str, int]]
"""Gold label -> predicted label -> number."""
Names = Mapping[str, Sequence[Any]]
"""Name of a number -> what it says: ``cell``, set, gold label, predicted label; ``count``, set, what; ``labels`` or
``exclude``, and the labels. The set of the grades themselves is None."""

_RATES = ("precision", "recall", "f1")
_COUNTED = ("converted", "dropped", "missing")


def _name(*said: JSON) -> str:
    return json.dumps(said)


_GRADED = _name("count", None, str(Outcome.GRADED))


def _names(numbers: Iterable[str]) -> Names:
    return {name: json.loads(name) for name in numbers}


def _numbers(graded: Grade | Item, of: str | None) -> dict[str, int]:
    """Return what a label adds to a set: a cell of its matrix, or why it adds none."""
    found = {_name("count", of, str(graded.outcome)): 1}
    found |= {
        _name("count", of, f"counted_{name}"): graded.counts[name] for name in _COUNTED if graded.counts.get(name)
    }
    if graded.outcome is Outcome.GRADED:
        lacks = graded.gold is None
        found[_name("count", of, "no_gold") if lacks else _name("cell", of, graded.gold, graded.label)] = 1
    return found


def _declared(names: Names, what: Literal["labels", "exclude"]) -> tuple[str, ...]:
    """Return the labels that grades declare, in the order of the first ones."""
    return tuple(dict.fromkeys(label for said in names.values() if said[0] == what for label in said[1]))


@attrs.frozen
class _Counted:
    """A matrix over every label seen, and what it was counted from."""

    matrix: Matrix
    unlabelled: Mapping[str, int]
    """Gold label -> predictions without a label."""
    tasks: Mapping[Cells, int]

    @classmethod
    def of(cls, tasks: Mapping[TaskNumbers, int], names: Names, of: str | None) -> _Counted:
        """Return the sum of tasks, of one set."""
        matrix: Matrix = {}
        unlabelled: dict[str, int] = {}
        wanted = {name: (said[2], said[3]) for name, said in names.items() if said[:2] == ["cell", of]}
        counted: Counter[Cells] = Counter()
        for numbers, times in tasks.items():
            if cells := tuple([(wanted[name], int(number)) for name, number in numbers if name in wanted]):
                counted[cells] += times
        for cells, times in counted.items():
            for (gold, predicted), number in cells:
                row = matrix.setdefault(gold, {})
                row, label = (unlabelled, gold) if predicted is None else (row, predicted)
                row[label] = row.get(label, 0) + number * times
        return cls(matrix, unlabelled, counted)


@attrs.frozen(kw_only=True)
class ClassScores:
    """Precision, recall and F1 of one class; None where the denominator is 0."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: int
    predicted: int


def class_scores(matrix: Mapping[str, Mapping[str, int]], label: str) -> ClassScores:
    """Return the scores of one class.

    ``P = tp / (tp + fp)``, ``R = tp / (tp + fn)``, ``F1 = 2 P R / (P + R)``. F1 is 0 when the class occurs (in gold
    or in the predictions) without a hit, and undefined only when it occurs nowhere.
    """
    row = matrix.get(label, {})
    hits, support = row.get(label, 0), sum(row.values())
    predicted = sum(other.get(label, 0) for other in matrix.values())
    precision = hits / predicted if predicted else None
    recall = hits / support if support else None
    if precision and recall:
        f1: float | None = 2 * precision * recall / (precision + recall)
    else:
        f1 = 0.0 if predicted or support else None
    return ClassScores(precision=precision, recall=recall, f1=f1, support=support, predicted=predicted)


def macro(values: Sequence[float | None]) -> float | None:
    """Return ``(x1 + x2 + ...) / n``, an undefined value counting as 0; None without values."""
    if not values:
        return None
    total = 0.0
    for value in values:  # left to right: the built-in sum compensates from Python 3.12 on
        total += value or 0.0
    return total / len(values)


@attrs.frozen(kw_only=True)
class Classification(Aggregator):
    """Classification metrics over grades with a gold label and a predicted label.

    With ``C[gold][predicted]`` the confusion matrix, rows gold and columns predicted, and N the sum of its cells:

    - ``accuracy = sum of C[y][y] / N``
    - per class ``precision = tp / (tp + fp)``, ``recall = tp / (tp + fn)``, ``f1 = 2 P R / (P + R)``,
      ``support = tp + fn``
    - ``macro_f1`` = mean of F1 over **all** labels of the label set, also those without support; one that occurs
      nowhere, whose own F1 is null, counts as 0, and ``macro_f1_note`` says so (``documented``)
    - ``macro_f1_no_X`` = mean of F1 over the labels outside ``exclude``, from the same matrix: a prediction of an
      excluded label stays a miss

    N counts grades that have a score: missing, skipped and failed ones stand beside it. Whether a dataset row without a
    prediction is in N is therefore the grader's decision (the When2Call grader leaves it out in ``documented`` and
    counts it as a coerced prediction in ``upstream``).

    The label set is, in this order: the option ``labels``; what the grades declare (``metadata.label_set.labels``);
    else every label seen, sorted. A prediction outside it, or without a label, is counted in a predicted-only column
    named ``invalid`` and is wrong everywhere; a gold label outside it is left out of the matrix and counted in
    ``n_unknown_gold``. A class that is itself called ``invalid`` (in the label set given, or among the gold labels) is
    a class like any other, and the column is then ``(invalid)``.

    Every figure has its interval, which leaves out one task at a time; of several models ``models`` has those of each.

    Differences between the profiles, for empty denominators only: ``documented`` gives null and names the reason under
    ``undefined`` (a mean takes it as 0), ``upstream`` gives 0.0.
    """

    version = "4"
    figures: ClassVar = (
        Figure("accuracy", "Accuracy", about="predictions equal to the gold label / graded samples", divisor=_GRADED),
        Figure("macro_f1", "Macro-F1", about="mean of F1 over the label set", divisor=_GRADED),
        Figure("macro_f1_no_{class}", "Macro-F1 of the other classes", about="mean of F1 over them", divisor=_GRADED),
        Figure("per_class.{class}.precision", "Precision", about="tp / (tp + fp)", divisor=_GRADED),
        Figure("per_class.{class}.recall", "Recall", about="tp / (tp + fn)", divisor=_GRADED),
        Figure("per_class.{class}.f1", "F1", about="2 P R / (P + R)", divisor=_GRADED),
    )
    needs: ClassVar = frozenset({"items", "metadata:label_set"})

    profile: Profile = "documented"
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""
    labels: tuple[str, ...] | None = None
    """Label set in display order; default: as declared by the grades, else the labels seen."""
    exclude: tuple[str, ...] | None = None
    """Labels left out of the second macro-F1; default: as declared by the grades, else none."""
    invalid: str = "invalid"
    """Name of the column for predictions outside the label set."""
    items: Literal["declared", "ignore", "sets", "pool"] = "declared"
    """What to do with the labelled items inside a grade: ``sets`` gives the items of one id metrics of their own (under
    ``sets``), ``pool`` counts every item instead of the grade, ``declared`` follows ``metadata.label_set.items``."""

    def __attrs_post_init__(self) -> None:
        if self.labels is not None and len(set(self.labels)) < max(1, len(self.labels)):
            raise ValueError("labels must name at least one label, and each only once")
        if self.labels is not None and (unknown := sorted(set(self.exclude or ()) - set(self.labels))):
            raise ValueError(f"exclude names labels that are not in labels: {', '.join(unknown)}")

    @override
    def numbers(self, grade: Grade) -> Numbers:
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
    def estimate(self, **sums: float) -> Mapping[str, Any]:
        """Return the figures over the label set given; ``compare`` gives that of the run."""
        if self.labels is None:
            return {}
        names = _names(sums)
        matrix, _ = self._matrix(_Counted.of({tuple(sums.items()): 1}, names, None), self.labels)
        scores = {label: class_scores(matrix, label) for label in self.labels}
        values = _values(matrix, scores, self._excluded(names))
        if values["accuracy"] is None:
            return {}
        return {
            **values,
            "per_class": {label: {name: getattr(each, name) for name in _RATES} for label, each in scores.items()},
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        totals, (every, models) = grades.totals, grades.task_numbers()
        names = _names(totals)
        counts: dict[str | None, dict[str, int]] = {None: {}}
        for name, said in names.items():
            if said[0] == "count":
                counts.setdefault(said[1], {})[said[2]] = int(totals[name])
        counted = {of: _Counted.of(every, names, of) for of in counts}
        labels, exclude = self._label_set(names, list(counted.values())), self._excluded(names)
        main, *sets = [self._metrics(labels, exclude, each, counts[of]) for of, each in counted.items()]
        if sets:
            main["sets"] = dict(zip(list(counts)[1:], sets, strict=True))
        of_models = {model: _Counted.of(tasks, names, None) for model, tasks in models.items()}
        of_models = {model: each for model, each in of_models.items() if each.tasks}
        if len(of_models) > 1:
            main["models"] = {model: self._metrics(labels, exclude, each, None) for model, each in of_models.items()}
        return main

    def _excluded(self, names: Names) -> tuple[str, ...]:
        return _declared(names, "exclude") if self.exclude is None else self.exclude

    def _label_set(self, names: Names, sets: Sequence[_Counted]) -> tuple[str, ...]:
        if known := self.labels or _declared(names, "labels"):
            return known
        gold = {label for counted in sets for label in counted.matrix}
        predicted = {label for counted in sets for row in counted.matrix.values() for label in row}
        return tuple(sorted(gold | (predicted - {self.invalid})))

    def _matrix(self, counted: _Counted, labels: tuple[str, ...]) -> tuple[Matrix, int]:
        """Return the matrix over the label set (all cells present) and the number of predictions outside it."""
        matrix: Matrix = {gold: dict.fromkeys(labels, 0) for gold in labels}
        outside = dict.fromkeys(labels, 0)
        for gold in labels:
            for predicted, number in counted.matrix.get(gold, {}).items():
                if predicted in matrix:
                    matrix[gold][predicted] = number
                else:
                    outside[gold] += number
            outside[gold] += counted.unlabelled.get(gold, 0)
        column = f"({self.invalid})" if self.invalid in matrix else self.invalid
        if any(outside.values()) or self.profile == "documented":
            for gold, row in matrix.items():
                row[column] = outside[gold]
        return matrix, sum(outside.values())

    def _metrics(
        self, labels: tuple[str, ...], exclude: tuple[str, ...], counted: _Counted, counts: Mapping[str, int] | None
    ) -> dict[str, JSON]:
        """Return the figures of a matrix, and with ``counts`` what became of the samples."""
        matrix, outside = self._matrix(counted, labels)
        sure = MatrixIntervals(counted.tasks, labels, self.confidence)
        scores = {label: class_scores(matrix, label) for label in labels}
        values, undefined = _values(matrix, scores, exclude), dict[str, str]()
        result: dict[str, JSON] = {
            "n": sum(sum(row.values()) for row in matrix.values()),
            "n_correct": sum(matrix[label][label] for label in labels),
            **self._value("accuracy", values.pop("accuracy"), "nothing was graded", undefined, sure.accuracy()),
        }
        for name, value in values.items():
            kept = [label for label in labels if name == "macro_f1" or label not in exclude]
            why = "no labels" if name == "macro_f1" else "every label is excluded"
            result |= self._value(name, value, why, undefined, sure.macro_f1(kept))
            nowhere = [label for label in kept if scores[label].f1 is None]
            if nowhere and self.profile == "documented":
                many = "counts" if len(nowhere) == 1 else "count"
                result[f"{name}_note"] = f"{', '.join(nowhere)} {many} as 0: neither in the gold labels nor predicted"
        result["per_class"] = {
            label: self._class(label, score, undefined, sure.of_class(label)) for label, score in scores.items()
        }
        result["confusion_matrix"] = matrix
        result["labels"] = list(labels)
        if counts is not None:
            result |= _states(counted, counts, matrix, outside)
        if self.profile == "documented":
            result["undefined"] = undefined
        return result

    def _class(
        self, label: str, score: ClassScores, undefined: dict[str, str], sure: Mapping[str, Interval]
    ) -> dict[str, JSON]:
        place, found = f"per_class.{label}", dict[str, JSON]()
        for name, value, why in (
            ("precision", score.precision, "never predicted"),
            ("recall", score.recall, "not in the gold labels"),
            ("f1", score.f1, "neither in the gold labels nor predicted"),
        ):
            known = self._value(f"{place}.{name}", value, why, undefined, sure[name])
            found |= {key.removeprefix(f"{place}."): each for key, each in known.items()}
        return {**found, "support": score.support, "predicted": score.predicted}

    def _value(
        self, place: str, value: float | None, reason: str, undefined: dict[str, str], sure: Interval
    ) -> dict[str, JSON]:
        """Return a figure and its interval; of an undefined one null (upstream: 0.0) and why there is no interval."""
        beside = f"{place}_interval"
        if value is not None:
            return {place: value, beside: {**sure}}
        if self.profile == "upstream":
            return {place: 0.0, beside: {"reason": reason}}
        undefined[place] = reason
        return {place: None, beside: {"reason": reason}}


def _values(matrix: Matrix, scores: Mapping[str, ClassScores], exclude: Collection[str]) -> dict[str, float | None]:
    """Return accuracy and macro-F1, also that of the classes that are not excluded."""
    n = sum(sum(row.values()) for row in matrix.values())
    values = {
        "accuracy": sum(matrix[label][label] for label in scores) / n if n else None,
        "macro_f1": macro([each.f1 for each in scores.values()]),
    }
    if exclude:
        kept = [each.f1 for label, each in scores.items() if label not in exclude]
        values["macro_f1_no_" + "_".join(exclude)] = macro(kept)
    return values


def _states(counted: _Counted, counts: Mapping[str, int], matrix: Matrix, outside: int) -> dict[str, JSON]:
    """Return how many samples have no place in a matrix, and why."""
    converted = counts.get("counted_converted", 0)
    unknown = sum(
        sum(row.values()) + counted.unlabelled.get(gold, 0)
        for gold, row in counted.matrix.items()
        if gold not in matrix
    )
    return {
        "n_invalid": outside + converted + counts.get("counted_dropped", 0),
        "n_converted": converted,
        "n_missing": counts.get(Outcome.MISSING, 0) + counts.get("counted_missing", 0),
        "n_skipped": counts.get(Outcome.SKIPPED, 0),
        "n_failed": counts.get(Outcome.FAILED, 0),
        "n_no_gold": counts.get("no_gold", 0),
        "n_unknown_gold": unknown,
    }
