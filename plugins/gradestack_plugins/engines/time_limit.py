"""The end of a process whose grade takes too long and takes no notice of ``gradestack.TimedOut``."""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradestack import Fault, Limits, Looks, TimedOut, time_limit_text

GRACE = 10.0
"""Seconds after which a process is ended that a grade still keeps."""
_OVERDUE = 79
ENDED_FOR_TIME = (_OVERDUE, 1)
"""Exit codes of a process that was ended for its time; 1 is that of the timer outside the interpreter."""
_LOOK = 1.0
"""Seconds between two looks of the thread that ends the process."""


def limits_of(work: Any) -> Limits:
    """Return what records and graders may take; what is no worker has no limits."""
    return getattr(getattr(work, "plan", None), "limits", None) or Limits()


def folder_of(work: Any) -> Path | None:
    """Return the folder that work writes its pieces into; None where it writes none."""
    folder = getattr(getattr(work, "pieces", None), "folder", None)
    return folder if isinstance(folder, Path) else None


def overdue(seconds: float) -> Fault:
    """Return why a sample was left ungraded that kept its process for too long."""
    return Fault(category="grading", code="timed_out", message=time_limit_text(seconds), type=TimedOut.__name__)


class _Ending:
    """The thread that ends this process when a grade is overdue, whatever it is at.

    While nothing else in the process can run, neither can this thread: then a timer outside the interpreter, which the
    thread sets again and again, is not set any more. The first time it is set by who begins, because the thread may
    never come to it.
    """

    def __init__(self) -> None:
        self._limits: dict[int, tuple[float, Looks]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._nowhere: int | None = None

    @contextlib.contextmanager
    def guarding(self, seconds: float | None) -> Iterator[None]:
        if seconds is None:
            yield
            return
        own = threading.get_ident()
        with self._lock:
            self._limits[own] = seconds + GRACE, Looks(own)
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


process_limit = _Ending().guarding
