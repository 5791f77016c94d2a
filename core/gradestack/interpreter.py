"""The same room for recursion wherever a shard is worked on, and a collector that looks less often.

What is nested too deeply for a recursive function depends on how deep the stack already is, which differs between a
script, a worker process and a thread. So the limit is moved for the time of a shard, by what the stack holds already.

Both are settings of the interpreter, not of the thread: what the first of several threads found is set back when the
last of them leaves.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ROOM = 800
"""Frames a shard's work may nest; fewer than the usual 1000: what it writes is read where the stack is deeper."""
ALLOCATIONS = 100_000
"""Objects made and not freed between two looks of the collector: more often, it takes an eighth of a run."""
_limits: list[Any] = []
_thresholds: list[Any] = []


def _room(depth: int = 0) -> int:
    """Return how many frames fit on top of this one.

    Counting the frames below it instead is off by what of the stack is not Python's: two to five on 3.11, by engine.
    """
    try:
        return _room(depth + 1)
    except RecursionError:
        return depth


@contextmanager
def _restored(before: list[Any], setting: Any, restore: Callable[[Any], object]) -> Iterator[None]:
    before.append(setting)
    try:
        yield
    finally:
        first = before[0]
        before.pop()
        if not before:
            restore(first)


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Collect garbage less often inside; nearly all that a run makes is freed without."""
    with _restored(_thresholds, now := gc.get_threshold(), lambda first: gc.set_threshold(*first)):
        if 0 < now[0] < ALLOCATIONS:  # 0 is never
            gc.set_threshold(ALLOCATIONS, *now[1:])
        yield


@contextmanager
def for_a_shard() -> Iterator[None]:
    """Leave the code inside the same room for recursion, however deep it is called, and collect garbage less often."""
    with collected_seldom(), _restored(_limits, now := sys.getrecursionlimit(), sys.setrecursionlimit):
        sys.setrecursionlimit(now + ROOM - _room())
        yield
