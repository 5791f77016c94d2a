"""DocumentReader: records in a list inside of a JSON document, or one record a line."""

from __future__ import annotations

import abc
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from gradestack import (
    BadRecord,
    Inputs,
    RecordFile,
    Sample,
    Shard,
    Source,
    read_document,
    replace,
)
from gradestack.jsonio import Range, compact
from gradestack_plugins.readers.chat.identity import NOTHING, Identity, stems
from gradestack_plugins.readers.chat.samples import PROVIDES
from gradestack_plugins.readers.whole import WholeDocuments

SURE: Final = 0.92


class DocumentReader(WholeDocuments):
    """Base of readers whose records lie in a list inside of a JSON document.

    A file holds one document, a list of documents or records, or one of either a line. A format
    says where records lie (``records_in``), and writes ``samples_of_record``.
    """

    provides = PROVIDES
    stack = "auto"
    empty_answers = True
    certainty = SURE - 0.02

    @classmethod
    def records_in(cls, value: Any) -> list[Any] | None:
        """Return the records of a document; None of what is no document of the format."""
        return None

    @classmethod
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        """Return whether an object is surely a record of the format."""
        return False

    @classmethod
    def is_own(cls, value: Mapping[str, Any]) -> bool:
        """Return whether an object may be a record of the format, where that is named."""
        return True

    @abc.abstractmethod
    def samples_of_record(
        self, record: dict[str, Any], source: Source, fallback_id: str
    ) -> Iterable[Sample]:
        """Return the samples of one record.

        Args:
            record: The record.
            source: Its place.
            fallback_id: The id of a sample whose record has none.

        Raises:
            ValueError: The record holds no sample; the message becomes a bad record's reason.
        """

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if cls.records_in(record) is not None:
            return SURE
        if isinstance(record, dict) and cls.is_record(record):
            return SURE
        return 0.0

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for input_file, stem in zip(inputs.data, stems(inputs.data), strict=True):
            is_whole = self.is_whole_file(input_file.path)
            ranges = (Range(),) if is_whole else None
            yield RecordFile(input=input_file, ranges=ranges, extra=[stem, is_whole])

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        stem, is_whole = shard.extra
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        for element in read_document(shard.input) if is_whole else self.elements(shard.input, part):
            line = None if is_whole else element.line
            source = Source(file=shard.input.shown, ordinal=element.ordinal, line=line)
            if element.problem is not None:
                yield BadRecord(source=source, reason=element.problem)
                continue
            value = self.joined(element.value, shard.input.path)
            yield from self._samples_of_value(value, source, stem, is_whole=is_whole)

    def joined(self, value: Any, path: Path) -> Any:
        """Return a document with what it names in files beside it."""
        return value

    def _samples_of_value(
        self, value: Any, source: Source, stem: str, *, is_whole: bool
    ) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a document, or of a record by itself."""
        records = self.records_in(value)
        record_id = f"{stem}:{source.ordinal}"
        if records is None:
            yield from self.guarded(partial(self._samples_of_own, record_id), value, source)
            return
        prefix = stem if is_whole else record_id
        for number, record in enumerate(records):
            record_source = replace(source, ordinal=number) if is_whole else source
            read = partial(self._samples_of_object, f"{prefix}:{number}")
            yield from self.guarded(read, record, record_source)

    def _samples_of_own(self, fallback_id: str, value: Any, source: Source) -> Iterable[Sample]:
        if isinstance(value, dict) and not self.is_own(value):
            raise ValueError("it is of another form, and not read")
        return self._samples_of_object(fallback_id, value, source)

    def _samples_of_object(self, fallback_id: str, record: Any, source: Source) -> Iterable[Sample]:
        if not isinstance(record, dict):
            raise ValueError(f"expected an object, found {compact(record)[:60]}")
        return self.samples_of_record(record, source, fallback_id)


def named(
    identifier: Any,
    fallback_id: str,
    cluster: str | None = None,
    trace: Mapping[str, str] = NOTHING,
    facets: Mapping[str, Any] = NOTHING,
) -> Identity:
    """Return the identity of a record by its own id, a text or a whole number.

    Without one it is ``fallback_id``, and the record is marked as having a made-up id.
    """
    is_number = isinstance(identifier, int) and not isinstance(identifier, bool)
    if is_number or (isinstance(identifier, str) and identifier):
        return Identity(str(identifier), None, cluster, trace, facets, NOTHING)
    return Identity(fallback_id, None, cluster, trace, {**facets, "id_made": True}, {"id_made": 1})


_camel: Final = partial(re.sub, "_(.)", lambda letter: letter[1].upper())


@cache
def _spellings(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return keys in snake and in camel case."""
    return tuple(name for key in keys for name in dict.fromkeys((key, _camel(key))))


def at(holder: Any, *keys: str) -> Any:
    """Return the first value under some keys of an object, in snake or in camel case.

    None where no key has a value.
    """
    if isinstance(holder, dict):
        for name in _spellings(keys):
            value = holder.get(name)
            if value is not None:
                return value
    return None
