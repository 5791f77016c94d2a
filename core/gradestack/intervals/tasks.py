"""Something of every task, in little memory: what an aggregator holds per model and task, however many there are.

A mapping of a hundred thousand tasks takes over a hundred bytes for each, most of it for the id and its place. So only
the first few thousand stay a mapping; whenever there are more they are put away as text, the JSON of the mapping, 20 to
40 bytes a task. Nothing is looked up in text: a task met again stands in two texts, and its values are joined when both
are read. Texts are kept in parts by a checksum of the id, so that only one part of all tasks is read at a time.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypedDict, TypeVar
from zlib import crc32

import msgspec

from gradestack.jsonio.values import loads
from gradestack.model import Key

ValueT = TypeVar("ValueT")
Join = Callable[[ValueT, ValueT], ValueT]
"""Returns what two values of one task come to, a new one: values are never changed, states share them."""

OPEN = 4096
"""Tasks that stay a mapping."""
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


class PerTask(abc.ABC, Generic[ValueT]):
    """State of a value per model and task; what several samples of a task bring is joined."""

    @abc.abstractmethod
    def join(self, left: ValueT, right: ValueT) -> ValueT:
        """Return what two values of one task come to, a new one."""

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
