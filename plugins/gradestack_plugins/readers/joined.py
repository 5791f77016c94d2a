"""Rows of a dataset joined with records by ``uuid``, and the labels of When2Call's rows."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

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
"""The label in place of any other one."""
NO_UUID = "uuid is missing or not a non-empty text"


def uuid_of(record: Any) -> str | None:
    """Return the uuid of a record or a row; None unless it is non-empty text."""
    uuid = as_text(as_map(record).get("uuid"))
    return uuid or None


def required_uuid(record: Any, noun: str) -> str:
    """Return the uuid of a record, which errors call by a noun.

    Raises:
        ValueError: The record has no uuid, or is no object.
    """
    if not isinstance(record, dict):
        raise ValueError(f"expected {noun} (an object), found {compact(record)[:60]}")
    uuid = uuid_of(record)
    if uuid is None:
        raise ValueError(NO_UUID)
    return uuid


def gold_label(record: Any, key: str, *, required: bool = False) -> str | None:
    """Return the gold label under a key; None for a missing one that is not ``required``.

    Raises:
        ValueError: The value is not among the labels.
    """
    gold: str | None = record.get(key)
    if gold in LABELS or (gold is None and not required):
        return gold
    raise ValueError(f"{key} must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}")


class LastRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The last record of every uuid, in the order of first usable records."""

    by_uuid: dict[str, Element]
    unusable: tuple[Element, ...]
    """Records that are no use; one with a uuid replaces the records before it all the same."""


def last_records(elements: Iterable[Element], identify: Callable[[Any], str]) -> LastRecords:
    """Return the last record of every uuid.

    Args:
        elements: The records of a file.
        identify: Returns the uuid of a record, or raises ValueError where it is no use.
    """
    by_uuid: dict[str, Element] = {}
    unusable: list[Element] = []
    for element in elements:
        try:
            uuid = identify(element.value)
            by_uuid[uuid] = element  # a replaced value keeps the place of its key
        except ValueError:
            unusable.append(element)
            by_uuid.pop(uuid_of(element.value) or "", None)
    return LastRecords(by_uuid=by_uuid, unusable=tuple(unusable))


class JoinedIndex(msgspec.Struct, frozen=True, kw_only=True):
    """Records of every file, by the file's name, and the identifiers of the dataset."""

    files: dict[str, LastRecords]
    dataset: Input | None = None
    ordinals: dict[str, list[int]] = {}
    """Uuid -> ordinals of its rows that can be used."""

    def leave_out_bad_rows(
        self, samples: Iterable[Sample | BadRecord]
    ) -> Iterator[Sample | BadRecord]:
        """Leave out rows that cannot be used, which the first of several files has reported."""
        usable = {ordinal for ordinals in self.ordinals.values() for ordinal in ordinals}
        for sample in samples:
            if isinstance(sample, Sample) or sample.source.ordinal in usable:
                yield sample


class JoinedReader(RecordReader):
    """Base of readers that join the rows of a dataset with the last record of their ``uuid``.

    The samples of a file are those of the dataset's rows, in their order, and behind them those of
    records that no row has. Without a dataset they are those of the records.
    """

    takes_dataset = True
    behind_others = 0.0
    has_repeats: ClassVar[bool] = True
    """Whether every row of a uuid has samples, or only its first one."""

    @abc.abstractmethod
    def load(self, file: Input, *, is_only: bool) -> LastRecords:
        """Return the records of a file, with anything else that is needed of it as a whole.

        Args:
            file: Records.
            is_only: Whether no other file is read with it.
        """

    @abc.abstractmethod
    def check_row(self, row: Mapping[str, Any]) -> None:
        """Raise ValueError where a row of the dataset cannot be used."""

    @abc.abstractmethod
    def samples_of_pair(
        self, file: Any, row: Any, record: Any, source: Source, *, n_rows: int | None
    ) -> Iterator[Sample]:
        """Yield the samples of a row and its record; ValueError where the record is no use.

        Args:
            file: What ``load`` returned.
            row: None: no row has the record's uuid.
            record: None: no record has the row's uuid.
            source: The source of the record, or of the row without one.
            n_rows: How many rows have the uuid; None without a dataset.
        """

    @override
    def index(self, inputs: Inputs) -> JoinedIndex:
        is_only = len(inputs.data) == 1
        files = {file.name: self.load(file, is_only=is_only) for file in inputs.data}
        ordinals: dict[str, list[int]] = {}
        for element in read_records(inputs.dataset) if inputs.dataset is not None else ():
            with suppress(ValueError):
                row_uuid = self._row_uuid(element.value)
                ordinals.setdefault(row_uuid, []).append(element.ordinal)
        return JoinedIndex(files=files, dataset=inputs.dataset, ordinals=ordinals)

    def files(self, inputs: Inputs, index: JoinedIndex) -> Iterator[RecordFile]:
        """Yield the dataset, once per file, each followed by records that no row has."""
        for number, file in enumerate(inputs.data):
            if inputs.dataset is not None:
                extra = "rows" if number else "dataset"
                yield RecordFile(input=file, file=inputs.dataset, extra=extra)
            status = file.path.stat()
            yield RecordFile(input=file, ranges=(Range(end=status.st_size),))

    @override
    def read(self, shard: Shard, index: JoinedIndex) -> Iterator[Sample | BadRecord]:
        file = index.files[shard.input.name]
        shown = shard.input.shown
        if shard.extra is not None:
            samples_of_row = partial(self._samples_of_row, file, shown, index)
            samples = self.samples(shard, samples_of_row, index.dataset)
            if shard.extra == "dataset":
                return samples
            return index.leave_out_bad_rows(samples)
        outside = [file.by_uuid[uuid] for uuid in file.by_uuid if uuid not in index.ordinals]
        n_rows = None if index.dataset is None else 0
        samples_of = partial(self.samples_of_pair, file, None, n_rows=n_rows)
        elements = [*file.unusable, *outside]
        return self.samples_in(elements, samples_of, shown)

    def _row_uuid(self, row: Any) -> str:
        uuid = required_uuid(row, "a dataset row")
        self.check_row(row)
        return uuid

    def _samples_of_row(
        self, file: LastRecords, shown: str, index: JoinedIndex, row: Any, source: Source
    ) -> Iterator[Sample]:
        """Yield the samples of a row joined with its record; a repeated row may give none."""
        uuid = self._row_uuid(row)
        ordinals = index.ordinals[uuid]
        if not self.has_repeats and source.ordinal != ordinals[0]:
            return iter(())
        element = file.by_uuid.get(uuid)
        record = None
        if element is not None:
            record = element.value
            source = Source(file=shown, ordinal=element.ordinal, line=element.line)
        return self.samples_of_pair(file, row, record, source, n_rows=len(ordinals))
