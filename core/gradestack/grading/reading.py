"""A reader's shards and records; what it raises becomes an error that names it.

Of several inputs, one id may stand for other tasks in each: a first pass over them finds these ids,
and their samples are read with the input's name before them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import attrs
import msgspec
from typing_extensions import override

from gradestack.api import Inputs, Reader, Shard
from gradestack.errors import DataError, GradestackError, PluginError, error_text, guarded
from gradestack.grading.plan import is_foreign
from gradestack.model import BadRecord, Expectation, Sample, Status, replace
from gradestack.regular_files import files_below, open_regular

_SAMPLE = 64 * 1024


class FileState(NamedTuple):
    """What tells a file from another of its name, and from itself before it was edited."""

    identity: tuple[int, int]
    size: int
    modified: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """Return what the system says of a file."""
        return cls((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def ends_of(path: Path, start: int = 0, end: int | None = None) -> tuple[bytes, bytes]:
    """Return the first and the last 64 KiB of a range of a file, of a short one all of it twice."""
    with open_regular(path) as file:
        size = (os.fstat(file.fileno()).st_size if end is None else end) - start
        file.seek(start)
        first = file.read(min(size, _SAMPLE))
        file.seek(start + max(0, size - _SAMPLE))
        return first, file.read(min(size, _SAMPLE))


_EDITED = "was edited while it was read"


class InputFiles:
    """The files of a run's inputs as they are when it begins, and which of them have
    grown since.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = {path: each for each in inputs.files for path in files_below(each.path)}
        self.states = {path: FileState.of(path.stat()) for path in self._inputs}
        self.grown: dict[Path, str] = {}
        self._ends = {
            each.path: ends_of(each.path) for each in inputs.files if each.path in self.states
        }

    def check(self, shards: Sequence[Shard], only: Sequence[Path] | None = None) -> None:
        """Refuse inputs of which a file has changed since.

        Args:
            shards: The ranges that are read of them.
            only: The files to look at; default: all.

        Raises:
            DataError: A file was edited, replaced or cut short.
        """
        paths = self.states if only is None else [path for path in only if path in self.states]
        appended: list[Path] = []
        for path in paths:
            before = self.states[path]
            try:
                now = FileState.of(path.stat())
            except FileNotFoundError:  # no other one: who has not read it all will say so
                continue
            if now == before:
                continue
            if now.identity != before.identity:
                raise self._changed(path, "was replaced by another file while it was read")
            if now.size < before.size:
                what = f"it held {before.size} bytes, now {now.size}"
                raise self._changed(path, f"was cut short while it was read: {what}")
            if now.size == before.size:
                raise self._changed(path, _EDITED)
            size = f"{now.size - before.size:,} bytes"
            name = self._shown(path)
            self.grown[path] = f"{name}: {size} were appended while it was read and are not graded"
            appended.append(path)
        if appended:
            self._require_appended(appended, shards)

    def _shown(self, path: Path) -> str:
        given = self._inputs[path]
        if path == given.path:
            return given.shown
        return f"{given.shown}/{path.relative_to(given.path).as_posix()}"

    def _changed(self, path: Path, what: str) -> DataError:
        return DataError(f"{self._shown(path)}: {what}; grade it again when nothing writes to it")

    def _require_appended(self, paths: Iterable[Path], shards: Iterable[Shard]) -> None:
        """Refuse files that have grown in another way than behind all that is read of them."""
        ends: dict[Path, list[int | None]] = {}
        for shard in chain.from_iterable(map(shards_in, shards)):
            ends.setdefault(shard.input.path, []).append(shard.end)
        for path in paths:
            size = self.states[path].size
            is_before = [end is not None and end <= size for end in ends.get(path, ())]
            is_same = bool(is_before) and all(is_before)
            if not is_same or ends_of(path, 0, size) != self._ends.get(path):
                del self.grown[path]
                raise self._changed(path, _EDITED)


class Bundle(Shard, frozen=True, kw_only=True):
    """Small shards of a folder of many files, worked on as one.

    What it takes to begin and end a shard is many times what a small file takes.
    """

    shards: tuple[Shard, ...]

    @override
    def size(self) -> int:
        return sum(shard.size() for shard in self.shards)

    @override
    def absolute(self) -> Shard:
        shards = tuple(shard.absolute() for shard in self.shards)
        first = msgspec.structs.replace(self.input, path=shards[0].input.path)
        return msgspec.structs.replace(self, input=first, shards=shards)


def shards_in(shard: Shard) -> tuple[Shard, ...]:
    """Return the shards of a bundle, or a shard alone."""
    return shard.shards if isinstance(shard, Bundle) else (shard,)


_BUNDLES = 64
"""Bundles there are at least, so that there is enough to share out among workers."""
_BUNDLED, _BUNDLED_BYTES = 64, 8 * 1024 * 1024
"""Shards in a bundle at most, and bytes."""


def bundled(shards: Sequence[Shard]) -> list[Shard]:
    """Return shards with those beside each other put into bundles, where there are very many.

    How many are in one, and how many bytes, depends on the shards alone.
    """
    most = min(_BUNDLED, len(shards) // _BUNDLES)
    if most < 2:
        return list(shards)
    bundles: list[Shard] = []
    left = deque(shards)
    while left:
        members = [left.popleft()]
        size = members[0].size()
        while left and len(members) < most and (size := size + left[0].size()) <= _BUNDLED_BYTES:
            members.append(left.popleft())
        bundles.append(_bundle(len(bundles), members))
    return bundles


def _bundle(ordinal: int, members: Sequence[Shard]) -> Bundle:
    first, last = members[0], members[-1]
    shown = first.input.shown
    if last.input != first.input:
        shown = f"{shown} to {last.input.shown}"
    return Bundle(
        ordinal=ordinal,
        input=msgspec.structs.replace(first.input, shown=shown),
        position=first.position,
        shards=tuple(members),
    )


class Separated(msgspec.Struct, frozen=True):
    """A reader's index, and what stands in place of ids that stand for other tasks in
    other inputs.
    """

    index: Any
    ids: Mapping[tuple[str, str], str]
    """By the name of the input, and the id."""
    note: str


def name_of(reader: Reader) -> str:
    """Return how messages call a reader object."""
    return f"reader {type(reader).__name__} (version {reader.version})"


_PART = 1 << 40
"""Samples there may be of one format among several."""


@attrs.frozen(slots=False)
class Mixed(Reader):
    """Several formats in one run: readers, and the paths of the inputs that each of them reads."""

    readers: tuple[Reader, ...]
    paths: tuple[frozenset[Path], ...]

    def __attrs_post_init__(self) -> None:
        """Be what they are together.

        Fields that any fills, a common stack and habit, else those of own data.
        """
        stacks = {each.stack for each in self.readers}
        habits = {
            "keep" if getattr(each, "ids", None) is not None else each.duplicates
            for each in self.readers
        }
        vars(self).update(
            provides=frozenset().union(*(each.provides for each in self.readers)),
            stack=stacks.pop() if len(stacks) == 1 else "auto",
            duplicates=habits.pop() if len(habits) == 1 else "keep",
            keeps_copies=any(each.keeps_copies for each in self.readers),
            empty_answers=all(each.empty_answers for each in self.readers),
            simulated_users=any(each.simulated_users for each in self.readers),
            runs_code=any(map(is_foreign, self.readers)),
        )

    def parts(self, inputs: Inputs) -> Iterator[tuple[Reader, Inputs]]:
        """Yield each reader with its own of the inputs, in their order."""
        for reader, paths in zip(self.readers, self.paths, strict=True):
            data = tuple(each for each in inputs.data if each.path in paths)
            dataset = inputs.dataset if reader.takes_dataset else None
            yield reader, Inputs(data=data, dataset=dataset)

    @override
    def index(self, inputs: Inputs) -> Any:
        found = []
        for reader, own in self.parts(inputs):
            with guarded(name_of(reader)):
                found.append(reader.index(own))
        return found

    @override
    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        number = 0
        for part, (reader, own) in enumerate(self.parts(inputs)):
            with guarded(name_of(reader)):
                shards = list(reader.plan(own, index[part]))
            for shard in shards:
                extra, position = (part, shard.ordinal, shard.extra), part * _PART + shard.position
                yield msgspec.structs.replace(shard, ordinal=number, position=position, extra=extra)
                number += 1

    def part(self, shard: Shard, index: Any) -> tuple[Reader, Shard, Any]:
        """Return the reader of a shard, the shard as that one made it, and its index."""
        part, ordinal, extra = cast("Any", shard.extra)
        return (
            self.readers[part],
            msgspec.structs.replace(shard, ordinal=ordinal, extra=extra),
            index[part],
        )

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        return records_of(self, shard, index)


def shards_of(reader: Reader, inputs: Inputs) -> tuple[list[Shard], Any]:
    """Return a reader's shards and index."""
    with guarded(name_of(reader)):
        index = reader.index(inputs)
        return list(reader.plan(inputs, index)), index


def separated(reader: Reader, inputs: Inputs, shards: Sequence[Shard], index: Any) -> Any:
    """Return an index, as ``Separated`` where an id stands for several tasks.

    An id stands for one task where its questions and expectations are the same in all inputs, as
    far as they are known. Questions that differ between the runs of one input, as those of
    simulated users do, say nothing. With a dataset, an id stands for its row.
    """
    if len(inputs.data) < 2 or inputs.dataset is not None:
        return index
    ids: dict[tuple[str, str], str] = {}
    for task, known in _tasks(reader, shards, index).items():
        kinds = _kinds(known)
        first_of: dict[Any, str] = {}  # kind -> the first input of it
        for name, kind in kinds.items():
            ids[name, task] = f"{first_of.setdefault(kind, name)}:{task}"
    if not ids:
        return index
    several = [*dict.fromkeys(task for _, task in ids)]
    stands = "1 id stands" if len(several) == 1 else f"{len(several):,} ids stand"
    examples = dict.fromkeys(text for (_, task), text in ids.items() if task == several[0])
    note = (
        f"{stands} for other questions or expectations in other inputs: tasks of their own, "
        f"such as {' and '.join(islice(examples, 2))}"
    )
    return Separated(index, ids, note)


_VARIES = "varies"
"""In place of what is not the same in all that know it."""


def _tasks(
    reader: Reader, shards: Sequence[Shard], index: Any
) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return by id and name of the input what is asked and expected there, as ``_task`` says."""
    tasks: dict[str, dict[str, tuple[Any, ...]]] = {}
    for shard in shards:
        name = shard.input.name
        with suppress(GradestackError, OSError):  # grading will say so
            for sample in records_of(reader, shard, index):
                if isinstance(sample, BadRecord) or sample.cluster is not None:
                    continue
                if sample.status is not Status.MISSING:
                    known = tasks.setdefault(sample.id, {})
                    task = _task(sample, reader)
                    known[name] = tuple(map(_common, known.get(name, task), task))
    return tasks


def _kinds(known: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return by input what tells its task from those of other inputs: nothing where all agree."""
    parts = [*zip(*known.values(), strict=True)]
    telling = [each for each in parts if _VARIES not in each and reduce(_common, each) == _VARIES]
    return dict(zip(known, zip(*telling, strict=True), strict=True)) if telling else {}


def _common(one: Any, other: Any) -> Any:
    """Return what two know together; None is nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one if one == other else _VARIES


def _task(sample: Sample, reader: Reader) -> tuple[int | None, int | None]:
    """Return checksums of the first question and of the expectation, None of what is unknown."""
    question = expectation = None
    if sample.input and not reader.simulated_users:
        first = sample.input if isinstance(sample.input, str) else sample.input[0]
        question = hash(tuple(str(first).split()))
    if sample.expected != Expectation():
        try:
            text: Any = msgspec.json.encode(sample.expected, order="deterministic")
        except (TypeError, ValueError, OverflowError, RecursionError):  # not all of it is JSON
            text = repr(sample.expected)
        expectation = hash(text)
    return question, expectation


def _check(block: Sequence[Any], reader: Reader) -> None:
    for kind in set(map(type, block)):
        if not issubclass(kind, Sample | BadRecord):
            raise PluginError(
                f"{name_of(reader)} yields {kind.__name__}, expected Sample or BadRecord"
            )


def blocks_of(reader: Reader, shard: Shard, index: Any) -> Generator[list[Sample | BadRecord]]:
    """Yield the records of one shard, some at a time, each with the id of its task."""
    if isinstance(shard, Bundle):
        for member in shard.shards:
            yield from blocks_of(reader, member, index)
        return
    own, ids = (index.index, index.ids) if isinstance(index, Separated) else (index, None)
    if isinstance(reader, Mixed):
        reader, shard, own = reader.part(shard, own)
    try:
        for block in reader.blocks(shard, own):
            _check(block, reader)
            yield [_renamed(each, shard.input.name, ids) for each in block] if ids else block
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{name_of(reader)} raised {error_text(error)} in {shard.input.shown}"
        ) from error


def _renamed(
    record: Sample | BadRecord, name: str, ids: Mapping[tuple[str, str], str]
) -> Sample | BadRecord:
    if (
        isinstance(record, BadRecord)
        or record.cluster is not None
        or (found := ids.get((name, record.id))) is None
    ):
        return record
    return replace(record, id=found, source=record.source and replace(record.source, id=None))


def records_of(reader: Reader, shard: Shard, index: Any) -> Generator[Sample | BadRecord]:
    """Yield the same one by one."""
    with closing(blocks_of(reader, shard, index)) as blocks:
        for block in blocks:
            yield from block
