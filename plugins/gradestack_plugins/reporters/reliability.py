"""How reliable tasks are: how many of a task's trials are a success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import attrs

from gradestack import RowEntry, RowIndex
from gradestack_plugins.reporters.text import number

_EQUAL = 1e-9


@attrs.frozen
class Reliability:
    """Tasks by the share of their trials that are a success.

    Attributes:
        tasks: Number of tasks; those of different models are different.
        trials: Trials of every task; None where they differ.
        passes: Successes of a task -> number of such tasks; empty without an outcome, or where trials differ.
        models: Number of models.
    """

    tasks: int
    trials: int | None
    passes: Mapping[int, int]
    models: int = 1

    @property
    def noun(self) -> str:
        """What its samples are: ``runs`` where every task has several, else ``samples``."""
        return "runs" if self.trials is not None and self.trials > 1 else "samples"

    @property
    def always(self) -> int:
        """Tasks that are solved in every trial."""
        return self.passes.get(self.trials or 0, 0)

    @property
    def never(self) -> int:
        """Tasks that are solved in no trial."""
        return self.passes.get(0, 0)

    @property
    def sometimes(self) -> int:
        """Tasks that are solved in some trials only."""
        return sum(self.passes.values()) - self.always - self.never

    def counted(self, sign: str, k: int, value: float | None) -> str:
        """Return "10 of 50 tasks" where that is what pass^k (sign ``^``) or pass@k (``@``) counts, else ""."""
        if k != self.trials or value is None or not self.passes:
            return ""
        found = self.always if sign == "^" else self.tasks - self.never
        return (
            f"{number(found)} of {number(self.tasks)} task{'' if self.tasks == 1 else 's'}"
            if abs(value - found / self.tasks) < _EQUAL
            else ""
        )


def by_task(entries: Sequence[RowEntry]) -> Mapping[tuple[str, str], list[RowEntry]]:
    """Return the samples of each task of each model, in the order they were recorded."""
    found: dict[tuple[str, str], list[RowEntry]] = {}
    for entry in entries:
        found.setdefault((entry.model, entry.id), []).append(entry)
    return found


def reliability_of(index: RowIndex, *, outcome: bool) -> Reliability:
    """Return the reliability of the tasks of an index.

    Args:
        index: The index.
        outcome: Whether the run has one.
    """
    models: dict[str, int] = {}
    marks = sorted(  # of model and task, and whether it is a success
        2 * (models.setdefault(entry.model, len(models)) * len(index.names) + task) + (entry.passed is True)
        for entry, task in zip(index.entries, index.tasks, strict=True)
    )
    ends = [place for place, (mark, after) in enumerate(pairwise((*marks, -1)), start=1) if mark >> 1 != after >> 1]
    passed = [0, *accumulate(mark & 1 for mark in marks)]
    found = Counter((stop - start, passed[stop] - passed[start]) for start, stop in pairwise((0, *ends)))
    tasks, sizes = found.total(), {trials for trials, _ in found}
    if len(sizes) != 1:
        return Reliability(tasks, None, {})
    (trials,) = sizes
    passes = {passed: times for (_, passed), times in sorted(found.items())} if outcome else {}
    return Reliability(tasks, trials, passes, len(models))
