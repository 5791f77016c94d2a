"""The time a grade may take: cut short where Python can, and its process ended where Python cannot.

Nothing is done per grade. A timer looks from time to time whether the grader at work has made a grade more; what is
counted is looks, not seconds, so that a machine that slept has cost nobody a grade.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from gradestack import UNDER_WAY, Fault, TimedOut

LOOKS = 8
"""Looks in the time a grade may take; so it takes an eighth longer at most."""
GRACE = 10.0
"""Seconds after which a process is ended that a grade still keeps."""
_OVERDUE = 79
ENDED_FOR_TIME = (_OVERDUE, 1)
"""Exit codes of a process that was ended for its time; 1 is that of the timer outside the interpreter."""
_LOOK = 1.0
"""Seconds between two looks of the thread that ends the process."""


def seconds_of(work: Any) -> float | None:
    """Return how long each grader may take for a sample, None for any time; what is no worker has no graders."""
    found: float | None = getattr(getattr(work, "plan", None), "seconds_per_grade", None)
    return found


def _said(seconds: float) -> str:
    return f"took longer than {seconds:g} s (limits.seconds_per_grade)"


def overdue(seconds: float) -> Fault:
    """Return why a sample was left ungraded that kept its process for too long."""
    return Fault(category="grading", code="timed_out", message=_said(seconds), type=TimedOut.__name__)


class _Looks:
    """How often in a row a thread was found at one and the same grade."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._grades: list[Any] | None = None
        self._made = 0
        self.count = 0

    def look(self) -> int:
        """Look once more."""
        grades = UNDER_WAY.get(self._thread)
        made = 0 if grades is None else len(grades)
        same = grades is not None and grades is self._grades and made == self._made
        self._grades, self._made, self.count = grades, made, self.count + 1 if same else 0
        return self.count


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Have grades fail that take longer, while the code inside is at work.

    By a timer and its signal, which cuts Python code, waiting, and patterns that try without end. Needs the main
    thread of a process, a system that has such timers, and nobody who uses this one; else nothing is done.
    """
    mine = threading.current_thread() is threading.main_thread()
    if seconds is None or not mine or not _timer_is_free():
        yield
        return
    looks = _Looks(threading.get_ident())

    def tick(_number: int, _frame: FrameType | None) -> None:
        if looks.look() >= LOOKS:
            looks.count = 0  # one that takes no notice is told again when as much time has gone
            raise TimedOut(_said(seconds))

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, seconds / LOOKS, seconds / LOOKS)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGALRM) is tick:  # else it is a grader's own by now
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _timer_is_free() -> bool:
    if not hasattr(signal, "setitimer"):
        return False
    return signal.getsignal(signal.SIGALRM) is signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0


class _Ending:
    """The thread that ends this process when a grade is overdue, whatever it is at.

    While nothing else in the process can run, neither can this thread: then a timer outside the interpreter, which the
    thread sets again and again, is not set any more. The first time it is set by who begins, because the thread may
    never come to it.
    """

    def __init__(self) -> None:
        self._limits: dict[int, tuple[float, _Looks]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._nowhere: int | None = None

    @contextlib.contextmanager
    def guarding(self, seconds: float) -> Iterator[None]:
        """End the process when the thread that calls this is :data:`GRACE` beyond its time, while the code runs."""
        own = threading.get_ident()
        with self._lock:
            self._limits[own] = seconds + GRACE, _Looks(own)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="gradestack-time", daemon=True)
                self._thread.start()
            self._set_timer()
        try:
            yield
        finally:
            with self._lock:
                del self._limits[own]
                self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer outside the interpreter anew, or stop it where nothing is guarded."""
        if self._limits:
            if self._nowhere is None:  # kept for the process's life
                self._nowhere = os.open(os.devnull, os.O_WRONLY)
            longest = max(seconds for seconds, _ in self._limits.values())
            faulthandler.dump_traceback_later(longest, exit=True, file=self._nowhere)
        else:
            faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        while True:
            time.sleep(_LOOK)
            with self._lock:
                self._set_timer()
                limits = list(self._limits.values())
            if any(looks.look() >= math.ceil(seconds / _LOOK) for seconds, looks in limits):
                os._exit(_OVERDUE)


_ending = _Ending()


@contextlib.contextmanager
def process_limit(seconds: float | None) -> Iterator[None]:
    """Have this process end when a grade is overdue by :data:`GRACE`; for processes that are there to be lost."""
    if seconds is None:
        yield
        return
    with _ending.guarding(seconds):
        yield
