"""Shards that end their workers: the records that do so are found by halving, and reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gradestack import Fault, PluginError, Shard
from gradestack_plugins.engines.time_limit import GRACE, limits_of, overdue

MOST_KILLERS = 5
"""Records of an evaluation that may end their worker; with one more the evaluation ends."""
_PATIENCE = 8
"""How many times a shard may be lost without a record to blame before the evaluation ends."""
_EARLY = 2.0
"""Seconds by which clocks, and looks at them, may differ."""
_DIED = Fault(
    category="grading",
    code="worker_died",
    message="grading this record ended the worker process (out of memory, killed, or a crash in "
    "native code)",
)

Attempt = Callable[[Any, Shard], tuple[bool, Any]]
"""Applies work to a shard on a worker of its own.

(True, result), or (False, error) when that worker died: the error to end the evaluation with where
no record is to blame, None when nothing is known.
"""


def grade_lost(
    work: Any,
    shard: Shard,
    attempt: Attempt,
    killers: list[str],
    *,
    why: PluginError | None = None,
) -> Any:
    """Return the result of a shard that was lost too often.

    The records that end a worker are failed samples in it, for all graders.

    Args:
        work: The run's worker.
        shard: Where the records are.
        attempt: Applies work on a worker of its own.
        killers: Names of the records that have ended a worker so far; new ones are added.
        why: The error to end the evaluation with where no record is to blame.

    Raises:
        PluginError: Reading alone ends the worker; no record is to blame; or more than
            ``MOST_KILLERS`` records are.
    """
    if not hasattr(work, "limited"):
        raise why or _reading_ends(shard)
    losses = 0
    while True:
        killer = _find_killer(work, shard, attempt, why)
        if killer is not None:
            position, fault = killer
            name = f"{shard.input.shown}: grading record {shard.first_row + position}"
            killers.append(f"{name} ends its worker process")
            _check_killers(work, killers, fault)
            work = work.without(shard.ordinal, position, fault)
        survived, result = attempt(work, shard)
        if survived:
            return result
        losses += killer is None
        if losses and (why or losses > _PATIENCE):
            raise why or PluginError(
                f"{shard.input.shown}: workers on the range from byte {shard.start} die at ever "
                "different records",
                "is the machine out of memory? fewer workers need less",
            )


def _find_killer(
    work: Any, shard: Shard, attempt: Attempt, why: PluginError | None
) -> tuple[int, Fault] | None:
    """Return the position of a record whose grading ends a worker, and how; None without one."""
    limited = work.limited(range(0))
    survived, reading = attempt(limited, shard)
    if not survived:
        raise why or _reading_ends(shard)
    positions = range(getattr(reading, "left_out", 0))
    while len(positions) > 1:
        half = positions[: len(positions) // 2]
        survived, _ = attempt(work.limited(half), shard)
        positions = positions[len(half) :] if survived else half
    if not positions:
        return None
    begun = time.monotonic()
    survived, _ = attempt(work.limited(positions), shard)
    seconds = time.monotonic() - begun
    if survived:
        return None
    limit = limits_of(work).seconds_per_grade
    is_overdue = limit is not None and seconds >= limit + GRACE - _EARLY
    first_position = positions[0]
    return first_position, overdue(limit) if limit is not None and is_overdue else _DIED


def _check_killers(work: Any, killers: list[str], fault: Fault) -> None:
    """Raise where one record more ends its worker than an evaluation bears."""
    if getattr(work, "strict", False):
        last_killer = killers[-1]
        raise PluginError(last_killer, fault.message or "")
    if len(killers) > MOST_KILLERS:
        raise PluginError(
            f"more than {MOST_KILLERS} records end their worker process",
            killers[-1],
            "grade with fewer graders to find the one that does; what is graded is kept: mend it "
            "and continue with --resume",
        )


def _reading_ends(shard: Shard) -> PluginError:
    return PluginError(
        f"{shard.input.shown}: reading the range from byte {shard.start} ends every worker process",
        "a path or a reader that takes too long does so under `dask`: `serial` names it",
    )
