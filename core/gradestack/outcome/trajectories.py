"""Trajectories of a slim run, read again from its input where each row says it was read."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import msgspec

from gradestack.api import Input, Inputs, Reader, Shard
from gradestack.errors import DataError, GradestackError
from gradestack.grading.reading import records_of, shards_of
from gradestack.jsonio.values import loads
from gradestack.model import Sample, Source, Status
from gradestack.registry import Registry
from gradestack.report import Report
from gradestack.rows.encoding import encode
from gradestack.rows.read import Row
from gradestack.rows.write import trajectory_of
from gradestack.suites.strict import Problems, structure

GONE = "trajectory_gone"
"""Key of a row whose trajectory could not be read again: one sentence that says why."""
_PIECE = 100
"""Rows looked up at a time."""

Say = Callable[[str], None]
Identity = tuple[Any, ...]


def with_trajectories(report: Report, made: Reader | Registry, say: Say) -> Report:
    """Return a report whose ``rows_at`` reads the trajectories of a slim run again; any other report as it is.

    Args:
        report: The run.
        made: The reader of the run, or where it is found.
        say: Called once with each reason for which trajectories are not to be had.
    """
    recording = report.header.get("recording")
    if report.has_trajectories or not isinstance(recording, dict):
        return report
    return attrs.evolve(report, completed=Trajectories(report.header, made, say).completed)


class Trajectories:
    """What a slim run left out. Nothing fails for it: a row that cannot be completed says why.

    Args:
        header: Content of the run's header.json.
        made: The reader of the run, or where it is found.
        say: Called once with each reason for which trajectories are not to be had.
    """

    def __init__(self, header: Mapping[str, Any], made: Reader | Registry, say: Say) -> None:
        self._header, self._recording, self._made, self._say = header, header["recording"], made, say
        self._told: set[str] = set()
        self._damage: dict[Path, str] = {}
        self._starts: dict[Path, dict[str, list[tuple[int, Shard]]]] = {}
        self._inputs = [_input(each) for each in self._recording["inputs"]]

    def completed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows with their ``trajectory``, or with ``trajectory_gone``; fastest in the order of the input."""
        for shard, group in groupby(map(self._placed, rows), key=lambda placed: placed[1]):
            wanted: list[tuple[Row, str]] = []
            for row, _, why in group:
                wanted.append((row, why))
                if len(wanted) == _PIECE:
                    yield from self._read(wanted, shard)
                    wanted = []
            yield from self._read(wanted, shard)

    def _placed(self, row: Row) -> tuple[Row, Shard | None, str]:
        """Return a row with the shard it was read from, or with the reason for which there is none."""
        if row.get("status") == Status.MISSING:
            return {**row, "trajectory": []}, None, ""
        try:
            return row, self._shard(row), ""
        except (GradestackError, OSError) as error:
            return row, None, str(error)

    def _read(self, wanted: list[tuple[Row, str]], shard: Shard | None) -> Iterator[Row]:
        found: dict[Identity, Any] = {}
        why = "the record is not found there any more"
        if shard is not None:
            try:
                found = self._found({_identity_of(row) for row, _ in wanted}, shard)
            except (GradestackError, OSError) as error:
                why = str(error)
        for row, problem in wanted:
            if "trajectory" in row:
                yield row
            elif (trajectory := found.get(_identity_of(row))) is not None:
                yield {**row, "trajectory": trajectory}
            else:
                yield {**row, GONE: self._gone(problem or why)}

    def _found(self, wanted: set[Identity], shard: Shard) -> dict[Identity, Any]:
        """Return the trajectories of samples of one shard, which is read no further than needed."""
        reader, _, index = self._plan
        found: dict[Identity, Any] = {}
        for record in records_of(reader, shard, index):
            if not isinstance(record, Sample):
                continue
            key = _identity(record.source, record.id, record.model, record.run)
            if key in wanted and key not in found:
                found[key] = _as_read(record)
                if len(found) == len(wanted):
                    break
        return found

    def _gone(self, why: str) -> str:
        """Return what stands in place of a conversation."""
        if why not in self._told:
            self._told.add(why)
            self._say(f"warning: rows are slim, and conversations cannot be read again: {why}")
        return f"The conversation was not kept in the row (rows: slim) and cannot be read again: {why}."

    def _shard(self, row: Row) -> Shard:
        """Return the shard a row's sample was read from.

        Raises:
            DataError: Its input is gone or has changed, or cannot be read by the reader of the run.
        """
        source = source_of(row)
        if source is None:
            msg = "the row does not say where it was read"
            raise DataError(msg)
        given = self._of(source.file)
        dataset = self._recording["dataset"]
        for each in (given, *([_input(dataset)] if dataset is not None else [])):
            if damage := self._damaged(each):
                raise DataError(damage)
        starts = self._starts_of(given).get(source.file, [])
        at = bisect_right(starts, source.ordinal, key=lambda start: start[0]) - 1
        if at < 0:
            msg = "the record is not found there any more"
            raise DataError(msg)
        return starts[at][1]

    def _of(self, file: str) -> Input:
        """Return the input a file of a row belongs to: itself, or the directory it lies in."""
        for given in self._inputs:
            if file == given.shown or file.startswith(f"{given.shown.rstrip('/')}/"):
                return given
        msg = f"{file} is not among the inputs on record"
        raise DataError(msg)

    def _damaged(self, given: Input) -> str:
        """Return what has become of an input since it was graded; "" for nothing."""
        if given.path not in self._damage:
            self._damage[given.path] = self._look(given)
        return self._damage[given.path]

    def _look(self, given: Input) -> str:
        files = [(Path(each["path"]), each["sha256"]) for each in self._header["inputs"]]
        files = [(path, digest) for path, digest in files if path == given.path or given.path in path.parents]
        for path, digest in files:
            shown = given.shown if path == given.path else f"{given.shown}/{path.relative_to(given.path).as_posix()}"
            try:
                with path.open("rb") as file:
                    same = hashlib.file_digest(file, "sha256").hexdigest() == digest
            except OSError:
                return f"{shown} is gone"
            if not same:
                return f"{shown} has changed since"
        return "" if files else f"{given.shown} is gone"

    def _starts_of(self, given: Input) -> Mapping[str, list[tuple[int, Shard]]]:
        """Return file -> ordinal of the first record of each shard, and the shard; of one input."""
        if given.path not in self._starts:
            reader, shards, index = self._plan
            starts = self._starts[given.path] = {}
            for shard in shards:
                if shard.input.path != given.path:
                    continue
                first = next(records_of(reader, shard, index), None)
                if first is not None and first.source is not None:
                    starts.setdefault(first.source.file, []).append((first.source.ordinal, shard))
        return self._starts[given.path]

    @cached_property
    def _plan(self) -> tuple[Reader, list[Shard], Any]:
        """The reader of the run, its shards of the inputs that are still there, and its index."""
        reader = self._reader()
        dataset = self._recording["dataset"]
        there = tuple(each for each in self._inputs if each.path.exists())
        inputs = Inputs(data=there, dataset=_input(dataset) if dataset is not None else None)
        return reader, *shards_of(reader, inputs)

    def _reader(self) -> Reader:
        if isinstance(self._made, Reader):
            return self._made
        name = self._recording["reader"]
        try:
            reader: Reader = structure(self._recording["options"], self._made.load("reader", name))
        except Problems as problems:
            msg = f"the reader {name!r} does not take the options of this run"
            raise DataError(msg) from problems
        return reader


def _input(recorded: Mapping[str, str]) -> Input:
    return Input(path=Path(recorded["path"]), name=recorded["name"], shown=recorded["shown"])


def source_of(row: Row) -> Source | None:
    """Return where a row's sample was read; None when the row does not say."""
    try:
        return msgspec.convert(row.get("source"), Source)
    except msgspec.ValidationError:
        return None


def _identity_of(row: Row) -> Identity:
    """Return what tells a row's sample from all others of its shard."""
    return _identity(source_of(row), row["sample"]["id"], row["model_name"], row["run"])


def _identity(source: Source | None, id_: object, model: object, run: object) -> Identity:
    place = (None, None, None) if source is None else (source.file, source.ordinal, source.line)
    return (*place, str(id_), model, run)


def _as_read(sample: Sample) -> Any:
    """Return a trajectory as it would be read back from its row; one that cannot be written was not kept either."""
    try:
        return loads(encode(trajectory_of(sample)))
    except (RecursionError, TypeError, ValueError):
        return []
