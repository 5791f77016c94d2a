"""A reader's shards and records; what it raises becomes an error that names it."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from gradestack.api import Reader, Shard
from gradestack.errors import GradestackError, PluginError
from gradestack.model import BadRecord, Sample
from gradestack.plugin_errors import error_text, guarded


def name_of(reader: Reader) -> str:
    """Return how messages call a reader object."""
    return f"reader {type(reader).__name__} (version {reader.version})"


def shards_of(reader: Reader, inputs: Any) -> tuple[list[Shard], Any]:
    """Return a reader's shards and index.

    Raises:
        DataError: The reader refuses the input.
        PluginError: The reader is broken.
    """
    with guarded(name_of(reader)):
        index = reader.index(inputs)
        return list(reader.plan(inputs, index)), index


_RECORDS = (Sample, BadRecord)


def _checked(record: Any, reader: Reader) -> Sample | BadRecord:
    if isinstance(record, _RECORDS):
        return record
    msg = f"{name_of(reader)} yields {type(record).__name__}, expected Sample or BadRecord"
    raise PluginError(msg)


def records_of(reader: Reader, shard: Shard, index: Any) -> Generator[Sample | BadRecord]:
    """Yield the records of one shard.

    Raises:
        DataError: The reader cannot read the shard at all.
        PluginError: The reader raised something else, or yields what is neither a sample nor a bad record.
    """
    try:
        found: Iterable[Any] = reader.read(shard, index)
        for record in found:
            yield record if type(record) is Sample else _checked(record, reader)
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        msg = f"{name_of(reader)} raised {error_text(error)} in {shard.input.shown}"
        raise PluginError(msg) from error
