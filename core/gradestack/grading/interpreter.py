"""The same room for recursion wherever a shard is worked on, and a collector that looks less often.

What is nested too deeply for a recursive function depends on how deep the stack already is, which differs between a
script, a worker process and a thread. So the limit is moved for the time of a shard, by what the stack holds already.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ROOM = 800
"""Frames a shard's work may nest; fewer than the usual 1000: what it writes is read where the stack is deeper."""
_ALLOCATIONS = 10_000
"""Objects made and not freed between two looks of the collector: more often, it takes a fifteenth of a run."""
_FOUND: list[tuple[int, tuple[int, int, int]]] = []
"""The recursion limit and the collector's thresholds that each shard now at work found."""


def _room(depth: int = 0) -> int:
    """Return how many frames fit on top of this one."""
    try:
        return _room(depth + 1)
    except RecursionError:
        return depth


@contextmanager
def for_a_shard() -> Iterator[None]:
    """Leave the code inside the same room for recursion, however deep it is called, and collect garbage less often.

    Both are settings of the interpreter, not of the thread: what the first of several threads found is set back when
    the last of them leaves.
    """
    limit, collections = sys.getrecursionlimit(), gc.get_threshold()
    _FOUND.append((limit, collections))
    sys.setrecursionlimit(limit + ROOM - _room())
    if 0 < collections[0] < _ALLOCATIONS:  # 0 is never
        gc.set_threshold(_ALLOCATIONS, *collections[1:])
    try:
        yield
    finally:
        limit, collections = _FOUND[0]
        _FOUND.pop()
        if not _FOUND:
            gc.set_threshold(*collections)
            sys.setrecursionlimit(limit)
