"""Something of every task, in little memory: what an aggregator notes per model and task, however many there are.

What samples bring is noted one after the other, task and value; nothing is looked up while samples are counted, and
states are merged by writing one's notes behind the other's. Whenever there are some thousands of them, those equal to
many others are counted: few values are usual, as scores are. Where that leaves too many they are put in order: the
notes of a task become few. Where that leaves more than half of them, there are many tasks, and all are put away as
text, compressed JSON of a mapping, a few bytes a task. A task met again stands in two texts, and its notes are joined
when both are read. Texts are kept in parts by a checksum of the id, so that only one part of all tasks is read at once.
"""

from __future__ import annotations

import abc
import json
from base64 import b64decode, b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, TypedDict, TypeVar
from zlib import compress, crc32, decompress

import msgspec

from gradestack.exact import count_into
from gradestack.jsonio.values import loads
from gradestack.model import Key

NoteT = TypeVar("NoteT")
Fewer = Callable[[list[NoteT], int], list[NoteT]]
"""Returns notes of one task, or one that comes to the same if they are more than so many; none is ever changed."""

FORM = "2"
"""Form of the state; a run begun with another is not continued."""
NOTES = 32_768
"""Notes of all models that are kept as they came, and as many are counted."""
FEW = 4
"""Notes of one task that may stay."""
_OFTEN = 4
"""How often usual notes are counted while so many come."""
USUAL = 8
"""As many equal notes are counted; of fewer a mapping takes more memory than they do."""
_PARTS = 16
_LOOSE = 4
"""How much longer than the tasks it names a part's text may grow, by naming tasks again and again."""


class Tasks(TypedDict, Generic[NoteT]):
    """JSON state: notes on tasks. A task may have several."""

    tasks: list[str]
    notes: list[NoteT]
    """As many as tasks."""
    usual: list[NoteT]
    """Further notes, which differ from each other."""
    counts: list[dict[str, int]]
    """Of each usual note: task -> how often it has it."""
    away: dict[str, list[str]]
    """Part -> mappings of further tasks, and of the same ones: JSON, compressed, in base64."""


def no_tasks() -> Tasks[NoteT]:
    """Return the state of nothing seen."""
    return {"tasks": [], "notes": [], "usual": [], "counts": [], "away": {}}


def put_in_order(tasks: Tasks[NoteT], fewer: Fewer[NoteT], most: int) -> None:
    """Have few notes of each task, in place; where one of each is more than ``most``, put all away."""
    found = noted(tasks, fewer)
    few = min(FEW, most // len(found)) or FEW
    found = {task: notes if len(notes) <= few else fewer(notes, few) for task, notes in found.items()}
    if len(found) > most:
        for part, parted in _parted(found).items():
            _put(tasks, part, [_text(parted)], fewer)
        found = {}
    tasks["tasks"][:] = [task for task, notes in found.items() for _ in notes]
    tasks["notes"][:] = chain.from_iterable(found.values())
    tasks["usual"].clear()
    tasks["counts"].clear()


def count_usual(tasks: Tasks[NoteT], same: Callable[[NoteT], Hashable]) -> None:
    """Count the notes that many others equal, in place; the others stay as they came."""
    known = dict(zip(map(id, tasks["notes"]), tasks["notes"], strict=True))
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for task, note in zip(tasks["tasks"], map(id, tasks["notes"]), strict=True):
        groups[note].append(task)
    values: dict[Hashable, tuple[NoteT, list[str]]] = {}
    for each, named in groups.items():
        values.setdefault(same(known[each]), (known[each], []))[1].extend(named)
    known_usual = set(map(same, tasks["usual"]))
    rare = [group for value, group in values.items() if len(group[1]) < USUAL and value not in known_usual]
    tasks["tasks"][:] = [task for _, named in rare for task in named]
    tasks["notes"][:] = [note for note, named in rare for _ in named]
    usual = [group for value, group in values.items() if len(group[1]) >= USUAL or value in known_usual]
    count(tasks, ((note, Counter(named)) for note, named in usual), same)


def count(
    tasks: Tasks[NoteT], groups: Iterable[tuple[NoteT, Mapping[str, int]]], same: Callable[[NoteT], Hashable]
) -> None:
    """Count notes, each with how often which tasks have it, in place."""
    places = {same(note): place for place, note in enumerate(tasks["usual"])}
    for note, times in groups:
        place = places.get(same(note))
        if place is None:
            tasks["usual"].append(note)
            tasks["counts"].append(dict(times))
        else:
            count_into(tasks["counts"][place], times)


def noted(tasks: Tasks[NoteT], fewer: Fewer[NoteT]) -> dict[str, list[NoteT]]:
    """Return the notes by task, without what is put away; one that was counted is one that comes to the same."""
    found: defaultdict[str, list[NoteT]] = defaultdict(list)
    for task, note in zip(tasks["tasks"], tasks["notes"], strict=True):
        found[task].append(note)
    for note, counts in zip(tasks["usual"], tasks["counts"], strict=True):
        multiples = {1: note}
        for task, times in counts.items():
            found[task].append(multiples.get(times) or _multiple(multiples, times, fewer))
    return found


def _multiple(multiples: dict[int, NoteT], times: int, fewer: Fewer[NoteT]) -> NoteT:
    if times not in multiples:
        half = _multiple(multiples, times // 2, fewer)
        multiples[times] = fewer([half, half, *[multiples[1]] * (times % 2)], 1)[0]
    return multiples[times]


def mappings(several: Sequence[Tasks[NoteT]], fewer: Fewer[NoteT]) -> Iterator[list[dict[str, list[NoteT]]]]:
    """Yield the notes by task of several states, a part of all tasks at a time: the same tasks in each."""
    if not any(each["away"] for each in several):
        yield [noted(each, fewer) for each in several]
        return
    parted = [_parted(noted(each, fewer)) for each in several]
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

    def same(self, note: NoteT) -> Hashable:
        """Return what is equal for equal notes."""
        return repr(note)

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
            if more["usual"]:
                count(left[model], zip(more["usual"], more["counts"], strict=True), self.same)
                self._settle(left[model], NOTES // len(left))
            for part, texts in more["away"].items():
                _put(left[model], part, texts, self.fewer)
            self._join_one(left[model])
        return left

    def _join_one(self, held: Tasks[NoteT]) -> None:
        """Have one note where all are of one task: a figure is computed so without each task, for thousands in turn."""
        tasks = held["tasks"]
        if len(tasks) > 1 and tasks[0] == tasks[-1] and not held["usual"] and tasks.count(tasks[0]) == len(tasks):
            held["notes"][:] = self.fewer(held["notes"], 1)
            del tasks[1:]

    def _note(self, state: dict[str, Tasks[NoteT]], group: str, tasks: list[str], notes: list[NoteT]) -> None:
        held = state.get(group)
        if held is None:
            held = state[group] = no_tasks()
        before = len(held["tasks"]) * len(state)
        held["tasks"] += tasks
        held["notes"] += notes
        after = len(held["tasks"]) * len(state)
        if after > NOTES or after * _OFTEN // NOTES > before * _OFTEN // NOTES:
            count_usual(held, self.same)
            self._settle(held, NOTES // len(state))

    def _settle(self, held: Tasks[NoteT], most: int) -> None:
        if max(len(held["tasks"]), sum(map(len, held["counts"]))) > most:
            put_in_order(held, self.fewer, most // 2)
