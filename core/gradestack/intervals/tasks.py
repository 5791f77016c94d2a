"""Something of every task, in little memory: what an aggregator notes per model and task, however many there are.

What samples bring is noted one after the other, task and value; nothing is looked up while samples are counted, and
states are merged by writing one's notes behind the other's. Whenever there are some thousands of them they are put in
order: the notes of a task become few. Where that leaves more than half of them, there are many tasks, and all are put
away as text, compressed JSON of a mapping, a few bytes a task. A task met again stands in two texts, and its notes are
joined when both are read. Texts are kept in parts by a checksum of the id, so that only one part of all tasks is read
at once.
"""

from __future__ import annotations

import abc
import json
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, TypedDict, TypeVar
from zlib import compress, crc32, decompress

import msgspec

from gradestack.jsonio.values import loads
from gradestack.model import Key

NoteT = TypeVar("NoteT")
Fewer = Callable[[list[NoteT], int], list[NoteT]]
"""Returns notes of one task, or one that comes to the same if they are more than so many; none is ever changed."""

NOTES = 32_768
"""Notes of all models that are kept as they came."""
FEW = 4
"""Notes of one task that may stay."""
_PARTS = 16
_LOOSE = 4
"""How much longer than the tasks it names a part's text may grow, by naming tasks again and again."""


class Tasks(TypedDict, Generic[NoteT]):
    """JSON state: notes on tasks. A task may have several."""

    tasks: list[str]
    notes: list[NoteT]
    """As many as tasks."""
    away: dict[str, list[str]]
    """Part -> mappings of further tasks, and of the same ones: JSON, compressed, in base64."""


def no_tasks() -> Tasks[NoteT]:
    """Return the state of nothing seen."""
    return {"tasks": [], "notes": [], "away": {}}


def put_in_order(tasks: Tasks[NoteT], fewer: Fewer[NoteT], most: int) -> None:
    """Have few notes of each task, in place; where one of each is more than ``most``, put all away."""
    found = noted(tasks)
    few = min(FEW, most // len(found)) or FEW
    found = {task: notes if len(notes) <= few else fewer(notes, few) for task, notes in found.items()}
    if len(found) > most:
        for part, parted in _parted(found).items():
            _put(tasks, part, [_text(parted)], fewer)
        found = {}
    tasks["tasks"][:] = [task for task, notes in found.items() for _ in notes]
    tasks["notes"][:] = chain.from_iterable(found.values())


def noted(tasks: Tasks[NoteT]) -> dict[str, list[NoteT]]:
    """Return the notes by task, without what is put away."""
    found: defaultdict[str, list[NoteT]] = defaultdict(list)
    for task, note in zip(tasks["tasks"], tasks["notes"], strict=True):
        found[task].append(note)
    return found


def mappings(several: Sequence[Tasks[NoteT]], fewer: Fewer[NoteT]) -> Iterator[list[dict[str, list[NoteT]]]]:
    """Yield the notes by task of several states, a part of all tasks at a time: the same tasks in each."""
    if not any(each["away"] for each in several):
        yield list(map(noted, several))
        return
    parted = [_parted(noted(each)) for each in several]
    for part in map(str, range(_PARTS)):
        found = [_read(each["away"].get(part, ()), fewer) for each in several]
        for notes, more in zip(found, parted, strict=True):
            _unite(notes, more.get(part, {}), fewer)
        yield found


def pooled(models: Sequence[Mapping[str, list[NoteT]]]) -> Collection[list[NoteT]]:
    """Return the notes of every task over all models."""
    found: dict[str, list[NoteT]] = {}
    for by_task in models:
        for task, notes in by_task.items():
            found[task] = found[task] + notes if task in found else notes
    return found.values()


def _put(tasks: Tasks[NoteT], part: str, texts: list[str], fewer: Fewer[NoteT]) -> None:
    held = tasks["away"].setdefault(part, [])
    held += texts
    if sum(map(len, held)) > _LOOSE * len(held[0]):
        held[:] = [_text(_read(held, fewer))]


def _unite(found: dict[str, list[NoteT]], more: Mapping[str, list[NoteT]], fewer: Fewer[NoteT]) -> None:
    for task, notes in more.items():
        held = found.get(task)
        found[task] = notes if held is None else fewer(held + notes, FEW)


def _parted(found: Mapping[str, list[NoteT]]) -> dict[str, dict[str, list[NoteT]]]:
    parts: list[dict[str, list[NoteT]]] = [{} for _ in range(_PARTS)]
    for task, notes in found.items():
        parts[crc32(task.encode("utf-8", "surrogatepass")) % _PARTS][task] = notes
    return {str(part): notes for part, notes in enumerate(parts) if notes}


def _text(found: Mapping[str, list[NoteT]]) -> str:
    try:
        text = msgspec.json.encode(found)
    except UnicodeEncodeError:  # an id with a lone surrogate
        text = json.dumps(found).encode()
    return b64encode(compress(text, 1)).decode()


def _read(texts: Iterable[str], fewer: Fewer[NoteT]) -> dict[str, list[NoteT]]:
    found: dict[str, list[NoteT]] = {}
    for text in texts:
        _unite(found, loads(decompress(b64decode(text))), fewer)
    return found


def task_of(key: Key) -> str:
    """Return the task of a sample: its cluster, else its id."""
    return key.id if key.cluster is None else key.cluster


class PerTask(abc.ABC, Generic[NoteT]):
    """State of notes per model and task."""

    @abc.abstractmethod
    def fewer(self, notes: list[NoteT], most: int) -> list[NoteT]:
        """Return notes of one task; if they are more than ``most``, one that comes to the same."""

    def start(self) -> dict[str, Tasks[NoteT]]:
        """Return the state of nothing seen."""
        return {}

    def add(self, state: dict[str, Tasks[NoteT]], key: Key, cell: NoteT) -> dict[str, Tasks[NoteT]]:
        """Add what one sample brings, in place, and return the state; it is kept as it is, so nobody may change it."""
        self.add_to(state, key.model or "", task_of(key), cell)
        return state

    def add_to(self, state: dict[str, Tasks[NoteT]], group: str, task: str, cell: NoteT) -> None:
        """Add what one sample brings to a task of a group, which stands where a model does, in place."""
        self._note(state, group, [task], [cell])

    def add_many(self, state: dict[str, Tasks[NoteT]], keys: Sequence[Key], cells: list[NoteT]) -> None:
        """Add what several samples bring, in place: those of one model, as a block's are for the most part, at once."""
        if len({key.model for key in keys}) == 1:
            self._note(state, keys[0].model or "", list(map(task_of, keys)), cells)
            return
        for key, cell in zip(keys, cells, strict=True):
            self.add(state, key, cell)

    def merge(self, left: dict[str, Tasks[NoteT]], right: dict[str, Tasks[NoteT]]) -> dict[str, Tasks[NoteT]]:
        """Add ``right`` to ``left`` in place and return ``left``."""
        for model, more in right.items():
            self._note(left, model, more["tasks"], more["notes"])
            for part, texts in more["away"].items():
                _put(left[model], part, texts, self.fewer)
        return left

    def _note(self, state: dict[str, Tasks[NoteT]], group: str, tasks: list[str], notes: list[NoteT]) -> None:
        held = state.get(group)
        if held is None:
            held = state[group] = no_tasks()
        held["tasks"] += tasks
        held["notes"] += notes
        if len(held["tasks"]) * len(state) > NOTES:
            put_in_order(held, self.fewer, NOTES // len(state) // 2)
