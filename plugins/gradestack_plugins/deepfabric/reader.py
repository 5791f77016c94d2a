"""Reader of DeepFabric datasets with recorded replies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import attrs
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
)
from gradestack.jsonio import JsonProblem, Layout, Range, first_records, loads
from gradestack_plugins.deepfabric.joining import Join, Joined, join, lines_at, require_file
from gradestack_plugins.deepfabric.recognition import begins_like, looks_like
from gradestack_plugins.deepfabric.replies import kind_of
from gradestack_plugins.deepfabric.samples import Entry, Validation, build, split_entry, with_reply


@attrs.frozen(kw_only=True)
class DeepFabricReader(RecordReader):
    """Reads DeepFabric dataset records and the replies recorded to them, one sample per reply.

    Without a dataset, every line holds both: ``{"id"?, "sample": RECORD, "recorded": REPLY}``, or a record that carries
    its reply under ``recorded`` or ``response``. With one, the files hold replies (bare, or under those keys), joined
    to the dataset's rows by id or by line; samples come in the dataset's order, a row without a reply as a missing
    sample, a reply without a row as a bad record.

    A record that breaks a rule of the format, tools that cannot be converted, a failed inference and a reply that
    cannot be processed each give a *failed* sample with the fault code ``processing_error``; what is known of the
    ground truth stays on it. A line that is not JSON is a bad record. ``id`` (of the line, the record, or its metadata)
    names the sample, else its zero-based row does.

    Profiles differ in how tools and replies are read: see ``convert`` and ``read_reply``.
    """

    profile: Profile = "documented"
    join: Join = "auto"
    """How replies of a second file find their row: ``id``, ``line`` (physical line number), or ``auto``: by id when the
    first row and the first reply have one."""
    validation: Validation = "strict"
    """``strict`` holds records against every rule of the format; ``lenient`` only against what grading needs."""

    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(
        {"model", "run", "input", "turns", "calls", "text", "tools", "expected", "facets", "status", "error", "native"}
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
        """Yield the file that holds the records, once per input, each followed by its replies without a row."""
        for given in inputs.data:
            model = given.name if len(inputs.data) > 1 else None
            replies = index.replies[given.name] if isinstance(index, Joined) else None
            records = index.dataset if isinstance(index, Joined) else given
            require_file(records)
            most = replies.most if replies is not None else 1
            yield RecordFile(input=given, file=records, most=most, extra={"model": model, "orphans": False})
            if replies is not None and replies.orphans:
                yield RecordFile(input=given, ranges=(Range(end=0),), extra={"model": model, "orphans": True})

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        model = shard.extra["model"]
        if not isinstance(index, Joined):
            yield from self.samples(shard, partial(self._joined, model))
        elif shard.extra["orphans"]:
            for orphan in index.replies[shard.input.name].orphans:
                yield BadRecord(source=_source(shard.input, orphan.place.line), reason=orphan.reason)
        else:
            with shard.input.path.open("rb") as replies:
                yield from self.samples(shard, partial(self._row, shard, index, replies), index.dataset)

    def _joined(self, model: str | None, value: Any, source: Source) -> Iterator[Sample]:
        entry = split_entry(value)
        if entry.reply is ABSENT and not (isinstance(value, dict) and ("messages" in value or "sample" in value)):
            reply = isinstance(value, str) or (isinstance(value, dict) and kind_of(value) is not None)
            what = "a reply without its dataset record: name the dataset with --dataset"
            raise ValueError(what if reply else "neither a dataset record nor a joined line")
        yield self._build(entry, source, source, model)

    def _row(
        self, shard: Shard, index: Joined, file: BinaryIO, value: Any, at_row: Source
    ) -> Iterator[Sample | BadRecord]:
        entry, line = split_entry(value), at_row.ordinal + 1
        if line in index.repeated:
            reason = f"id {entry.id!r} is taken by an earlier row of the dataset (join by line, or make ids unique)"
            yield BadRecord(source=at_row, reason=reason)
            return
        model = shard.extra["model"]
        places = index.replies[shard.input.name].of(entry.id, line)
        for found in lines_at(file, places):
            try:
                replied = with_reply(entry, loads(found.data))
            except JsonProblem as error:
                replied = entry._replace(reply={"kind": "exception", "message": f"the recorded reply is {error}"})
            yield self._build(replied, at_row, _source(shard.input, found.number), model)
        if not places:
            yield self._build(entry._replace(reply=ABSENT), at_row, at_row, model)

    def _build(self, entry: Entry, row: Source, source: Source, model: str | None) -> Sample:
        return build(
            entry, row=row.ordinal, source=source, profile=self.profile, validation=self.validation, model=model
        )


def _source(given: Input, line: int) -> Source:
    return Source(file=given.shown, ordinal=line - 1, line=line)
