"""Tasks over trials: how reliable they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import add, attrgetter

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
        every = self.passes.get(self.trials or 0, 0)
        none = self.passes.get(0, 0)
        some = self.tasks - every - none
        named = {"in every trial": every, "in some": some, "in none": none}
        return tuple(
            (name, count, round(100 * count / self.tasks, 2)) for name, count in named.items()
        )


def by_task(entries: Sequence[RowEntry]) -> Mapping[tuple[str, str], list[RowEntry]]:
    """Return the samples of each task of each model, in the order they were recorded."""
    tasks: dict[tuple[str, str], list[RowEntry]] = {}
    for entry in entries:
        tasks.setdefault((entry.model, entry.id), []).append(entry)
    return tasks


def reliability_of(index: RowIndex, *, outcome: bool) -> Reliability:
    """Return the reliability of the tasks of an index; each model's task is one of its own."""
    names = list(map(attrgetter("model"), index.entries))
    models = list(dict.fromkeys(names))
    first = {model: place * len(index.names) for place, model in enumerate(models)}
    numbers = list(map(add, map(first.__getitem__, names), index.tasks))
    trials = Counter(numbers)
    sizes = set(trials.values())
    if len(sizes) != 1:
        return Reliability(len(trials), None, {})
    (size,) = sizes
    is_passed = [entry.passed is True for entry in index.entries]
    passed = Counter(compress(numbers, is_passed))
    passes = Counter(passed[number] for number in trials) if outcome else {}
    return Reliability(len(trials), size, dict(sorted(passes.items())), len(models))
