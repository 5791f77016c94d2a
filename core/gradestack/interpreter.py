"""Settings that are in force while a shard is graded.

Room for recursion, a collector that looks less often, limits.

What is nested too deeply depends on how deep the stack already is: the limit is moved for a shard,
by what it holds. Both are settings of the interpreter: what the first of several threads found is
set back when the last leaves.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
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
_recursion_limits: list[Any] = []
_thresholds: list[Any] = []


def _room(depth: int = 0) -> int:
    """Return the number of further Python frames that the stack has room for.

    Counting those below is off by what is not Python's.
    """
    try:
        return _room(depth + 1)
    except RecursionError:
        return depth


@contextmanager
def _restored(earlier: list[Any], setting: Any, restore: Callable[[Any], object]) -> Iterator[None]:
    """Restore a setting when the last of several threads leaves, as the first has found it."""
    earlier.append(setting)
    try:
        yield
    finally:
        first = earlier[0]
        earlier.pop()
        if not earlier:
            restore(first)


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Collect garbage less often inside; nearly all that a run makes is freed without."""
    threshold = gc.get_threshold()
    with _restored(_thresholds, threshold, lambda first: gc.set_threshold(*first)):
        if 0 < threshold[0] < ALLOCATIONS:  # 0 is never
            gc.set_threshold(ALLOCATIONS, *threshold[1:])
        yield


class Limits(NamedTuple):
    """The limits of a grader for a sample, of a record, and of a silent scheduler; None: no
    limit.
    """

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
    """Put limits in force while the ``with`` block runs."""
    in_force = InForce(limits)
    token = IN_FORCE.set(in_force)
    try:
        yield in_force
    finally:
        IN_FORCE.reset(token)


@contextmanager
def for_a_shard(limits: Limits = Limits()) -> Iterator[InForce]:  # noqa: B008 - is frozen
    """Set recursion limit, time limit and garbage collection for a ``with`` block that grades.

    The block has the same room for recursion, however deep it is called.
    """
    recursion_limit = sys.getrecursionlimit()
    with (
        collected_seldom(),
        _restored(_recursion_limits, recursion_limit, sys.setrecursionlimit),
        limited(limits) as in_force,
        time_limit(limits.seconds_per_grade),
    ):
        sys.setrecursionlimit(recursion_limit + ROOM - _room())
        yield in_force


IN_PROGRESS: dict[int, list[Any]] = {}
"""Thread -> the grades made so far of the block its grader is at.

Who keeps the time looks whether there are more.
"""
POLLS = 8  # in the time a grade may take; so it takes an eighth longer at most


@contextmanager
def in_progress(made: list[Any]) -> Iterator[None]:
    """Register the list of grades being made, by which the watchdog sees progress."""
    thread = threading.get_ident()
    outer = IN_PROGRESS.setdefault(thread, made)
    try:
        yield
    finally:
        if outer is made:
            del IN_PROGRESS[thread]


class Watchdog:
    """Counts how often in a row a thread was found at the same grade.

    Not for how long: a machine that slept costs nothing.
    """

    def __init__(self, thread: int) -> None:
        self._thread, self.count = thread, 0
        self._last: tuple[list[Any] | None, int] = None, 0

    def poll(self) -> int:
        """Look once more; return how often in a row the grade is the same by now."""
        made = IN_PROGRESS.get(self._thread)
        earlier, length = self._last
        self._last = made, len(made or ())
        is_same = made is not None and made is earlier and len(made) == length
        self.count = self.count + 1 if is_same else 0
        return self.count


def time_limit_text(seconds: float) -> str:
    """Return the message about a grade that took too long."""
    return f"took longer than {seconds:g} s (limits.seconds_per_grade)"


def _has_timers() -> bool:
    """Check whether this is the main thread, on a system that has timers."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and hasattr(signal, "setitimer")


@contextmanager
def ticking(seconds: float, tick: Callable[..., None]) -> Iterator[None]:
    """Call ``tick`` every so many seconds while the ``with`` block runs.

    ``tick`` may raise to end the block: also where it waits, or matches a regular expression that
    takes for ever. Needs the main thread, a system with such timers, and a timer that is not in
    use. Else ``tick`` is never called.
    """
    is_free = _has_timers() and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    if not is_free or signal.getitimer(signal.ITIMER_REAL)[0]:
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
    """Raise ``TimedOut`` in what is ``in_progress`` for longer, where code can be cut."""
    if seconds is None:
        yield
        return
    watchdog = Watchdog(threading.get_ident())

    def tick(*_: object) -> None:
        if watchdog.poll() >= POLLS:
            watchdog.count = 0  # one that takes no notice is told again after as much time
            raise TimedOut(time_limit_text(seconds))

    with ticking(seconds / POLLS, tick):
        yield


@contextmanager
def work_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimedOut`` in the code inside when it has worked for so many seconds.

    It counts the processor's time, and stands inside of a ``time_limit`` or without one. It needs
    the main thread of a process and a system with such timers; else nothing is done.
    """
    if not _has_timers() or signal.getsignal(signal.SIGPROF) is not signal.SIG_DFL:
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


ON_DEFERRED_SIGINT: list[Callable[[bool], None]] = []
"""Called when Ctrl-C is deferred until what is at hand is done, which may take.

With True where it is deferred however often it comes.
"""


class Interruption:
    """Defers Ctrl-C until the sample at hand is done, so that its row and its figures stay
    together.

    The first signal sets ``requested``; a second one interrupts at once, unless ``patient``, or
    inside ``deferred``. Does nothing outside the main thread, or where the caller handles the
    signal itself.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self.requested = False
        self._patient = patient
        self._is_installed = self._is_deferring = self._has_deferred = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT: note the first request, and raise or defer a second one."""
        is_second = self.requested
        self.requested = True  # first: the second one may come while the rest is being done
        if self._is_deferring:
            self._has_deferred |= is_second
        elif is_second and not self._patient:
            signal.default_int_handler(number, frame)
        else:
            for callback in ON_DEFERRED_SIGINT:
                callback(self._patient)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer a second signal, too, until the code inside is done."""
        self._is_deferring = True
        try:
            yield
        finally:
            self._is_deferring = False
        if self._has_deferred and not self._patient:
            self._has_deferred = False
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._is_installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
