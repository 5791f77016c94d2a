"""The engine everything else is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
from typing_extensions import override

from gradestack import Engine, PluginError, ResultT, Shard
from gradestack_plugins.engines.machine import same_directory
from gradestack_plugins.engines.time_limit import seconds_of, time_limit


@attrs.frozen(kw_only=True)
class Serial(Engine):
    """One shard after the other in this process."""

    @override
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` for every shard, in order."""
        for shard in shards:
            yield apply(work, shard)


def apply(work: Callable[[Shard], ResultT], shard: Shard) -> ResultT:
    """Return ``work(shard)``."""
    try:
        with same_directory(), time_limit(seconds_of(work)):
            return work(shard)
    except MemoryError as error:
        raise PluginError(f"{shard.input.shown}: not enough memory for the range from byte {shard.start}") from error
