"""Mean score with error bars."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Grade, Key
from gradestack.exact import add_exact
from gradestack_plugins.statistics.student import t_quantile
from gradestack_plugins.statistics.tasks import OPEN, Tasks, merge_tasks, no_tasks, put_away, values_of

Cluster = float | list[float]
"""Of a task: its only score, or the number of its scores and then their exact sum (:mod:`gradestack.exact`)."""


class MeanState(TypedDict):
    """JSON state: scores per cluster, and all samples seen."""

    total: int
    models: dict[str, Tasks[Cluster]]
    """Model (JSON text: a name, or null) -> its tasks."""


def _joined(left: Cluster, right: Cluster) -> Cluster:
    """Return the scores of both."""
    found = left.copy() if isinstance(left, list) else [1, left]
    if isinstance(right, float):
        found[0] += 1
        add_exact(found, right, 1)
        return found
    found[0] += right[0]
    for value in right[1:]:
        add_exact(found, value, 1)
    return found


@attrs.frozen(kw_only=True)
class Mean(Aggregator[MeanState]):
    r"""Mean score, its standard error and confidence interval, clustered by task.

    With scores x_i over n graded samples in C clusters (a cluster is one task of one model; its runs depend on each
    other):

        mean   = sum(x_i) / n
        stderr = sqrt(C / (C - 1) * sum over clusters of (sum of (x_i - mean) in the cluster)^2) / n
        ci95   = mean ± t(C - 1) * stderr

    With one run per task this is the usual standard error, sample standard deviation / sqrt(n). Undefined (None) for
    fewer than two clusters. Sums are exact and rounded once.

    Source: cluster-robust standard error of a mean with the C / (C - 1) correction, Student's t with C - 1 degrees.
    """

    memory = "per_key"

    confidence: float = 0.95
    """Of the interval, between 0 and 1."""

    def __attrs_post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            msg = f"confidence must be between 0 and 1, got {self.confidence}"
            raise ValueError(msg)

    @override
    def start(self) -> MeanState:
        return {"total": 0, "models": {}}

    @override
    def add(self, state: MeanState, key: Key, grade: Grade) -> MeanState:
        return Mean.add_many(self, state, (key,), (grade,))

    @override
    def add_many(self, state: MeanState, keys: Sequence[Key], grades: Sequence[Grade]) -> MeanState:
        state["total"] += len(grades)
        models: dict[str | None, Tasks[Cluster]] = {}
        for key, grade in zip(keys, grades, strict=True):
            if grade.score is None:
                continue
            tasks = models.get(key.model)
            if tasks is None:
                tasks = models[key.model] = state["models"].setdefault(json.dumps(key.model), no_tasks())
            clusters, score = tasks["open"], float(grade.score)
            held = clusters.get(key.id)
            clusters[key.id] = score if held is None else _joined(held, score)
            if held is None and len(clusters) > OPEN:
                put_away(tasks, _joined)
        return state

    @override
    def merge(self, left: MeanState, right: MeanState) -> MeanState:
        left["total"] += right["total"]
        for name, tasks in right["models"].items():
            merge_tasks(left["models"].setdefault(name, no_tasks()), tasks, _joined)
        return left

    @override
    def finish(self, state: MeanState) -> dict[str, JSON]:
        alike = Counter(
            each if isinstance(each, float) else tuple(each)
            for tasks in state["models"].values()
            for each in values_of(tasks, _joined)
        )
        unit = max((part.as_integer_ratio()[1] for each in alike for part in _parts(each)), default=1)
        n = total = squares = products = sizes = 0
        for each, times in alike.items():
            size = 1 if isinstance(each, float) else int(each[0])
            value = sum([_multiple(part, unit) for part in _parts(each)])
            n += times * size
            total += times * value
            squares += times * value * value
            products += times * size * value
            sizes += times * size * size
        count, mean = alike.total(), total / (n * unit) if n else None
        found: dict[str, JSON] = {"n": n, "total": state["total"], "clusters": count, "mean": mean}
        if mean is None or count < 2:
            return {**found, "stderr": None, **self._interval(None)}
        spread = n * n * squares - 2 * n * total * products + total * total * sizes  # (n * unit)^2 times the formula's
        stderr = math.sqrt(spread * count / ((count - 1) * (n * unit) ** 2)) / n
        half = t_quantile(self.confidence, count - 1) * stderr
        return {**found, "stderr": stderr, **self._interval([mean - half, mean + half])}

    def _interval(self, ends: list[JSON] | None) -> dict[str, JSON]:
        """Return an interval under a key that names its confidence, or with the confidence beside it."""
        return {"ci95": ends} if self.confidence == 0.95 else {"ci": ends, "confidence": self.confidence}


def _parts(cluster: float | tuple[float, ...]) -> tuple[float, ...]:
    """Return what a cluster's scores add up to, as a sum of floats."""
    return (cluster,) if isinstance(cluster, float) else cluster[1:]


def _multiple(value: float, unit: int) -> int:
    """Return how many ``1 / unit`` a float is; both are so many powers of two, so that it is a whole number."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (unit // denominator)
