"""Mean score with error bars."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TypedDict

import attrs

from gradestack.api import Aggregator
from gradestack.exact import Partials, add_exact, exact_mean, merge_exact
from gradestack.model import JSON, Grade, Key
from gradestack_plugins.statistics.student import t_quantile


class _Cluster(TypedDict):
    n: int
    sum: Partials


class MeanState(TypedDict):
    """JSON state: scores per cluster, and all samples seen."""

    total: int
    clusters: dict[str, _Cluster]


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

    def start(self) -> MeanState:
        """Return the state of nothing seen."""
        return {"total": 0, "clusters": {}}

    def add(self, state: MeanState, key: Key, grade: Grade) -> MeanState:
        """Count one grade; only graded ones have a score."""
        state["total"] += 1
        if grade.score is not None:
            cluster = state["clusters"].setdefault(json.dumps([key.model, key.id]), {"n": 0, "sum": []})
            cluster["n"] += 1
            add_exact(cluster["sum"], grade.score)
        return state

    def merge(self, left: MeanState, right: MeanState) -> MeanState:
        """Add ``right`` to ``left``."""
        left["total"] += right["total"]
        for name, cluster in right["clusters"].items():
            mine = left["clusters"].setdefault(name, {"n": 0, "sum": []})
            mine["n"] += cluster["n"]
            merge_exact(mine["sum"], cluster["sum"])
        return left

    def finish(self, state: MeanState) -> dict[str, JSON]:
        """Return n, total, clusters, mean, stderr and the interval."""
        clusters = state["clusters"].values()
        n, count = sum(each["n"] for each in clusters), len(state["clusters"])
        everything = [part for each in clusters for part in each["sum"]]
        mean = exact_mean(everything, n)
        found: dict[str, JSON] = {"n": n, "total": state["total"], "clusters": count, "mean": mean}
        if count < 2:
            return {**found, "stderr": None, "ci95" if self.confidence == 0.95 else "ci": None}
        middle = sum(map(Fraction, everything), Fraction(0)) / n
        squares = sum(
            ((sum(map(Fraction, each["sum"]), Fraction(0)) - each["n"] * middle) ** 2 for each in clusters), Fraction(0)
        )
        stderr = math.sqrt(float(squares * count / (count - 1))) / n
        half = t_quantile(self.confidence, count - 1) * stderr
        centre = float(middle)
        return {**found, "stderr": stderr, "ci95" if self.confidence == 0.95 else "ci": [centre - half, centre + half]}
