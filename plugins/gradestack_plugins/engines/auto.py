"""The default engine: as many processes as pay off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import attrs

from gradestack.api import Engine, ResultT, Shard
from gradestack_plugins.engines.processes import Processes, usable_cores
from gradestack_plugins.engines.serial import Serial

WORTHWHILE = 8
"""Shards (of 8 MiB where a format can be cut) from which starting processes pays off."""


@attrs.frozen(kw_only=True)
class Auto(Engine):
    """Processes when the input has many shards and there are several cores, serial otherwise; same results."""

    remote: ClassVar[bool] = False

    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` for every shard, in order."""
        engine: Engine = Processes() if len(shards) >= WORTHWHILE and usable_cores() > 1 else Serial()
        return engine.map(work, shards)
