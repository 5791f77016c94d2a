"""The easy reader: a format says what the sample of one record is."""

from typing import Any, assert_type

import attrs

from gradestack import BadRecord, RecordReader, Sample, Source


@attrs.frozen(kw_only=True)
class Notes(RecordReader):
    """JSON Lines or a JSON list of notes."""

    provides = frozenset({"text"})
    keys = frozenset({"number", "note"})
    layout = "lines"

    default: str = ""

    def sample_of(self, record: Any, source: Source) -> Sample | BadRecord:
        """Return the note."""
        if record["number"] is None:
            return BadRecord(source=source, reason="no number")
        return Sample(id=str(record["number"]), text=record["note"] or self.default, source=source)


assert_type(Notes().sample_of({}, Source(file="notes.jsonl", ordinal=0)), Sample | BadRecord)


class Odd(RecordReader):
    """Of a layout that there is not."""

    layout = "rows"  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
