"""Something of every task, in little memory: what an aggregator holds per model and task, however many there are.

A mapping of a hundred thousand tasks takes over a hundred bytes for each, most of it for the id and its place. So only
the first few thousand stay a mapping; whenever there are more they are put away as text, the JSON of the mapping, 20 to
40 bytes a task. Nothing is looked up in text: a task met again stands in two texts, and its values are joined when both
are read. Texts are kept in parts by a checksum of the id, so that only one part of all tasks is read at a time.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypedDict, TypeVar
from zlib import crc32

import msgspec

from gradestack.exact import add_exact
from gradestack.intervals.interval import Cell, Figures, Interval, interval, jackknife
from gradestack.jsonio.values import loads
from gradestack.model import JSON, Key

ValueT = TypeVar("ValueT")
Join = Callable[[ValueT, ValueT], ValueT]
"""Returns what two values of one task come to, a new one: values are never changed, states share them."""

OPEN = 4096
"""Tasks that stay a mapping."""
_WHOLE = {int}
_PARTS = 16
_LOOSE = 4
"""How much longer than the tasks it names a part's text may grow, by naming tasks again and again."""


class Tasks(TypedDict, Generic[ValueT]):
    """JSON state: a value per task."""

    open: dict[str, ValueT]
    away: dict[str, list[str]]
    """Part -> JSON texts of further mappings. A task may be in several, and in ``open``; its value is all joined."""


def no_tasks() -> Tasks[ValueT]:
    """Return the state of nothing seen."""
    return {"open": {}, "away": {}}


def merge_tasks(left: Tasks[ValueT], right: Tasks[ValueT], join: Join[ValueT]) -> None:
    """Add ``right`` to ``left``, in place."""
    for part, texts in right["away"].items():
        _put(left, part, texts, join)
    _unite(left["open"], right["open"], join)
    if len(left["open"]) > OPEN:
        put_away(left, join)


def put_away(tasks: Tasks[ValueT], join: Join[ValueT]) -> None:
    """Put the open mapping away, in place; to be called where it has more than ``OPEN`` tasks."""
    for part, values in _parted(tasks["open"]).items():
        _put(tasks, part, [_text(values)], join)
    tasks["open"].clear()


def mappings(several: Sequence[Tasks[ValueT]], join: Join[ValueT]) -> Iterator[list[dict[str, ValueT]]]:
    """Yield the values by task of several states, a part of all tasks at a time: the same tasks in each."""
    if not any(each["away"] for each in several):
        yield [each["open"] for each in several]
        return
    parted = [_parted(each["open"]) for each in several]
    for part in map(str, range(_PARTS)):
        found = [_read(each["away"].get(part, ()), join) for each in several]
        for values, still_open in zip(found, parted, strict=True):
            _unite(values, still_open.get(part, {}), join)
        yield found


def _put(tasks: Tasks[ValueT], part: str, texts: list[str], join: Join[ValueT]) -> None:
    held = tasks["away"].setdefault(part, [])
    held += texts
    if sum(map(len, held)) > _LOOSE * len(held[0]):
        held[:] = [_text(_read(held, join))]


def _unite(left: dict[str, ValueT], right: dict[str, ValueT], join: Join[ValueT]) -> None:
    for task, value in right.items():
        held = left.get(task)
        left[task] = value if held is None else join(held, value)


def _parted(values: dict[str, ValueT]) -> dict[str, dict[str, ValueT]]:
    found: list[dict[str, ValueT]] = [{} for _ in range(_PARTS)]
    for task, value in values.items():
        found[crc32(task.encode("utf-8", "surrogatepass")) % _PARTS][task] = value
    return {str(part): values for part, values in enumerate(found) if values}


def _text(values: dict[str, ValueT]) -> str:
    try:
        return msgspec.json.encode(values).decode()
    except UnicodeEncodeError:  # an id with a lone surrogate
        return json.dumps(values)


def _read(texts: Iterable[str], join: Join[ValueT]) -> dict[str, ValueT]:
    found: dict[str, ValueT] = {}
    for text in texts:
        _unite(found, loads(text), join)
    return found


Number = int | float | list[float]
"""Of a cell: a number, or the parts of an exact sum of floats."""
ExactCell = tuple[float | tuple[float, ...], ...]
"""A cell with its sums as parts."""
CellsState = dict[str, Tasks[list[Number]]]
"""JSON state: model (empty where none is named) -> its tasks' cells."""


class PerTask(Generic[ValueT]):
    """State of a value per model and task; what several samples of a task bring is joined."""

    join: ClassVar[Callable[..., Any]]
    """Returns what two values of one task come to."""

    def start(self) -> dict[str, Tasks[ValueT]]:
        """Return the state of nothing seen."""
        return {}

    def add(self, state: dict[str, Tasks[ValueT]], key: Key, cell: ValueT) -> dict[str, Tasks[ValueT]]:
        """Add what one sample brings, in place, and return the state."""
        model = key.model or ""
        tasks = state.get(model)
        task = key.id if key.cluster is None else key.cluster
        if tasks is None or (len(tasks["open"]) >= OPEN and task not in tasks["open"]):
            self.add_to(state, model, task, cell)
            return state
        held = tasks["open"].get(task)
        tasks["open"][task] = cell if held is None else self.join(held, cell)
        return state

    def add_to(self, state: dict[str, Tasks[ValueT]], group: str, task: str, cell: ValueT) -> None:
        """Add what one sample brings to a task of a group, which stands where a model does, in place."""
        tasks = state.get(group)
        if tasks is None:
            tasks = state[group] = no_tasks()
        cells = tasks["open"]
        held = cells.get(task)
        cells[task] = cell if held is None else self.join(held, cell)
        if held is None and len(cells) > OPEN:
            put_away(tasks, self.join)

    def merge(self, left: dict[str, Tasks[ValueT]], right: dict[str, Tasks[ValueT]]) -> dict[str, Tasks[ValueT]]:
        """Add ``right`` to ``left`` in place and return ``left``."""
        for model, tasks in right.items():
            merge_tasks(left.setdefault(model, no_tasks()), tasks, self.join)
        return left


def _added(left: list[Number], right: list[Number]) -> list[Number]:
    return [a + b if type(a) is int and type(b) is int else added(a, b) for a, b in zip(left, right, strict=True)]


def added(a: Number, b: Number) -> Number:
    """Return a sum, exact: a whole number, a float, or the parts of a sum of floats."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if type(a) is float and type(b) is float:
        total = a + b
        if total and total - a == b and total - b == a:  # exact as it is
            return total
    parts = a.copy() if isinstance(a, list) else [float(a)]
    for value in b if isinstance(b, list) else (float(b),):
        add_exact(parts, value)
    return parts[0] if len(parts) == 1 else parts


class TaskCells(PerTask[list[Number]]):
    """Cells of numbers per model and task, for figures with intervals: an aggregator's whole state.

    A task is the sample's cluster, else its id; what several samples of it bring is added, exactly.

    >>> from gradestack import Aggregator, TaskCells
    >>> cells = TaskCells("samples", "passed")
    >>> class Passed(Aggregator):
    ...     memory = "per_key"
    ...
    ...     def start(self):
    ...         return cells.start()
    ...
    ...     def add(self, state, key, grade):
    ...         return state if grade.score is None else cells.add(state, key, [1, int(grade.score >= 0.5)])
    ...
    ...     def merge(self, left, right):
    ...         return cells.merge(left, right)
    ...
    ...     def finish(self, state):
    ...         return cells.finish(state, lambda samples, passed: {"passed": passed / samples if samples else None})

    Args:
        names: What the numbers of a cell are. The first is how many samples it is of; the others are whatever adds up.
    """

    def __init__(self, *names: str) -> None:
        self.names = names

    join = staticmethod(_added)

    def finish(
        self, state: CellsState, figures: Callable[..., Figures], *, confidence: float = 0.95, share: bool = True
    ) -> dict[str, JSON]:
        """Return ``n`` samples, ``clusters`` (tasks), and figures, each with its interval under ``NAME_interval``.

        Of several models ``models`` holds the same for each; what stands beside it is over all of them, where what one
        task brings under several models is one cell.

        Args:
            state: The cells.
            figures: Called with the sums of a cell's numbers, over all tasks and over all but one; returns figures by
                name, None where one is undefined.
            confidence: Of the intervals.
            share: Whether the figures are bound to [0, 1].
        """
        every, models = counted_cells(state)
        found = self._estimated(rounded_cells(every), figures, confidence, share=share)
        if len(models) > 1:
            found["models"] = {
                model: self._estimated(rounded_cells(cells), figures, confidence, share=share)
                for model, cells in models.items()
            }
        return found

    def ratios(
        self,
        state: CellsState,
        of: Mapping[str, tuple[str, str]],
        *,
        confidence: float = 0.95,
        unbounded: Container[str] = (),
    ) -> dict[str, JSON]:
        """Return the intervals of ratios of sums over all models, clustered by task, each under ``NAME_interval``.

        A task that adds nothing to the divisor has no part in the figure. ``n`` is the divisor.

        Args:
            state: The cells.
            of: Figure -> what is divided, and by what: names of a cell's numbers.
            confidence: Of the intervals.
            unbounded: Figures that are not bound to [0, 1].
        """
        return self._ratios(rounded_cells(counted_cells(state)[0]), of, confidence, unbounded)

    def model_ratios(
        self,
        state: CellsState,
        of: Mapping[str, tuple[str, str]],
        *,
        confidence: float = 0.95,
        unbounded: Container[str] = (),
    ) -> dict[str, JSON]:
        """Return ``{"models": {model: figures}}``: ratios and their intervals within each of several models.

        Empty for one model, whose figures are those of :meth:`ratios`; which takes the same arguments.
        """
        if len(state) < 2:
            return {}
        found: dict[str, JSON] = {}
        for model, cells in counted_cells(state)[1].items():
            values = {name: self._ratio(cells, *parts) for name, parts in of.items()}
            found[model] = {**values, **self._ratios(rounded_cells(cells), of, confidence, unbounded)}
        return {"models": found}

    def _ratio(self, cells: Mapping[ExactCell, int], above: str, below: str) -> float | None:
        """Return a ratio of sums, rounded once."""
        sums = []
        for at in (self.names.index(above), self.names.index(below)):
            total = Fraction(0)
            for cell, times in cells.items():
                parts = cell[at]
                total += times * sum(map(Fraction, parts if isinstance(parts, tuple) else (parts,)), Fraction(0))
            sums.append(total)
        return float(sums[0] / sums[1]) if sums[1] else None

    def _ratios(
        self,
        cells: Mapping[Cell, int],
        of: Mapping[str, tuple[str, str]],
        confidence: float,
        unbounded: Container[str],
    ) -> dict[str, JSON]:
        found: dict[str, JSON] = {}
        for name, (above, below) in of.items():
            at, by = self.names.index(above), self.names.index(below)
            parts: Counter[Cell] = Counter()
            for cell, times in cells.items():
                parts[cell[by], cell[at]] += times
            share = name not in unbounded
            found[f"{name}_interval"] = {**ratio_interval(parts, confidence=confidence, share=share)}
        return found

    def _estimated(
        self, cells: Mapping[Cell, int], figures: Callable[..., Figures], confidence: float, *, share: bool
    ) -> dict[str, JSON]:
        n = sum(int(cell[0]) * times for cell, times in cells.items())
        found: dict[str, JSON] = {"n": n, "clusters": sum(cells.values())}
        for name, estimate in jackknife(figures, cells, len(self.names)).items():
            found[name] = estimate.value
            found[f"{name}_interval"] = {**interval(estimate, n, confidence=confidence, share=share)}
        return found


def ratio_interval(
    tasks: Mapping[Cell, int],
    *,
    n: int | None = None,
    confidence: float = 0.95,
    share: bool = True,
    least: float = -math.inf,
) -> Interval:
    """Return the interval of a ratio of sums over tasks, for ``summary.json``.

    A task that adds nothing to the divisor has no part in the figure.

    Args:
        tasks: Divisor and dividend of a task -> how many tasks have them; the figure is the sum of the dividends over
            that of the divisors.
        n: Number of samples; default: the divisor.
        confidence: Of the interval.
        share: Whether the figure is bound to [0, 1].
        least: What a figure that is no share cannot be below.
    """
    parts = {cell: times for cell, times in tasks.items() if cell[0]}
    divisor = sum(int(cell[0]) * times for cell, times in parts.items())
    estimated = jackknife(_ratio, parts, 2)["ratio"]
    return interval(estimated, divisor if n is None else n, confidence=confidence, share=share, least=least)


def _ratio(below: float, above: float) -> Figures:
    return {"ratio": above / below if below else None}


def counted_cells(
    state: CellsState, of: Callable[[str, ExactCell], ExactCell] | None = None
) -> tuple[Counter[ExactCell], dict[str, Counter[ExactCell]]]:
    """Return how many tasks have each cell: over all models, where a task's cells are added, and of each model.

    Args:
        state: The cells.
        of: Returns what is wanted of a model's cell; called once for equal ones.
    """
    every: Counter[ExactCell] = Counter()
    models: dict[str, Counter[ExactCell]] = {model: Counter() for model in state}
    for parts in mappings(list(state.values()), _added):
        wanted = [_wanted(cells, model, of) for model, cells in zip(state, parts, strict=True)]
        for model, cells in zip(state, wanted, strict=True):
            models[model].update(cells.values())
        if len(wanted) > 1:
            every.update(_pooled(wanted))
    return every if len(state) != 1 else next(iter(models.values())), models


def rounded_cells(cells: Mapping[ExactCell, int]) -> Counter[Cell]:
    """Return cells with their sums rounded, once."""
    found: Counter[Cell] = Counter()
    for cell, times in cells.items():
        found[tuple([math.fsum(each) if isinstance(each, tuple) else each for each in cell])] += times
    return found


def _wanted(
    cells: Mapping[str, list[Number]], model: str, of: Callable[[str, ExactCell], ExactCell] | None
) -> dict[str, ExactCell]:
    known: dict[ExactCell, ExactCell] = {}
    found = {}
    for task, numbers in cells.items():
        cell: ExactCell = tuple([tuple(each) if isinstance(each, list) else each for each in numbers])
        if of is not None:
            if cell not in known:
                known[cell] = of(model, cell)
            cell = known[cell]
        found[task] = cell
    return found


def _pooled(models: Sequence[Mapping[str, ExactCell]]) -> Iterator[ExactCell]:
    """Yield the cell of every task over all models."""
    for task in {task: None for cells in models for task in cells}:
        met = [cells[task] for cells in models if task in cells]
        yield met[0] if len(met) == 1 else tuple([_sum_of(numbers) for numbers in zip(*met, strict=True)])


def _sum_of(numbers: tuple[float | tuple[float, ...], ...]) -> float | tuple[float, ...]:
    if set(map(type, numbers)) == _WHOLE:
        return sum(numbers)  # type: ignore[arg-type]
    total: Number = 0
    for each in numbers:
        total = added(total, list(each) if isinstance(each, tuple) else each)
    return tuple(total) if isinstance(total, list) else total
