"""The same room for recursion wherever a shard is worked on, and a collector that looks less often.

What is nested too deeply for a recursive function depends on how deep the stack already is, which differs between a
script, a worker process and a thread. So the limit is moved for the time of a shard, by what the stack holds already.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ROOM = 800
"""Frames a shard's work may nest; fewer than the usual 1000: what it writes is read where the stack is deeper."""
_ALLOCATIONS = 10_000
"""Objects made and not freed between two looks of the collector: more often, it takes a fifteenth of a run."""


def _room(depth: int = 0) -> int:
    """Return how many frames fit on top of this one."""
    try:
        return _room(depth + 1)
    except RecursionError:
        return depth


@contextmanager
def for_a_shard() -> Iterator[None]:
    """Leave the code inside the same room for recursion, however deep it is called, and collect garbage less often.

    The limit is the interpreter's, not the thread's: outside the main thread it is left as it was set, because another
    thread may be at a shard of its own, with the same stack below it.
    """
    before, collections = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(before + ROOM - _room())
    often = 0 < collections[0] < _ALLOCATIONS  # 0 is never
    gc.set_threshold(_ALLOCATIONS if often else collections[0], *collections[1:])
    try:
        yield
    finally:
        if often:  # otherwise another thread may have set it
            gc.set_threshold(*collections)
        if threading.current_thread() is threading.main_thread():
            sys.setrecursionlimit(before)
