"""Rows of a dataset joined with records by ``uuid``, and the labels of When2Call's rows."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    read_records,
)
from gradestack.jsonio import Element, Range, as_map, as_text, compact

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
"""Gold labels in canonical order: of matrices, of outputs, and of ``answers`` in a row."""
INVALID = "invalid"
"""Stands in place of any other label."""
NO_UUID = "uuid is missing or not a non-empty text"


def uuid_of(record: Any) -> str | None:
    """Return the uuid of a record or a row; None unless it is non-empty text."""
    return as_text(as_map(record).get("uuid")) or None


def required_uuid(record: Any, what: str) -> str:
    """Return the uuid of a record, named by what it is.

    Raises:
        ValueError: It has none, or is no object.
    """
    if not isinstance(record, dict):
        raise ValueError(f"expected {what} (an object), found {compact(record)[:60]}")
    uuid = uuid_of(record)
    if uuid is None:
        raise ValueError(NO_UUID)
    return uuid


def gold_label(record: Any, key: str, *, required: bool = False) -> str | None:
    """Return the gold label under a key; None where there is none, unless it is ``required``.

    Raises:
        ValueError: It is none of the labels.
    """
    gold: str | None = record.get(key)
    if gold in LABELS or (gold is None and not required):
        return gold
    raise ValueError(f"{key} must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}")


class LastRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The last record of every uuid, in order of each uuid's first record."""

    by_uuid: dict[str, Element]
    unusable: tuple[Element, ...]
    """Records that are no use; one whose uuid another has takes that one's place all the same."""


def last_records(elements: Iterable[Element], identify: Callable[[Any], str]) -> LastRecords:
    """Return the last record of every uuid.

    Args:
        elements: The records of a file.
        identify: Returns the uuid of a record, or raises ValueError where it is no use.
    """
    by_uuid = dict[str, Element | None]()
    unusable = list[Element]()
    for element in elements:
        try:
            uuid = identify(element.value)
            by_uuid[uuid] = element  # a replaced value keeps the place of its key
        except ValueError:
            unusable.append(element)
            lost = uuid_of(element.value)
            if lost is not None:
                by_uuid[lost] = None
    usable = {uuid: element for uuid, element in by_uuid.items() if element is not None}
    return LastRecords(by_uuid=usable, unusable=tuple(unusable))


class JoinedIndex(msgspec.Struct, frozen=True, kw_only=True):
    """Records of every file, by the file's name, and the identifiers of the dataset."""

    files: dict[str, LastRecords]
    dataset: Input | None = None
    uuids: frozenset[str] = frozenset()
    """Those of the rows that can be used."""


@attrs.frozen(kw_only=True)
class JoinedReader(RecordReader):
    """Base of readers that join the rows of a dataset with the last record of their ``uuid``.

    The samples of a file are those of the dataset's rows, in their order, and behind them those of
    records that no row has. Without a dataset they are those of the records.
    """

    takes_dataset = True
    behind_others = 0.0

    @abc.abstractmethod
    def load(self, file: Input) -> LastRecords:
        """Return the records of a file, and whatever else has to be known of it as a whole."""

    @abc.abstractmethod
    def check_row(self, row: Mapping[str, Any]) -> None:
        """Raise ValueError where a row of the dataset cannot be used."""

    @abc.abstractmethod
    def sample_of_pair(
        self, file: Any, row: Any, record: Any, source: Source, *, has_dataset: bool
    ) -> Sample:
        """Return the sample of a row and its record; ValueError where the record is no use.

        Args:
            file: What ``load`` returned.
            row: None: no row has the record's uuid.
            record: None: no record has the row's uuid.
            source: Where the record stands, or the row without one.
            has_dataset: Whether there is a dataset.
        """

    @override
    def index(self, inputs: Inputs) -> JoinedIndex:
        files = {file.name: self.load(file) for file in inputs.data}
        uuids = set[str]()
        for element in read_records(inputs.dataset) if inputs.dataset is not None else ():
            with suppress(ValueError):
                uuids.add(self._row_uuid(element.value))
        return JoinedIndex(files=files, dataset=inputs.dataset, uuids=frozenset(uuids))

    def files(self, inputs: Inputs, index: JoinedIndex) -> Iterator[RecordFile]:
        """Yield the dataset, once per file, each followed by what the dataset does not know."""
        for file in inputs.data:
            if inputs.dataset is not None:
                yield RecordFile(input=file, file=inputs.dataset, extra="dataset")
            yield RecordFile(input=file, ranges=(Range(end=file.path.stat().st_size),))

    @override
    def read(self, shard: Shard, index: JoinedIndex) -> Iterator[Sample | BadRecord]:
        file, shown = index.files[shard.input.name], shard.input.shown
        if shard.extra is not None:
            return self.samples(shard, partial(self._samples_of_row, file, shown), index.dataset)
        outside = [file.by_uuid[uuid] for uuid in file.by_uuid if uuid not in index.uuids]
        has_dataset = index.dataset is not None
        samples_of = partial(self._samples_outside, file, has_dataset=has_dataset)
        return self.samples_in([*file.unusable, *outside], samples_of, shown)

    def _row_uuid(self, row: Any) -> str:
        uuid = required_uuid(row, "a dataset row")
        self.check_row(row)
        return uuid

    def _samples_of_row(
        self, file: LastRecords, shown: str, row: Any, source: Source
    ) -> Iterator[Sample]:
        element = file.by_uuid.get(self._row_uuid(row))
        if element is None:
            yield self.sample_of_pair(file, row, None, source, has_dataset=True)
            return
        source = Source(file=shown, ordinal=element.ordinal, line=element.line)
        yield self.sample_of_pair(file, row, element.value, source, has_dataset=True)

    def _samples_outside(
        self, file: LastRecords, record: Any, source: Source, *, has_dataset: bool
    ) -> Iterator[Sample]:
        yield self.sample_of_pair(file, None, record, source, has_dataset=has_dataset)
