"""Reader ``deepfabric``.

Datasets with recorded replies, in the same lines or joined from a second file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import attrs
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    compile_later,
)
from gradestack.jsonio import JsonProblem, Range, as_map, first_records, open_regular
from gradestack_plugins.deepfabric.records import RECORD_KEYS
from gradestack_plugins.deepfabric.samples import (
    build,
    is_reply,
    read_id,
    split_entry,
    with_reply,
)
from gradestack_plugins.readers.joined_lines import Join, Joined, join_lines, read_place

LONG: Final = 65_000  # a shorter line that breaks off is a damaged one, which says nothing
LIKE_A_REPLY: Final = 0.3
JOIN_KEYS: Final = frozenset({"id", "model", "run"})
JOINED_KEYS: Final = JOIN_KEYS | {"sample", "recorded", "response"}
SPOKEN_KEYS: Final = frozenset({"content", "text", "tool_call", "tool_calls"})
REPLY_KEYS: Final = JOIN_KEYS | SPOKEN_KEYS | {"kind", "message", "error"}
KNOWN_KEYS: Final = JOINED_KEYS | REPLY_KEYS | RECORD_KEYS
PROVIDED: Final = "model run input turns calls text tools expected facets status error native"
FIRST_KEY: Final = compile_later(rb'\{\s*"([a-z_]+)"')


def looks_like(record: Any) -> float | None:
    """Return the certainty that a line is of this format.

    None where it neither does nor speaks against it.

    Joined lines count 0.95 (0.8 where the reply is none), records with a reply 0.9, records that
    say which call they expect 0.7, replies that name their kind or hold several turns 0.6 and
    replies known by their keys 0.3.
    """
    if isinstance(record, str) or record is None:
        return None
    if not isinstance(record, dict) or "expected" in record or "predicted" in record:
        return 0.0
    response = record.get("response")
    is_replied = is_reply(record.get("recorded", response))
    sample = record.get("sample")
    if isinstance(sample, dict):
        return _like_a_joined_line(record, is_replied=is_replied, is_whole="messages" in sample)
    if isinstance(record.get("messages"), list):
        return _like_a_record(record, is_replied=is_replied)
    if is_reply(record) and (isinstance(record.get("kind"), str) or _has_turns(record)):
        return 0.6
    if is_replied or "tool_call" in record:
        return LIKE_A_REPLY
    keys = record.keys()
    if keys <= REPLY_KEYS and is_reply(record):
        # A lone message or error may be anyone's; more often than not it is no reply to a record.
        return None if SPOKEN_KEYS.isdisjoint(record) else LIKE_A_REPLY
    return 0.0


def _like_a_joined_line(record: dict[str, Any], *, is_replied: bool, is_whole: bool) -> float:
    if is_replied:
        return 0.95 if is_whole else 0.5
    if is_whole and record.keys() <= JOINED_KEYS:
        return 0.8
    return 0.0


def _like_a_record(record: dict[str, Any], *, is_replied: bool) -> float | None:
    if is_replied:
        return 0.9
    if "tool_context" in record:
        return 0.7
    keys = record.keys()
    if keys <= JOINED_KEYS | RECORD_KEYS:
        return None
    return 0.0


def _has_turns(record: dict[str, Any]) -> bool:
    """Return whether a line holds the replies of several turns, each an object."""
    turns = record.get("turns")
    if not isinstance(turns, list) or not record.keys() <= JOIN_KEYS | {"turns"}:
        return False
    return all(not SPOKEN_KEYS.isdisjoint(as_map(turn)) for turn in turns)


def begins_like(text: bytes) -> float | None:
    """Return the certainty that a line begins like a long record.

    0.0 where its first key is another format's.
    """
    if len(text) >= LONG and b'"messages"' in text and b'"tool_context"' in text:
        return 0.6
    first = FIRST_KEY.match(text)
    if first is not None and first[1].decode() in KNOWN_KEYS:
        return None
    return 0.0


@attrs.frozen(kw_only=True)
class DeepFabricReader(RecordReader):
    """Reads DeepFabric dataset records and the replies recorded to them, one sample per reply.

    Without a dataset, every line holds both: ``{"id"?, "sample": RECORD, "recorded": REPLY}``, or a
    record that carries its reply under ``recorded`` or ``response``. With one, the files hold
    replies (bare, or under those keys), joined to the dataset's rows by id or by line. Samples come
    in the dataset's order. A row without a reply is a missing sample, a reply without a row a bad
    record.

    A record that breaks a rule of the format gives a *failed* sample with the fault code
    ``processing_error``. So do tools that cannot be converted, a failed inference, and a reply that
    cannot be processed. The known ground truth stays on it. A line that is not JSON is a bad
    record. ``id`` (of the line, the record, or its metadata) names the sample, else its zero-based
    row does.
    """

    example_file = "results.json"
    join: Join = "auto"
    """How replies of a second file find their row.

    ``id``, ``line`` (physical line number), or ``auto``: by id when the first row and the first
    reply have one.
    """

    version = "2"
    provides = frozenset(PROVIDED.split())
    stack = "deepfabric"
    layout = "lines"
    takes_dataset = True

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)

    @classmethod
    def recognised(cls, path: Path, head: bytes) -> float | None:
        """Take a ``.jsonl`` file of texts for replies, with a certainty of 0.1."""
        certainty = super().recognised(path, head)
        if certainty is None and path.suffix == ".jsonl":
            records = first_records(head, cls.sniffed, cls.layout)
            if any(isinstance(record.value, str) for record, _ in records):
                return 0.1
            return None
        return certainty

    @override
    def index(self, inputs: Inputs) -> Joined | None:
        if inputs.dataset is None:
            return None
        return join_lines(inputs, inputs.dataset, self.join, id_of_row, id_of_reply)

    def files(self, inputs: Inputs, index: Joined | None) -> Iterator[RecordFile]:
        """Yield the file of records once per input, each followed by its replies without a row."""
        has_several = len(inputs.data) > 1
        for source in inputs.data:
            model = source.name if has_several else None
            extra = {"model": model, "orphans": False}
            if index is None:
                yield RecordFile(input=source, extra=extra)
                continue
            replies = index.lines[source.name]
            places = replies.places.values()
            most = max(map(len, places), default=1)
            yield RecordFile(input=source, file=index.dataset, most=most, extra=extra)
            if replies.orphans:
                orphans = {**extra, "orphans": True}
                yield RecordFile(input=source, ranges=(Range(end=0),), extra=orphans)

    @override
    def read(self, shard: Shard, index: Joined | None) -> Iterator[Sample | BadRecord]:
        if index is None:
            model = shard.extra["model"]
            yield from self.samples(shard, partial(_read_joined, model))
        elif shard.extra["orphans"]:
            for location, reason in index.lines[shard.input.name].orphans:
                source = _source(shard.input, location.line)
                yield BadRecord(source=source, reason=reason)
        else:
            with open_regular(shard.input.path) as replies:
                read_row = partial(_read_row, shard, index, replies)
                yield from self.samples(shard, read_row, index.dataset)


def id_of_row(line: Any) -> str | None:
    """Return the id of a dataset row."""
    return split_entry(line).name


def id_of_reply(line: Any) -> str | None:
    """Return the id of a reply in a file of its own."""
    identity = read_id(as_map(line).get("id"))
    return None if identity is None else str(identity)


def _read_joined(model: str | None, line: Any, source: Source) -> Iterator[Sample]:
    entry = split_entry(line)
    if entry.reply is ABSENT and as_map(line).keys().isdisjoint({"messages", "sample"}):
        what = "a reply without its dataset record: name the dataset with --dataset"
        raise ValueError(what if is_reply(line) else "neither a dataset record nor a joined line")
    yield build(entry, row=source.ordinal, source=source, model=model)


def _read_row(
    shard: Shard, index: Joined, file: BinaryIO, line: Any, at_row: Source
) -> Iterator[Sample | BadRecord]:
    """Yield a sample for each reply to a row of the dataset, one without reply if it has none."""
    entry = split_entry(line)
    number = at_row.ordinal + 1
    if number in index.repeated:
        reason = (
            f"id {entry.name!r} is taken by an earlier row of the dataset (join by line, "
            "or make ids unique)"
        )
        yield BadRecord(source=at_row, reason=reason)
        return
    model = shard.extra["model"]
    build_one = partial(build, row=at_row.ordinal, model=model)
    key: Any = number if index.by == "line" else entry.name
    places = index.lines[shard.input.name].places.get(key, ())
    for location in places:
        try:
            replied = with_reply(entry, read_place(file, location))
        except JsonProblem as error:
            broken = {"kind": "exception", "message": f"the recorded reply is {error}"}
            replied = entry._replace(reply=broken)
        source = _source(shard.input, location.line)
        yield build_one(replied, source=source)
    if not places:
        yield build_one(entry._replace(reply=ABSENT), source=at_row)


def _source(file: Input, line: int) -> Source:
    ordinal = line - 1
    return Source(file=file.shown, ordinal=ordinal, line=line)
