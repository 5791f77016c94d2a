"""Aggregator ``bfcl_categories``: accuracy by category, as BFCL publishes it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Aggregator,
    Figure,
    Grades,
    Key,
    ratio_interval,
    valid_confidence,
)
from gradestack_plugins.bfcl.side_files import TODAY

Pair = tuple[Key, float]
"""A graded entry and its score."""


@attrs.frozen(kw_only=True)
class BfclCategories(Aggregator):
    """Mean score of each category, and the mean of these, in which every category weighs the same.

    With scores x_i of the n_c graded entries of category c (facet ``category``) and K categories:

        accuracy.c = sum of x_i / n_c
        unweighted = sum over c of accuracy.c / K

    Both in [0, 1]. Intervals are those of ``gradestack.ratio_interval``, one task a cluster; the
    mean of the categories has none, as they are no sample of categories. Of several models
    ``models`` holds the same for each.

    ``groups`` are the leaderboard's. ``non_live`` is the mean of simple (itself the mean of its
    languages), multiple, parallel and parallel_multiple. ``live`` is the mean of its four
    categories, weighed by their entries. ``irrelevance``, ``multi_turn`` and ``agentic`` (of web
    search and memory) are plain means. ``groups.overall = (non_live + live + irrelevance + 3
    multi_turn + 4 agentic) / 10``, where every category is there. ``lacking`` names the categories
    that a group is without; its mean is over the others, where the leaderboard takes 0 for them.

    Source: generate_leaderboard_csv of bfcl-eval 2026.3.23.
    """

    figures: ClassVar = (
        Figure("accuracy.{category}", "Accuracy", about="sum of scores / graded entries"),
        Figure("unweighted", "Mean of the categories", about="each category weighs the same"),
        Figure("groups.{group}", "Accuracy of a group", about="as the leaderboard weighs them"),
    )

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return ("category",)

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        graded = [(key, grade.score) for key, grade in grades if grade.score is not None]
        models: dict[str, list[Pair]] = {}
        for key, score in graded:
            models.setdefault(key.model or "", []).append((key, score))
        figures = self._figures(graded)
        if len(models) > 1:
            figures["models"] = {model: self._figures(pairs) for model, pairs in models.items()}
        return figures

    def _figures(self, graded: Iterable[Pair]) -> dict[str, JSON]:
        """Compute accuracy with its interval by category, and means over groups of categories."""
        categories: dict[str, dict[str, list[float]]] = {}
        for key, score in graded:
            category = str(key.facets.get("category", ""))
            categories.setdefault(category, {}).setdefault(key.id, []).append(score)
        accuracy: dict[str, float] = {}
        intervals: dict[str, JSON] = {}
        entries: dict[str, int] = {}
        for category in sorted(categories):
            tasks = categories[category].values()
            scores = list(chain.from_iterable(tasks))
            entries[category] = len(scores)
            accuracy[category] = math.fsum(scores) / len(scores)
            task_sums = [(float(len(task)), math.fsum(task)) for task in tasks]
            task_counts = Counter[tuple[float, ...]](task_sums)
            interval = ratio_interval(task_counts, confidence=self.confidence)
            intervals[category] = {**interval}
        mean = _mean(accuracy.values())
        means_of_groups = _means_of_groups(accuracy, entries)
        return {
            "accuracy": {**accuracy},
            "accuracy_interval": intervals,
            "unweighted": mean,
            **means_of_groups,
        }


_SIMPLE: Final = ("simple_python", "simple_java", "simple_javascript")
_NON_LIVE: Final = ("multiple", "parallel", "parallel_multiple")
_LIVE: Final = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
_IRRELEVANCE: Final = ("irrelevance", "live_irrelevance")
_MULTI_TURN: Final = tuple(
    f"multi_turn_{kind}" for kind in ("base", "miss_func", "miss_param", "long_context")
)
_WEB_SEARCH: Final = ("web_search_base", "web_search_no_snippet")
_MEMORY: Final = ("memory_kv", "memory_vector", "memory_rec_sum")
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "non_live": (*_SIMPLE, *_NON_LIVE),
    "live": _LIVE,
    "irrelevance": _IRRELEVANCE,
    "multi_turn": _MULTI_TURN,
    "agentic": (*_WEB_SEARCH, *_MEMORY),
}
"""The leaderboard's groups of categories."""
_WEIGHTS: Final = {"non_live": 10, "live": 10, "irrelevance": 10, "multi_turn": 30, "agentic": 40}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if known:
        return math.fsum(known) / len(known)
    return None


def _means_of_groups(
    accuracy: Mapping[str, float], entries: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Return the means of groups, the categories they lack, and the overall accuracy."""
    known = {TODAY.get(name, name): value for name, value in accuracy.items()}
    counts = {TODAY.get(name, name): number for name, number in entries.items()}
    live = [name for name in _LIVE if name in known]
    n_live = sum(counts[name] for name in live)
    passed = math.fsum(known[name] * counts[name] for name in live)
    simple = _mean(map(known.get, _SIMPLE))
    web_search = _mean(map(known.get, _WEB_SEARCH))
    memory = _mean(map(known.get, _MEMORY))
    non_live = _mean([simple, *map(known.get, _NON_LIVE)])
    irrelevance = _mean(map(known.get, _IRRELEVANCE))
    multi_turn = _mean(map(known.get, _MULTI_TURN))
    agentic = _mean([web_search, memory])
    means = {
        "non_live": non_live,
        "live": passed / n_live if live else None,
        "irrelevance": irrelevance,
        "multi_turn": multi_turn,
        "agentic": agentic,
    }
    groups = {name: mean for name, mean in means.items() if mean is not None}
    lacking: dict[str, list[str]] = {}
    for name in groups:
        missing = [category for category in _GROUPS[name] if category not in known]
        if missing:
            lacking[name] = missing
    if len(groups) == len(_GROUPS) and not lacking:
        weighed = math.fsum(_WEIGHTS[name] * mean for name, mean in groups.items())
        total_weights = sum(_WEIGHTS.values())
        groups["overall"] = weighed / total_weights
    return {"groups": groups, "lacking": lacking}
