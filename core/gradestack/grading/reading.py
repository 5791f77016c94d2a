"""A reader's shards and records; what it raises becomes an error that names it."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

import msgspec
from typing_extensions import override

from gradestack.api import Inputs, Reader, Shard
from gradestack.errors import GradestackError, PluginError, error_text, guarded
from gradestack.model import BadRecord, Sample, replace


class Bundle(Shard, frozen=True, kw_only=True):
    """Small shards of a folder of many files, worked on as one.

    What it takes to begin and end a shard is many times what a small file takes.
    """

    shards: tuple[Shard, ...]

    @override
    def size(self) -> int:
        return sum(shard.size() for shard in self.shards)

    @override
    def absolute(self) -> Shard:
        shards = tuple(shard.absolute() for shard in self.shards)
        return msgspec.structs.replace(super().absolute(), shards=shards)


def shards_in(shard: Shard) -> tuple[Shard, ...]:
    """Return the shards of a bundle, or a shard alone."""
    return shard.shards if isinstance(shard, Bundle) else (shard,)


_LEAST_BUNDLES = 64
"""Bundles there are at least, so that there is enough to share out among workers."""
_MOST_SHARDS, _MOST_BYTES = 64, 8 * 1024 * 1024
"""Shards in a bundle at most, and bytes."""


def bundle_shards(shards: Sequence[Shard]) -> list[Shard]:
    """Join neighbouring shards into bundles where there are very many.

    How many are in one, and how many bytes, depends on the shards alone.
    """
    most = min(_MOST_SHARDS, len(shards) // _LEAST_BUNDLES)
    if most < 2:
        return list(shards)
    bundles: list[Shard] = []
    waiting = deque(shards)
    while waiting:
        members = [waiting.popleft()]
        size = members[0].size()
        while waiting and len(members) < most:
            size += waiting[0].size()
            if size > _MOST_BYTES:
                break
            members.append(waiting.popleft())
        bundles.append(_bundle(len(bundles), members))
    return bundles


def _bundle(ordinal: int, members: Sequence[Shard]) -> Bundle:
    """Join neighbouring shards into a bundle that begins where the first of them begins."""
    first, last = members[0], members[-1]
    shown = first.input.shown
    if last.input != first.input:
        shown = f"{shown} to {last.input.shown}"
    return Bundle(
        ordinal=ordinal,
        input=msgspec.structs.replace(first.input, shown=shown),
        position=first.position,
        shards=tuple(members),
    )


class DisambiguatedIds(msgspec.Struct, frozen=True):
    """A reader's index, and what stands in place of ids that stand for other tasks in
    other inputs.
    """

    index: Any
    ids: Mapping[tuple[str, str], str]
    """By the name of the input, and the id."""
    note: str


def name_of(reader: Reader) -> str:
    """Return the name of a reader object in messages."""
    return f"reader {type(reader).__name__} (version {reader.version})"


def shards_of(reader: Reader, inputs: Inputs) -> tuple[list[Shard], Any]:
    """Return a reader's shards and index."""
    with guarded(name_of(reader)):
        index = reader.index(inputs)
        return list(reader.plan(inputs, index)), index


def _check_block(block: Sequence[Any], reader: Reader) -> None:
    for kind in set(map(type, block)):
        if not issubclass(kind, Sample | BadRecord):
            what = f"yields {kind.__name__}, expected Sample or BadRecord"
            raise PluginError(f"{name_of(reader)} {what}")


def blocks_of(reader: Reader, shard: Shard, index: Any) -> Generator[list[Sample | BadRecord]]:
    """Yield the records of one shard, some at a time, each with the id of its task."""
    if isinstance(shard, Bundle):
        for member in shard.shards:
            yield from blocks_of(reader, member, index)
        return
    ids: Mapping[tuple[str, str], str] = {}
    if isinstance(index, DisambiguatedIds):
        index, ids = index.index, index.ids
    try:
        for block in reader.blocks(shard, index):
            _check_block(block, reader)
            if ids:
                name = shard.input.name
                yield [_with_id(record, name, ids) for record in block]
            else:
                yield block
    except (GradestackError, OSError):
        raise
    except (Exception, SystemExit) as error:
        raised = f"raised {error_text(error)} in {shard.input.shown}"
        raise PluginError(f"{name_of(reader)} {raised}") from error


def _with_id(
    record: Sample | BadRecord, input_name: str, ids: Mapping[tuple[str, str], str]
) -> Sample | BadRecord:
    """Return a record with the name that its id has in its input, where that is another."""
    if isinstance(record, BadRecord) or record.cluster is not None:
        return record
    name, source = ids.get((input_name, record.id)), record.source
    if name is None:
        return record
    return replace(record, id=name, source=source and replace(source, id=None))


def records_of(reader: Reader, shard: Shard, index: Any) -> Generator[Sample | BadRecord]:
    """Yield the same one by one."""
    with closing(blocks_of(reader, shard, index)) as blocks:
        for block in blocks:
            yield from block
