"""Shards on the workers of a dask cluster.

One that exists, on any number of machines, or one on this machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import Engine, ResultT, Shard, library
from gradestack_plugins.engines.machine import usable_cores, valid_memory, valid_workers
from gradestack_plugins.engines.processes import InOrder, uninterrupted


@attrs.frozen(kw_only=True)
class Dask(Engine):
    """Runs shards on the workers of a dask cluster and yields their results in shard order.

    The data and the report directory are on a path that all machines see under the same name: only
    the shards' places and finished results cross the network. A lost worker costs the shards it was
    at; the scheduler gives them to others. A record that ends its workers is found and reported as
    a failed sample. Results are the same as with any other engine. Needs the extra ``dask``.

    Attributes:
        address: The scheduler's address, such as ``tcp://10.0.0.1:8786``; without it a cluster is
            started on this machine, and ended with the run. Whoever answers there can run code
            here, so it is taken from the command line, or from a suite with ``--allow-code``.
        workers: Number of workers of the cluster on this machine; default: the cores this process
            may use.
        memory: What each worker on this machine may allocate, as for ``processes``.
        patience: Seconds to wait for workers to join the scheduler, at the start and when all are
            gone.
    """

    trusted_options: ClassVar[frozenset[str]] = frozenset({"address"})

    address: str | None = None
    workers: int | None = attrs.field(default=None, validator=valid_workers)
    memory: str | None = attrs.field(default=None, validator=valid_memory)
    patience: float = 60.0

    def __attrs_post_init__(self) -> None:
        if self.patience <= 0:
            raise ValueError(f"patience must be positive, got {self.patience}")
        if self.address is not None and (self.workers is not None or self.memory is not None):
            raise ValueError(
                "workers and memory are those of a cluster on this machine; the one at an address "
                "has its own"
            )

    @override
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        library("distributed", extra="dask")
        if not shards:
            return
        # half a second
        from gradestack_plugins.engines.dask_cluster import connected  # noqa: PLC0415

        stack = contextlib.ExitStack()
        try:
            workers = min(self.workers or usable_cores(), len(shards))
            cluster = stack.enter_context(connected(self, work, workers))
            yield from _Run(work, shards, cluster).results()
        finally:
            try:
                with uninterrupted():
                    stack.close()
            except KeyboardInterrupt:  # it may have come again before it was held back
                with uninterrupted():
                    stack.close()
                raise


class _Run(InOrder):
    """A run of work over shards on the workers of a cluster."""

    def __init__(self, work: Any, shards: Sequence[Shard], cluster: Any) -> None:
        super().__init__(work, [shard.absolute() for shard in shards])
        order = cluster.order(work)
        self.cluster, self.packed_work = cluster, order
        self.futures: dict[Any, int] = {}

    @override
    def give(self, turn: int) -> None:
        threads = self.cluster.threads()
        future_count = len(self.futures)
        room = max(0, 2 * threads - future_count)
        futures = self.futures.values()
        waiting = self.waiting(turn, threads, futures)
        for index in waiting[:room]:
            self.futures[self.cluster.submit(self.shards[index], self.packed_work)] = index

    @override
    def take(self) -> None:
        futures = list(self.futures)
        for future in self.cluster.wait(futures):
            index = self.futures.pop(future)
            outcome = self.cluster.result_of(future)
            if outcome is not None:
                survived, result = outcome
                self.done[index] = result if survived else self.grade_lost(index)

    @override
    def attempt(self, work: Any, shard: Shard) -> tuple[bool, Any]:
        """Apply work to a shard on a worker until the cluster has an outcome of it.

        Returns:
            Whether the workers survived it, and the result; None where they did not.
        """
        packed_work = self.cluster.order(work)
        while True:
            future = self.cluster.submit(shard, packed_work)
            while not self.cluster.wait([future]):
                pass
            outcome = self.cluster.result_of(future)
            if outcome is not None:
                return outcome  # type: ignore[no-any-return]
