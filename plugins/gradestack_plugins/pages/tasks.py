"""Tasks over trials: how reliable they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import msgspec

from gradestack_plugins.pages.index import RowEntry, RowIndex


class Reliability(msgspec.Struct, frozen=True):
    """Tasks by the share of their trials that are a success."""

    tasks: int
    trials: int | None
    passes: Mapping[int, int]
    models: int = 1

    @property
    def parts(self) -> tuple[tuple[str, int, float], ...]:
        """Tasks that succeed in every trial, in some and in none, each with its share in percent.

        () where unknown.
        """
        if not self.passes or (self.trials or 1) < 2:
            return ()
        every, none = self.passes.get(self.trials or 0, 0), self.passes.get(0, 0)
        named = (
            ("in every trial", every),
            ("in some", self.tasks - every - none),
            ("in none", none),
        )
        return tuple((name, count, round(100 * count / self.tasks, 2)) for name, count in named)


def by_task(entries: Sequence[RowEntry]) -> Mapping[tuple[str, str], list[RowEntry]]:
    """Return the samples of each task of each model, in the order they were recorded."""
    found: dict[tuple[str, str], list[RowEntry]] = {}
    for entry in entries:
        found.setdefault((entry.model, entry.id), []).append(entry)
    return found


def reliability_of(index: RowIndex, *, outcome: bool) -> Reliability:
    """Return the reliability of the tasks of an index."""
    models: dict[str, int] = {}
    marks = sorted(  # of model and task, and whether it is a success
        2 * (models.setdefault(entry.model, len(models)) * len(index.names) + task)
        + (entry.passed is True)
        for entry, task in zip(index.entries, index.tasks, strict=True)
    )
    ends = [
        place
        for place, (mark, after) in enumerate(pairwise((*marks, -1)), start=1)
        if mark >> 1 != after >> 1
    ]
    passed = [0, *accumulate(mark & 1 for mark in marks)]
    found = Counter(
        (stop - start, passed[stop] - passed[start]) for start, stop in pairwise((0, *ends))
    )
    tasks, sizes = found.total(), {trials for trials, _ in found}
    if len(sizes) != 1:
        return Reliability(tasks, None, {})
    (trials,) = sizes
    passes = {passed: times for (_, passed), times in sorted(found.items())} if outcome else {}
    return Reliability(tasks, trials, passes, len(models))
