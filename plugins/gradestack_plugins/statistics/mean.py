"""Mean score with error bars."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypedDict

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Grade, Key
from gradestack.exact import add_exact
from gradestack_plugins.statistics.student import t_quantile

Cluster = list[float]
"""Number of scores, then their exact sum as partials (:mod:`gradestack.exact`)."""


class MeanState(TypedDict):
    """JSON state: scores per cluster, and all samples seen."""

    total: int
    clusters: dict[str, dict[str, Cluster]]
    """Model (JSON text: a name, or null) -> task -> scores."""


@lru_cache(maxsize=256)
def _name(model: str | None) -> str:
    return json.dumps(model)


def _add(cluster: Cluster, n: float, values: Iterable[float]) -> None:
    """Add ``n`` scores whose exact sum is that of ``values``."""
    cluster[0] += n
    for value in values:
        add_exact(cluster, value, 1)


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
        return {"total": 0, "clusters": {}}

    @override
    def add(self, state: MeanState, key: Key, grade: Grade) -> MeanState:
        return Mean.add_many(self, state, (key,), (grade,))

    @override
    def add_many(self, state: MeanState, keys: Sequence[Key], grades: Sequence[Grade]) -> MeanState:
        state["total"] += len(grades)
        clusters = state["clusters"]
        for key, grade in zip(keys, grades, strict=True):
            score = grade.score
            if score is None:
                continue
            tasks = clusters.get(_name(key.model))
            if tasks is None:
                tasks = clusters[_name(key.model)] = {}
            cluster = tasks.get(key.id)
            if cluster is None:
                tasks[key.id] = [1, float(score)]
            elif len(cluster) == 2:  # the usual case of _add, written out
                x, y = score, cluster[1]
                high = x + y
                if (x - (high - y) if abs(x) < abs(y) else y - (high - x)) == 0.0:
                    cluster[0] += 1
                    cluster[1] = high
                else:
                    _add(cluster, 1, (score,))
            else:
                _add(cluster, 1, (score,))
        return state

    @override
    def merge(self, left: MeanState, right: MeanState) -> MeanState:
        left["total"] += right["total"]
        for name, tasks in right["clusters"].items():
            mine = left["clusters"].setdefault(name, {})
            for task, cluster in tasks.items():
                held = mine.get(task)
                if held is None:
                    mine[task] = cluster.copy()
                    continue
                if len(held) == len(cluster) == 2:
                    x, y = cluster[1], held[1]
                    high = x + y
                    if (x - (high - y) if abs(x) < abs(y) else y - (high - x)) == 0.0:
                        held[0] += cluster[0]
                        held[1] = high
                        continue
                _add(held, cluster[0], cluster[1:])
        return left

    @override
    def finish(self, state: MeanState) -> dict[str, JSON]:
        alike = Counter(tuple(cluster) for tasks in state["clusters"].values() for cluster in tasks.values())
        n, count = sum(int(each[0]) * times for each, times in alike.items()), alike.total()
        sums = {each: sum(map(Fraction, each[1:]), Fraction(0)) for each in alike}
        total = sum((sums[each] * times for each, times in alike.items()), Fraction(0))
        mean = float(total / n) if n else None
        found: dict[str, JSON] = {"n": n, "total": state["total"], "clusters": count, "mean": mean}
        if count < 2:
            return {**found, "stderr": None, "ci95" if self.confidence == 0.95 else "ci": None}
        middle = total / n
        squares = sum(((sums[each] - int(each[0]) * middle) ** 2 * times for each, times in alike.items()), Fraction(0))
        stderr = math.sqrt(float(squares * count / (count - 1))) / n
        half = t_quantile(self.confidence, count - 1) * stderr
        centre = float(middle)
        return {**found, "stderr": stderr, "ci95" if self.confidence == 0.95 else "ci": [centre - half, centre + half]}
