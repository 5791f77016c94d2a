"""What is done about a range that workers die of, whatever the engine.

A range lost with a dying worker is done again. One lost :data:`TRIES` times is done alone by a worker that notes how
far it gets. The record it dies of is reported as a failed sample, and the rest of the range is graded as usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from gradestack import Fault, PluginError, Shard
from gradestack_plugins.engines.time_limit import GRACE, overdue, seconds_of

TRIES = 2
"""How often a range may be lost before it is done alone."""
_PATIENCE = 8
"""How many deaths at ever different records are taken for bad luck, not for the end of the run."""

_KILLER = Fault(
    category="grading",
    code="worker_died",
    message="grading this record ended the worker process (out of memory, killed, or a crash in native code)",
)
_EARLY = 2.0
"""Seconds by which clocks, and looks at them, may differ."""

Attempt = Callable[[Any, Shard], tuple[bool, Any]]
"""Applies work to a shard on a worker of its own.

(True, result), or (False, why) when that worker died: the error to end the run with where no record is to blame, None
when nothing is known.
"""


def alone(work: Any, shard: Shard, attempt: Attempt, *, certain: int = 2, why: PluginError | None = None) -> Any:
    """Return the result of a range lost too often, the records that end a worker left ungraded."""
    if not hasattr(work, "watched"):
        raise why or PluginError(_ends_every(shard, None))
    watched = work.watched()
    deaths: Counter[int | None] = Counter()
    while True:
        survived, result = attempt(watched, shard)
        if survived:
            return result
        why = result
        at, seconds = _reached(watched, shard)
        if (shard.ordinal, at) in watched.poison:  # reading it is what kills
            raise why or PluginError(_ends_every(shard, at))
        deaths[at] += 1
        fault = _fault(work, seconds)
        if at is not None and (deaths[at] >= certain or fault is not _KILLER):
            if getattr(work, "strict", False):
                if why is not None:
                    raise why
                msg = f"{shard.input.shown}: grading record {shard.first_row + at} ends its worker process"
                cause = "out of memory, killed, or a crash in native code" if fault is _KILLER else fault.message
                raise PluginError(msg, cause)
            watched = watched.isolated(shard.ordinal, at, fault)
            deaths.clear()
        elif deaths.total() >= (_PATIENCE if why is None else certain + 1):
            if why is not None:
                raise why
            raise PluginError(
                f"{shard.input.shown}: workers on the range from byte {shard.start} die at ever different records",
                "is the machine out of memory? fewer workers need less",
            )


def _reached(watched: Any, shard: Shard) -> tuple[int | None, float]:
    """Return the record a worker died at, None when it died while noting it, and how long it was at it."""
    try:
        position, seconds = watched.last_position(shard)
        return int(position), float(seconds)
    except ValueError:  # the note is there, and empty
        return None, 0.0


def _fault(work: Any, seconds: float) -> Fault:
    """Return what the record a worker died at is reported with: the worker was ended for its time, or else died."""
    limit = seconds_of(work)
    return _KILLER if limit is None or seconds < limit + GRACE - _EARLY else overdue(limit)


def full(shard: Shard, memory: int | None) -> PluginError:
    """Return what is said of a range whose figures take more memory than a worker has."""
    room = "" if memory is None else f" ({memory / 2**20:,.0f} MiB)"
    msg = f"{shard.input.shown}: the range from byte {shard.start} does not fit into a worker's memory{room}"
    return PluginError(
        msg,
        "give workers more, `engine.memory`, or have fewer of them",
        "metrics that keep every sample need most: `gradestack plugins describe NAME` says whether one does",
    )


def _ends_every(shard: Shard, at: int | None) -> str:
    where = "" if at is None else f" (record {at} of it)"
    return f"{shard.input.shown}: reading the range from byte {shard.start} ends every worker process{where}"
