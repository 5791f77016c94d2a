"""Intervals of the figures of a confusion matrix, leaving out one task at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import attrs

from gradestack import Interval, estimate, interval, ratio_interval

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
        """Return the interval of the mean F1 of some classes; one that occurs nowhere, or not without a task, has 0."""
        if not labels or not self.n:
            return {"reason": "undefined"}
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
        found = estimate(total / len(labels), list(left.items()), self.clusters)
        return interval(found, self.n, confidence=self.confidence)


def _f1(counts: tuple[int, int, int]) -> float:
    hits, gold, predicted = counts
    return 2 * hits / (gold + predicted) if gold + predicted else 0.0
