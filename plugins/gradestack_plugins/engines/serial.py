"""The engine everything else is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from gradestack.api import Engine, ResultT, Shard


@attrs.frozen(kw_only=True)
class Serial(Engine):
    """One shard after the other in this process."""

    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` for every shard, in order."""
        for shard in shards:
            yield work(shard)
