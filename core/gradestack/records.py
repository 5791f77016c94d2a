"""RecordReader: the easy reader, of JSON Lines or of a JSON list, and what it is made of.

A format says what one record is; recognising files, cutting them into shards, numbering records and
reporting bad ones are done here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
from attrs.validators import optional

from gradestack.api import Input, Inputs, Reader, Shard
from gradestack.errors import GradestackError, error_text, reading
from gradestack.jsonio.files import read_regular
from gradestack.jsonio.paths import path_steps, path_value
from gradestack.jsonio.records import (
    Element,
    Layout,
    Range,
    far_records,
    first_records,
    iter_records,
    record_ranges,
)
from gradestack.jsonio.values import JsonProblem, compact, dumps, json_data, loads
from gradestack.model import JSON, BadRecord, Sample, Source, replace

_HEAD = 64 * 1024
"""A beginning shorter than this is the whole file."""


@attrs.frozen(kw_only=True)
class RecordFile:
    """One file of records, as a reader plans to read it."""

    input: Input
    """The input its samples belong to."""
    file: Input | None = None
    """The file, where it is not the input itself: one inside a directory, or a dataset."""
    ranges: Sequence[Range] | None = None
    """What is read of it, each a shard; None cuts it between records."""
    most: int = 1
    """The largest number of samples of a record, where that may be more than it has bytes."""
    extra: JSON = None
    """What each shard has as ``extra``."""


def read_records(
    file: Input,
    part: Range | None = None,
    layout: Layout = "either",
    decode: Callable[[bytes], Any] = loads,
) -> Iterator[Element]:
    """Yield what ``gradestack.jsonio.iter_records`` yields of an input.

    Raises:
        DataError: It cannot be read, or holds no list where the layout is ``list``.
    """
    with reading(file.shown):
        yield from iter_records(file.path, part, layout, decode)


INPUT: Final = "input"
"""In place of a place: samples of the same first question and tools are runs of one task."""


def _check_place(_: Any, __: Any, place: str) -> None:
    if not place:
        raise ValueError(
            f"expected {INPUT!r}, a key of the records, or a path such as $.metadata.task"
        )
    path_steps(place)


def read_document(file: Input) -> Iterator[Element]:
    """Yield the one document a file is, or what is wrong with it.

    DataError where it cannot be read.
    """
    try:
        with reading(file.shown):
            yield Element(0, 1, loads(read_regular(file.path)))
    except JsonProblem as problem:
        yield Element(0, 1, problem=str(problem))


@attrs.frozen(kw_only=True)
class RecordReader(Reader):
    """Base of readers of JSON Lines or of a JSON list.

    A format names its ``keys`` and writes ``sample_of``.

    Files are cut into shards between two records, records are numbered (file, line, ordinal) and
    read one at a time. A record that is not JSON, or that no sample can be made of, is yielded as
    ``BadRecord``, and reading goes on.

    Attributes:
        layout: ``lines``, ``list``, or ``either``: whichever a file begins as.
        keys: Keys every record has. A file is recognised by them, and a record without one of them
            is bad.
        sniffed: How many records at the beginning of a file are looked at to recognise it.
        behind_others: How sure a record can make it at most that stands behind an object of another
            format.
    """

    ids: str | None = attrs.field(default=None, validator=optional(_check_place))
    """Where the ids of tasks stand.

    A key of a record, a path such as ``$.metadata.task``, or ``input``.
    """

    layout: ClassVar[Layout] = "either"
    keys: ClassVar[frozenset[str]] = frozenset()
    sniffed: ClassVar[int] = 10
    behind_others: ClassVar[float] = 0.3

    def sample_of(self, record: Any, source: Source) -> Sample | BadRecord:
        """Return the sample of one record: an object that has all ``keys``.

        Args:
            record: The object.
            source: Where it stands, for ``Sample.source``.

        Raises:
            ValueError: There is none; the message becomes the reason of a bad record.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say what the sample of a record is: sample_of is not "
            "written"
        )

    @classmethod
    def looks_like(cls, record: Any) -> float | None:
        """Return how sure one record makes it that a file is of this format, 0 to 1.

        None where it tells nothing.
        """
        return (
            None
            if not cls.keys
            else 0.9
            if isinstance(record, dict) and cls.keys <= record.keys()
            else 0.0
        )

    @classmethod
    def begins_like(cls, text: bytes) -> float | None:
        """Return how sure the beginning of a record that is too long makes it.

        None where it tells nothing.
        """
        return 0.6 if cls.keys and all(f'"{key}"'.encode() in text for key in cls.keys) else None

    @classmethod
    def complaint(cls, record: dict[str, Any]) -> str | None:
        """Return what keeps an object from being a record, where it nearly is one.

        Keys that are missing; else None.
        """
        missing = sorted(cls.keys - record.keys())
        return f"{', '.join(missing)} missing" if 0 < 2 * len(missing) < len(cls.keys) else None

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Return how sure it is that a file is of this format, from its first records.

        See ``recognised``.
        """
        return cls.recognised(path, head) or 0.0

    @classmethod
    def recognised(cls, path: Path, head: bytes) -> float | None:
        """Return how sure the surest of the first records, or its beginning, makes it.

        None when they tell nothing.
        """
        records: Iterable[tuple[Element, bytes]] = first_records(head, cls.sniffed, cls.layout)
        while True:
            best, others, broken = 0.0, False, b""
            for element, text in records:
                if element.problem is not None:
                    broken = text
                elif found := cls.looks_like(element.value):
                    best = max(best, min(found, cls.behind_others) if others else found)
                else:
                    others = others or found is not None
            if best or others or not broken:
                return best if best or others else None
            begun = cls.begins_like(broken)
            if begun == 0.0 or len(head) < _HEAD:
                return begun or None
            try:
                records, head = far_records(path, head, cls.sniffed), b""
            except OSError:  # reading it will say so
                return begun

    def files(self, inputs: Inputs, index: Any) -> Iterable[RecordFile]:
        """Yield the files to read, in order; by default each input is one.

        Raises:
            DataError: An input cannot be used.
        """
        return (RecordFile(input=given) for given in inputs.data)

    def plan(self, inputs: Inputs, index: Any) -> Iterator[Shard]:
        """Cut the files into ranges of whole records."""
        ordinal = position = 0
        for each in self.files(inputs, index):
            file = each.file or each.input
            with reading(file.shown):
                size = file.path.stat().st_size
                for part in (
                    record_ranges(file.path, self.layout) if each.ranges is None else each.ranges
                ):
                    yield Shard(
                        ordinal=ordinal,
                        input=each.input,
                        start=part.start,
                        end=part.end,
                        first_line=part.first_line,
                        first_row=part.first_row,
                        position=position + part.start * each.most,
                        extra=each.extra,
                    )
                    ordinal += 1
            position += (size + 1) * each.most

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield the sample of every record of a shard, or what is wrong with it."""
        return self.samples(shard, self._whole)

    def _whole(self, record: Any, source: Source) -> Iterator[Sample | BadRecord]:
        if not isinstance(record, dict):
            # what makes a bad record
            raise ValueError(f"expected an object, found {compact(record)[:60]}")
        if not self.keys <= record.keys():
            raise ValueError(f"{', '.join(sorted(self.keys - record.keys()))} missing")
        yield self.sample_of(record, source)

    def samples(
        self,
        shard: Shard,
        samples_of: Callable[[Any, Source], Iterable[Sample | BadRecord]],
        file: Input | None = None,
    ) -> Iterator[Sample | BadRecord]:
        """Yield what ``samples_of`` makes of every record of a shard, where that is more than
        ``sample_of``.

        Args:
            shard: The shard.
            samples_of: What gives the samples of one record (any number), or raises ValueError with
                what is wrong.
            file: The file, where it is not the shard's input.

        Raises:
            DataError: The file cannot be read.
        """
        file = file or shard.input
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        return self.samples_in(self.elements(file, part), samples_of, file.shown)

    def samples_in(
        self,
        elements: Iterable[Element],
        samples_of: Callable[[Any, Source], Iterable[Sample | BadRecord]],
        shown: str,
    ) -> Iterator[Sample | BadRecord]:
        """Yield what ``samples_of`` makes of elements, however they were read.

        ``shown`` is the name of their file.
        """
        for found in elements:
            source = Source(file=shown, ordinal=found.ordinal, line=found.line)
            if found.problem is not None:
                yield BadRecord(source=source, reason=found.problem)
            else:
                yield from self.guarded(samples_of, found.value, source)

    def guarded(
        self,
        samples_of: Callable[[Any, Source], Iterable[Sample | BadRecord]],
        record: Any,
        source: Source,
    ) -> Iterator[Sample | BadRecord]:
        """Yield the samples of one record, with the ids that the option ``ids`` asks for.

        Where making them fails, whatever the reason, there is one bad record.

        Raises:
            GradestackError: The format refuses more than the record.
            NotImplementedError: It does not say what a sample is.
            OSError: A file cannot be read.
        """
        try:
            yield from self.identified(samples_of(record, source), record)
        except (GradestackError, OSError, NotImplementedError):
            raise
        except RecursionError:
            yield BadRecord(source=source, reason="nested too deeply")
        except ValueError as problem:
            yield BadRecord(source=source, reason=str(problem), native=record)
        except Exception as error:  # noqa: BLE001 - what a format did not think of ends no run
            reason = f"reader {type(self).__name__} raised {error_text(error)}"
            yield BadRecord(source=source, reason=reason, native=record)

    def identified(
        self, made: Iterable[Sample | BadRecord], record: Any
    ) -> Iterable[Sample | BadRecord]:
        """Return the samples of a record with the ids that the option ``ids`` asks for.

        Where the path to them cannot be followed, they are bad records.
        """
        return (
            made if self.ids is None else (self._with_id(each, record, self.ids) for each in made)
        )

    @staticmethod
    def _with_id(sample: Sample | BadRecord, record: Any, place: str) -> Sample | BadRecord:
        try:
            return sample if isinstance(sample, BadRecord) else identified(sample, record, place)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            return BadRecord(
                source=sample.source or Source(file="", ordinal=0), reason=reason, native=record
            )

    def elements(self, file: Input, part: Range) -> Iterator[Element]:
        """Yield the records of a range as they are decoded."""
        return read_records(file, part, self.layout)


MADE: Final = "id_made"
_LOST: Final = "id_not_found"
"""Kind of remark on a record that has nothing usable where its id should be.

It keeps the id it has.
"""


def identified(sample: Sample, record: Any, place: str) -> Sample:
    """Return a sample with the id that stands at a place of its record, or that of its input."""
    found = _of_input(sample) if place == INPUT else _at(record, place)
    if found is None:
        return replace(sample, remarks={**sample.remarks, _LOST: sample.remarks.get(_LOST, 0) + 1})
    changes: dict[str, Any] = {"id": str(found)}
    if MADE in sample.remarks:
        changes["remarks"] = {kind: times for kind, times in sample.remarks.items() if kind != MADE}
    if MADE in sample.facets:
        changes["facets"] = {name: each for name, each in sample.facets.items() if name != MADE}
    if sample.cluster is not None and sample.cluster == sample.id:
        changes["cluster"] = str(found)
    if sample.source is not None:
        changes["source"] = replace(sample.source, id=found if isinstance(found, int) else None)
    return replace(sample, **changes)


def _at(record: Any, place: str) -> str | int | None:
    steps = path_steps(place)
    found = (
        path_value(record, steps) if isinstance(record, Mapping) or place.startswith("$") else None
    )
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return (
        found
        if isinstance(found, str | int) and not isinstance(found, bool) and found != ""
        else None
    )


def _of_input(sample: Sample) -> str | None:
    """Return a digest of the first user message and the tools; None without a question."""
    asked: Any = (
        sample.input[0] if isinstance(sample.input, tuple) and sample.input else sample.input
    )
    if asked is None:
        asked = next(
            (each.content for turn in sample.turns for each in turn if each.role == "user"), None
        )
    if asked is None:
        return None
    tools = None if sample.tools is None else [json_data(each) for each in sample.tools]
    text = dumps([json_data(asked), tools])
    return f"input-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
