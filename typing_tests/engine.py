"""An engine: any function over shards, its results in their order and of their type."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import assert_type

import attrs

from gradestack import Engine, LostEngineError, ResultT, Shard


@attrs.frozen(kw_only=True)
class Threads(Engine):
    """Some threads."""

    workers: int = 4

    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield in the order of the shards."""
        if not self.workers:
            msg = "no threads"
            raise LostEngineError(msg)
        with ThreadPoolExecutor(self.workers) as pool:
            yield from pool.map(work, shards)


def ordinal(shard: Shard) -> int:
    """Return a number."""
    return shard.ordinal


assert_type(Threads().map(ordinal, []), Iterator[int])

Threads().map(len, [])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
