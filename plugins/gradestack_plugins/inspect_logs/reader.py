"""Reader ``inspect``: logs of inspect_ai."""

from __future__ import annotations

import re
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    compile_later,
    reading,
)
from gradestack.jsonio import (
    SHARD_BYTES,
    Element,
    JsonProblem,
    Layout,
    Range,
    as_count,
    as_list,
    as_map,
    iter_members,
    loads,
    open_regular,
)
from gradestack_plugins.inspect_logs.records import Header, header_of, sample_of
from gradestack_plugins.readers.chat.samples import PROVIDES

if TYPE_CHECKING:
    from gradestack_plugins.inspect_logs.archive import Archive

_HEADER, _START = "header.json", "_journal/start.json"
_MEMBER: Final = compile_later(
    r"samples/(?P<name>.*_epoch_-?\d+)(?P<shell>/sample)?\.json", re.DOTALL
)
_PART: Final = compile_later(
    r"samples/(?P<name>.*_epoch_-?\d+)/(?P<part>messages|events|attachments)/"
    r"(?P<start>\d{1,18})\.json"
)
_POSITION: Final = compile_later(r"\d{1,18}")
_ZIP: Final = b"PK\x03\x04"
_OPENING: Final = compile_later(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:version|status|eval)"\s*:')
_OF_EVAL: Final = (b'"eval"', b'"task"', b'"model"')
_EMPTY: Final = (
    "the log holds no samples: it was written without them (log_samples=False), or "
    "before one had ended"
)


class _Member(NamedTuple):
    """The member of an archive that holds a sample, or its shell where that is in pieces."""

    offset: int
    name: str
    is_chunked: bool
    size: int


def _members_of(archive: Archive) -> list[_Member]:
    """List the members of an archive that hold samples, in the order in which they are stored."""
    members = []
    for name, member in archive.members.items():
        match = _MEMBER.fullmatch(name)
        if match is not None:
            is_chunked = match["shell"] is not None
            sample_member = _Member(
                member.header_offset, match["name"], is_chunked, member.file_size
            )
            members.append(sample_member)
    return sorted(members)


def _open_archive(log_file: Input) -> Archive:
    """Open a log that is an archive; what unpacks it takes long to import, and few files are."""
    from gradestack_plugins.inspect_logs.archive import Archive  # noqa: PLC0415

    return Archive(log_file.path, log_file.shown)


def _is_archive(head: bytes) -> bool:
    if not head.startswith(_ZIP) or len(head) < 30:
        return False
    (size,) = struct.unpack("<H", head[26:28])
    return head[30 : 30 + size].startswith((b"_journal/", b"samples/", b"header.json"))


class InspectLogs(RecordReader):
    """Reads logs of inspect_ai: ``.eval`` archives, also with samples in pieces, and JSON.

    One sample per sample and epoch: ``id`` its id, ``run`` its epoch, ``model`` the task's.
    ``recorded`` holds the score of each scorer by its name, C as 1, P as 0.5, I and N as 0. Scorers
    of several values have them by ``SCORER.NAME``; ``explanations`` holds their texts.
    ``expected.text`` is the target where there is one; ``state`` the store; ``usage`` that of all
    models together, input with what a cache has. Tools are those of the first request. A sample
    that ended in an error is a failed one, one that a limit ended says so in ``ended``.
    """

    example_file = "logs/2026-01-01T00-00-00_task_….eval"
    provides = PROVIDES - {"cluster", "trace"} | {"state"}
    stack: ClassVar[str | None] = "scores"
    layout: ClassVar[Layout] = "list"

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if _is_archive(head):
            return 0.95
        match = _OPENING.match(head)
        if match and all(key in head for key in _OF_EVAL):
            return 0.95
        return 0.0

    @override
    def index(self, inputs: Inputs) -> dict[str, Header]:
        """Read the header of each log."""
        return {entry.name: self._header(entry) for entry in inputs.data}

    @staticmethod
    def _archive(log_file: Input) -> Archive | None:
        with reading(log_file.shown), open_regular(log_file.path) as file:
            if file.read(4) == _ZIP:
                return _open_archive(log_file)
            return None

    def _header(self, log_file: Input) -> Header:
        """Read the header of a log, or of the start of one that is not finished."""
        opened = self._archive(log_file)
        if opened is None:
            members = self._members(log_file)
            return header_of({"eval": members[0]})
        with opened as archive:
            for name in (_HEADER, _START):
                with suppress(ValueError):
                    return header_of(archive.json(name), finished=name == _HEADER)
        return Header(finished=False)

    @staticmethod
    def _members(log_file: Input) -> tuple[Any, tuple[Range, ...] | None]:
        """Return the decoded ``eval`` of a log, and the byte ranges of its samples."""
        task, ranges = None, None
        for member in iter_members(log_file.path, SHARD_BYTES):
            if member.key == "samples":
                ranges = member.ranges
            elif member.key == "eval":
                try:
                    task = loads(member.read(log_file.path))
                except JsonProblem as problem:
                    position = f"{log_file.shown}:{member.line}"
                    raise DataError(f"{position}: {member.key}: {problem}") from problem
        return task, ranges

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield the logs that are unfinished."""
        for log_file, header in zip(inputs.data, self.index(inputs).values(), strict=True):
            if not header.finished:
                yield (
                    f"{log_file.shown}: the log has no header: the task had not ended when it was "
                    "written"
                )

    @override
    def files(self, inputs: Inputs, index: Mapping[str, Header]) -> Iterator[RecordFile]:
        for log_file in inputs.data:
            opened = self._archive(log_file)
            if opened is None:
                form = "json"
                ranges = self._members(log_file)[1]
            else:
                with opened as archive:
                    form = "eval"
                    ranges = _cut(_members_of(archive))
            extra = form if ranges else "empty"
            yield RecordFile(input=log_file, ranges=ranges or (Range(),), extra=extra)

    @override
    def read(self, shard: Shard, index: Mapping[str, Header]) -> Iterator[Sample | BadRecord]:
        log_file = shard.input
        header = index[shard.input.name]
        if shard.extra == "empty":
            yield BadRecord(source=Source(file=log_file.shown), reason=_EMPTY)
            return

        def of_record(record: Any, source: Source) -> tuple[Sample]:
            return (sample_of(record, header, source),)

        if shard.extra == "json":
            yield from self.samples(shard, of_record)
            return
        with _open_archive(log_file) as archive:
            elements = _elements(archive, shard)
            yield from self.samples_in(elements, of_record, log_file.shown)


def _elements(archive: Archive, shard: Shard) -> Iterator[Element]:
    end = shard.end or sys.maxsize
    members = [entry for entry in _members_of(archive) if shard.start <= entry.offset < end]
    for row, member in enumerate(members, shard.first_row):
        try:
            record = _record(archive, member)
            yield Element(row, None, record)
        except ValueError as problem:
            yield Element(row, None, problem=str(problem))


def _cut(members: list[_Member]) -> tuple[Range, ...]:
    """Return ranges of an archive's bytes, each of about a shard's unpacked samples."""
    ranges: list[Range] = []
    size = SHARD_BYTES
    for row, member in enumerate(members):
        if size >= SHARD_BYTES:
            if ranges:
                last_range = ranges[-1]
                ranges[-1] = msgspec.structs.replace(last_range, end=member.offset)
            ranges.append(Range(member.offset, None, first_row=row))
            size = 0
        size += member.size
    return tuple(ranges)


def _record(archive: Archive, member: _Member) -> Any:
    """Return the record of a sample.

    Raises:
        ValueError: A part of it is missing or cannot be read.
    """
    if not member.is_chunked:
        return archive.json(f"samples/{member.name}.json")
    folder = f"samples/{member.name}"
    record = archive.json(f"{folder}/sample.json")
    if not isinstance(record, dict):
        return record
    metadata = f"{folder}/metadata.json"
    stats = f"{folder}/events/stats.json"
    if "metadata" not in record and metadata in archive.members:
        record["metadata"] = archive.json(metadata)
    pieces = _Pieces(archive, member.name)
    messages = list(pieces.entries("messages"))
    references = record.pop("message_refs", None)
    if references is None:
        record.setdefault("messages", messages)
    else:
        record["messages"] = _referred(messages, references, folder)
    requests = filter(_is_request, pieces.entries("events"))
    record["events"] = list(islice(requests, 1))  # the others are not read
    record["attachments"] = pieces
    if stats in archive.members:
        chunks = as_list(as_map(archive.json(stats)).get("chunks"))
        counts = [as_map(as_map(chunk).get("type_counts")) for chunk in chunks]
        record["events"] *= sum(as_count(count.get("model")) for count in counts)
    return record


def _is_request(event: Any) -> bool:
    return as_map(event).get("event") == "model"


def _referred(messages: list[Any], references: Any, folder: str) -> list[Any]:
    """Return the messages in ranges of a pool of them.

    Raises:
        ValueError: A range is of more messages than there are.
    """
    referred: list[Any] = []
    for reference in as_list(references):
        if not isinstance(reference, list) or list(map(type, reference)) != [int, int]:
            continue
        first, last = reference
        if last > len(messages):
            missing = f"members are missing: {len(messages)} messages are there"
            raise ValueError(f"{folder}/messages: {missing}")
        referred += messages[max(first, 0) : max(last, 0)]
    return referred


class _Pieces:
    """The lists of a sample in pieces, each named by the index of its first entry."""

    def __init__(self, archive: Archive, name: str) -> None:
        """List the chunks of a sample's messages, events and attachments by their start."""
        self._archive, self._name = archive, name
        self._starts: dict[str, list[int]] = {"messages": [], "events": [], "attachments": []}
        for member in archive.members:
            match = _PART.fullmatch(member)
            if match is not None and match["name"] == name:
                number = int(match["start"])
                self._starts[match["part"]].append(number)
        for starts in self._starts.values():
            starts.sort()
        self._attachments: dict[int, Sequence[Any]] = {}

    def _piece(self, part: str, start: int) -> Sequence[Any]:
        return as_list(self._archive.json(f"samples/{self._name}/{part}/{start}.json"))

    def entries(self, part: str) -> Iterator[Any]:
        """Yield the entries of a list of the sample: ``messages``, ``events`` or ``attachments``.

        A list is kept in several files, each named after the number of its first entry.
        """
        for start in self._starts[part]:
            yield from self._piece(part, start)

    def get(self, number: str) -> Any:
        """Return an attachment by its index; None where there is none."""
        if not _POSITION.fullmatch(number):
            return None
        index = int(number)
        before = bisect_right(self._starts["attachments"], index)
        if not before:
            return None
        attachments = self._starts["attachments"]
        start = attachments[before - 1]
        if start not in self._attachments:
            self._attachments[start] = self._piece("attachments", start)
        piece = self._attachments[start]
        if index - start < len(piece):
            return piece[index - start]
        return None
