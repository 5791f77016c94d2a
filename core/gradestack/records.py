"""RecordReader: the easy reader, of JSON Lines or of a JSON list, and what it is made of.

A format says what one record is; recognising files, cutting them into shards, numbering records and
reporting bad ones are done here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import msgspec
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


class RecordFile(msgspec.Struct, frozen=True, kw_only=True):
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
    """Yield the records of an input, as ``gradestack.jsonio.iter_records`` does.

    Raises:
        DataError: It cannot be read, or holds no list where the layout is ``list``.
    """
    with reading(file.shown):
        yield from iter_records(file.path, part, layout, decode)


INPUT: Final = "input"
"""In place of a place: samples of the same first question and tools are runs of one task."""


def _check_place(_: Any, __: Any, location: str) -> None:
    if not location:
        raise ValueError(
            f"expected {INPUT!r}, a key of the records, or a path such as $.metadata.task"
        )
    path_steps(location)


def read_document(file: Input) -> Iterator[Element]:
    """Yield the one document a file is, or what is wrong with it.

    DataError where it cannot be read.
    """
    try:
        with reading(file.shown):
            text = read_regular(file.path)
            yield Element(0, 1, loads(text))
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
        behind_others: The highest confidence from a record that comes after an object of another
            format.
    """

    ids: str | None = attrs.field(default=None, validator=optional(_check_place))
    """Field or path of the task id.

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
        """Return the confidence that one record gives that a file is of this format, 0 to 1.

        None where it tells nothing.
        """
        if not cls.keys:
            return None
        return 0.9 * (isinstance(record, dict) and cls.keys <= record.keys())

    @classmethod
    def begins_like(cls, text: bytes) -> float | None:
        """Return the confidence that the beginning of a record gives that is too long.

        None where it tells nothing.
        """
        if cls.keys and all(f'"{key}"'.encode() in text for key in cls.keys):
            return 0.6
        return None

    @classmethod
    def complaint(cls, record: dict[str, Any]) -> str | None:
        """Explain why an object is no record, where it nearly is one.

        Keys that are missing; else None.
        """
        missing = sorted(cls.keys - record.keys())
        if 0 < 2 * len(missing) < len(cls.keys):
            return f"{', '.join(missing)} missing"
        return None

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Return the confidence that a file is of this format, from its first records.

        See ``recognised``.
        """
        return cls.recognised(path, head) or 0.0

    @classmethod
    def recognised(cls, path: Path, head: bytes) -> float | None:
        """Return the greatest confidence that the first records give, or their beginning.

        None when they tell nothing.
        """
        records: Iterable[tuple[Element, bytes]] = first_records(head, cls.sniffed, cls.layout)
        while True:
            best, others, broken = 0.0, False, b""
            for element, text in records:
                if element.problem is not None:
                    broken = text
                    continue
                confidence = cls.looks_like(element.value)
                if confidence:
                    most = cls.behind_others if others else 1.0
                    best = max(best, min(confidence, most))
                elif confidence is not None:
                    others = True
            if best or others:
                return best
            if not broken:
                return None
            begun = cls.begins_like(broken)
            if begun == 0.0 or len(head) < _HEAD:
                return begun or None
            try:
                records = far_records(path, head, cls.sniffed)
                head = b""
            except OSError:  # reading it will say so
                return begun

    def files(self, inputs: Inputs, index: Any) -> Iterable[RecordFile]:
        """Yield the files to read, in order; by default each input is one.

        Raises:
            DataError: An input cannot be used.
        """
        return (RecordFile(input=input_) for input_ in inputs.data)

    def plan(self, inputs: Inputs, index: Any) -> Iterator[Shard]:
        """Cut the files into ranges of whole records."""
        ordinal = position = 0
        for planned in self.files(inputs, index):
            file = planned.file or planned.input
            ranges = planned.ranges
            with reading(file.shown):
                size = file.path.stat().st_size
                for part in record_ranges(file.path, self.layout) if ranges is None else ranges:
                    fields = msgspec.structs.asdict(part)
                    yield Shard(
                        **fields,
                        ordinal=ordinal,
                        input=planned.input,
                        position=position + part.start * planned.most,
                        extra=planned.extra,
                    )
                    ordinal += 1
            position += (size + 1) * planned.most

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield a sample for each record of a shard, or a BadRecord that says what is wrong."""
        return self.samples(shard, self._sample_of_object)

    def _sample_of_object(self, record: Any, source: Source) -> Iterator[Sample | BadRecord]:
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
        """Yield the samples that ``samples_of`` makes of every record of a shard, where that is
        more than ``sample_of``.

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
        """Yield the samples that ``samples_of`` makes of elements, however they were read.

        ``shown`` is the name of their file.
        """
        for element in elements:
            source = Source(file=shown, ordinal=element.ordinal, line=element.line)
            if element.problem is not None:
                yield BadRecord(source=source, reason=element.problem)
            else:
                yield from self.guarded(samples_of, element.value, source)

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
        except Exception as error:  # noqa: BLE001 - what a format did not think of ends no run
            yield self._bad_record(error, record, source)

    def _bad_record(self, error: Exception, record: Any, source: Source) -> BadRecord:
        """Return the bad record that an error makes of a record."""
        if isinstance(error, RecursionError):
            return BadRecord(source=source, reason="nested too deeply")
        reason = str(error)
        if not isinstance(error, ValueError):
            reason = f"reader {type(self).__name__} raised {error_text(error)}"
        return BadRecord(source=source, reason=reason, native=record)

    def identified(
        self, made: Iterable[Sample | BadRecord], record: Any
    ) -> Iterable[Sample | BadRecord]:
        """Return the samples of a record with the ids that the option ``ids`` asks for.

        Where the path to them cannot be followed, they are bad records.
        """
        if self.ids is None:
            return made
        return (self._with_id(sample, record, self.ids) for sample in made)

    def _with_id(
        self, sample: Sample | BadRecord, record: Any, location: str
    ) -> Sample | BadRecord:
        """Give a sample its task id; it becomes a bad record where no id can be made."""
        if isinstance(sample, BadRecord):
            return sample
        try:
            return identified(sample, record, location)
        except (ValueError, RecursionError) as error:
            source = sample.source or Source(file="", ordinal=0)
            return self._bad_record(error, record, source)

    def elements(self, file: Input, part: Range) -> Iterator[Element]:
        """Yield the records of a range as they are decoded."""
        return read_records(file, part, self.layout)


MADE: Final = "id_made"
_ID_NOT_FOUND: Final = "id_not_found"
"""Kind of remark on a record that has nothing usable where its id should be.

It keeps the id it has.
"""


def identified(sample: Sample, record: Any, location: str) -> Sample:
    """Return a sample with the id that stands at a place of its record, or that of its input."""
    value = _id_of_input(sample) if location == INPUT else _id_at(record, location)
    if value is None:
        remarks = {**sample.remarks, _ID_NOT_FOUND: sample.remarks.get(_ID_NOT_FOUND, 0) + 1}
        return replace(
            sample,
            remarks=remarks,
        )
    source = sample.source
    cluster = str(value) if sample.cluster == sample.id else sample.cluster
    without_made_id = _without_made_id(sample.remarks)
    facets = _without_made_id(sample.facets)
    return replace(
        sample,
        id=str(value),
        cluster=cluster,
        remarks=without_made_id,
        facets=facets,
        source=source and replace(source, id=value if isinstance(value, int) else None),
    )


def _without_made_id(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != MADE}


def _id_at(record: Any, location: str) -> str | int | None:
    """Return the text or whole number at a place of a record, alone or the only one in a list."""
    value = path_value(record, path_steps(location))
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_id = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    return value if is_id else None


def _id_of_input(sample: Sample) -> str | None:
    """Make a task id of a sample's question and tools: "input-" and 16 hex digits of their SHA-256.

    The question is the sample's input, the first one of several, or else the first message of the
    user. Without a question the id is None.
    """
    question: Any = sample.input
    if isinstance(question, tuple):
        question = next(iter(question), None)
    if question is None:
        messages = chain.from_iterable(sample.turns)
        user_texts = (message.content for message in messages if message.role == "user")
        question = next(user_texts, None)
    if question is None:
        return None
    text = dumps(json_data([question, sample.tools]))
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"input-{digest[:16]}"
