"""Reader ``inspect``: logs of inspect_ai."""

from __future__ import annotations

import re
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import attrs
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
from gradestack_plugins.inspect_logs.archive import Archive
from gradestack_plugins.inspect_logs.records import Header, header_of, sample_of

_HEADER, _START = "header.json", "_journal/start.json"
_MEMBER: Final = re.compile(r"samples/(?P<name>.*_epoch_-?\d+)(?P<shell>/sample)?\.json", re.DOTALL)
_PART: Final = re.compile(
    r"samples/(?P<name>.*_epoch_-?\d+)/(?P<part>messages|events|attachments)/(?P<start>\d{1,18})\.json"
)
_POSITION: Final = re.compile(r"\d{1,18}")
_ZIP: Final = b"PK\x03\x04"
_OPENING: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:version|status|eval)"\s*:')
_OF_EVAL: Final = (b'"eval"', b'"task"', b'"model"')
_EMPTY: Final = (
    "the log holds no samples: it was written without them (log_samples=False), or "
    "before one had ended"
)


class _Place(NamedTuple):
    """Where a sample stands in an archive."""

    offset: int
    name: str
    chunked: bool
    size: int


def _places(archive: Archive) -> list[_Place]:
    found = []
    for name, member in archive.members.items():
        if match := _MEMBER.fullmatch(name):
            found.append(
                _Place(member.header_offset, match["name"], bool(match["shell"]), member.file_size)
            )
    return sorted(found)


def _is_archive(head: bytes) -> bool:
    if not head.startswith(_ZIP) or len(head) < 30:
        return False
    (size,) = struct.unpack("<H", head[26:28])
    return head[30 : 30 + size].startswith((b"_journal/", b"samples/", b"header.json"))


@attrs.frozen(kw_only=True)
class InspectLogs(RecordReader):
    """Reads logs of inspect_ai: ``.eval`` archives, also with samples in pieces, and JSON.

    One sample per sample and epoch: ``id`` its id, ``run`` its epoch, ``model`` the task's.
    ``recorded`` holds the score of each scorer by its name, C as 1, P as 0.5, I and N as 0, of
    scorers of several values by ``SCORER.NAME``, and ``explanations`` what they say of it.
    ``expected.text`` is the target where there is one; ``state`` the store; ``usage`` that of all
    models together, input with what a cache has. Tools are those of the first request. A sample
    that ended in an error is a failed one, one that a limit ended says so in ``ended``.
    """

    example_file = "logs/2026-01-01T00-00-00_task_….eval"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            "model",
            "run",
            "input",
            "turns",
            "calls",
            "text",
            "tools",
            "expected",
            "recorded",
            "status",
            "error",
            "ended",
        }
        | {"state", "usage", "agent_usage", "facets", "remarks", "source"}
    )
    stack: ClassVar[str | None] = "scores"
    layout: ClassVar[Layout] = "list"

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if _is_archive(head):
            return 0.95
        return 0.95 if _OPENING.match(head) and all(key in head for key in _OF_EVAL) else 0.0

    @override
    def index(self, inputs: Inputs) -> dict[str, Header]:
        """Read the header of each log."""
        return {each.name: self._header(each) for each in inputs.data}

    @staticmethod
    def _archive(given: Input) -> Archive | None:
        with reading(given.shown), open_regular(given.path) as file:
            return Archive(given.path, given.shown) if file.read(4) == _ZIP else None

    def _header(self, given: Input) -> Header:
        opened = self._archive(given)
        if opened is None:
            return header_of({"eval": self._members(given)[0]})
        with opened as archive:
            for name in (_HEADER, _START):
                with suppress(ValueError):
                    return header_of(archive.json(name), finished=name == _HEADER)
        return Header(finished=False)

    @staticmethod
    def _members(given: Input) -> tuple[Any, tuple[Range, ...] | None]:
        """Return what a log as JSON says of its task, and where its samples stand."""
        of_task, ranges = None, None
        for member in iter_members(given.path, SHARD_BYTES):
            if member.key == "samples":
                ranges = member.ranges
            elif member.key == "eval":
                try:
                    of_task = loads(member.read(given.path))
                except JsonProblem as problem:
                    raise DataError(
                        f"{given.shown}:{member.line}: {member.key}: {problem}"
                    ) from problem
        return of_task, ranges

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield which logs are unfinished."""
        for given, header in zip(inputs.data, self.index(inputs).values(), strict=True):
            if not header.finished:
                yield (
                    f"{given.shown}: the log has no header: the task had not ended when it was "
                    "written"
                )

    @override
    def files(self, inputs: Inputs, index: Mapping[str, Header]) -> Iterator[RecordFile]:
        for given in inputs.data:
            opened = self._archive(given)
            if opened is None:
                ranges = self._members(given)[1]
                yield RecordFile(
                    input=given, ranges=ranges or (Range(),), extra="json" if ranges else "empty"
                )
                continue
            with opened as archive:
                places = _places(archive)
            yield RecordFile(
                input=given, ranges=_cut(places) or (Range(),), extra="eval" if places else "empty"
            )

    @override
    def read(self, shard: Shard, index: Mapping[str, Header]) -> Iterator[Sample | BadRecord]:
        given, header = shard.input, index[shard.input.name]
        if shard.extra == "empty":
            yield BadRecord(source=Source(file=given.shown), reason=_EMPTY)
            return

        def of_record(record: Any, source: Source) -> tuple[Sample]:
            return (sample_of(record, header, source),)

        if shard.extra == "json":
            yield from self.samples(shard, of_record)
            return
        with Archive(given.path, given.shown) as archive:
            yield from self.samples_in(_elements(archive, shard), of_record, given.shown)


def _elements(archive: Archive, shard: Shard) -> Iterator[Element]:
    inside = (
        each for each in _places(archive) if shard.start <= each.offset < (shard.end or sys.maxsize)
    )
    for row, place in enumerate(inside, shard.first_row):
        try:
            yield Element(row, None, _record(archive, place))
        except ValueError as problem:
            yield Element(row, None, problem=str(problem))


def _cut(places: list[_Place]) -> tuple[Range, ...]:
    """Return ranges of an archive's bytes whose samples take about a shard's when they are
    unpacked.
    """
    found: list[Range] = []
    held = 0
    for row, place in enumerate(places):
        if not found or held >= SHARD_BYTES:
            found[-1:] = [*(msgspec.structs.replace(each, end=place.offset) for each in found[-1:])]
            found.append(Range(place.offset, None, first_row=row))
            held = 0
        held += place.size
    return tuple(found)


def _record(archive: Archive, place: _Place) -> Any:
    if not place.chunked:
        return archive.json(f"samples/{place.name}.json")
    record = archive.json(f"samples/{place.name}/sample.json")
    if not isinstance(record, dict):
        return record
    if "metadata" not in record and f"samples/{place.name}/metadata.json" in archive.members:
        record["metadata"] = archive.json(f"samples/{place.name}/metadata.json")
    pieces = _Pieces(archive, place.name)
    pool = [
        each
        for start in pieces.starts["messages"]
        for each in as_list(pieces.piece("messages", start))
    ]
    references = record.pop("message_refs", None)
    if references is None:
        record.setdefault("messages", pool)
    else:
        spans = [
            each
            for each in as_list(references)
            if isinstance(each, list) and list(map(type, each)) == [int, int]
        ]
        if any(last > len(pool) for _, last in spans):
            raise ValueError(
                f"samples/{place.name}/messages: members are missing: {len(pool)} messages are "
                "there"
            )
        record["messages"] = [
            message for first, last in spans for message in pool[max(first, 0) : max(last, 0)]
        ]
    record["events"] = next(
        ([each] for each in pieces.events() if as_map(each).get("event") == "model"), []
    )
    record["attachments"] = pieces
    if f"samples/{place.name}/events/stats.json" in archive.members:
        chunks = as_list(
            as_map(archive.json(f"samples/{place.name}/events/stats.json")).get("chunks")
        )
        record["events"] *= sum(
            as_count(as_map(as_map(each).get("type_counts")).get("model")) for each in chunks
        )
    return record


class _Pieces:
    """The lists of a sample in pieces, each named by the place of its first entry."""

    def __init__(self, archive: Archive, name: str) -> None:
        self._archive, self._name = archive, name
        self.starts: dict[str, list[int]] = {"messages": [], "events": [], "attachments": []}
        for each in archive.members:
            if (match := _PART.fullmatch(each)) and match["name"] == name:
                self.starts[match["part"]].append(int(match["start"]))
        for starts in self.starts.values():
            starts.sort()
        self._known: dict[int, Any] = {}

    def piece(self, part: str, start: int) -> Any:
        return self._archive.json(f"samples/{self._name}/{part}/{start}.json")

    def events(self) -> Iterator[Any]:
        for start in self.starts["events"]:
            yield from as_list(self.piece("events", start))

    def get(self, number: str) -> Any:
        at = int(number) if _POSITION.fullmatch(number) else -1
        before = bisect_right(self.starts["attachments"], at) - 1
        if at < 0 or before < 0:
            return None
        start = self.starts["attachments"][before]
        if start not in self._known:
            self._known[start] = as_list(self.piece("attachments", start))
        return self._known[start][at - start] if at - start < len(self._known[start]) else None
