"""Reader ``deepfabric``.

Datasets with recorded replies, in the same lines or joined from a second file.

Of a second file only places are in memory: where each reply starts, not what it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final, Literal, NamedTuple

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    Input,
    Inputs,
    Profile,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    reading,
)
from gradestack.jsonio import (
    JsonProblem,
    Layout,
    Range,
    first_records,
    loads,
    open_regular,
    whole_line,
)
from gradestack_plugins.deepfabric.replies import kind_of
from gradestack_plugins.deepfabric.samples import (
    RECORD_KEYS,
    Entry,
    build,
    identifier,
    split_entry,
    with_reply,
)

Join = Literal["auto", "id", "line"]
NO_ROW: Final = "the dataset has no row at this line"


class Place(NamedTuple):
    """Where one line of a file is."""

    offset: int
    line: int


class Replies(NamedTuple):
    """Where the replies of one file are."""

    places: dict[str | int, list[Place]]  # by what they are joined by, in file order
    orphans: list[tuple[Place, str]]  # replies that belong to no row of the dataset, and why


class Joined(msgspec.Struct, frozen=True):
    """A dataset and the replies to it, by input name."""

    dataset: Input
    by: Literal["id", "line"]
    replies: dict[str, Replies]
    repeated: frozenset[int] = frozenset()  # lines of dataset rows whose id an earlier row has


def join(inputs: Inputs, dataset: Input, wanted: Join) -> Joined:
    """Read the dataset's ids and the places of all replies.

    ``auto`` joins by id when the first row of the dataset and the first reply of every file have
    one, else by line.
    """
    by = wanted
    if wanted == "auto":
        row = _first(dataset)
        both = isinstance(row, dict) and split_entry(row).id is not None
        both = both and all(_reply_id(_first(given)) is not None for given in inputs.data)
        by = "id" if both else "line"
    keys: set[str | int] = set()
    repeated = set()
    for place, data in _lines(dataset):
        try:
            key = split_entry(loads(data)).id if by == "id" else place.line
        except JsonProblem:
            continue  # reported when the row itself is read
        if key in keys:
            repeated.add(place.line)
        elif key is not None:
            keys.add(key)
    replies = {given.name: _replies(given, keys, by_id=by == "id") for given in inputs.data}
    return Joined(dataset, "id" if by == "id" else "line", replies, frozenset(repeated))


def _replies(given: Input, keys: set[str | int], *, by_id: bool) -> Replies:
    found = Replies({}, [])
    for place, data in _lines(given):
        key: str | int | None = place.line
        problem = NO_ROW
        if by_id:
            try:
                key = _reply_id(loads(data))
            except JsonProblem as error:
                found.orphans.append(
                    (place, f"{error}; a reply that cannot be read cannot be joined by id")
                )
                continue
            problem = f"the dataset has no row with id {key!r}"
        if key is None:
            found.orphans.append((place, "the reply has no id to join by (text or a whole number)"))
        elif key in keys:
            found.places.setdefault(key, []).append(place)
        else:
            found.orphans.append((place, problem))
    return found


def _first(given: Input) -> Any:
    try:
        return loads(next((data for _, data in _lines(given)), b""))
    except JsonProblem:
        return None


def _reply_id(value: Any) -> str | None:
    return identifier(value.get("id")) if isinstance(value, dict) else None


def _lines(given: Input) -> Iterator[tuple[Place, bytes]]:
    offset = 0
    with reading(given.shown), open_regular(given.path) as file:
        for number, raw in enumerate(iter(partial(whole_line, file), b""), 1):
            if (data := _without_mark(number, raw)).strip():
                yield Place(offset, number), data
            offset = file.tell()


def _without_mark(line: int, data: bytes) -> bytes:
    return data[3:] if line == 1 and data.startswith(b"\xef\xbb\xbf") else data


_LONG: Final = 65_000  # a shorter line that breaks off is a damaged one, which says nothing
_REPLY: Final = 0.3
_JOIN_KEYS: Final = frozenset({"id", "model", "run"})
_JOINED_KEYS: Final = _JOIN_KEYS | {"sample", "recorded", "response"}
_SPOKEN: Final = frozenset({"content", "text", "tool_call", "tool_calls"})
_REPLY_KEYS: Final = _JOIN_KEYS | _SPOKEN | {"kind", "message", "error"}
_FIRST_KEY: Final = re.compile(rb'\{\s*"([a-z_]+)"')


def looks_like(record: Any) -> float | None:
    """Return how much a line looks like one of this format.

    None where it neither does nor speaks against it.

    Joined lines count 0.95 (0.8 where the reply is none), records with a reply 0.9, records that
    say which call they expect 0.7, replies that name their kind or hold several turns 0.6 and
    replies known by their keys 0.3.
    """
    if isinstance(record, str) or record is None:
        return None
    if not isinstance(record, dict) or "expected" in record or "predicted" in record:
        return 0.0
    reply = record.get("recorded", record.get("response"))
    replied = isinstance(reply, str) or (isinstance(reply, dict) and kind_of(reply) is not None)
    sample = record.get("sample")
    if (
        isinstance(sample, dict)
        and "messages" in sample
        and (replied or record.keys() <= _JOINED_KEYS)
    ):
        return 0.95 if replied else 0.8
    if isinstance(sample, dict) and replied:
        return 0.5
    if isinstance(record.get("messages"), list):
        if replied:
            return 0.9
        own = "tool_context" in record or "executions" in record
        return 0.7 if own else None if record.keys() <= _JOINED_KEYS | RECORD_KEYS else 0.0
    if kind_of(record) is not None and (isinstance(record.get("kind"), str) or _has_turns(record)):
        return 0.6
    if replied or "tool_call" in record:
        return _REPLY
    if record.keys() <= _REPLY_KEYS and kind_of(record) is not None:
        # A lone message or error may be anyone's; more often than not it is no reply to a record.
        return _REPLY if _SPOKEN & record.keys() else None
    return 0.0


def _has_turns(record: dict[str, Any]) -> bool:
    """Return whether a line holds the replies of several turns, each an object (a list would be
    messages).
    """
    turns = record.get("turns")
    if not isinstance(turns, list) or not record.keys() <= _JOIN_KEYS | {"turns"}:
        return False
    return all(isinstance(each, dict) and bool(_SPOKEN & each.keys()) for each in turns)


def begins_like(text: bytes) -> float | None:
    """Return how much the beginning of a line looks like a long record.

    0.0 where its first key is another format's.
    """
    if len(text) >= _LONG and b'"messages"' in text and b'"tool_context"' in text:
        return 0.6
    first = _FIRST_KEY.match(text)
    return (
        None
        if first is not None and first[1].decode() in _JOINED_KEYS | _REPLY_KEYS | RECORD_KEYS
        else 0.0
    )


@attrs.frozen(kw_only=True)
class DeepFabricReader(RecordReader):
    """Reads DeepFabric dataset records and the replies recorded to them, one sample per reply.

    Without a dataset, every line holds both: ``{"id"?, "sample": RECORD, "recorded": REPLY}``, or a
    record that carries its reply under ``recorded`` or ``response``. With one, the files hold
    replies (bare, or under those keys), joined to the dataset's rows by id or by line; samples come
    in the dataset's order, a row without a reply as a missing sample, a reply without a row as a
    bad record.

    A record that breaks a rule of the format, tools that cannot be converted, a failed inference
    and a reply that cannot be processed each give a *failed* sample with the fault code
    ``processing_error``; what is known of the ground truth stays on it. A line that is not JSON is
    a bad record. ``id`` (of the line, the record, or its metadata) names the sample, else its
    zero-based row does.

    ``upstream`` reads as version 4.13 does when it asks for one reply. A grader that follows
    another version, or grades several turns, reads the record and its reply anew; a sample is
    failed where none of these readings works.
    """

    profile: Profile = "documented"
    join: Join = "auto"
    """How replies of a second file find their row.

    ``id``, ``line`` (physical line number), or ``auto``: by id when the first row and the first
    reply have one.
    """

    version: ClassVar[str] = "2"
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
            "facets",
            "status",
            "error",
            "native",
        }
    )
    stack: ClassVar[str | None] = "deepfabric"
    layout: ClassVar[Layout] = "lines"
    takes_dataset: ClassVar[bool] = True

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)

    @classmethod
    def recognised(cls, path: Path, head: bytes) -> float | None:
        """Take a ``.jsonl`` file of texts for replies, with a certainty of 0.1."""
        found = super().recognised(path, head)
        if found is None and path.suffix == ".jsonl":
            records = first_records(head, cls.sniffed, cls.layout)
            return 0.1 if any(isinstance(record.value, str) for record, _ in records) else None
        return found

    @override
    def index(self, inputs: Inputs) -> Joined | None:
        if inputs.dataset is None:
            return None
        return join(inputs, inputs.dataset, self.join)

    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        """Yield the file that holds the records, once per input, each followed by its replies
        without a row.
        """
        for given in inputs.data:
            model = given.name if len(inputs.data) > 1 else None
            replies = index.replies[given.name] if isinstance(index, Joined) else None
            records = index.dataset if isinstance(index, Joined) else given
            most = max(map(len, replies.places.values()), default=1) if replies is not None else 1
            yield RecordFile(
                input=given, file=records, most=most, extra={"model": model, "orphans": False}
            )
            if replies is not None and replies.orphans:
                yield RecordFile(
                    input=given, ranges=(Range(end=0),), extra={"model": model, "orphans": True}
                )

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        model = shard.extra["model"]
        if not isinstance(index, Joined):
            yield from self.samples(shard, partial(self._joined, model))
        elif shard.extra["orphans"]:
            for place, reason in index.replies[shard.input.name].orphans:
                yield BadRecord(source=_source(shard.input, place.line), reason=reason)
        else:
            with open_regular(shard.input.path) as replies:
                yield from self.samples(
                    shard, partial(self._row, shard, index, replies), index.dataset
                )

    def _joined(self, model: str | None, value: Any, source: Source) -> Iterator[Sample]:
        entry = split_entry(value)
        if entry.reply is ABSENT and not (
            isinstance(value, dict) and ("messages" in value or "sample" in value)
        ):
            reply = isinstance(value, str) or (
                isinstance(value, dict) and kind_of(value) is not None
            )
            what = "a reply without its dataset record: name the dataset with --dataset"
            raise ValueError(what if reply else "neither a dataset record nor a joined line")
        yield self._build(entry, source, source, model)

    def _row(
        self, shard: Shard, index: Joined, file: BinaryIO, value: Any, at_row: Source
    ) -> Iterator[Sample | BadRecord]:
        entry, line = split_entry(value), at_row.ordinal + 1
        if line in index.repeated:
            reason = (
                f"id {entry.id!r} is taken by an earlier row of the dataset (join by line, "
                "or make ids unique)"
            )
            yield BadRecord(source=at_row, reason=reason)
            return
        model = shard.extra["model"]
        key = line if index.by == "line" else entry.id
        places = () if key is None else index.replies[shard.input.name].places.get(key, ())
        for place in places:
            file.seek(place.offset)
            try:
                replied = with_reply(entry, loads(_without_mark(place.line, whole_line(file))))
            except JsonProblem as error:
                replied = entry._replace(
                    reply={"kind": "exception", "message": f"the recorded reply is {error}"}
                )
            yield self._build(replied, at_row, _source(shard.input, place.line), model)
        if not places:
            yield self._build(entry._replace(reply=ABSENT), at_row, at_row, model)

    def _build(self, entry: Entry, row: Source, source: Source, model: str | None) -> Sample:
        return build(entry, row=row.ordinal, source=source, profile=self.profile, model=model)


def _source(given: Input, line: int) -> Source:
    return Source(file=given.shown, ordinal=line - 1, line=line)
