"""Several formats in one run, as one reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import msgspec
from typing_extensions import override

from gradestack.api import Inputs, Reader, Shard
from gradestack.errors import guarded
from gradestack.grading.plan import is_foreign
from gradestack.grading.reading import blocks_of, name_of, records_of
from gradestack.model import BadRecord, Sample

_POSITIONS = 1 << 40
"""Samples there may be of one format among several."""


@attrs.frozen(slots=False)
class Mixed(Reader):
    """Several formats in one run: readers, and the paths of the inputs that each of them reads."""

    readers: tuple[Reader, ...]
    paths: tuple[frozenset[Path], ...]

    def __attrs_post_init__(self) -> None:
        """Declare what the readers declare together.

        Fields that any fills, a common stack and habit, else those of own data.
        """
        readers = self.readers
        stacks = {reader.stack for reader in readers}
        habits = {
            reader.duplicates if getattr(reader, "ids", None) is None else "keep"
            for reader in readers
        }
        vars(self).update(
            provides=frozenset().union(*(reader.provides for reader in readers)),
            stack=stacks.pop() if len(stacks) == 1 else "auto",
            duplicates=habits.pop() if len(habits) == 1 else "keep",
            keeps_copies=any(reader.keeps_copies for reader in readers),
            empty_answers=all(reader.empty_answers for reader in readers),
            simulated_users=any(reader.simulated_users for reader in readers),
            runs_code=any(map(is_foreign, readers)),
        )

    def parts(self, inputs: Inputs) -> Iterator[tuple[Reader, Inputs]]:
        """Yield each reader with its own of the inputs, in their order."""
        for reader, paths in zip(self.readers, self.paths, strict=True):
            data = tuple(input_ for input_ in inputs.data if input_.path in paths)
            dataset = inputs.dataset if reader.takes_dataset else None
            yield reader, Inputs(data=data, dataset=dataset)

    @override
    def index(self, inputs: Inputs) -> Any:
        indexes = []
        for reader, own_inputs in self.parts(inputs):
            with guarded(name_of(reader)):
                indexes.append(reader.index(own_inputs))
        return indexes

    @override
    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        ordinal = 0
        for part, (reader, own_inputs) in enumerate(self.parts(inputs)):
            with guarded(name_of(reader)):
                shards = list(reader.plan(own_inputs, index[part]))
            for shard in shards:
                yield msgspec.structs.replace(
                    shard,
                    ordinal=ordinal,
                    position=part * _POSITIONS + shard.position,
                    extra=(part, shard.ordinal, shard.extra),
                )
                ordinal += 1

    def _part(self, shard: Shard, index: Any) -> tuple[Reader, Shard, Any]:
        """Return the reader of a shard, the shard as that one made it, and its index."""
        part, ordinal, extra = cast("Any", shard.extra)
        numbered_shard = msgspec.structs.replace(shard, ordinal=ordinal, extra=extra)
        return self.readers[part], numbered_shard, index[part]

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        return records_of(*self._part(shard, index))

    @override
    def blocks(self, shard: Shard, index: Any) -> Iterator[list[Sample | BadRecord]]:
        return blocks_of(*self._part(shard, index))
