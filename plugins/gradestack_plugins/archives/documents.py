"""DocumentReader: records that lie in a list inside of one JSON document, or one such document or
record a line.
"""

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
from gradestack_plugins.readers.chat.logs import PROVIDES
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
        """Return whether an object is one record by itself."""
        return False

    @abc.abstractmethod
    def samples_of_record(
        self, record: dict[str, Any], source: Source, made: str
    ) -> Iterable[Sample]:
        """Return the samples of one record.

        Raises:
            ValueError: There is none; the message becomes the reason of a bad record.
        """

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if cls.records_in(record) is not None:
            return SURE
        return SURE if isinstance(record, dict) and cls.is_record(record) else 0.0

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for given, stem in zip(inputs.data, stems(inputs.data), strict=True):
            whole = self.is_whole_file(given.path)
            yield RecordFile(input=given, ranges=(Range(),) if whole else None, extra=[stem, whole])

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        stem, whole = shard.extra
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        for found in read_document(shard.input) if whole else self.elements(shard.input, part):
            source = Source(
                file=shard.input.shown, ordinal=found.ordinal, line=None if whole else found.line
            )
            if found.problem is not None:
                yield BadRecord(source=source, reason=found.problem)
            else:
                yield from self._of_value(
                    self.joined(found.value, shard.input.path), source, stem, whole=whole
                )

    def joined(self, value: Any, path: Path) -> Any:
        """Return a document with what it names in files beside it."""
        return value

    def _of_value(
        self, value: Any, source: Source, stem: str, *, whole: bool
    ) -> Iterator[Sample | BadRecord]:
        records, alone = self.records_in(value), f"{stem}:{source.ordinal}"
        if records is None:
            yield from self.guarded(partial(self._checked, alone), value, source)
            return
        made = stem if whole else alone
        for number, record in enumerate(records):
            place = replace(source, ordinal=number) if whole else source
            yield from self.guarded(partial(self._checked, f"{made}:{number}"), record, place)

    def _checked(self, made: str, record: Any, source: Source) -> Iterable[Sample]:
        if not isinstance(record, dict):
            # what makes a bad record
            raise ValueError(f"expected an object, found {compact(record)[:60]}")
        return self.samples_of_record(record, source, made)


def named(
    value: Any, made: str, cluster: str | None = None, trace: Any = NOTHING, facets: Any = NOTHING
) -> Identity:
    """Return the identity of a record whose id is text or a whole number.

    A made-up one of any other.
    """
    if (isinstance(value, str) and value) or (
        isinstance(value, int) and not isinstance(value, bool)
    ):
        return Identity(str(value), None, cluster, trace, facets, NOTHING)
    return Identity(made, None, cluster, trace, {**facets, "id_made": True}, {"id_made": 1})


_camel: Final = partial(re.sub, "_(.)", lambda found: found[1].upper())
_spellings: Final = cache(
    lambda keys: tuple(name for key in keys for name in dict.fromkeys((key, _camel(key))))
)
"""Names in snake and in camel case."""


def at(value: Any, *keys: str) -> Any:
    """Return what stands under the first of some names that an object has, in snake or in camel
    case; None without.
    """
    if value and isinstance(value, dict):
        for name in _spellings(keys):
            if (found := value.get(name)) is not None:
                return found
    return None
