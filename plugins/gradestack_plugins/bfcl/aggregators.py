"""Aggregator ``bfcl_categories``: accuracy by category, as BFCL publishes it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grade,
    Grades,
    Key,
    ratio_interval,
    valid_confidence,
)

Pair = tuple[Key, Grade]


@attrs.frozen(kw_only=True)
class BfclCategories(Aggregator):
    """Mean score of each category, and the mean of these, in which every category weighs the same.

    With scores x_i of the n_c graded entries of category c (facet ``category``) and K categories:

        accuracy.c = sum of x_i / n_c
        unweighted = sum over c of accuracy.c / K

    Both in [0, 1]. Intervals are those of ``gradestack.ratio_interval``, one task a cluster; the
    mean of the categories has none, as they are no sample of categories. Of several models
    ``models`` holds the same for each.

    Source: data_overall.csv and data_non_live.csv of bfcl-eval 2025.10.27.1, whose overall
    accuracy weighs groups of categories.
    """

    figures: ClassVar = (
        Figure("accuracy.{category}", "Accuracy", about="sum of scores / graded entries"),
        Figure("unweighted", "Mean of the categories", about="each category weighs the same"),
    )

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return ("category",)

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        graded = [pair for pair in grades if pair[1].score is not None]
        found = self._figures(graded)
        models = defaultdict[str, list[Pair]](list)
        for key, grade in graded:
            models[key.model or ""].append((key, grade))
        if len(models) > 1:
            found["models"] = {model: self._figures(pairs) for model, pairs in models.items()}
        return found

    def _figures(self, graded: Iterable[Pair]) -> dict[str, JSON]:
        categories = defaultdict[str, defaultdict[str, list[float]]](lambda: defaultdict(list))
        for key, grade in graded:
            if grade.score is not None:
                category = str(key.facets.get("category", ""))
                categories[category][key.id].append(grade.score)
        accuracy: dict[str, Any] = {}
        intervals: dict[str, JSON] = {}
        for category in sorted(categories):
            tasks = categories[category].values()
            scores = list(chain.from_iterable(tasks))
            accuracy[category] = math.fsum(scores) / len(scores)
            cells = Counter[tuple[float, ...]](
                (float(len(each)), math.fsum(each)) for each in tasks
            )
            sure: Mapping[str, Any] = ratio_interval(cells, confidence=self.confidence)
            intervals[category] = {**sure}
        unweighted = math.fsum(accuracy.values()) / len(accuracy) if accuracy else None
        return {"accuracy": accuracy, "accuracy_interval": intervals, "unweighted": unweighted}
