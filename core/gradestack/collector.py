"""Fewer looks for garbage in cycles while samples are made and dropped by the thousand."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATIONS = 10_000
"""Objects made and not freed between two looks: a block of samples has more than the interpreter's usual 700, so that
it would look every few samples, at objects that are about to be freed anyway. Many more do not fit into caches."""


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Have the collector look at young objects less often; a caller that has it off, or rarer still, is left alone.

    Merging results makes as many as grading: every state holds thousands of small lists.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < _ALLOCATIONS:
        yield
        return
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
