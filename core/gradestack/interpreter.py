"""What is in force while a shard is worked on: room for recursion, a collector that looks less often, limits.

What is nested too deeply for a recursive function depends on how deep the stack already is, which differs between a
script, a worker process and a thread. So the limit is moved for the time of a shard, by what the stack holds already.

Both are settings of the interpreter, not of the thread: what the first of several threads found is set back when the
last of them leaves.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from gradestack.errors import TimedOut

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


class Limits(NamedTuple):
    """What a grader may take for a sample, a record, and a silent scheduler; None: anything."""

    seconds_per_grade: float | None = None
    record_bytes: int | None = None
    scheduler_seconds: float | None = None


class InForce:
    """The limits in force, and how many records were refused for their time."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.timed_out = limits, 0


IN_FORCE: ContextVar[InForce] = ContextVar("limits", default=InForce(Limits()))  # noqa: B039 - one for all that have none


@contextmanager
def limited(limits: Limits) -> Iterator[InForce]:
    """Have limits in force inside."""
    token = IN_FORCE.set(found := InForce(limits))
    try:
        yield found
    finally:
        IN_FORCE.reset(token)


@contextmanager
def for_a_shard(limits: Limits = Limits()) -> Iterator[InForce]:  # noqa: B008 - is frozen
    """Have room for recursion, however deep the code inside is called, limits, and garbage collected less often."""
    with (
        collected_seldom(),
        _restored(_limits, now := sys.getrecursionlimit(), sys.setrecursionlimit),
        limited(limits) as found,
        time_limit(limits.seconds_per_grade),
    ):
        sys.setrecursionlimit(now + ROOM - _room())
        yield found


UNDER_WAY: dict[int, list[Any]] = {}
"""Thread -> the grades made so far of the block its grader is at: who keeps the time looks whether there are more."""
LOOKS = 8
"""Looks in the time a grade may take; so it takes an eighth longer at most."""


@contextmanager
def under_way(made: list[Any]) -> Iterator[None]:
    """Show what is being made to who keeps the time, unless it is a part of a grade."""
    if (thread := threading.get_ident()) in UNDER_WAY:
        yield
        return
    UNDER_WAY[thread] = made
    try:
        yield
    finally:
        del UNDER_WAY[thread]


class Looks:
    """How often in a row a thread was found at the same grade; not for how long: a machine that slept costs nothing."""

    def __init__(self, thread: int) -> None:
        self._thread, self.count = thread, 0
        self._seen: tuple[list[Any] | None, int] = None, 0

    def look(self) -> int:
        """Look once more."""
        made, (before, count) = UNDER_WAY.get(self._thread), self._seen
        self._seen = made, len(made or ())
        self.count = self.count + 1 if made is not None and made is before and len(made) == count else 0
        return self.count


def time_limit_text(seconds: float) -> str:
    """Return what is said of what took too long."""
    return f"took longer than {seconds:g} s (limits.seconds_per_grade)"


@contextmanager
def ticking(seconds: float, tick: Callable[..., None]) -> Iterator[None]:
    """Have a function called every so many seconds of the code inside, which it cuts by raising.

    By a timer and its signal, which cuts Python code, waiting, and patterns that try without end. Needs the main
    thread of a process, a system that has such timers, and nobody who uses this one; else nothing is done.
    """
    main = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if not main or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGALRM) is tick:  # else it is a grader's own by now
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise ``TimedOut`` in what is ``under_way`` for longer, where code can be cut."""
    if seconds is None:
        yield
        return
    looks = Looks(threading.get_ident())

    def tick(*_: object) -> None:
        if looks.look() >= LOOKS:
            looks.count = 0  # one that takes no notice is told again when as much time has gone
            raise TimedOut(time_limit_text(seconds))

    with ticking(seconds / LOOKS, tick):
        yield
