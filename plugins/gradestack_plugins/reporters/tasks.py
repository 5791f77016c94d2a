"""The table of tasks over trials."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

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
    models: dict[str, None] = {}
    for entry in entries:
        models.setdefault(entry.model)
        cells = groups.setdefault(entry.id, {})
        column = Column(entry.model, entry.run)
        if not entry.run:
            column = Column(entry.model, "", sum(known.model == entry.model for known in cells))
        cells.setdefault(column, []).append(entry)
    order = {model: place for place, model in enumerate(models)}
    columns = sorted(
        {column for cells in groups.values() for column in cells},
        key=lambda column: (order[column.model], natural(column.run), column.occurrence),
    )
    shown = columns[:MOST_COLUMNS]
    ids = sorted(groups, key=natural)
    return Tasks(
        columns=tuple(shown),
        rows=tuple(_task(name, groups[name], shown) for name in ids[:most]),
        models=_spans(shown) if len(models) > 1 else (),
        left_out=max(0, len(ids) - most),
        columns_left_out=len(columns) - len(shown),
    )


def _task(name: str, cells: dict[Column, list[Entry]], columns: Sequence[Column]) -> Task:
    entries = [entry for column in cells.values() for entry in column]
    scores = [entry.score for entry in entries if entry.score is not None]
    mean = None
    if scores:
        total = 0.0
        for value in scores:
            total += value
        mean = total / len(scores)
    return Task(
        id=name,
        cells=tuple(tuple(cells.get(column, ())) for column in columns),
        mean="–" if mean is None else number(mean),
        shade="none" if mean is None else shade(mean),
        passed=sum(entry.verdict == "passed" for entry in entries),
        trials=len(entries),
    )


def _spans(columns: Sequence[Column]) -> tuple[tuple[str, int], ...]:
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and spans[-1][0] == column.model:
            spans[-1] = (column.model, spans[-1][1] + 1)
        else:
            spans.append((column.model, 1))
    return tuple(spans)
