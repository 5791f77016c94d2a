"""Trajectories of a slim run, read again from its input where each row says it was read."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs
import msgspec

from gradestack.api import Input, Inputs, Reader, Shard
from gradestack.copies.files import original, readable
from gradestack.errors import DataError, GradestackError
from gradestack.grading.reading import MIXED, Mixed, records_of, separated, shards_of
from gradestack.jsonio.files import open_regular
from gradestack.jsonio.values import as_map, json_data, loads
from gradestack.model import Sample, Source, Status
from gradestack.registry import Registry
from gradestack.report import Report
from gradestack.rows.read import Row
from gradestack.rows.write import encode, trajectory_of
from gradestack.suites.strict import Problems, structure

GONE: Final = "trajectory_gone"
"""Key of a row whose trajectory could not be read again: one sentence that says why."""
_PART = 500
"""Rows looked up at a time; their trajectories are held in memory."""

Say = Callable[[str], None]


def with_trajectories(report: Report, made: Reader | Registry, say: Say) -> Report:
    """Return a report whose ``rows_at`` reads the trajectories of a slim run again; any other report as it is."""
    if report.has_trajectories or not isinstance(report.header.get("recording"), dict):
        return report
    return attrs.evolve(report, completed=Trajectories(report.header, made, say).completed)


class _Place(NamedTuple):
    """What tells a sample from all others of a run."""

    source: tuple[str, int, int | None]
    """File, ordinal, line."""
    id: str
    model: str | None
    run: int | str | None


class Trajectories:
    """What a slim run left out; nothing fails for it: a row that cannot be completed says why."""

    def __init__(self, header: Mapping[str, Any], made: Reader | Registry, say: Say) -> None:
        self._files = [(Path(each["path"]), each["sha256"]) for each in header.get("inputs", ())]
        self._recording, self._made, self._say = header["recording"], made, say
        self._inputs = [_input(each) for each in self._recording["inputs"]]
        dataset = self._recording["dataset"]
        self._dataset = _input(dataset) if dataset is not None else None
        self._told: set[str] = set()
        self._damage: dict[Path, str] = {}
        self._known: dict[Path, list[tuple[Source, Shard]]] = {}

    def completed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows with their ``trajectory``, or with ``trajectory_gone``."""
        rows = iter(rows)
        while part := list(islice(rows, _PART)):
            yield from self._completed(part)

    def _completed(self, rows: list[Row]) -> Iterator[Row]:
        places = [_place_of(row) for row in rows]
        wanted: dict[str, set[_Place]] = {}
        for row, place in zip(rows, places, strict=True):
            if place is not None and row.get("status") != Status.MISSING:
                wanted.setdefault(place.source[0], set()).add(place)
        found: dict[_Place, Any] = {}
        why: dict[str, str] = {}
        for file, there in wanted.items():
            try:
                self._find(file, there, found)
            except (GradestackError, OSError) as error:
                why[file] = str(error)
        for row, place in zip(rows, places, strict=True):
            if row.get("status") == Status.MISSING:
                yield {**row, "trajectory": []}
            elif place is None:
                yield {**row, GONE: self._gone("the row has no place in its input")}
            elif place in found:
                yield {**row, "trajectory": found[place]}
            else:
                file = place.source[0]
                yield {**row, GONE: self._gone(why.get(file, f"{file} is read otherwise than before"))}

    def _gone(self, why: str) -> str:
        """Return what stands in place of a conversation."""
        if why not in self._told:
            self._told.add(why)
            self._say(f"warning: rows are slim, and conversations cannot be read again: {why}")
        return f"The conversation was not kept with the results (rows: slim) and cannot be read again: {why}."

    def _find(self, file: str, wanted: set[_Place], found: dict[_Place, Any]) -> None:
        """Add the trajectories of samples of one file, reading no more of it than needed."""
        below = f"{file}/"
        given = next((each for each in self._inputs if below.startswith(f"{each.shown.rstrip('/')}/")), None)
        if given is None:
            raise DataError(f"{file} is not among the inputs on record")
        for each in filter(None, (given, self._dataset)):
            if damage := self._damaged(each):
                raise DataError(damage)
        reader, _, index = self._plan
        left = set(wanted)
        for shard in self._shards(given, file, {place.source[1] for place in wanted}):
            for record in records_of(reader, shard, index):
                if isinstance(record, Sample) and (place := _place(record)) in left:
                    found[place] = _as_read(record)
                    left.discard(place)
                    if not left:
                        return

    def _shards(self, given: Input, file: str, ordinals: set[int]) -> Iterator[Shard]:
        """Yield the shards of an input: first those that begin right before the ordinals, then the others.

        Some formats are read in the order of a dataset, and may have a record in any shard; of some, one holds
        records of several inputs.
        """
        known = self._beginnings(given)
        begun = [(source.ordinal, shard) for source, shard in known if source.file == file]
        found = {bisect_right(begun, ordinal, key=lambda each: each[0]) - 1 for ordinal in ordinals}
        likely = [begun[at][1] for at in sorted(found) if at >= 0]
        yield from likely
        own = [shard for _, shard in known if shard not in likely]
        yield from own
        yield from (shard for shard in self._plan[1] if shard not in likely and shard not in own)

    def _beginnings(self, given: Input) -> list[tuple[Source, Shard]]:
        """Return an input's shards, each with the place of its first record; the others hold no sample."""
        if given.path not in self._known:
            reader, shards, index = self._plan
            own = [shard for shard in shards if shard.input.path == given.path]
            first = ((next(records_of(reader, shard, index), None), shard) for shard in own)
            self._known[given.path] = [(one.source, shard) for one, shard in first if one is not None and one.source]
        return self._known[given.path]

    def _damaged(self, given: Input) -> str:
        """Return what has become of an input since it was graded; "" for nothing."""
        if given.path not in self._damage:
            self._damage[given.path] = self._look(given)
        return self._damage[given.path]

    def _look(self, given: Input) -> str:
        path = original(given.path).resolve()
        own = [(file, digest) for file, digest in self._files if file == path or path in file.parents]
        for file, digest in own:
            shown = given.shown if file == path else f"{given.shown}/{file.relative_to(path).as_posix()}"
            try:
                with open_regular(file) as opened:
                    same = hashlib.file_digest(opened, "sha256").hexdigest() == digest
            except OSError:
                return f"{shown} is gone"
            if not same:
                return f"{shown} has changed since"
        return "" if own else f"{given.shown} is gone"

    @cached_property
    def _plan(self) -> tuple[Reader, list[Shard], Any]:
        """The reader of the run, its shards of the inputs that are still there, and its index."""
        reader = self._made if isinstance(self._made, Reader) else _reader(self._recording, self._made)
        there = Inputs(data=tuple(each for each in self._inputs if each.path.exists()), dataset=self._dataset)
        shards, index = shards_of(reader, there)
        return reader, shards, separated(reader, there, shards, index)


def _reader(recording: Mapping[str, Any], registry: Registry) -> Reader:
    name, options = recording["reader"], recording["options"]
    if MIXED in name:
        parts = options["parts"]
        names = (frozenset(given["name"] for given in each["inputs"]) for each in parts)
        return Mixed(tuple(_reader(each, registry) for each in parts), tuple(names))
    try:
        reader: Reader = structure(options, registry.load("reader", name))
    except Problems as problems:
        raise DataError(f"the reader {name!r} does not take the options of this run") from problems
    return reader


def _input(recorded: Mapping[str, str]) -> Input:
    path = Path(recorded["path"])
    return Input(path=readable(path) if path.exists() else path, name=recorded["name"], shown=recorded["shown"])


def _place_of(row: Row) -> _Place | None:
    found = (row.get("source"), as_map(row.get("sample")).get("id"), row.get("model_name"), row.get("run"))
    try:
        source, name, model, run = msgspec.convert(found, tuple[Source, str | int, str | None, int | str | None])
    except msgspec.ValidationError:  # the row has no place in its input
        return None
    return _Place((source.file, source.ordinal, source.line), str(name), model, run)


def _place(sample: Sample) -> _Place:
    source = sample.source or Source(file="")
    return _Place((source.file, source.ordinal, source.line), sample.id, sample.model, sample.run)


def _as_read(sample: Sample) -> Any:
    """Return a trajectory as it would be read back from its row; one that cannot be written was not kept either."""
    try:
        return loads(encode(json_data(trajectory_of(sample, []))))
    except (RecursionError, TypeError, ValueError):
        return []
