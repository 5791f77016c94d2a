"""What is in force while a shard is worked on.

Room for recursion, a collector that looks less often, limits.

What is nested too deeply depends on how deep the stack already is: the limit is moved for a shard,
by what it holds. Both are settings of the interpreter: what the first of several threads found is
set back when the last leaves.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple, Self

from gradestack.errors import TimedOut

ROOM = 800
"""Frames a shard's work may nest.

Fewer than the usual 1000: what it writes is read where the stack is deeper.
"""
ALLOCATIONS = 100_000
"""Objects made and not freed between two looks of the collector.

More often, it takes an eighth of a run.
"""
_limits: list[Any] = []
_thresholds: list[Any] = []


def _room(depth: int = 0) -> int:
    """Return how many frames fit on top of this one.

    Counting those below is off by what is not Python's.
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
        first, _ = before[0], before.pop()
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


# one for all that have none
IN_FORCE: ContextVar[InForce] = ContextVar("limits", default=InForce(Limits()))  # noqa: B039


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
    """Have room for recursion, however deep the code inside is called, limits, and garbage
    collected less often.
    """
    with (
        collected_seldom(),
        _restored(_limits, now := sys.getrecursionlimit(), sys.setrecursionlimit),
        limited(limits) as found,
        time_limit(limits.seconds_per_grade),
    ):
        sys.setrecursionlimit(now + ROOM - _room())
        yield found


UNDER_WAY: dict[int, list[Any]] = {}
"""Thread -> the grades made so far of the block its grader is at.

Who keeps the time looks whether there are more.
"""
LOOKS = 8  # looks in the time a grade may take; so it takes an eighth longer at most


@contextmanager
def under_way(made: list[Any]) -> Iterator[None]:
    """Show what is being made to who keeps the time, unless it is a part of a grade."""
    outer = UNDER_WAY.setdefault(thread := threading.get_ident(), made)
    try:
        yield
    finally:
        if outer is made:
            del UNDER_WAY[thread]


class Looks:
    """How often in a row a thread was found at the same grade.

    Not for how long: a machine that slept costs nothing.
    """

    def __init__(self, thread: int) -> None:
        self._thread, self.count = thread, 0
        self._seen: tuple[list[Any] | None, int] = None, 0

    def look(self) -> int:
        """Look once more."""
        made, (before, count) = UNDER_WAY.get(self._thread), self._seen
        self._seen = made, len(made or ())
        self.count = (
            self.count + 1 if made is not None and made is before and len(made) == count else 0
        )
        return self.count


def time_limit_text(seconds: float) -> str:
    """Return what is said of what took too long."""
    return f"took longer than {seconds:g} s (limits.seconds_per_grade)"


@contextmanager
def ticking(seconds: float, tick: Callable[..., None]) -> Iterator[None]:
    """Have a function called every so many seconds of the code inside, which it cuts by raising.

    By a timer and its signal, which cuts Python code, waiting, and patterns that try without end.
    Needs the main thread of a process, a system that has such timers, and nobody who uses this one;
    else nothing is done.
    """
    main = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if (
        not main
        or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
        or signal.getitimer(signal.ITIMER_REAL)[0]
    ):
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


@contextmanager
def work_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimedOut`` in the code inside when it has worked for so many seconds.

    It counts the processor's time, and stands inside of a ``time_limit`` or without one. It needs
    the main thread of a process and a system with such timers; else nothing is done.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if (
        not (is_main and hasattr(signal, "setitimer"))
        or signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL
    ):
        yield
        return

    def end(*_: object) -> None:
        raise TimedOut(f"took longer than {seconds:g} s")

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)


_watching: list[threading.Thread] = []
_lock = threading.RLock()


def note(text: str) -> None:
    """Write a line to standard error, from wherever the program is.

    Even in the middle of writing another.
    """
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="backslashreplace"))


SECONDS_BETWEEN_LOOKS = 0.25
"""Seconds between two looks of the thread that keeps an eye on grades."""
_looks: list[Callable[[], object]] = []


@contextmanager
def looked_at(look: Callable[[], object]) -> Iterator[None]:
    """Have a function called by another thread, at each of its looks, while the code inside goes
    on.
    """
    with _lock:
        _looks.append(look)
        _begin_to_watch()
    try:
        yield
    finally:
        with _lock, contextlib.suppress(ValueError):  # in a process that was forked meanwhile
            _looks.remove(look)


def _begin_to_watch() -> None:
    if not _watching:
        _watching.append(threading.Thread(target=_watch, name="gradestack-watch", daemon=True))
        _watching[0].start()


def _watch() -> None:
    while True:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        with _lock:
            for look in [*_looks]:
                look()


def _alone() -> None:
    global _lock  # noqa: PLW0603 - the parent's may be held
    _looks.clear()
    _watching.clear()
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on every system
    os.register_at_fork(after_in_child=_alone)


HELD_BACK: list[Callable[[bool], None]] = []
"""Called when Ctrl-C is held back until what is at hand is done, which may take.

Patiently, however often it comes.
"""


class Interruption:
    """Holds back Ctrl-C until the sample at hand is done, so that its row and its figures stay
    together.

    The first signal sets ``requested``; a second one interrupts at once, unless ``patient``, or
    inside ``held``. Does nothing outside the main thread, or where the caller handles the signal
    itself.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self.requested = False
        self._patient = patient
        self._installed = self._held = self._late = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = (
            self.requested,
            True,
        )  # first: the second one may come while the rest is being said
        if self._held:
            self._late |= again
        elif again and not self._patient:
            signal.default_int_handler(number, frame)
        else:
            for each in HELD_BACK:
                each(self._patient)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold back a second signal, too, until the code inside is done."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._late and not self._patient:
            self._late = False
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        own = threading.current_thread() is threading.main_thread()
        if own and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
