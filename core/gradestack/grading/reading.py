"""A reader's shards and records; what it raises becomes an error that names it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

from gradestack.api import Reader, Shard
from gradestack.errors import GradestackError, PluginError
from gradestack.model import BadRecord, Sample
from gradestack.plugin_errors import error_text, guarded


def name_of(reader: Reader) -> str:
    """Return how messages call a reader object."""
    return f"reader {type(reader).__name__} (version {reader.version})"


def shards_of(reader: Reader, inputs: Any) -> tuple[list[Shard], Any]:
    """Return a reader's shards and index."""
    with guarded(name_of(reader)):
        index = reader.index(inputs)
        return list(reader.plan(inputs, index)), index


def _check(kinds: set[type], reader: Reader) -> None:
    for kind in kinds:
        if not issubclass(kind, Sample | BadRecord):
            raise PluginError(f"{name_of(reader)} yields {kind.__name__}, expected Sample or BadRecord")


def blocks_of(reader: Reader, shard: Shard, index: Any) -> Generator[list[Sample | BadRecord]]:
    """Yield the records of one shard, some at a time."""
    try:
        for block in reader.blocks(shard, index):
            _check(set(map(type, block)), reader)
            yield block
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        msg = f"{name_of(reader)} raised {error_text(error)} in {shard.input.shown}"
        raise PluginError(msg) from error


def records_of(reader: Reader, shard: Shard, index: Any) -> Generator[Sample | BadRecord]:
    """Yield the same one by one."""
    with closing(blocks_of(reader, shard, index)) as blocks:
        for block in blocks:
            yield from block
