"""The table of tasks over trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from gradestack_plugins.reporters.blocks import Histogram
from gradestack_plugins.reporters.charts import bars
from gradestack_plugins.reporters.index import Entry, shade
from gradestack_plugins.reporters.text import natural, number

MOST_COLUMNS = 32


@attrs.frozen
class Column:
    """One trial, of one model."""

    model: str
    run: str
    """"" where runs have no names: then one column per occurrence."""
    occurrence: int = 0

    @property
    def label(self) -> str:
        """Heading without the model."""
        return self.run or str(self.occurrence + 1)


@attrs.frozen
class Task:
    """One line of the table."""

    id: str
    cells: tuple[tuple[Entry, ...], ...]
    """Per column the samples there: none, one, or several for duplicates."""
    mean: str
    """Mean score over graded trials."""
    shade: str
    passed: int
    trials: int


@attrs.frozen
class Tasks:
    """The whole table."""

    columns: tuple[Column, ...]
    rows: tuple[Task, ...]
    models: tuple[tuple[str, int], ...]
    """Model and number of its columns, in order; empty when there is at most one."""
    means: tuple[tuple[str, str], ...]
    """Per column the mean score of its graded trials, over all tasks, and its shade."""
    passes: Histogram | None
    """Tasks by how many of their trials passed; None when tasks have different numbers of trials, or one."""
    left_out: int
    """Tasks not in the table."""
    columns_left_out: int

    @property
    def single(self) -> bool:
        """Whether every task was run once, so that a map of cells says it all."""
        return len(self.columns) <= 1


def table(entries: Sequence[Entry], most: int) -> Tasks:
    """Return the table of the first ``most`` tasks; tasks and trials in natural order, models as first seen."""
    groups: dict[str, dict[Column, list[Entry]]] = {}
    named = {entry.model for entry in entries if entry.model}
    (only,) = named if len(named) == 1 else ("",)  # samples nobody ran have no model; with one model they are its own
    models: dict[str, None] = {}
    for entry in entries:
        model = entry.model or only
        models.setdefault(model)
        cells = groups.setdefault(entry.id, {})
        column = Column(model, entry.run)
        if not entry.run:
            column = Column(model, "", sum(known.model == model for known in cells))
        cells.setdefault(column, []).append(entry)
    order = {model: place for place, model in enumerate(models)}
    columns = sorted(
        {column for cells in groups.values() for column in cells},
        key=lambda column: (order[column.model], natural(column.run), column.occurrence),
    )
    shown = columns[:MOST_COLUMNS]
    rows = [_task(name, groups[name], shown) for name in sorted(groups, key=natural)]
    return Tasks(
        columns=tuple(shown),
        rows=tuple(rows[:most]),
        models=_spans(shown) if len(models) > 1 else (),
        means=tuple(_mean(row.cells[place] for row in rows) for place in range(len(shown))),
        passes=_passes(rows),
        left_out=max(0, len(rows) - most),
        columns_left_out=len(columns) - len(shown),
    )


def _task(name: str, cells: dict[Column, list[Entry]], columns: Sequence[Column]) -> Task:
    entries = [entry for column in cells.values() for entry in column]
    mean, shading = _mean([entries])
    return Task(
        id=name,
        cells=tuple(tuple(cells.get(column, ())) for column in columns),
        mean=mean,
        shade=shading,
        passed=sum(entry.verdict == "passed" for entry in entries),
        trials=len(entries),
    )


def _mean(cells: Iterable[Iterable[Entry]]) -> tuple[str, str]:
    scores = [entry.score for cell in cells for entry in cell if entry.score is not None]
    if not scores:
        return "–", "none"
    mean = math.fsum(scores) / len(scores)
    return number(mean), shade(mean)


def _passes(rows: Sequence[Task]) -> Histogram | None:
    trials = {row.trials for row in rows}
    if len(trials) != 1 or trials == {1}:
        return None
    (most,) = trials
    found = Counter(row.passed for row in rows)
    counts = [found[passed] for passed in range(most + 1)]
    labels = [str(passed) for passed in range(most + 1)]
    return bars(
        f"Tasks by number of trials passed, of {most}", labels, counts, [passed / most for passed in range(most + 1)]
    )


def _spans(columns: Sequence[Column]) -> tuple[tuple[str, int], ...]:
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and spans[-1][0] == column.model:
            spans[-1] = (column.model, spans[-1][1] + 1)
        else:
            spans.append((column.model, 1))
    return tuple(spans)
