"""Accuracy, per-class precision, recall and F1, macro-F1 and the confusion matrix of any grader that yields labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    CountsState,
    Grade,
    Interval,
    Item,
    Key,
    Outcome,
    Profile,
    TaskCounts,
    TaskNumbers,
    valid_confidence,
)
from gradestack.exact import count_into
from gradestack_plugins.statistics.matrix_intervals import MatrixIntervals, pair_name, pair_of

Matrix = dict[str, dict[str, int]]
"""Gold label -> predicted label -> number."""

_COUNTED = ("converted", "dropped", "missing")
_CELLS = TaskCounts()


class SetState(TypedDict):
    """One prediction set: the cells of its matrix by task, and its counts by outcome."""

    cells: CountsState
    counts: dict[str, int]


class ClassificationState(TypedDict):
    """JSON state of :class:`Classification`."""

    labels: list[str]
    exclude: list[str]
    main: SetState
    sets: dict[str, SetState]


@attrs.frozen
class _Counted:
    """A matrix over every label seen, and what it was counted from."""

    matrix: Matrix
    unlabelled: Mapping[str, int]
    """Gold label -> predictions without a label."""
    tasks: Mapping[TaskNumbers, int]

    @classmethod
    def of(cls, tasks: Mapping[TaskNumbers, int]) -> _Counted:
        """Return the sum of tasks."""
        matrix: Matrix = {}
        unlabelled: dict[str, int] = {}
        for numbers, times in tasks.items():
            for name, number in numbers:
                gold, predicted = pair_of(name)
                row, label = (unlabelled, gold) if predicted is None else (matrix.setdefault(gold, {}), predicted)
                matrix.setdefault(gold, {})
                row[label] = row.get(label, 0) + int(number) * times
        return cls(matrix, unlabelled, tasks)


def _new_set() -> SetState:
    return {"cells": _CELLS.start(), "counts": {}}


def _merge_set(left: SetState, right: SetState) -> None:
    _CELLS.merge(left["cells"], right["cells"])
    count_into(left["counts"], right["counts"])


def _united(left: list[str], right: Sequence[Any]) -> list[str]:
    """Return ``left`` with the texts of ``right`` it lacks."""
    known = set(left)
    return [*left, *(label for label in dict.fromkeys(right) if isinstance(label, str) and label not in known)]


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
class Classification(Aggregator[ClassificationState]):
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
    memory = "per_key"

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
    def start(self) -> ClassificationState:
        return {"labels": [], "exclude": [], "main": _new_set(), "sets": {}}

    @override
    def add(self, state: ClassificationState, key: Key, grade: Grade) -> ClassificationState:
        declared = grade.metadata.get("label_set")
        mode = self.items
        if isinstance(declared, Mapping):
            self._declare(state, declared)
            mode = str(declared.get("items", "ignore")) if mode == "declared" else mode  # type: ignore[assignment]
        if mode == "pool" and grade.items:
            for item in grade.items:
                self._count(state["main"], key, item)
            return state
        self._count(state["main"], key, grade)
        if mode == "sets":
            for item in grade.items:
                self._count(state["sets"].setdefault(item.id, _new_set()), key, item)
        return state

    @override
    def merge(self, left: ClassificationState, right: ClassificationState) -> ClassificationState:
        self._declare(left, right)
        _merge_set(left["main"], right["main"])
        for name, counted in right["sets"].items():
            _merge_set(left["sets"].setdefault(name, _new_set()), counted)
        return left

    @override
    def finish(self, state: ClassificationState) -> Mapping[str, JSON]:
        every, models = _CELLS.tasks(state["main"]["cells"])
        main, sets = (
            _Counted.of(every),
            {name: _Counted.of(_CELLS.tasks(held["cells"])[0]) for name, held in state["sets"].items()},
        )
        labels = self._label_set(state, (main, *sets.values()))
        result = self._metrics(state, labels, main, state["main"]["counts"])
        if sets:
            result["sets"] = {
                name: self._metrics(state, labels, counted, state["sets"][name]["counts"])
                for name, counted in sets.items()
            }
        if len(models) > 1:
            result["models"] = {
                model: self._metrics(state, labels, _Counted.of(tasks), None) for model, tasks in models.items()
            }
        return result

    @staticmethod
    def _declare(state: ClassificationState, declared: Mapping[str, Any]) -> None:
        names: tuple[Literal["labels", "exclude"], ...] = ("labels", "exclude")
        for name in names:
            more = declared.get(name)
            if isinstance(more, list | tuple) and list(more) != state[name]:
                state[name] = _united(state[name], more)

    def _count(self, state: SetState, key: Key, graded: Grade | Item) -> None:
        counts = state["counts"]
        outcome = str(graded.outcome)
        counts[outcome] = counts.get(outcome, 0) + 1
        for name in _COUNTED:
            if number := graded.counts.get(name):
                counts[f"counted_{name}"] = counts.get(f"counted_{name}", 0) + number
        if graded.outcome is not Outcome.GRADED:
            return
        if graded.gold is None:
            counts["no_gold"] = counts.get("no_gold", 0) + 1
            return
        _CELLS.add(state["cells"], key, {pair_name(graded.gold, graded.label): 1})

    def _label_set(self, state: ClassificationState, sets: Sequence[_Counted]) -> tuple[str, ...]:
        if self.labels is not None:
            return self.labels
        if state["labels"]:
            return tuple(state["labels"])
        gold: set[str] = set()
        predicted: set[str] = set()
        for counted in sets:
            gold.update(counted.matrix)
            predicted.update(*counted.matrix.values())
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
        self,
        state: ClassificationState,
        labels: tuple[str, ...],
        counted: _Counted,
        counts: Mapping[str, int] | None,
    ) -> dict[str, JSON]:
        """Return the figures of a matrix, and with ``counts`` what became of the samples."""
        exclude = tuple(state["exclude"]) if self.exclude is None else self.exclude
        matrix, outside = self._matrix(counted, labels)
        sure = MatrixIntervals(counted.tasks, labels, self.confidence)
        n = sum(sum(row.values()) for row in matrix.values())
        correct = sum(matrix[label][label] for label in labels)
        undefined: dict[str, str] = {}
        scores = {label: class_scores(matrix, label) for label in labels}
        result: dict[str, JSON] = {
            "n": n,
            "n_correct": correct,
            **self._value("accuracy", correct / n if n else None, "nothing was graded", undefined, sure.accuracy()),
        }
        kept = {"macro_f1": (labels, "no labels")}
        if exclude:
            others = tuple(label for label in labels if label not in exclude)
            kept["macro_f1_no_" + "_".join(exclude)] = (others, "every label is excluded")
        for name, (some, why) in kept.items():
            value = macro([scores[label].f1 for label in some])
            result |= self._value(name, value, why, undefined, sure.macro_f1(some))
            nowhere = [label for label in some if scores[label].f1 is None]
            if nowhere and value is not None and self.profile == "documented":
                many = "counts" if len(nowhere) == 1 else "count"
                result[f"{name}_note"] = f"{', '.join(nowhere)} {many} as 0: neither in the gold labels nor predicted"
        result["per_class"] = {
            label: self._class(label, score, undefined, sure.of_class(label)) for label, score in scores.items()
        }
        result["confusion_matrix"] = matrix
        result["labels"] = list(labels)
        if counts is not None:
            result |= self._states(counted, counts, matrix, outside)
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

    @staticmethod
    def _states(counted: _Counted, counts: Mapping[str, int], matrix: Matrix, outside: int) -> dict[str, JSON]:
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
