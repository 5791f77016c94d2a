"""What is done about a range that workers die of, whatever the engine.

A range lost with a dying worker is done again. One lost :data:`TRIES` times is done alone by a worker that notes how
far it gets. The record it dies of is reported as a failed sample, and the rest of the range is graded as usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from gradestack.api import Shard
from gradestack.errors import PluginError

TRIES = 2
"""How often a range may be lost before it is done alone."""
_PATIENCE = 8
"""How many deaths at ever different records are taken for bad luck, not for the end of the run."""

Attempt = Callable[[Any, Shard], tuple[bool, Any]]
"""Applies work to a shard on a worker of its own: (True, result), or (False, None) when that worker died."""


def alone(work: Any, shard: Shard, attempt: Attempt, *, certain: int = 2) -> Any:
    """Return the result of a range lost too often, the records that end a worker left ungraded.

    Args:
        work: What is applied to shards; one without ``watched`` has no records to blame.
        shard: The range.
        attempt: How to apply it.
        certain: How many deaths at the same record, one after the other, make it the culprit.

    Raises:
        PluginError: No single record is to blame, or one is and the run is strict.
    """
    if not hasattr(work, "watched"):
        raise PluginError(_ends_every(shard, None))
    watched = work.watched()
    deaths: Counter[int] = Counter()
    while True:
        survived, result = attempt(watched, shard)
        if survived:
            return result
        at = watched.last_position(shard)
        if (shard.ordinal, at) in watched.poison:  # reading it is what kills
            raise PluginError(_ends_every(shard, at))
        deaths[at] += 1
        if deaths[at] >= certain:
            if getattr(work, "strict", False):
                msg = f"{shard.input.shown}: grading record {shard.first_row + at} ends its worker process"
                raise PluginError(msg, "out of memory, killed, or a crash in native code")
            watched = watched.isolated(shard.ordinal, at)
            deaths.clear()
        elif deaths.total() >= _PATIENCE:
            msg = f"{shard.input.shown}: workers on the range from byte {shard.start} die at ever different records"
            raise PluginError(msg, "is the machine out of memory? fewer workers need less")


def _ends_every(shard: Shard, at: int | None) -> str:
    where = "" if at is None else f" (record {at} of it)"
    return f"{shard.input.shown}: reading the range from byte {shard.start} ends every worker process{where}"
