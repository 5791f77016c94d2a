"""Reader of DeepFabric datasets with recorded replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import attrs

from gradestack import ABSENT, BadRecord, Input, Inputs, Profile, Reader, Sample, Shard, Source
from gradestack.jsonio import JsonProblem, Line, iter_lines, line_ranges, loads
from gradestack_plugins.deepfabric.joining import Join, Joined, join, lines_at, require_file
from gradestack_plugins.deepfabric.recognition import certainty
from gradestack_plugins.deepfabric.replies import kind_of
from gradestack_plugins.deepfabric.samples import Entry, Validation, build, split_entry, with_reply
from gradestack_plugins.deepfabric.tables import table


@attrs.frozen(kw_only=True)
class DeepFabricReader(Reader):
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

    version: ClassVar[str] = "1"
    provides: ClassVar[frozenset[str]] = frozenset(
        {"model", "run", "input", "turns", "calls", "text", "tools", "expected", "facets", "status", "error", "native"}
    )
    stack: ClassVar[str | None] = "deepfabric"
    takes_dataset: ClassVar[bool] = True

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Recognise joined lines (0.95), records with (0.9) or without (0.7) a reply, and replies (up to 0.6)."""
        return certainty(path, head)

    def index(self, inputs: Inputs) -> Joined | None:
        """Return where the replies to each dataset row are, or None without a dataset."""
        if inputs.dataset is None:
            return None
        return join(inputs, inputs.dataset, self.join, self.profile)

    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        """Cut the lines that hold the records into ranges; a last shard per input reports replies without a row."""
        ordinal = position = 0
        for given in inputs.data:
            model = given.name if len(inputs.data) > 1 else None
            replies = index.replies[given.name] if isinstance(index, Joined) else None
            records = index.dataset if isinstance(index, Joined) else given
            require_file(records)
            factor = replies.most if replies is not None else 1
            end = 0
            for start, end, line in line_ranges(records.path):
                yield Shard(
                    ordinal=ordinal,
                    input=given,
                    start=start,
                    end=end,
                    first_line=line,
                    first_row=line - 1,
                    position=position + start * factor,
                    extra={"model": model, "orphans": False},
                )
                ordinal += 1
            position += end * factor
            if replies is not None and replies.orphans:
                extra = {"model": model, "orphans": True}
                yield Shard(ordinal=ordinal, input=given, end=0, position=position, extra=extra)
                ordinal += 1
                position += given.path.stat().st_size

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield one sample per reply (or one missing sample per row without any) in the order of the records."""
        if not isinstance(index, Joined):
            yield from self._read_joined(shard)
            return
        if shard.extra["orphans"]:
            for orphan in index.replies[shard.input.name].orphans:
                yield BadRecord(source=_source(shard.input, orphan.place.line), reason=orphan.reason)
            return
        with shard.input.path.open("rb") as replies:
            for line in iter_lines(index.dataset.path, shard.start, shard.end, shard.first_line):
                yield from self._read_row(line, shard, index, replies)

    def _read_joined(self, shard: Shard) -> Iterator[Sample | BadRecord]:
        decode = table(self.profile).decode
        model = shard.extra["model"]
        for line in iter_lines(shard.input.path, shard.start, shard.end, shard.first_line):
            source = _source(shard.input, line.number)
            try:
                value = decode(line.data)
            except JsonProblem as error:
                yield BadRecord(source=source, reason=str(error))
                continue
            entry = split_entry(value)
            if entry.reply is ABSENT and not (isinstance(value, dict) and ("messages" in value or "sample" in value)):
                what = "a reply without its dataset record: name the dataset with --dataset"
                reply = isinstance(value, str) or (isinstance(value, dict) and kind_of(value) is not None)
                reason = what if reply else "neither a dataset record nor a joined line"
                yield BadRecord(source=source, reason=reason, native=value)
                continue
            yield self._build(entry, line.number - 1, source, model)

    def _read_row(self, line: Line, shard: Shard, index: Joined, file: BinaryIO) -> Iterator[Sample | BadRecord]:
        model = shard.extra["model"]
        at_row = _source(index.dataset, line.number)
        try:
            entry = split_entry(table(self.profile).decode(line.data))
        except JsonProblem as error:
            yield BadRecord(source=at_row, reason=str(error))
            return
        if line.number in index.repeated:
            reason = f"id {entry.id!r} is taken by an earlier row of the dataset (join by line, or make ids unique)"
            yield BadRecord(source=at_row, reason=reason)
            return
        places = index.replies[shard.input.name].of(entry.id, line.number)
        for found in lines_at(file, places):
            source = _source(shard.input, found.number)
            try:
                replied = with_reply(entry, loads(found.data))
            except JsonProblem as error:
                replied = entry._replace(reply={"kind": "exception", "message": f"the recorded reply is {error}"})
            yield self._build(replied, line.number - 1, source, model)
        if not places:
            yield self._build(entry._replace(reply=ABSENT), line.number - 1, at_row, model)

    def _build(self, entry: Entry, row: int, source: Source, model: str | None) -> Sample:
        return build(entry, row=row, source=source, profile=self.profile, validation=self.validation, model=model)


def _source(given: Input, line: int) -> Source:
    return Source(file=given.shown, ordinal=line - 1, line=line)
