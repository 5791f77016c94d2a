"""The engines of one machine that need no pool: this process, or as many processes as pay off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import attrs
from typing_extensions import override

from gradestack import Engine, PluginError, ResultT, Shard
from gradestack_plugins.engines.machine import (
    same_directory,
    usable_cores,
    valid_memory,
    valid_workers,
)


class Serial(Engine):
    """One shard after the other in this process."""

    @override
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        for shard in shards:
            yield apply(work, shard)


def apply(work: Callable[[Shard], ResultT], shard: Shard) -> ResultT:
    """Return ``work(shard)``."""
    try:
        with same_directory():
            return work(shard)
    except MemoryError as error:
        raise PluginError(
            f"{shard.input.shown}: not enough memory for the range from byte {shard.start}"
        ) from error


LARGE = 64 * 1024 * 1024
"""Bytes from which processes are started at once."""
WORTHWHILE = 0.5
"""Seconds of work left, going by what is done so far, from which processes are started for it."""


@attrs.frozen(kw_only=True)
class Auto(Engine):
    """Processes where there is enough to do and there are several cores, this process otherwise.

    Same results.

    An input of 64 MiB or more is spread over processes from the start. A smaller one is begun in
    this process. Processes are started for the rest when the time so far says that the rest takes
    half a second or more.

    Attributes:
        workers: The most processes; default: the cores this process may use. With 1 none is
            started.
        memory: As for ``processes``.
    """

    workers: int | None = attrs.field(default=None, validator=valid_workers)
    memory: str | None = attrs.field(default=None, validator=valid_memory)

    @override
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        most = self.workers or usable_cores()
        weights = [shard.size() for shard in shards]
        left = sum(weights)
        done = 0
        spent = 0.0
        for index, shard in enumerate(shards):
            workers = min(most, len(shards) - index)
            is_worthwhile = done > 0 and spent * left >= WORTHWHILE * done
            if workers > 1 and (left + done >= LARGE or is_worthwhile):
                # small inputs need none
                from gradestack_plugins.engines.processes import Processes  # noqa: PLC0415

                engine = Processes(workers=workers, memory=self.memory)
                yield from engine.map(work, shards[index:])
                return
            begun = time.perf_counter()
            result = apply(work, shard)
            spent += time.perf_counter() - begun
            done += weights[index]
            left -= weights[index]
            yield result
