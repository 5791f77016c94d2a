"""gradestack's own input form: one sample per line or entry of a list, easy to write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any

from typing_extensions import override

from gradestack import BadRecord, RecordReader, Sample, Shard, Source, reading
from gradestack.jsonio import (
    JsonProblem,
    begins_list,
    check_utf8,
    line_blocks,
    line_problem,
    loads,
    open_lines,
)
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.jsonl_form import (
    KEYS,
    Wrong,
    sample_of_line,
    sample_of_record,
    sample_schema,
)

_OWN = frozenset({"expected", "predicted", "messages", "turns", "error"})
"""Keys by one of which, beside the id, a record is recognised."""
_PROVIDED = """
model run input turns calls label text plan tools cluster expected recorded state ended trace
children agent_id usage agent_usage facets
"""


class JsonLines(RecordReader):
    """One JSON object per line, or a JSON list of them.

    ``id``, ``expected``, ``predicted``, and whatever else is known of the run.

    ``expected`` and ``predicted`` are a list of calls, a text (taken as label and as answer text),
    or an object with ``calls``, ``label``, ``text``, ``plan`` (``expected`` also ``alternatives``,
    ``forbidden``, ``state``). Calls are ``{"name", "arguments"}`` or in OpenAI's form; arguments
    are an object or JSON text, also under ``args``, ``input`` or ``parameters``. Without
    ``predicted``, calls and answer are taken from ``messages``, of whatever dialect each of them
    is. The form has versions; the key ``version`` is optional and means 1 when absent. In version
    2, ``null`` as the arguments of an expected call means that they are not compared. Details of
    calls made that are of another kind than the form's, and unknown keys of expected calls, are
    refused there, not left out. The JSON Schema is printed by ``gradestack schema sample``.
    """

    example_file = "runs.jsonl"
    version = "2"
    provides = frozenset(_PROVIDED.split())
    stack = "auto"
    empty_answers = True
    behind_others = 0.0

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, chat.OBJECT):
            return None
        expected = record.get("expected")
        has_calls_below = isinstance(expected, Mapping) and "tool_calls" in expected
        is_column = has_calls_below and "predicted" not in record
        if is_column or isinstance(record.get("messages"), str):
            return 0.0  # own data, some of whose columns have these names
        has_id = "id" in record and not isinstance(record["id"], list | Mapping)
        keys = set(record)
        if has_id and keys & _OWN and keys <= KEYS:
            return 0.5
        return 0.0

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        if not ("id" in record and _OWN & record.keys()):
            return None
        sample = cls().record(record, file="", ordinal=0)
        return sample.reason if isinstance(sample, BadRecord) else None

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of one line."""
        return sample_schema()

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        for block in self.blocks(shard, index):
            yield from block

    @override
    def blocks(self, shard: Shard, index: Any) -> Iterator[list[Sample | BadRecord]]:
        with reading(shard.input.shown):
            file = open_lines(shard.input.path)
        with file:
            if begins_list(file):
                samples = self.samples(shard, self._samples_of)
                yield from ([record] for record in samples)
            else:
                yield from self._blocks_of_lines(shard, file)

    def _samples_of(self, record: Any, source: Source) -> Iterator[Sample | BadRecord]:
        yield self.sample(record, source)

    def _blocks_of_lines(
        self, shard: Shard, file: BufferedReader
    ) -> Iterator[list[Sample | BadRecord]]:
        """Yield blocks with the samples and bad records of a shard's lines, in order."""
        shown = shard.input.shown
        for first, lines in line_blocks(file, shard.start, shard.end, shard.first_line):
            block: list[Sample | BadRecord] = []
            lines.reverse()
            for number in range(first, first + len(lines)):
                data = lines.pop()  # which may be long, and is not needed behind its sample
                if not data or data.isspace():
                    continue
                source = Source(file=shown, ordinal=number - 1, line=number)
                record: Sample | BadRecord
                try:
                    check_utf8(data)  # texts that are kept, or stand twice, are not looked at else
                    record = sample_of_line(data, source)
                except (ValueError, RecursionError):
                    record = self._sample_of_text(data, source)
                if self.ids is not None and isinstance(record, Sample):
                    (record,) = self.identified((record,), loads(data))
                block.append(record)
                del data
            if block:
                yield block

    def _sample_of_text(self, data: bytes, source: Source) -> Sample | BadRecord:
        """Return the sample of a line that is of no usual form, or its bad record."""
        try:
            # without the end of the line, as messages count the characters
            decoded = loads(data.removesuffix(b"\n"))
        except JsonProblem as problem:
            reason = line_problem(data, problem)
            return BadRecord(source=source, reason=reason)
        return self.sample(decoded, source)

    def record(self, record: Any, *, file: str, ordinal: int) -> Sample | BadRecord:
        """Return the sample of one decoded record."""
        source = Source(file=file, ordinal=ordinal)
        return self.sample(record, source)

    def sample(self, record: Any, source: Source) -> Sample | BadRecord:
        """Return the sample of one decoded record, or its bad record."""
        try:
            return sample_of_record(record, source)
        except Wrong as error:
            return BadRecord(source=source, reason=str(error), native=record)
        except RecursionError:
            return BadRecord(source=source, reason="nested too deeply")
